"""Unequal hosts: a run compared with each host alone, and with their summed speed.

    host       a computer; if speeds are emulated, a computer at one of these speeds
    alone      the same case on one rank of one host
    S          T(alone) / T: one for every host of the run (Ferreira 2006, Section 5.4.6), and S / P
    s_p        speed of rank p, cells per second of computing
    P_eq       sum(s_p) / max(s_p): the number of ranks in units of the fastest
    E_het      (W / sum(s_p)) / T
    bounds     (3.7) to (3.9) on S relative to the fastest host alone

T is the time of one set (assembly and CG) on the slowest rank.

Tables for unequal hosts: comparison with each host alone, with the summed speed, and with bounds."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from fembench.base.arrays import F64
from fembench.records.binding import oversubscribed
from fembench.records.phases import COMPUTING, OWN_MESSAGES, WAITING
from fembench.records.record import Record
from fembench.report.bases import HOSTS, bases, fastest, ratio_range
from fembench.report.equality import unequal_ranks
from fembench.report.measures import SOLVE, Time, rank_times, summarise
from fembench.report.results import CASE, Result, case_of, last_kept, unfit
from fembench.report.speedup import SUPERLINEAR, Speedup, superlinear
from fembench.report.table import Rows, declared
from fembench.weights.scaling import Bounds, against_each, heterogeneous_efficiency, speedup_bounds

BOUNDS = (
    "bound_work: bound: computing; bound_waiting: bound: + waiting, messages; "
    "bound_extra: bound: + extra work"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Unequal:
    """One result on unequal ranks."""

    result: Result
    hosts: tuple[str, ...]  # of the ranks
    alone: dict[str, Result]  # host -> the fastest run on one rank of it, the fastest host first
    seconds: float  # T
    speeds: F64 | None  # (P,) s_p
    source: str  # id of the record with these speeds
    ideal: Time | None  # of a set at the summed speed, from the same runs
    bounds: Bounds | None
    notes: tuple[str, ...]

    @property
    def against(self) -> dict[str, tuple[float, float]]:
        """host -> (S, S / P), the fastest host first."""
        alone = {name: r.times[SOLVE].median for name, r in self.alone.items()}
        return against_each(alone, self.seconds, self.result.ranks)

    @property
    def fastest(self) -> tuple[float, float]:
        """(S, S / P) over the fastest host alone; nan if none was measured alone."""
        return next(iter(self.against.values()), (np.nan, np.nan))

    @property
    def equivalent(self) -> float:
        """P_eq; nan if the speeds are unknown."""
        return float(self.speeds.sum() / self.speeds.max()) if self.speeds is not None else np.nan

    @property
    def e_het(self) -> float:
        """E_het; nan if the speeds are unknown."""
        work = float(sum(self.result.record.partition.cells))
        return np.nan if self.speeds is None else heterogeneous_efficiency(work, self.speeds, self.seconds)

    @property
    def e_het_ends(self) -> tuple[float, float]:
        """The 95 % interval of E_het; nan if there are too few sets."""
        if self.ideal is None:
            return np.nan, np.nan
        low, high = ratio_range(self.ideal, self.result.times[SOLVE])
        return min(low, self.e_het), max(high, self.e_het)


@last_kept
def unequal_results(found: Sequence[Result]) -> list[Unequal]:
    """Every comparable result on several ranks that are known to be unequal."""
    return [
        _held_against(r, found)
        for r in found
        if r.ranks > 1
        and r.pool.status != "INVALID"
        and SOLVE in r.times
        and unequal_ranks(r.record, found)
        and not oversubscribed(r.record.environment)
    ]


def host_label(record: Record, rank: int) -> str:
    """'node8', or 'node8 at speed 0.5' if speeds are emulated."""
    host = record.environment.host_of_rank[rank]
    return (
        f"{host} at speed {float(record.case.synthetic.emulate.split(',')[rank]):g}"
        if record.case.synthetic.emulate
        else host
    )


def host_labels(record: Record) -> tuple[str, ...]:
    """(P,) label of every rank's host."""
    return tuple(host_label(record, rank) for rank in range(record.case.placement.ranks))


def _held_against(result: Result, everyone: Sequence[Result]) -> Unequal:
    hosts = host_labels(result.record)
    alone = _alone(result, hosts, everyone)
    like = _equal_shares(result, everyone)
    cells = np.asarray(like.record.partition.cells, float) if like else None
    return Unequal(
        result=result,
        hosts=hosts,
        alone=alone,
        seconds=result.times[SOLVE].median,
        speeds=cells / rank_times(like.runs, *COMPUTING) if like and cells is not None else None,
        source=like.record.id if like else "",
        ideal=_ideal(like) if like else None,
        bounds=bounds_of(result, next(iter(alone.values()))) if alone else None,
        notes=tuple(_notes(result, hosts, alone)),
    )


def _notes(result: Result, hosts: Sequence[str], alone: dict[str, Result]) -> list[str]:
    missing = [name for name in dict.fromkeys(hosts) if name not in alone]
    notes = [f"not measured alone: {', '.join(missing)}"] if missing else []
    if alone:
        name, fastest = next(iter(alone.items()))
        gain = fastest.times[SOLVE].median / result.times[SOLVE].median
        if gain < 1:
            notes.append(f"slower than {name} alone")
        if gain > SUPERLINEAR * result.ranks:
            notes.append(superlinear(result, fastest))
    if result.pool.status == "PROVISIONAL":
        notes.append("PROVISIONAL")
    return notes


