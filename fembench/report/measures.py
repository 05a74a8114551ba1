"""What tables and plots show, computed from raw records.

A sample is one timed set (or, for phases outside the sets, one run): an array over ranks. A phase's
time is the maximum over ranks of a sample, the median over the samples of a run, then the median over
runs (VALIDITY C1, D1). Runs are the unit: the sets of one share its state of the machine. The mean over
ranks is the source thesis' value ("mean over tasks").
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fembench.records import phases as ph
from fembench.records.compare import Pool
from fembench.records.record import Record
from fembench.records.validity import attributed, timed_sets
from fembench.stats.runs import by_run
from fembench.stats.summary import Interval

Floats = npt.NDArray[np.float64]

# Names of times that are not phases of the trace
LOOP = "cg.loop"  # what CG's modules leave over
SOLVE = "assembly + cg"
PRODUCT = "product"  # matrix times vector
VECTORS = "vectors"  # what else CG computes
SET = "set"
RUN = "run"
REST = "unattributed"
UPDATE = ("cg.send", "cg.wait", "cg.unpack")  # point-to-point; the thesis' send and receive
COMMUNICATION = tuple(ph.NAMES[i] for i in ph.COMMUNICATION)


@dataclasses.dataclass(frozen=True, slots=True)
class Time:
    """One phase of one pool. Seconds; medians over the samples of a run, then over runs."""

    median: float  # of the maximum over ranks
    low: float  # 95 % interval over runs, of one run alone that of its sets; nan where they are too few
    high: float
    n: int  # samples of all runs
    medians: tuple[float, ...]  # of each run
    within: tuple[tuple[float, float], ...]  # each run's own 95 % interval, by its sets; nan as above
    apart: bool  # do runs differ by more than their own sets explain?
    minimum: float  # over ranks
    mean: float  # over ranks
    rank: int  # the slowest, by its own median
    host: str  # where it ran

    @property
    def runs(self) -> int:
        return len(self.medians)


def samples(pool: Pool) -> dict[str, Floats]:
    """name -> (n_samples, n_ranks) seconds: every phase that took any time, and the sums named above."""
    names = pool.first.phases
    timed = [s for r in pool.records for s in timed_sets(r)]
    found: dict[str, Floats] = {}
    if timed:
        sets = np.array([s.seconds for s in timed])
        found = {name: sets[:, :, i] for i, name in enumerate(names) if sets[:, :, i].any()}
        found |= _sums(found, np.zeros(sets.shape[:2])) | {SET: np.array([s.total for s in timed])}
    setup = np.array([r.setup for r in pool.records])
    found |= {n: setup[:, :, i] for i, n in enumerate(names) if setup[:, :, i].any() and n not in found}
    total = np.array([r.total for r in pool.records])
    known = np.array([[attributed(r, rank) for rank in range(len(r.total))] for r in pool.records])
    return found | {RUN: total, REST: total - known}


def _sums(phases: dict[str, Floats], nothing: Floats) -> dict[str, Floats]:
    """What CG's modules leave over, and what a set computes."""
    cg = phases.get("cg", nothing)
    modules = sum((v for k, v in phases.items() if k.startswith("cg.")), nothing)
    product = (phases.get(f"cg.spmv_{where}", nothing) for where in ("interior", "interface"))
    vectors = (phases.get(f"cg.{name}", nothing) for name in ("dot", "axpy", "precond"))
    return {
        LOOP: cg - modules,
        SOLVE: phases.get("assembly", nothing) + cg,
        PRODUCT: sum(product, nothing),
        VECTORS: sum(vectors, nothing),
    }


def by_record(pool: Pool) -> tuple[dict[str, Floats], ...]:
    """The samples of each run."""
    return tuple(samples(Pool(pool.case, (record,))) for record in pool.records)


def times(runs: Sequence[dict[str, Floats]], record: Record) -> dict[str, Time]:
    """A Time of each name in the samples of runs like `record`."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: summarise([run[name] for run in runs if name in run], record) for name in names}


def summarise(runs: Sequence[Floats], record: Record) -> Time:
    """A Time from (n_samples, n_ranks) seconds of each of some runs like `record`."""
    found = by_run([values.max(axis=1) for values in runs])
    low, high = _ends(found.interval if len(runs) > 1 else found.within[0])
    rank = int(np.argmax(over_runs(runs)))
    return Time(
        median=found.median,
        low=low,
        high=high,
        n=sum(len(values) for values in runs),
        medians=found.medians,
        within=tuple(map(_ends, found.within)),
        apart=found.apart,
        minimum=float(over_runs([values.min(axis=1) for values in runs])),
        mean=float(over_runs([values.mean(axis=1) for values in runs])),
        rank=rank,
        host=host_of(record, rank),
    )


def _ends(interval: Interval | None) -> tuple[float, float]:
    return (interval.low, interval.high) if interval else (np.nan, np.nan)


def over_runs(runs: Sequence[Floats]) -> Floats:
    """Median over the samples of each run, the first axis, then over runs."""
    return np.asarray(np.median([np.median(values, axis=0) for values in runs], axis=0))


def mean_times(*runs: dict[str, Floats]) -> dict[str, float]:
    """name -> seconds: mean over ranks, median over samples and runs. These add up, maxima do not."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {n: float(over_runs([run[n].mean(axis=1) for run in runs if n in run])) for n in names}


def host_of(record: Record, rank: int) -> str:
    """Name of the host that a rank ran on."""
    return record.environment.hosts[record.environment.rank_host[rank]].name


@dataclasses.dataclass(frozen=True, slots=True)
class Communication:
    """CG and the communication in it: of each rank the median over the sets of a run, then over runs."""

    cg: Floats  # (n_ranks,) seconds
    spent: Floats  # (n_ranks,) seconds

    @property
    def share(self) -> float:
        """Communication / CG, both means over ranks: the source thesis' ratio. Lies among `by_rank`."""
        return float(self.spent.sum() / self.cg.sum()) if self.cg.any() else 0.0

    @property
    def by_rank(self) -> Floats:
        """Each rank's own share; 0 where no time was spent."""
        return np.divide(self.spent, self.cg, out=np.zeros_like(self.spent), where=self.cg > 0)


def communication(runs: Sequence[dict[str, Floats]]) -> Communication:
    """Of runs that have CG."""
    spent = [sum((r[c] for c in COMMUNICATION if c in r), np.zeros_like(r["cg"])) for r in runs]
    return Communication(over_runs([r["cg"] for r in runs]), over_runs(spent))
