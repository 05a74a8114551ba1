"""The times in tables and plots.

A sample is one timed set (or, for phases outside the sets, one run): an array over
ranks. The time of a phase is the maximum over ranks of each sample, the median over the
samples of a run, then the median over runs (rules C1, D1). Runs are the unit because
the sets of one run share the state of the hosts. Ferreira (2006) gives the mean over
ranks instead ("mean over tasks").
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from fembench.base.arrays import F64
from fembench.records import phases as ph
from fembench.records.record import Record
from fembench.records.times import Times
from fembench.stats.student import by_run, typical_interval
from fembench.stats.summary import ends_of, middle

# Names of times: of the phases used by name here, and of sums over phases
PARTITION, ASSEMBLY, CG = (ph.NAMES[k] for k in (ph.PARTITION, ph.ASSEMBLY, ph.CG))
LOOP = ph.LOOP
SOLVE = f"{ASSEMBLY} + {CG}"
PRODUCT = "product"  # matrix times vector
VECTORS = "vectors"  # other computing in CG
SET = "set"
RUN = "run"
REST = "unattributed"
REMAINDER = "loop"  # of CG, where it stands beside such sums
PARTS = {  # of SOLVE, as plots show them: they add up, with REMAINDER
    ASSEMBLY: (ph.ASSEMBLY,),
    PRODUCT: ph.PRODUCT_PARTS,
    VECTORS: (ph.DOT, ph.AXPY),
    "preconditioner": (ph.PRECOND,),
    "messages": ph.OWN_MESSAGES,
    "waiting": ph.WAITING,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Time:
    """Seconds of a phase of a pool: medians over the samples of a run, then over runs."""

    median: float  # of the maximum over ranks
    low: float  # 95 % interval over runs (of a single run: over its sets); nan if there are too few
    high: float
    n: int  # samples of all runs
    medians: tuple[float, ...]  # of each run
    within: tuple[tuple[float, float], ...]  # 95 % interval of each run, over its sets; nan as above
    apart: bool  # whether runs differ by more than their sets scatter
    minimum: float  # over ranks
    mean: float  # over ranks
    rank: int  # the slowest, by its median
    host: str  # of that rank

    @property
    def runs(self) -> int:
        return len(self.medians)


def samples(one: Times) -> dict[str, F64]:
    """name -> (n_samples, n_ranks) seconds, for phases that took any time, and sums."""
    found = {RUN: one.program[None], REST: one.unattributed[None]}
    found |= {ph.NAMES[k]: one.once[None, :, k] for k in np.flatnonzero(one.once.any(axis=0)).tolist()}
    if not len(one.timed):
        return found
    found |= {ph.NAMES[k]: one.seconds(k) for k in np.flatnonzero(one.timed.any(axis=(0, 1))).tolist()}
    return found | {
        LOOP: one.loop,
        SOLVE: one.seconds(ph.ASSEMBLY, ph.CG),
        PRODUCT: one.seconds(*ph.PRODUCT_PARTS),
        VECTORS: one.seconds(*ph.VECTOR_PARTS),
        SET: one.walls,
    }


def times(runs: Sequence[Times], record: Record) -> dict[str, Time]:
    """name -> Time, from runs that are repetitions of `record`."""
    return {name: summarise(found, record) for name, found in by_name(runs).items()}


def by_name(runs: Sequence[Times]) -> dict[str, list[F64]]:
    """name -> its samples, one array per run that has any."""
    found: dict[str, list[F64]] = {}
    for run in runs:
        for name, values in samples(run).items():
            found.setdefault(name, []).append(values)
    return found


def summarise(runs: Sequence[F64], record: Record) -> Time:
    """The Time from (n_samples, n_ranks) seconds of each repetition of `record`."""
    found = by_run([values.max(axis=1) for values in runs])
    low, high = ends_of(found.interval if len(runs) > 1 else found.within[0])
    rank = int(np.argmax(over_runs(runs)))
    return Time(
        median=found.median,
        low=low,
        high=high,
        n=sum(len(values) for values in runs),
        medians=found.medians,
        within=tuple(map(ends_of, found.within)),
        apart=found.apart,
        minimum=float(over_runs([values.min(axis=1) for values in runs])),
        mean=float(over_runs([values.mean(axis=1) for values in runs])),
        rank=rank,
        host=record.environment.host_of_rank[rank],
    )


def over_runs(runs: Sequence[F64]) -> F64:
    """Median over the samples of each run, the first axis, then over runs."""
    return middle(np.array([middle(values) for values in runs]))


def mean_times(runs: Sequence[Times]) -> dict[str, float]:
    """name -> seconds: mean over ranks, median over samples and runs. Means add up."""
    return {n: float(over_runs([v.mean(axis=1) for v in found])) for n, found in by_name(runs).items()}


def rank_times(runs: Sequence[Times], *phases: int) -> F64:
    """(n_ranks,) seconds per set, summed over phases, of runs with timed sets."""
    return over_runs([one.seconds(*phases) for one in runs if len(one.timed)])


def parts_of_solve(one: Times) -> dict[str, float]:
    """name -> seconds of SOLVE, its PARTS and REMAINDER: medians over the timed sets of a run.

    SOLVE is that of the slowest rank. The parts are those of the rank that computes
    longest, so that a slow rank is not told as waiting of the others.
    """
    rank = int(np.median(one.seconds(*ph.COMPUTING), axis=0).argmax())
    parts = {name: one.seconds(*phases)[:, rank] for name, phases in PARTS.items()}
    whole = {SOLVE: one.seconds(ph.ASSEMBLY, ph.CG).max(axis=1)}
    return {n: float(np.median(v)) for n, v in (whole | parts | {REMAINDER: one.loop[:, rank]}).items()}


def part_of_cg(runs: Sequence[Times], *phases: int) -> float:
    """The part of CG that these of its phases take, both means over ranks."""
    return float(rank_times(runs, *phases).sum() / rank_times(runs, ph.CG).sum())


@dataclasses.dataclass(frozen=True, slots=True)
class Energy:
    """Energy of one set on all machines: means over the timed sets, medians over runs.

    Means, because a counter that is updated seldom is exact over many sets in turn.
    """

    joules: float
    low: float  # 95 % interval over runs; nan if there are too few
    high: float
    seconds: float  # of the same sets, from the end of one to the end of the next
    error: float  # relative: what counters did not yet show, or no longer, at the ends
    counted: str  # "RAPL: 2 x package, 2 x dram"


def energy(runs: Sequence[Times], records: Sequence[Record]) -> Energy | None:
    """The energy of repeated runs, `records[run]`; None unless all sets were measured."""
    used = [(one, record) for one, record in zip(runs, records) if len(one.timed)]
    measured = [one for one, _ in used]
    if not used or not all(np.isfinite(one.joules).all() and one.walls.any() for one in measured):
        return None
    walls = [one.walls.max(axis=1) for one in measured]
    samples = [float(one.joules.mean()) for one in measured]
    hosts = [host for _, record in used for host in record.environment.hosts]
    updates = max(host.energy.updates for host in hosts if host.energy)
    found = typical_interval(samples)
    low, high = ends_of(found)
    return Energy(
        joules=float(np.median(samples)),
        low=low,
        high=high,
        seconds=float(np.median([wall.mean() for wall in walls])),
        error=max(updates / float(wall.sum()) for wall in walls),
        counted=_counted(used[0][1]),
    )


def _counted(record: Record) -> str:
    """'RAPL: 2 x package, dram': counters of all machines, by kind."""
    hosts = record.environment.hosts
    machines = {h.machine if h.machine >= 0 else h.name: h.energy for h in hosts if h.energy}
    facts = list(machines.values())
    kinds = Counter(re.split("[- ]", name)[0] for one in facts for name in one.includes)
    many = [f"{n} x {kind}" if n > 1 else kind for kind, n in kinds.items()]
    return f"{facts[0].reader}: {', '.join(many)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Communication:
    """Time of CG and its communication per rank: median over sets, then over runs."""

    cg: F64  # (n_ranks,) seconds
    spent: F64  # (n_ranks,) seconds

    @property
    def share(self) -> float:
        """Communication / CG, both means over ranks (Ferreira 2006)."""
        return float(self.spent.sum() / self.cg.sum()) if self.cg.any() else 0.0

    @property
    def by_rank(self) -> F64:
        """The share of each rank; 0 if CG took no time."""
        return np.divide(self.spent, self.cg, out=np.zeros_like(self.spent), where=self.cg > 0)


def communication(runs: Sequence[Times]) -> Communication:
    """The communication in CG; at least one of the runs must have timed sets."""
    return Communication(rank_times(runs, ph.CG), rank_times(runs, *ph.COMMUNICATION))
