"""Efficiency factors of the POP methodology: where the time of all ranks goes.

    T      seconds of assembly and CG on the slowest rank
    u_p    seconds that rank p spends outside of messages (sending, waiting, unpacking, all-reduce)
    T_0    T on an ideal network, on which messages cost nothing (simulated)

    load balance             mean(u) / max(u)
    serialization            max(u) / T_0      waiting for ranks that are late now and then
    transfer                 T_0 / T           messages themselves
    communication            max(u) / T        = serialization x transfer
    parallel efficiency      mean(u) / T       = load balance x communication
    computation scaling      sum(u) of the base / sum(u)
    global efficiency        = parallel efficiency x computation scaling

On unequal ranks the mean of u is not what a better partition would reach. There, E_het
takes the place of the parallel efficiency, with the same communication: E_het =
weighted load balance x communication. Their computation scaling is that of the ranks
on hosts like those of the base, per cell. If the mesh grows with the ranks, the base
is that of the weak scaling, and computation scaling compares assembly per cell, and CG
per equation and iteration.

Source: M. Wagner, B. Mohr, J. Giménez and J. Labarta, A structured approach to
performance analysis, in Tools for High Performance Computing 2017, Springer 2019, pages
1-15 (the metrics of the POP Centre of Excellence, pop-coe.eu).
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import FembenchError
from fembench.model.from_record import IdealRun, on_ideal_network
from fembench.records.binding import oversubscribed
from fembench.records.phases import ASSEMBLY, CG, COMMUNICATION
from fembench.records.quiet import stretch
from fembench.records.times import Times
from fembench.report.bases import base_of
from fembench.report.equality import unequal_ranks
from fembench.report.measures import SOLVE, over_runs
from fembench.report.results import CASE, Result, case_of, last_kept
from fembench.report.table import Rows, declared
from fembench.report.unequal import Unequal, host_labels
from fembench.report.weak import weak_points
from fembench.stats.student import typical_interval

CROWDED = "ranks share cores or a device (OVERSUBSCRIBED: functional only)"
MOST_RANKS = 1024  # of a run that is simulated on an ideal network


@dataclasses.dataclass(frozen=True, slots=True)
class EfficiencyFactors:
    """The factors of one result; nan where one is not available, and why in `notes`."""

    result: Result
    base: Result | None
    load_balance: float
    communication: float
    low: float  # 95 % interval of the parallel efficiency, over runs
    high: float
    transfer: float
    scaling: float
    e_het: float  # E_het; nan for ranks that are equal
    notes: tuple[str, ...]

    @property
    def parallel(self) -> float:
        return self.load_balance * self.communication

    @property
    def serialization(self) -> float:
        return self.communication / self.transfer

    @property
    def overall(self) -> float:
        """The global efficiency."""
        return (self.e_het if np.isfinite(self.e_het) else self.parallel) * self.scaling

    @property
    def weighted_balance(self) -> float:
        """Load balance at the summed speed of unequal ranks."""
        return self.e_het / self.communication


@last_kept
def every_factor(
    found: Sequence[Result], unequal: Sequence[Unequal] = (), base: int = 0
) -> list[EfficiencyFactors]:
    """The factors of each result, if any has several ranks; `base` as in `all_speedups`."""
    timed = [r for r in found if r.pool.status != "INVALID" and SOLVE in r.times]
    if all(r.ranks == 1 for r in timed):
        return []
    e_het = {id(u.result): u.e_het for u in unequal}
    grown = {id(p.result): p.base for p in weak_points(timed, base)}
    return [_factors(r, timed, e_het, base, grown.get(id(r))) for r in timed]


def _factors(
    result: Result, everyone: Sequence[Result], e_het: Mapping[int, float], base: int, smaller: Result | None
) -> EfficiencyFactors:
    if oversubscribed(result.record.environment):
        return EfficiencyFactors(result, None, *(np.nan,) * 7, notes=(f"not available: {CROWDED}",))
    u = useful(result.runs)
    seconds = result.times[SOLVE].median
    parallel = float(u.mean()) / seconds
    communication = float(u.max()) / seconds
    interval = typical_interval([_parallel(one) for one in result.runs if len(one.timed)])
    transfer, no_transfer = _transfer(result, communication)
    start, scaling, no_scaling = _scaling(result, everyone, base, smaller)
    return EfficiencyFactors(
        result=result,
        base=start,
        load_balance=parallel / communication,
        communication=communication,
        low=min(interval.low, parallel) if interval else np.nan,
        high=max(interval.high, parallel) if interval else np.nan,
        transfer=transfer,
        scaling=scaling,
        e_het=e_het.get(id(result), np.nan),
        notes=tuple(filter(None, (no_transfer, no_scaling))),
    )


def useful(runs: Sequence[Times]) -> F64:
    """(n_ranks,) u_p: seconds of a set outside of messages, over runs with timed sets."""
    return over_runs([_outside(one) for one in runs if len(one.timed)])


def _outside(one: Times) -> F64:
    """(n_sets, n_ranks) seconds of assembly and CG outside of messages."""
    return one.seconds(ASSEMBLY, CG) - one.seconds(*COMMUNICATION)


def _parallel(one: Times) -> float:
    """Parallel efficiency of one run."""
    return float(useful([one]).mean() / np.median(one.seconds(ASSEMBLY, CG).max(axis=1)))


def _transfer(result: Result, communication: float) -> tuple[float, str]:
    """(T_0 / T, why there is none): median over the runs that can be simulated."""
    if result.ranks == 1:
        return communication, ""  # there is no other rank to wait for
    if result.ranks > MOST_RANKS:
        return np.nan, f"transfer not available: more than {MOST_RANKS} ranks are not simulated"
    found: list[IdealRun] = []
    why = ""
    for record in result.pool.records:
        try:
            found.append(on_ideal_network(record))
        except FembenchError as error:
            why = str(error).removeprefix(f"record {record.id}").lstrip(": ")
    if not found:
        return np.nan, f"transfer not available: {why}"
    share = float(np.median([run.ideal / run.recorded for run in found]))
    return min(max(share, communication), 1.0), ""  # it lies between, but for the scatter of the sets


def _scaling(
    result: Result, everyone: Sequence[Result], base: int, smaller: Result | None
) -> tuple[Result | None, float, str]:
    """(base, sum(u) of the base for the same work / sum(u), why there is none).

    `smaller`: the base of the weak scaling, for a mesh that no run on fewer ranks has.
    """
    counts = {r.ranks for r in everyone if r.series == result.series}
    if result.ranks == (base or (min(counts) if len(counts) > 1 else 1)):
        return result, 1.0, ""
    why = unequal_ranks(result.record, everyone)
    same_mesh, reason = base_of(result, everyone, SOLVE, base)
    start = same_mesh or smaller
    if start is None or result.record.environment.synthetic:
        made = why.removesuffix("no efficiency").rstrip(":, ") if result.record.environment.synthetic else ""
        return None, np.nan, f"computation scaling not available: {made or reason}"
    of_base = _kinds_of_ranks(start)
    alike = np.array([not why or kind in of_base for kind in _kinds_of_ranks(result)])
    if not alike.any():
        return None, np.nan, "computation scaling not available: no rank is on a host like those of the base"
    part = np.asarray(result.record.partition.cells, float)
    needed = useful(start.runs).sum() if start is same_mesh else _for_the_work_of(result, start)
    return start, float(needed * part[alike].sum() / part.sum() / useful(result.runs)[alike].sum()), ""


def _kinds_of_ranks(result: Result) -> list[tuple[str, float]]:
    """(P,) host of each rank, and how its quota stretches times."""
    environment = result.record.environment
    stretched = [stretch(environment, number) for number in environment.rank_host]
    return list(zip(host_labels(result.record), stretched))


def _for_the_work_of(result: Result, base: Result) -> float:
    """Seconds outside of messages, over all ranks, of the base for the work of `result`."""
    mine, theirs = result.record, base.record
    cells = mine.mesh.n_cells / theirs.mesh.n_cells
    equations = mine.mesh.n_equations / theirs.mesh.n_equations
    iterations = mine.solve.iterations / theirs.solve.iterations
    assembly = float(over_runs([one.seconds(ASSEMBLY) for one in base.runs if len(one.timed)]).sum())
    return cells * assembly + equations * iterations * (float(useful(base.runs).sum()) - assembly)


NOTE = (
    "Where the time of all ranks goes in one set, assembly + CG, by the factors of POP, a European centre "
    "for Performance Optimisation and Productivity (Wagner et al. 2019). 1 is perfect, and the smallest "
    "factor shows what to work on. Parallel efficiency is the share of all ranks' time spent outside of "
    "messages: load balance x communication. A low load balance means that some ranks have less to do. "
    "Communication is serialization x transfer: serialization counts waiting for ranks that are late now "
    "and then, transfer counts messages themselves. A simulation of the traced iterations on a network "
    "without cost separates the two. Scaling (computation scaling) is the computing time of all ranks of "
    "the base over that of the run; above 1, smaller parts fit the caches better. If no run on fewer ranks "
    "has the same mesh, the base is that of the weak scaling, for the same work. Scaling is not split into "
    "instructions, cycles and clock rate, because hardware counters are not read. Global efficiency is "
    "parallel efficiency x scaling. The interval is that of the parallel efficiency over three or more "
    "runs. Unequal ranks have E_het instead, their efficiency relative to their summed speed: weighted "
    "balance x communication. The weighted balance is 1 if each rank has work in proportion to its speed. "
    "Their scaling is that of the ranks on hosts like those of the base, and their global efficiency is "
    "E_het x scaling."
)


@declared(
    "speedup_factors",
    "Efficiency factors of assembly + cg",
    NOTE,
    CASE,
    "global_efficiency: global | .3f; parallel_efficiency: parallel | .3f",
    "parallel_low parallel_high: 95 % interval | .3f; load_balance | .3f",
    "communication_efficiency: communication | .3f; serialization_efficiency: serialization | .3f",
    "transfer_efficiency: transfer | .3f; computation_scaling: scaling | .3f",
    "base_ranks: base | {0:on_ranks}; ?e_het: efficiency (E_het) | .3f; ?weighted_balance | .3f; remarks",
)
def factors_table(found: Sequence[EfficiencyFactors]) -> Rows:
    """One row per result."""
    return [
        (*case_of(f.result), f.overall, f.parallel, (f.low, f.high), f.load_balance, f.communication)
        + (f.serialization, f.transfer, f.scaling)
        + (f.base.ranks if f.base else None, f.e_het, f.weighted_balance, "; ".join(f.notes))
        for f in found
    ]
