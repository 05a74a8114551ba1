"""What to do with slow hosts, from a campaign's runs: smaller shares, or none.

A host is slow if that is stated of its speed (`weights.host_speed`), and if it has less
than FAST of that of the typical host. Two other runs of the same work show what that
costs: on the same ranks with shares by speed, and on all ranks of the other hosts.
Times are those of one set (assembly and CG).
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from fembench.base import units
from fembench.records.compare import host_names
from fembench.records.record import Record
from fembench.records.weights import FAST
from fembench.report.bases import HOSTS, bases, fastest, ratio_range
from fembench.report.measures import SOLVE
from fembench.report.results import Result
from fembench.weights.host_speed import HostSpeeds
from fembench.weights.node_verdicts import KeepingCosts

MOST = 3  # hosts that are named


@dataclasses.dataclass(frozen=True, slots=True)
class SlowHosts:
    """The slow hosts of the run on most ranks, and runs that show what to do."""

    speeds: dict[str, float]  # host -> speed over the typical host, the slowest first
    equal: Result
    weighted: Result | None  # the fastest with shares
    without: Result | None  # on all ranks of the other hosts
    fewer: Result | None = None  # the fastest on fewer ranks


@dataclasses.dataclass(frozen=True, slots=True)
class HostAdvice:
    """What to do, and why."""

    do: str  # "leave n3 out"
    why: str
    hosts: Sequence[str]  # that it is about, the slowest first


def host_advice(found: Sequence[Result], speeds: HostSpeeds) -> HostAdvice | None:
    """The advice on slow hosts, from runs or else the record of nodes; None without one."""
    slow = slow_hosts(found, speeds)
    if slow is not None and (slow.weighted or slow.without):
        return _from_runs(slow)
    return _from_nodes(speeds)


def slow_hosts(found: Sequence[Result], speeds: HostSpeeds) -> SlowHosts | None:
    """The slow hosts, from the results of a campaign; None if there is none."""
    usable = [r for r in found if r.pool.status != "INVALID" and SOLVE in r.times]
    equal = max(
        (r for r in usable if not r.pool.case.placement.shares and len(host_names(r.record)) > 1),
        key=lambda r: (r.ranks, _has_shares(r, usable), r.record.mesh.n_equations),
        default=None,
    )
    if equal is None:
        return None
    there = set(host_names(equal.record))
    planned = sorted(speeds.planned.items(), key=lambda item: item[1])
    slow = {name: speed for name, speed in planned if speed < FAST and name in there}
    if not slow:
        return None
    kept = {name: n for name, n in _ranks_of(equal.record).items() if name not in slow}
    alike = [r for r in bases(equal, usable, HOSTS) if r is not equal]
    weighted = [r for r in alike if r.pool.case.placement.shares and r.ranks == equal.ranks]
    without = [r for r in alike if not r.pool.case.placement.shares and _ranks_of(r.record) == kept]
    fewer = [r for r in alike if not r.pool.case.placement.shares and r.ranks < sum(kept.values())]
    return SlowHosts(slow, equal, *(fastest(ways, SOLVE) for ways in (weighted, without, fewer)))


def _has_shares(equal: Result, usable: Iterable[Result]) -> bool:
    """Whether the same work was also done with shares."""
    alike = (r for r in usable if r.ranks == equal.ranks and r.pool.case.placement.shares)
    return bool(bases(equal, alike, HOSTS))


def _ranks_of(record: Record) -> dict[str, int]:
    """{host: its ranks}."""
    return dict(Counter(record.environment.host_of_rank))


def _seconds(result: Result) -> float:
    return result.times[SOLVE].median


def _from_runs(slow: SlowHosts) -> HostAdvice:
    """The fastest of three ways to run, and what the others cost."""
    names = units.few(list(slow.speeds), MOST)
    ways = [(f"keep {names}, with equal shares", "equal shares", slow.equal)]
    if slow.weighted:
        ways.append((f"keep {names}, with shares by speed", "shares by speed", slow.weighted))
    if slow.without:
        ways.append((f"leave {names} out", f"without {names}", slow.without))
    do, _, best = min(ways, key=lambda way: _seconds(way[2]))
    others = [f"{name}: {_more(other, best)}" for _, name, other in ways if other is not best]
    speeds = ", ".join(f"{name} {_percent(speed)}" for name, speed in list(slow.speeds.items())[:MOST])
    words = [f"{best.mesh} takes {units.seconds(_seconds(best))}", *others, f"of the typical speed: {speeds}"]
    if slow.fewer and _seconds(slow.fewer) < _seconds(best):
        ranks, time = units.plural(slow.fewer.ranks, "rank"), units.seconds(_seconds(slow.fewer))
        words.append(f"faster on fewer ranks: {time} on {ranks}")
    return HostAdvice(do, "; ".join(words), list(slow.speeds))


def _more(other: Result, best: Result) -> str:
    """'44 % more time (41–47 %)', or that it is not shown to take more."""
    more = _seconds(other) / _seconds(best) - 1
    low, high = (100 * (end - 1) for end in ratio_range(other.times[SOLVE], best.times[SOLVE]))
    if low <= 0:  # not if there are too few samples for an interval
        return f"{100 * more:.0f} % more time, which is not significant"
    interval = f" ({low:.0f}–{high:.0f} %)" if low > 0 else ""
    return f"{100 * more:.0f} % more time{interval}"


def _from_nodes(speeds: HostSpeeds) -> HostAdvice | None:
    """From the rates of nodes alone: no run has shown it yet."""
    names, costs, planned = [host.name for host in speeds.faulty], speeds.costs, speeds.planned
    if costs is None or min((planned.get(name, 1.0) for name in names), default=1.0) >= FAST:
        return None
    named = units.few(names, MOST)
    leave = costs.left_out <= costs.weighted
    do = f"leave {named} out" if leave else f"keep {named}, with shares by speed"
    return HostAdvice(do, f"expected from fembench nodes, no run has shown it: {_lost(costs)}", names)


def _lost(costs: KeepingCosts) -> str:
    """'of the speed of all hosts, equal shares lose 75 %, …'."""
    parts = [
        f"equal shares lose {_percent(costs.equal)}",
        f"shares by speed {_percent(costs.weighted)}",
        f"leaving out {_percent(costs.left_out)}",
    ]
    return f"of the speed that all would have, {', '.join(parts)}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"
