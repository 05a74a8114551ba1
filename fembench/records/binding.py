"""Whether each rank has a core, or a device, of its own: rules C4 and C5.

Whether ranks take turns on cores: which cores a run really used, whatever its hosts are
called.

Hosts of one kernel share its cores, ranks may share one, a quota may leave less.

Which caches of these cores hold the matrix."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fembench.base.units import few, plural
from fembench.records.quiet import narrow_quotas
from fembench.records.record import Environment, HostFacts, Record
from fembench.records.verdict import Rule

OVERSUBSCRIBED = "OVERSUBSCRIBED"
CROWDED = f"{OVERSUBSCRIBED}: functional only"
MOST_SHOWN = 3  # hosts named in a line
PARTLY = 0.25  # of the matrix: what L3 caches hold of it from there on counts
ENOUGH = "a core for each rank, if its host has enough"
REMEDY = "leave binding to fembench (no --launcher-options, no rankfile), or bind each rank to another core"


def enough_cores(record: Record) -> Rule:
    """C4: no host has more ranks, or threads of them, than cores. A quota is stated."""
    environment = record.environment
    counted = "ranks x threads" if environment.threads > 1 else "ranks"
    threshold = f"{counted} <= cores"
    found = too_few_cores(environment, record.case.synthetic.dilate)
    if not oversubscribed(environment, record.case.synthetic.dilate):
        affinity = f"{threshold}, affinity of {plural(record.case.placement.ranks, 'rank')} recorded"
        value = "; ".join(filter(None, [affinity, few(narrow_quotas(environment), MOST_SHOWN)]))
        return Rule(id="C4", ok=True, value=value, threshold=threshold)
    fewer = "fewer ranks or threads" if environment.threads > 1 else "fewer ranks"
    device = sharing_device(environment)
    note = f"use {fewer}, or more cores or hosts" if found or not device else "use one rank per device"
    value = "; ".join(filter(None, [CROWDED, few(found, MOST_SHOWN), device]))
    return Rule(id="C4", ok=False, value=value, threshold=threshold, note=note)


def oversubscribed(environment: Environment, dilate: float = 1.0) -> bool:
    """Whether ranks share cores or a device: recorded cores decide: a quota once counted as cores."""
    unknown = not _cores_known(environment)
    cores = environment.oversubscribed and (unknown or bool(too_few_cores(environment, dilate)))
    return cores or bool(sharing_device(environment))


def sharing_device(environment: Environment) -> str:
    """'2 ranks share one device (NAME)', of the most crowded; "" if each has its own."""
    most = max(environment.devices, key=lambda device: device.ranks, default=None)
    return f"{most.ranks} ranks share one device ({most.name})" if most and most.ranks > 1 else ""


def _cores_known(environment: Environment) -> bool:
    return len(environment.cores) == len(environment.rank_host) and all(environment.cores)


def too_few_cores(environment: Environment, dilate: float = 1.0) -> list[str]:
    """The hosts with more ranks than cores, and what they lack: 'n3: 2 ranks, 1 core'.

    `dilate`: ranks that take turns on a core on purpose.
    """
    ranks: list[list[int]] = [[] for _ in environment.hosts]
    for rank, number in enumerate(environment.rank_host):
        ranks[number].append(rank)
    lacks = (_too_few(environment, dilate, *one) for one in zip(environment.hosts, ranks))
    return list(filter(None, lacks))


def _too_few(environment: Environment, dilate: float, host: HostFacts, ranks: Sequence[int]) -> str:
    """What a host lacks for these ranks; "" if it has enough cores."""
    needed = len(ranks) * environment.threads
    ours = f"{host.name}: {plural(len(ranks), 'rank')}{_of_threads(environment)}"
    if not _cores_known(environment):
        by_quota = 0 < host.cpu_quota < host.cores + 1  # whole CPUs of it count as cores
        lack = f"a quota of {host.cpu_quota:.3g} CPUs" if by_quota else plural(host.cores, "core")
        return f"{ours}, {lack}" if needed > host.cores * dilate else ""
    bound = {core for rank in ranks for core in environment.cores[rank]}
    if needed <= len(bound) * dilate:
        return ""
    return f"{ours}, {'bound to ' if len(bound) < host.cores else ''}{plural(len(bound), 'core')}"


def _of_threads(environment: Environment) -> str:
    return f" of {environment.threads} threads" if environment.threads > 1 else ""


def bound_apart(record: Record) -> Iterator[Rule]:
    """C5: no two ranks share a core while another core of their host is free.

    Each rank needs as many cores of its own as it has threads.

    Ranks that share cores on purpose are not judged: too many, or emulated hosts.
    """
    environment = record.environment
    on_purpose = environment.crowded or environment.synthetic or record.case.synthetic.dilate > 1
    cores = environment.cores
    if on_purpose or len(cores) < len(environment.rank_host) or not all(cores):
        return
    for number, host in enumerate(environment.hosts):
        ranks = [rank for rank, where in enumerate(environment.rank_host) if where == number]
        if len(ranks) * environment.threads > host.cores:  # rule C4
            continue
        wanted = [rank for rank in ranks for _ in range(environment.threads)]
        owners = own_cores_of(wanted, environment.cores)
        owned = Counter(owners.values())
        without = next((rank for rank in ranks if owned[rank] < environment.threads), None)
        if without is not None:
            yield _shared(host.name, without, owners, environment.cores, host.cores - len(owners))
            return
    hosts = plural(len(environment.hosts), "host")
    yield Rule(
        id="C5", ok=True, value=f"{plural(len(environment.cores), 'rank')} on {hosts}", threshold=ENOUGH
    )


def own_cores_of(ranks: Sequence[int], cores: Sequence[Sequence[int]]) -> dict[int, int]:
    """{core: rank} that gives a core of its own to as many of these ranks as possible.

    `cores`: [rank] -> cores that it may run on. By augmenting paths: a rank without a
    free core takes one whose owner can move.
    """
    owners: dict[int, int] = {}

    def place(rank: int, tried: set[int]) -> bool:
        free = next((core for core in cores[rank] if core not in owners), None)
        if free is not None:
            owners[free] = rank
            return True
        for core in cores[rank]:
            if core in tried:
                continue
            tried.add(core)
            if place(owners[core], tried):
                owners[core] = rank
                return True
        return False

    for rank in ranks:
        place(rank, set())
    return owners


def _shared(
    host: str,
    rank: int,
    owners: dict[int, int],
    cores: Sequence[Sequence[int]],
    free: int,
) -> Rule:
    core = cores[rank][0]
    what = f"ranks {owners[core]} and {rank} share core {core}"
    if owners[core] == rank:
        what = f"rank {rank} has {plural(len(cores[rank]), 'core')}, fewer than threads"
    value = f"{host}: {what}; {plural(free, 'core')} of it stay free"
    return Rule(id="C5", ok=False, value=value, threshold=ENOUGH, note=REMEDY)


def ranks_of_machines(environment: Environment) -> list[list[int]]:
    """The ranks on each machine; a host whose machine was not recorded counts as one."""
    found: dict[tuple[bool, int], list[int]] = {}
    for rank, number in enumerate(environment.rank_host):
        machine = environment.hosts[number].machine
        found.setdefault((machine >= 0, machine if machine >= 0 else number), []).append(rank)
    return list(found.values())


def cpus_at_once(environment: Environment, ranks: Sequence[int]) -> float:
    """CPUs that these ranks have at once: each core once, less what a quota withholds."""
    on_host = Counter(environment.rank_host[rank] for rank in ranks)
    by_quota = sum(min(n, _cpus(environment.hosts[number])) for number, n in on_host.items())
    return min(by_quota, _cores(environment, ranks))


def taking_turns(environment: Environment) -> str:
    """'6 ranks take turns on 2 cores', of the most crowded machine; "" if none is."""
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
    return min(usable, len(own_cores_of(ranks, environment.cores))) if _cores_known(environment) else usable


def _cpus(host: HostFacts) -> float:
    return min(host.cores, host.cpu_quota) if host.cpu_quota > 0 else host.cores


def held_in(record: Record) -> str:
    """The innermost cache that holds the matrix of every rank: 'L2', 'L3'; "" if none, or with devices."""
    return _innermost(record, record.solve.matrix_bytes)


def touched_in(record: Record) -> str:
    """The same of all that an iteration touches."""
    return _innermost(record, record.solve.bytes)


def _innermost(record: Record, held: Sequence[float]) -> str:
    """L1d and L2 belong to a core; the L3 caches of a host hold what its ranks have together."""
    e = record.environment
    if e.devices:
        return ""
    for level in ("L1d", "L2"):
        if all(0 < held[p] <= e.hosts[host].caches.get(level, 0) for p, host in enumerate(e.rank_host)):
            return level
    return "L3" if _share_in_l3(record, held) >= 1 else ""


def beyond_caches(record: Record) -> bool:
    """Whether caches do not hold all that an iteration touches, as known; False with devices."""
    solve = record.solve
    if 0 < _share_in_l3(record, solve.bytes) < 1:
        return True
    return _share_in_l3(record, solve.matrix_bytes) > 0 and not held_in(record)


def partly_cached(record: Record) -> bool:
    """Whether L3 holds so much of the matrix that its bandwidth is of neither."""
    return PARTLY <= _share_in_l3(record, record.solve.matrix_bytes) < 1


def _share_in_l3(record: Record, held: Sequence[float]) -> float:
    """L3 caches over these bytes of the ranks, on the host where that is least; 0 if not known."""
    e = record.environment
    if e.devices:  # they hold matrices of their own
        return 0.0
    parts = np.bincount(e.rank_host, held, len(e.hosts)).tolist()
    shares = [h.sockets * h.caches.get("L3", 0) / part if part else 0.0 for part, h in zip(parts, e.hosts)]
    return min(shares, default=0.0)
