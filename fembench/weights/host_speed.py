"""The speed of every host: the one statement that tables, plots, advice and plans print.

    speed      of its slowest rank while all ranks compute, over the typical host of the fastest kind
    interval   95 %, for all hosts together
    cause      of a slow host: its quota, another load, a core, its memory, its processor; "" if none is known

The statement is that of `fembench nodes` if it measured the hosts, else that of three or more runs on the
same hosts, one sample per run. Runs whose ranks take turns on cores, or beside foreign work, say nothing
about hosts. A host is slow only if its whole interval lies below 1 - RELEVANT: no other host is named.
Nothing is planned from a disturbed measurement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fembench.base.units import plural
from fembench.records.binding import oversubscribed
from fembench.records.compare import host_names
from fembench.records.nodes import NodesRecord
from fembench.records.quiet import lost
from fembench.records.quota import withheld
from fembench.records.record import Environment, HostFacts, Record
from fembench.records.times import times_of
from fembench.records.turns import taking_turns
from fembench.records.weights import FAST
from fembench.stats.outliers import FEWEST_ALIKE, joint_level
from fembench.stats.student import FEWEST, log_interval, typical_interval
from fembench.stats.summary import Interval
from fembench.weights.disturbed import foreign_work
from fembench.weights.node_causes import NodeLosses, by_load, by_quota, cause_of
from fembench.weights.node_kinds import Array, NodeKind, Quantity, busy_of, rates_of
from fembench.weights.node_verdicts import KeepingCosts, NodeRatio, NodesFindings, beyond_doubt
from fembench.weights.observe import hosts_of, observe
from fembench.weights.slow_nodes import slow_nodes

PACE: tuple[Quantity, ...] = ("all cores", "memory")
NODES = "fembench nodes"  # a source


@dataclass(frozen=True, slots=True)
class HostSpeed:
    """One host."""

    name: str
    speed: float
    low: float
    high: float
    slow: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True)
class HostSpeeds:
    """What is known of all hosts."""

    hosts: tuple[HostSpeed, ...] = ()
    source: str = ""  # "fembench nodes", "4 runs"
    unknown: str = ""  # why nothing is known
    disturbed: str = ""  # by what, if foreign work disturbed the measurement as a whole
    quotas: tuple[str, ...] = ()  # 'n3: a quota of 0.5 CPUs withheld 18 % of its CPU time'
    costs: KeepingCosts | None = None  # of the slow hosts, if fembench nodes found some

    @property
    def slow(self) -> list[HostSpeed]:
        """The slow hosts, the slowest first."""
        return sorted((host for host in self.hosts if host.slow), key=lambda host: host.speed)

    @property
    def planned(self) -> dict[str, float]:
        """{host: speed} to give work by; {} if none is slow enough to matter, or nothing may be planned.

        A host that is not shown to be slow counts as typical; so does one that another load keeps busy now.
        """
        found = {h.name: h.speed if h.slow and not by_load(h.cause) else 1.0 for h in self.hosts}
        return found if not self.disturbed and min(found.values(), default=1.0) < FAST else {}

    def of(self, name: str) -> HostSpeed | None:
        """The statement on one host."""
        return next((host for host in self.hosts if host.name == name), None)


def host_speeds(nodes: NodesRecord | None, runs: Sequence[Record] = ()) -> HostSpeeds:
    """The speed of every host, from all that was measured."""
    return _of_nodes(nodes) if nodes else _of_runs(runs)


def _of_nodes(record: NodesRecord) -> HostSpeeds:
    launch, found = record.first, slow_nodes(record)
    rates = np.array([[rates_of(node, q) / node.ranks for q in PACE] for node in launch.nodes])
    fastest = max(found.kinds, key=lambda kind: kind.typical["all cores"] / kind.key.ranks)
    members = list(fastest.nodes)
    if not fastest.compared:  # of two, the faster one is the reference
        members = [max(members, key=lambda k: float(np.median(rates[k, 0])))]
    hosts = tuple(_node(record, found, k, rates, members) for k in range(len(launch.nodes)))
    alone = f"one host ({hosts[0].name})" if len(hosts) == 1 and not hosts[0].slow else ""
    quotas = _quotas([launch.environment])
    return HostSpeeds(() if alone else hosts, NODES, alone, found.disturbed, quotas, found.costs)


def _node(
    record: NodesRecord, found: NodesFindings, k: int, rates: Array, reference: Sequence[int]
) -> HostSpeed:
    """`rates`: (n, quantities, rounds) per rank; `reference`: nodes that are the typical host together."""
    verdict = found.nodes[k]
    kind = found.kinds[verdict.kind]
    group = list(kind.nodes) if kind.compared else [k]
    level = joint_level(len(PACE) * len(found.nodes))
    quantity, across = _slower(np.median(rates[group], axis=0) / np.median(rates[reference], axis=0), level)
    if verdict.verdict == "slow":
        found_slow = (one for one in (*verdict.ratios.values(), *verdict.cores.values()) if one.slow)
        own = min(found_slow, key=lambda one: one.ratio)
        ends = own.ratio * across[0], own.low * across[1], own.high * across[2]
        return HostSpeed(verdict.name, *ends, slow=True, cause=verdict.cause)
    if group == list(reference) and kind.compared:
        one = verdict.ratios["all cores"]
        return HostSpeed(verdict.name, one.ratio, one.low, one.high)
    cause = _cause(record, k, kind, found.kinds[found.nodes[reference[0]].kind], quantity, across, reference)
    slow = beyond_doubt(across[2], 0.0 if by_quota(cause) else found.foreign)
    return HostSpeed(verdict.name, *across, slow=slow, cause=cause if slow else "")


def _slower(ratios: Array, level: float) -> tuple[Quantity, tuple[float, float, float]]:
    """The quantity with the smaller ratio, and that with its interval, from (quantities, rounds)."""
    middle = np.median(ratios, axis=1)
    q = int(middle.argmin())
    return PACE[q], _with_ends(float(middle[q]), log_interval(ratios[q], level))


def _with_ends(value: float, interval: Interval | None) -> tuple[float, float, float]:
    """Without an interval, its ends are nan; 1 is the reference itself."""
    if interval is None:
        return (1.0, 1.0, 1.0) if value == 1 else (value, np.nan, np.nan)
    return value, min(interval.low, value), max(interval.high, value)


def _cause(
    record: NodesRecord,
    k: int,
    kind: NodeKind,
    fastest: NodeKind,
    quantity: Quantity,
    across: tuple[float, float, float],
    reference: Sequence[int],
) -> str:
    """Why a node is slower than the fastest kind."""
    if kind.key.cpu_model != fastest.key.cpu_model:
        return f"another processor: {kind.key.cpu_model}"
    node, nodes = record.first.nodes[k], record.first.nodes
    typical = np.median([busy_of(nodes[other], quantity) for other in reference])
    busy = float(np.median(busy_of(node, quantity)) / typical)
    host = record.first.environment.hosts[node.host]
    one = NodeRatio(*across, slow=True, running=across[0] / busy, busy=busy)
    return cause_of(fastest, node, {quantity: one}, {}, NodeLosses(lost(host), host.cpu_quota))


def _of_runs(runs: Sequence[Record]) -> HostSpeeds:
    several = [run for run in runs if len(host_names(run)) > 1 and _computed(run)]
    if not several:
        names = sorted({name for run in runs for name in host_names(run)})
        return HostSpeeds(unknown=f"one host ({names[0]})" if len(names) == 1 else "no run on several hosts")
    quotas = _quotas([run.environment for run in several])
    quiet = [run for run in several if not foreign_work([run.environment])]
    if not quiet:
        return HostSpeeds(disturbed=foreign_work([run.environment for run in several]), quotas=quotas)
    apart = [run for run in quiet if not (oversubscribed(run.environment) or taking_turns(run.environment))]
    if not apart:
        why = taking_turns(quiet[0].environment) or "more ranks than cores"
        return HostSpeeds(unknown=f"{why} (fembench nodes measures hosts one by one)", quotas=quotas)
    most = max((host_names(run) for run in apart), key=len)
    chosen = [run for run in apart if host_names(run) == most]
    if len(chosen) < FEWEST:
        needed = f"{plural(len(chosen), 'run')} on these hosts, and an interval needs {FEWEST}"
        return HostSpeeds(unknown=f"{needed}; repeat the runs, or type fembench nodes", quotas=quotas)
    hosts = _compared(chosen, most)
    return HostSpeeds(hosts, plural(len(chosen), "run"), quotas=quotas)


def _computed(run: Record) -> bool:
    """Whether the ranks of a run computed at their own speed, for a time that was measured."""
    emulated, timed = run.case.synthetic.emulate, times_of(run).timed
    return not emulated and run.verdict.status != "INVALID" and bool(len(timed) and observe(run).cost.all())


def _compared(runs: Sequence[Record], names: Sequence[str]) -> tuple[HostSpeed, ...]:
    speeds = np.array([_speeds(run, names) for run in runs])  # (n, H)
    facts = {host.name: host for run in runs for host in run.environment.hosts}
    reference = _fastest_kind(np.median(speeds, axis=0), [facts[name].cpu_model for name in names])
    ratios = speeds / np.median(speeds[:, reference], axis=1, keepdims=True)
    held = _withheld([run.environment for run in runs])
    found = []
    for name, samples in zip(names, ratios.T):
        interval = typical_interval(samples, joint_level(len(names)))
        value, low, high = _with_ends(float(np.median(samples)), interval)
        slow = beyond_doubt(high, 0.0)
        other = facts[name].cpu_model != facts[names[reference[0]]].cpu_model
        cause = held.get(name, f"another processor: {facts[name].cpu_model}" if other else "")
        found.append(HostSpeed(name, value, low, high, slow, cause if slow else ""))
    return tuple(found)


def _speeds(run: Record, names: Sequence[str]) -> list[float]:
    """Cells per second of computing of the median rank of each host."""
    each, at = 1 / np.median(observe(run).cost, axis=0), np.array(hosts_of(run))
    return [float(np.median(each[at == name])) for name in names]


def _fastest_kind(speeds: Array, models: Sequence[str]) -> list[int]:
    """The hosts that are the typical host together: those of the fastest processor, or its fastest host."""
    kinds = {model: [k for k, other in enumerate(models) if other == model] for model in models}
    fastest = max(kinds.values(), key=lambda members: float(np.median(speeds[members])))
    if len(fastest) >= FEWEST_ALIKE:
        return fastest
    return [max(fastest, key=lambda k: float(speeds[k]))]


def _quotas(environments: Sequence[Environment]) -> tuple[str, ...]:
    return tuple(f"{name}: {text}" for name, text in _withheld(environments).items())


def _withheld(environments: Sequence[Environment]) -> dict[str, str]:
    """{host: what its quota withheld}, if that was more than chance."""
    worst: dict[str, HostFacts] = {}
    for host in (host for environment in environments for host in environment.hosts):
        worst[host.name] = max(worst.get(host.name, host), host, key=lambda h: h.throttled_percent)
    return {
        name: f"a quota of {h.cpu_quota:.3g} CPUs withheld {h.throttled_percent:.0f} % of its CPU time"
        for name, h in worst.items()
        if withheld(h)
    }
