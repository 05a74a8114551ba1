"""Whether ranks take turns on cores: which cores a run really used, whatever its hosts are called.

Hosts of one kernel share its cores, ranks may be bound to the same core, and a quota may leave less than a
CPU.
"""

from collections import Counter
from collections.abc import Sequence

from fembench.base.units import plural
from fembench.records.binding import own_cores_of
from fembench.records.record import Environment, HostFacts


def ranks_of_machines(environment: Environment) -> list[list[int]]:
    """The ranks on each machine; a host whose machine was not recorded counts as one."""
    found: dict[tuple[bool, int], list[int]] = {}
    for rank, number in enumerate(environment.rank_host):
        machine = environment.hosts[number].machine
        found.setdefault((machine >= 0, machine if machine >= 0 else number), []).append(rank)
    return list(found.values())


def cpus_at_once(environment: Environment, ranks: Sequence[int]) -> float:
    """CPUs that these ranks of one machine have at once: each core once, less what a quota withholds."""
    on_host = Counter(environment.rank_host[rank] for rank in ranks)
    by_quota = sum(min(n, _cpus(environment.hosts[number])) for number, n in on_host.items())
    return min(by_quota, _cores(environment, ranks))


def taking_turns(environment: Environment) -> str:
    """'6 ranks take turns on 2 cores', of the most crowded machine; "" if each rank has a core of its own."""
    counts = [(len(ranks), _cores(environment, ranks)) for ranks in ranks_of_machines(environment)]
    crowded = [(n / cores, n, cores) for n, cores in counts if n > cores]
    if not crowded:
        return ""
    _, n, cores = max(crowded)
    return f"{plural(n, 'rank')} take turns on {plural(cores, 'core')}"


def _cores(environment: Environment, ranks: Sequence[int]) -> int:
    """Cores that these ranks of one machine use, each counted once."""
    on_host = Counter(environment.rank_host[rank] for rank in ranks)
    usable = sum(min(n, max(environment.hosts[number].cores, 1)) for number, n in on_host.items())
    known = len(environment.cores) == len(environment.rank_host) and all(environment.cores)
    return min(usable, len(own_cores_of(ranks, environment.cores))) if known else usable


def _cpus(host: HostFacts) -> float:
    return min(host.cores, host.cpu_quota) if host.cpu_quota > 0 else host.cores
