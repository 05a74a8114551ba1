"""Whether the hosts were quiet: rule D6, and D3 for hypervisors and quotas."""

from collections.abc import Iterator

from fembench.records.record import HostFacts, Record, Rule, reason

STOLEN = 2.0  # percent of CPU time
LAB_GROUP = "fembench."  # prefix of the names of a lab's control groups and namespaces
QUOTA = "a quota withheld"
OTHERS = 2.0  # percent of the ranks' CPU time
STOP = "stop the other work, or reserve whole hosts"
TOO_SHORT = "the run is too short: the kernel accounts CPU time in ticks of 10 ms; run longer (--seconds)"


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
    held = max(record.environment.hosts, key=lambda h: h.throttled_percent, default=None)
    if held and held.throttled_percent > 0:
        yield _throttled(held)
    asked = [h for h in record.environment.hosts if h.others_percent >= 0 or h.others_resolution >= 100]
    if asked:
        yield _rule(max(asked, key=lambda h: (_least(h) > OTHERS, _most(h))))


def lost(host: HostFacts) -> dict[str, float]:
    """{cause: percent of the CPU time} that the job lost on a host, beyond the limits of D3 and D6."""
    found = {
        "others used": (_least(host) > OTHERS, host.others_percent),
        "the hypervisor took": (host.steal_percent > STOLEN, host.steal_percent),
        QUOTA: (
            host.throttled_percent > STOLEN and not _is_of_lab(host),
            host.throttled_percent,
        ),
    }
    return {who: percent for who, (beyond, percent) in found.items() if beyond}


def others_note(record: Record) -> str:
    """A warning, in one line, if others used the CPUs of a run; "" otherwise."""
    broken = next((rule for rule in record.verdict.rules if rule.id == "D6" and rule.ok is False), None)
    if broken is None:
        return ""
    return f"{record.verdict.status}: {reason(broken)}; others cause part of the waiting and interruptions"


def _throttled(host: HostFacts) -> Rule:
    """D3: CPU time withheld by a quota. The quotas of a lab are intended."""
    by = f"by the quota of {host.cpu_quota:.3g} CPUs on control group {host.quota_group}"
    value = f"{host.name}: {host.throttled_percent:.3g} % of CPU time withheld {by}"
    if _is_of_lab(host):
        return Rule(id="D3", ok=True, value=value, threshold="the lab's own: SYNTHETIC")
    ok = host.throttled_percent <= STOLEN
    note = "" if ok else "raise the quota"
    return Rule(id="D3", ok=ok, value=value, threshold=f"<= {STOLEN:.3g} %", note=note)


def _is_of_lab(host: HostFacts) -> bool:
    """Whether the quota of a host was set by a lab, to make it slow."""
    return any(name.startswith(LAB_GROUP) for name in host.quota_group.split("/"))


def _least(host: HostFacts) -> float:
    return host.others_percent - host.others_resolution


def _most(host: HostFacts) -> float:
    return host.others_percent + host.others_resolution


def _rule(host: HostFacts) -> Rule:
    known, share = host.others_percent >= 0, f"{host.others_percent:.3g} % of the CPU time"
    ok = True if _most(host) <= OTHERS else False if _least(host) > OTHERS else None
    return Rule(
        id="D6",
        ok=ok,
        value=f"{host.name}: others used {share}, ± {host.others_resolution:.3g} %"
        if known
        else f"{host.name}: the system does not report CPU time used by others",
        threshold=f"<= {OTHERS:.3g} %",
        note=STOP if ok is False else TOO_SHORT if ok is None and known else "",
    )
