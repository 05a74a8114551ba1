"""Slow hosts of a campaign: in which phase they differ, and what to do: smaller shares, or none.

A host is slow if that is stated of its speed (`weights.host_speed`), and if it has less
than FAST of that of the typical host. Two other runs of the same work show what that
costs: on the same ranks with shares by speed, and on all ranks of the other hosts.
Times are those of one set (assembly and CG).

The time of a phase on a host is that of its median rank, over the median host.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from fembench.base import units
from fembench.base.arrays import F64
from fembench.records import phases as ph
from fembench.records.binding import taking_turns
from fembench.records.compare import host_names
from fembench.records.record import Record
from fembench.records.times import Times
from fembench.records.weights import FAST
from fembench.report.bases import HOSTS, bases, fastest, ratio_range
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, SOLVE, VECTORS, rank_times
from fembench.report.results import CASE, Result, case_of
from fembench.report.table import Rows, declared
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
        ranks = units.plural(slow.fewer.ranks, "rank")
        time = units.seconds(_seconds(slow.fewer))
        words.append(f"faster on fewer ranks: {time} on {ranks}")
    used = filter(None, (slow.equal, slow.weighted, slow.without, slow.fewer))
    words += ["PROVISIONAL"] if any(r.pool.status == "PROVISIONAL" for r in used) else []
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
    names = [host.name for host in speeds.faulty]
    costs = speeds.costs
    planned = speeds.planned
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


COLUMNS = {
    ASSEMBLY: (ph.ASSEMBLY,),
    PRODUCT: ph.PRODUCT_PARTS,
    VECTORS: ph.VECTOR_PARTS,
    "computing": ph.COMPUTING,
    "send + unpack": ph.OWN_MESSAGES,
    "wait": (ph.WAIT,),
    "all-reduce": (ph.ALLREDUCE,),
    CG: (ph.CG,),
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HostTimes:
    """Times of the hosts of one result."""

    result: Result
    hosts: tuple[str, ...]  # (H,) in the order of their first rank
    ranks: tuple[int, ...]  # (H,) ranks on each
    seconds: F64  # (H, n_columns) of one set, by COLUMNS

    @property
    def relative(self) -> F64:
        """(H, n_columns) over the median host; nan where that spent no time."""
        middle = np.broadcast_to(np.median(self.seconds, axis=0), self.seconds.shape)
        return np.divide(self.seconds, middle, out=np.full_like(middle, np.nan), where=middle > 0)


def host_times(found: Sequence[Result]) -> list[HostTimes]:
    """Of every result on several hosts whose ranks have a core each."""
    return [
        _times(r)
        for r in found
        if r.pool.status != "INVALID"
        and CG in r.times
        and len(set(r.record.environment.rank_host)) > 1
        and not taking_turns(r.record.environment)
    ]


def _times(result: Result) -> HostTimes:
    environment = result.record.environment
    of_rank = np.asarray(environment.rank_host)
    hosts = _hosts(result)
    return HostTimes(
        result=result,
        hosts=tuple(environment.hosts[h].name for h in hosts),
        ranks=tuple(int((of_rank == h).sum()) for h in hosts),
        seconds=_by_host(result, result.runs),
    )


def _hosts(result: Result) -> list[int]:
    return list(dict.fromkeys(result.record.environment.rank_host))


def _by_host(result: Result, runs: Sequence[Times]) -> F64:
    """(H, n_columns) seconds of the median rank of each host, over these runs."""
    of_rank = np.asarray(result.record.environment.rank_host)
    by_rank = np.stack([rank_times(runs, *phases) for phases in COLUMNS.values()], axis=1)
    return np.stack([np.median(by_rank[of_rank == h], axis=0) for h in _hosts(result)])


@declared(
    "host_times",
    "Phases by host",
    "Each phase on each host, over the same phase on the median host: 1.50 takes half as long again. The "
    "time of a host is that of its median rank in one set: the median over the sets of a run, then over "
    "runs. These are times of one case; the speed of a host is stated once, from all that was measured, "
    "with its 95 % interval, and slow hosts come first. A host that computes longer waits less: long "
    "waits are a sign of fast hosts. Runs whose ranks take turns on cores are left out.",
    CASE,
    "host; ranks_on_host: ranks on it",
    "host_speed host_speed_low host_speed_high: host speed | .2f",
    "computing_s: computing time",
    *(f"{name.replace(' + ', '_').replace('-', '')}_relative: {name}" for name in COLUMNS),
)
def host_table(found: Sequence[HostTimes], speeds: HostSpeeds) -> Rows:
    """One row per result and host, the slow hosts first, then in the order of ranks."""
    slow = {host.name: k for k, host in enumerate(speeds.slow)}
    said = {host.name: (host.speed, host.low, host.high) for host in speeds.hosts}
    return [
        (*case_of(one.result), one.hosts[h], one.ranks[h], said.get(one.hosts[h]))
        + (float(one.seconds[h, list(COLUMNS).index("computing")]), *relative[h].tolist())
        for one in found
        for relative in (one.relative,)
        for h in sorted(range(len(one.hosts)), key=lambda h: slow.get(one.hosts[h], len(slow)))
    ]
