"""What quotas withhold from the ranks of a host: a property of the machine, and no noise.

A quota of control groups grants the ranks of a host some CPUs of time. If that is less than one per rank, the
host is slow. The runs on it are as valid as on any slow host; their efficiency is E_het.
"""

from collections.abc import Iterator

from fembench.base.units import few, plural
from fembench.records.record import Environment, HostFacts, Rule

LAB_GROUP = "fembench."  # prefix of the names of a lab's control groups and namespaces
WITHHELD = 2.0  # percent of CPU time
SHOWN = 3  # hosts named in a line


def stretch(environment: Environment, number: int) -> float:
    """The most by which a quota stretches the times of a host; 1 if it grants each of its ranks a CPU."""
    quota = environment.hosts[number].cpu_quota
    return max(environment.rank_host.count(number) / quota, 1.0) if quota > 0 else 1.0


def narrow_quotas(environment: Environment) -> list[str]:
    """The hosts made slow by a quota, but for those of labs: 'n3: 2 ranks, a quota of 0.5 CPUs'."""
    return [
        f"{host.name}: {plural(environment.rank_host.count(k), 'rank')}, a quota of {host.cpu_quota:.3g} CPUs"
        for k, host in enumerate(environment.hosts)
        if (stretch(environment, k) > 1 or withheld(host)) and not of_lab(host)
    ]


def withheld(host: HostFacts) -> bool:
    """Whether a quota withheld a share of the CPU time that matters."""
    return host.throttled_percent > WITHHELD


def quota_rules(environment: Environment) -> Iterator[Rule]:
    """D3: what the quotas withheld: reported, never a failure."""
    held = [host for host in environment.hosts if host.throttled_percent > 0]
    if held:
        worst = sorted(held, key=lambda host: -host.throttled_percent)
        labs = "the lab's own: SYNTHETIC" if all(map(of_lab, held)) else "any: a property of the host"
        yield Rule(id="D3", ok=True, value=few([_said(host) for host in worst], SHOWN), threshold=labs)


def _said(host: HostFacts) -> str:
    by = f"the quota of {host.cpu_quota:.3g} CPUs on control group {host.quota_group}"
    return f"{host.name}: {host.throttled_percent:.3g} % of CPU time withheld by {by}"


def of_lab(host: HostFacts) -> bool:
    """Whether the quota of a host was set by a lab, to make it slow."""
    return any(name.startswith(LAB_GROUP) for name in host.quota_group.split("/"))
