"""What tables and plots show, computed from raw records.

A sample is one timed set (or, for phases outside the sets, one run): an array over ranks. A phase's
time is the maximum over ranks of a sample, then the median over samples (VALIDITY C1, D1). The mean
over ranks is the source thesis' value ("mean over tasks").
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from fembench.records.compare import Pool
from fembench.records.record import Record
from fembench.records.validity import attributed, timed_sets
from fembench.stats.summary import median_interval
from fembench.timing import phases as ph

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
    """One phase of one pool. Seconds; medians over samples."""

    median: float  # of the maximum over ranks
    low: float  # 95 % interval of that median; nan where the samples are too few
    high: float
    n: int  # samples
    minimum: float  # over ranks
    mean: float  # over ranks
    rank: int  # the slowest, by its own median
    host: str  # where it ran


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


def summarise(values: Floats, record: Record) -> Time:
    """A Time from (n_samples, n_ranks) seconds of runs like `record`."""
    worst = values.max(axis=1)
    interval = median_interval(worst)
    rank = int(np.argmax(np.median(values, axis=0)))
    return Time(
        median=float(np.median(worst)),
        low=interval.low if interval else np.nan,
        high=interval.high if interval else np.nan,
        n=len(worst),
        minimum=float(np.median(values.min(axis=1))),
        mean=float(np.median(values.mean(axis=1))),
        rank=rank,
        host=host_of(record, rank),
    )


def mean_times(found: dict[str, Floats]) -> dict[str, float]:
    """name -> seconds: mean over ranks, median over samples. These add up, maxima do not."""
    return {name: float(np.median(values.mean(axis=1))) for name, values in found.items()}


def host_of(record: Record, rank: int) -> str:
    """Name of the host that a rank ran on."""
    return record.environment.hosts[record.environment.rank_host[rank]].name


def communication_share(found: dict[str, Floats]) -> Floats:
    """(n_samples, n_ranks) part of CG's time spent in communication."""
    spent = sum((found[c] for c in COMMUNICATION if c in found), np.zeros_like(found["cg"]))
    return np.divide(spent, found["cg"], out=np.zeros_like(spent), where=found["cg"] > 0)


def mean_share(found: dict[str, Floats]) -> float:
    """Communication / CG, both means over ranks: the ratio of the source thesis. Median over samples."""
    whole = found["cg"].mean(axis=1)
    spent = (communication_share(found) * found["cg"]).mean(axis=1)
    return float(np.median(spent[whole > 0] / whole[whole > 0])) if whole.any() else 0.0