def _alone(result: Result, hosts: Sequence[str], everyone: Sequence[Result]) -> dict[str, Result]:
    """host -> its fastest run on one rank, the fastest host first."""
    found: dict[str, list[Result]] = {}
    for other in bases(result, (r for r in everyone if r.ranks == 1), HOSTS):
        found.setdefault(host_label(other.record, 0), []).append(other)
    best = {name: one for name in hosts if (one := fastest(found.get(name, ()), SOLVE))}
    return dict(sorted(best.items(), key=lambda item: item[1].times[SOLVE].median))


def _equal_shares(result: Result, everyone: Sequence[Result]) -> Result | None:
    """The run with equal shares on the same ranks, whose speeds (cells per second) count.

    Equal shares depend on no timing. Without such a run, one with other shares is used.
    """
    hosts = host_labels(result.record)
    shares = result.pool.case.placement.shares
    same = bases(result, (r for r in everyone if host_labels(r.record) == hosts), HOSTS)
    equal = [r for r in same if not r.pool.case.placement.shares]
    others = [r for r in same if r.pool.case.placement.shares != shares]
    return next(iter(equal + others), None)


def _ideal(like: Result) -> Time:
    """W / sum(s_p) of each set."""
    cells = np.asarray(like.record.partition.cells, float)
    speeds = [(cells / one.seconds(*COMPUTING)).sum(axis=1) for one in like.runs if len(one.timed)]
    return summarise([cells.sum() / each[:, None] for each in speeds], like.record)


def bounds_of(result: Result, alone: Result) -> Bounds:
    """Bounds (3.7) to (3.9) on the speedup over one rank alone.

    The extra work is that of all ranks beyond the flops of a one-rank run.
    """
    groups = COMPUTING, WAITING, OWN_MESSAGES
    busy, waiting, messages = (rank_times(result.runs, *phases) for phases in groups)
    flops = sum(result.record.solve.flops)
    needed = min(1.0, sum(alone.record.solve.flops) / flops) if flops else 1.0
    return speedup_bounds(
        alone.times[SOLVE].median, needed * busy, waiting, messages, extra=(1 - needed) * busy
    )


@declared(
    "speedup_alone",
    "Unequal hosts: speedup over each host alone",
    "Each run on unequal ranks is compared with one rank on each of its hosts, as in Ferreira "
    "(2006), Figs 5.37 to 5.42. Speedup is the time of that host alone over the time of the run; "
    "below 1, the host alone is faster. Times are those of one set, assembly + CG.",
    CASE,
    "run_s; machine: host; alone_s; speedup; speedup_per_rank: speedup / ranks",
)
def against_alone(found: Sequence[Unequal]) -> Rows:
    """One row per run on unequal hosts and per host: speedup and speedup per rank."""
    return [
        (*case_of(u.result), u.seconds, _marked(name, u), u.alone[name].times[SOLVE].median, *each)
        for u in found
        for name, each in u.against.items()
    ]


def _marked(host: str, u: Unequal) -> str:
    """'node8 · DISTURBED' if its own run was."""
    return " · ".join([host, *unfit(u.alone[host])])


@declared(
    "speedup_unequal",
    "Unequal hosts: efficiency relative to their summed speed",
    "The efficiency E_het is the time that the work would take if all ranks computed from beginning to "
    "end, over the time that it took; 1 is perfect. P_eq is the number of ranks in units of the fastest. "
    "Speeds are cells per second of computing in the run with equal shares on the same ranks, named under "
    "'speeds from'. (Shares chosen from that very run are tested on the data they were fitted to.) The "
    "three bounds are upper limits of the speedup over the fastest host alone (Ferreira 2006, Eqs 3.7 to "
    "3.9): the time of that host alone over the largest time of any rank. The first counts computing; "
    "the second also waiting and messages; the third also work that a single rank would not do. A bound "
    "well below the one before it shows what costs time.",
    CASE,
    "run_s; equivalent_ranks: fast ranks (P_eq); e_het: efficiency (E_het) | .3f",
    "e_het_low e_het_high: 95 % interval | .3f",
    "fastest_alone; speedup",
    BOUNDS,
    "speeds_from; remarks",
)
def efficiency(found: Sequence[Unequal]) -> Rows:
    """One row per run: its ranks in units of the fastest, their efficiency, its bounds."""
    for u in found:
        bounds = u.bounds or (np.nan,) * 3
        name = next((_marked(name, u) for name in u.alone), None)
        used = u.seconds, u.equivalent, u.e_het, u.e_het_ends
        remarks = "; ".join(u.notes)
        yield *case_of(u.result), *used, name, u.fastest[0], *bounds, u.source or None, remarks


@declared(
    "speedup_bounds",
    "Bounds on the speedup",
    "Upper limits of the speedup of assembly + CG over one rank (Ferreira 2006, Eqs 3.7 to 3.9): the "
    "time on one rank over the largest time of any rank. The first counts computing; the second also "
    "waiting and messages; the third also work that a single rank would not do.",
    CASE,
    "speedup",
    BOUNDS,
)
def bounds(found: Sequence[Speedup], unequal: Sequence[Unequal]) -> Rows:
    """One row per run with equal ranks and a speedup over one rank: its bounds."""
    apart = {id(u.result) for u in unequal}
    judged = [s for s in found if s.base and s.base.ranks == 1 and id(s.result) not in apart]
    return [(*case_of(s.result), s.ratio, *bounds_of(s.result, s.base)) for s in judged if s.base]
