"""E13: parts of unequal size, which Ferreira (2006) left as future work.

Two kinds, each on node8 and node00 together:
    dense    the tasks of the best of runs 1 to 11, with parts of unequal size
    csr      one part per processor: one on node00, two on node8

Shares of round 1 follow from the times of each host alone with as many tasks
(E9). Round 2 corrects them by the computing time of each rank in round 1: share x
(mean time / own time)^e, with e = 1/2 for dense storage, whose work is the square
of a part, and e = 1 for csr.
"""

from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from fembench.partition.shares import normalise
from fembench.records.record import Record
from fembench.weights.observe import observe
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ALL, StudyPlan, Want
from fembench_studies.thesis_004.quantities import ONE_HOST, Side, ideal_seconds
from fembench_studies.thesis_004.thesis import MESHES, RUNS

ROUNDS = (1, 2)
KINDS = {"dense": 0.5, "csr": 1.0}  # storage -> exponent of the correction


class Kind(NamedTuple):
    """Storage and tasks of a weighted run."""

    storage: str
    on_slow: int
    on_fast: int
    like: tuple[int, int]  # tasks of node00 alone and of node8 alone, for comparison
    run: int = 0  # the best of runs 1 to 11; 0: none

    @property
    def tasks(self) -> str:
        return f"{self.on_slow} + {self.on_fast}"

    def alone(self, side: Side, mesh: int) -> tuple[float, float]:
        """Seconds of node00 alone, and of node8 alone."""
        form = " csr" if self.storage == "csr" else ""
        slow, fast = self.like
        return side.total(f"node00{form}", mesh, slow), side.total(f"node8{form}", mesh, fast)


def kind_of(side: Side, mesh: int, storage: str) -> Kind | None:
    """The kind for a mesh; None until the runs that decide it are measured."""
    if storage == "csr":
        return Kind("csr", 1, 2, (1, 2))
    times = {run: side.total("run", mesh, run) for run in RUNS}
    measured = {run: t for run, t in times.items() if isfinite(t)}
    if not measured:
        return None
    run = min(measured, key=lambda r: measured[r])
    a, b = RUNS[run]
    return Kind("dense", a, b, (a + b, a + b), run)


class Weighted(NamedTuple):
    """A weighted run and the runs for comparison. Times in seconds."""

    mesh: str
    kind: Kind
    round: int
    share: float  # fraction of the cells on node00
    seconds: float
    equal: float  # the same tasks with equal parts
    best_seconds: float  # best of runs 1 to 11; nan for csr
    slow_alone: float
    fast_alone: float  # node8 alone with the tasks in kind.like
    fast_best: float  # node8 alone with any number of tasks
    communication: float  # fraction of CG

    @property
    def ideal(self) -> float:
        """Seconds of the ideal split, without communication."""
        return ideal_seconds([self.slow_alone, self.fast_alone])

    @property
    def verdict(self) -> str:
        """Whether the slow host helps, in one line."""
        saved = 1 - self.seconds / self.fast_alone
        if saved > 0:
            return f"node00 saves {100 * saved:.1f} % of node8's time"
        most = f"it could save at most {100 * self.ideal / self.slow_alone:.1f} %"
        return f"leave node00 out: {-100 * saved:.0f} % slower with it; {most}"


def want(plan: StudyPlan, found: StudyRecords, side: Side, mesh: int, kind: Kind, round_: int) -> Want | None:
    """The weighted case of a round; None until the runs that
    determine its shares are measured."""
    if round_ == 1:
        slow, fast = kind.alone(side, mesh)
        if not isfinite(slow + fast):
            return None
        part = ideal_seconds([slow, fast]) / slow
        return _case(plan, mesh, kind, first_shares(part, kind))
    before = found.record(want(plan, found, side, mesh, kind, 1))
    return _case(plan, mesh, kind, corrected(before, KINDS[kind.storage])) if before else None


def first_shares(part: float, kind: Kind) -> list[float]:
    """Shares of all tasks if node00 gets `part` of the cells."""
    return [part / kind.on_slow] * kind.on_slow + [(1 - part) / kind.on_fast] * kind.on_fast


def corrected(record: Record, exponent: float) -> list[float]:
    """Shares of the next round, from the computing time per rank."""
    busy = np.median(observe(record).compute, axis=0)
    cells = np.asarray(record.partition.cells, float)
    return list(normalise((cells * (busy.mean() / busy) ** exponent).tolist()))


def _case(plan: StudyPlan, mesh: int, kind: Kind, shares: list[float] | None = None) -> Want:
    """The tasks of a kind, with these shares or equal ones."""
    text = ",".join(f"{s:.5f}" for s in shares or ())
    placement = plan.machines.mixed(kind.on_slow, kind.on_fast)
    return plan.on_hosts(MESHES[mesh - 1], placement, kind.storage, text)


def wants(plan: StudyPlan, found: StudyRecords, round_: int) -> list[Want]:
    """All weighted cases of a round."""
    side = found.side(plan)
    kinds = [(mesh, kind_of(side, mesh, storage)) for mesh in ALL for storage in KINDS]
    made = (want(plan, found, side, mesh, kind, round_) for mesh, kind in kinds if kind)
    return [w for w in made if w is not None]


def results(plan: StudyPlan, found: StudyRecords) -> list[Weighted]:
    """Every measured weighted run."""
    side = found.side(plan)
    kinds = [(mesh, kind_of(side, mesh, storage)) for mesh in ALL for storage in KINDS]
    made = (_result(plan, found, side, mesh, kind, r) for mesh, kind in kinds if kind for r in ROUNDS)
    return [w for w in made if w is not None]


def _result(
    plan: StudyPlan, found: StudyRecords, side: Side, mesh: int, kind: Kind, round_: int
) -> Weighted | None:
    wanted = want(plan, found, side, mesh, kind, round_)
    record, phases = found.record(wanted), found.phases(wanted)
    if record is None:
        return None
    slow_alone, fast_alone = kind.alone(side, mesh)
    cells, dense = record.partition.cells, kind.storage == "dense"
    return Weighted(
        mesh=MESHES[mesh - 1],
        kind=kind,
        round=round_,
        share=sum(cells[: kind.on_slow]) / sum(cells),
        seconds=phases.total,
        equal=found.phases(_case(plan, mesh, kind)).total,
        best_seconds=side.total("run", mesh, kind.run) if kind.run else nan,
        slow_alone=slow_alone,
        fast_alone=fast_alone,
        fast_best=min(side.total("node8", mesh, p) for p in ONE_HOST) if dense else fast_alone,
        communication=phases.communication / phases.cg,
    )


def best_rounds(runs: list[Weighted]) -> list[Weighted]:
    """The faster round of each mesh and storage."""
    best: dict[tuple[str, str], Weighted] = {}
    for w in sorted(runs, key=lambda w: -w.seconds):
        best[w.kind.storage, w.mesh] = w
    return [best[key] for key in sorted(best)]
