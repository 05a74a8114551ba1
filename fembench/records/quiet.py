"""What quotas withhold from the ranks of a host: a property of the machine, and no noise.

A quota of control groups grants the ranks of a host some CPUs of time. If that is
less than one per rank, the host is slow. The runs on it are as valid as on any slow
host; their efficiency is E_het.

Whether the hosts were quiet: rules D6, and D3 for hypervisors. Quotas are no noise (quota.py)."""

from collections.abc import Iterator, Sequence
from math import floor

from fembench.base.units import few, plural
from fembench.records.record import Environment, HostFacts, Record
from fembench.records.verdict import Rule, reason

LAB_GROUP = "fembench."  # prefix of the names of a lab's control groups and namespaces
WITHHELD = 2.0  # percent of CPU time
SHOWN = 3  # hosts named in a line


def stretch(environment: Environment, number: int) -> float:
    """The most by which a quota stretches a host's times; 1 if each rank is granted a CPU."""
    quota = environment.hosts[number].cpu_quota
    return max(environment.rank_host.count(number) / quota, 1.0) if quota > 0 else 1.0


def narrow_quotas(environment: Environment) -> list[str]:
    """Hosts slow by a quota, but for labs: 'n3: 2 ranks, a quota of 0.5 CPUs'."""
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


STOLEN = 2.0  # percent of CPU time
QUOTA = "a quota withheld"
OTHERS = 2.0  # percent of the ranks' CPU time
STOP = "stop the other work, or reserve whole hosts"
TICKS = 2.0  # percent x seconds: a CPU's idle time is off by a tick at either end (host/others.py)
SECONDS, MOST_SECONDS = 2.5, 20.0  # proposed at least, and at most
TOO_SHORT = "the run is too short: the kernel accounts CPU time in ticks of 10 ms; run longer (--seconds {})"


def quiet(record: Record) -> Iterator[Rule]:
    """The rules on CPU time taken from the job, each on the host that lost most."""
    steal = max((h.steal_percent for h in record.environment.hosts), default=0.0)
    yield Rule(
        id="D3",
        ok=steal <= STOLEN,
        value=f"steal, % of CPU time = {steal:.3g}",
        threshold=f"<= {STOLEN:.3g}",
        note="" if steal <= STOLEN else "use hosts that share no processors",
    )
    yield from quota_rules(record.environment)
    yield from _of_others(record.environment)


def _of_others(environment: Environment) -> Iterator[Rule]:
    """D6, on the host that lost most; nothing if it was not measured."""
    asked = [h for h in environment.hosts if h.others_percent >= 0 or h.others_resolution >= 100]
    if asked:
        yield _rule(max(asked, key=lambda h: (_least(h) > OTHERS, _most(h))))


def foreign(host: HostFacts) -> dict[str, float]:
    """{cause: percent of CPU time} that foreign work took on a host, beyond D3 and D6."""
    found = {
        "others used": (_least(host) > OTHERS, host.others_percent),
        "the hypervisor took": (host.steal_percent > STOLEN, host.steal_percent),
    }
    return {who: percent for who, (beyond, percent) in found.items() if beyond}


def lost(host: HostFacts) -> dict[str, float]:
    """As `foreign`, and what the job's own quota withheld."""
    own = {QUOTA: host.throttled_percent} if withheld(host) and not of_lab(host) else {}
    return foreign(host) | own


REMEDY = {
    "others used": "stop the other work (`top` shows it) or use idle hosts",
    "the hypervisor took": "use hosts that share no processors",
}


def disturbance(environments: Sequence[Environment], what: str = "speeds and shares", of: str = "") -> str:
    """A line with cause, hosts and remedy if foreign work took CPU time in runs (of `of`), or ""."""
    causes = _causes(environments)
    if not causes:
        return ""
    runs = f" of {len(environments)} runs{of and f' of {of}'}" if len(environments) > 1 or of else ""
    found = ", ".join(f"{cause} in {n}{runs}" if runs else cause for cause, n in causes.values())
    unknown = sum(rule.ok is None for e in environments for rule in _of_others(e))
    if unknown and "others used" in causes:
        found += f"; of {plural(unknown, 'run')} it is not known what others used"
    remedies = ", and ".join(remedy for who, remedy in REMEDY.items() if who in causes)
    return f"DISTURBED: {found}: {what} may be far off; {remedies}, then repeat"


def foreign_work(environments: Sequence[Environment]) -> str:
    """'others used up to 57 % of the CPU time on n1', or "" if there was no foreign work."""
    return ", ".join(cause for cause, _ in _causes(environments).values())


def _causes(environments: Sequence[Environment]) -> dict[str, tuple[str, int]]:
    """{cause: (it with its hosts, number of runs that it disturbed)}."""
    worst: dict[str, dict[str, float]] = {}
    runs: dict[str, set[int]] = {}
    for k, environment in enumerate(environments):
        for host in environment.hosts:
            for who, used in foreign(host).items():
                hosts = worst.setdefault(who, {})
                hosts[host.name] = max(used, hosts.get(host.name, 0.0))
                runs.setdefault(who, set()).add(k)
    return {who: (f"{who} up to {_on(hosts)}", len(runs[who])) for who, hosts in worst.items()}


def _on(hosts: dict[str, float]) -> str:
    """'80.6 % of the CPU time on n7, n3 and 2 more': the hosts that lost most first."""
    names = sorted(hosts, key=lambda name: -hosts[name])
    return f"{max(hosts.values()):.3g} % of the CPU time on {few(names, SHOWN)}"


def others_note(record: Record) -> str:
    """A warning, in one line, if others used the CPUs of a run; "" otherwise."""
    broken = next((rule for rule in record.verdict.rules if rule.id == "D6" and rule.ok is False), None)
    if broken is None:
        return ""
    return f"{record.verdict.status}: {reason(broken)}; others cause part of the waiting and interruptions"


def _least(host: HostFacts) -> float:
    return host.others_percent - host.others_resolution


def _most(host: HostFacts) -> float:
    return host.others_percent + host.others_resolution


def _rule(host: HostFacts) -> Rule:
    known = host.others_percent >= 0
    share = f"{host.others_percent:.3g} % of the CPU time"
    ok = True if _most(host) <= OTHERS else False if _least(host) > OTHERS else None
    return Rule(
        id="D6",
        ok=ok,
        value=f"{host.name}: others used {share}, ± {host.others_resolution:.3g} %"
        if known
        else f"{host.name}: the system does not report CPU time used by others",
        threshold=f"<= {OTHERS:.3g} %",
        note=STOP if ok is False else _longer(host) if ok is None and known else "",
    )


def _longer(host: HostFacts) -> str:
    """How long to run, to tell the same share from the limit; one that is nearly the limit has to go."""
    apart = abs(host.others_percent - OTHERS)
    if MOST_SECONDS * apart <= TICKS:
        return STOP
    return TOO_SHORT.format(max(SECONDS, floor(TICKS / apart) + 1))
