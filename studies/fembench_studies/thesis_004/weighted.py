"""E13: parts of unequal size, which Ferreira (2006) left as future work.

Two kinds, each on node8 and node00 together:
    dense    the tasks of the best of runs 1 to 11, with parts of unequal size
    csr      one part per processor: one on node00, two on node8

Shares of round 1 follow from the times of each host alone with as many tasks (E9). Round 2 corrects them by
the computing time of each rank in round 1: share x (mean time / own time)^e, with e = 1/2 for dense storage,
whose work is the square of a part, and e = 1 for csr.
"""

from typing import NamedTuple

import numpy as np

from fembench.partition.shares import normalise
from fembench.records.record import Record
from fembench.weights.observe import observe
from fembench_studies.thesis_004.machines import Placement
from fembench_studies.thesis_004.pair_tables import run_totals
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ONE_HOST, RUNS, StudyPlan, Want
from fembench_studies.thesis_004.split import ideal_split
from fembench_studies.thesis_004.thesis import MESHES

ROUNDS = (1, 2)
HOSTS = ("node00", "node8")


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


def kind_of(plan: StudyPlan, found: StudyRecords, mesh: str, storage: str) -> Kind | None:
    """The kind for a mesh; None until the runs that decide it are measured."""
    if storage == "csr":
        return Kind("csr", 1, 2, (1, 2))
    times = {r: t for r, t in run_totals(plan, found, mesh).items() if np.isfinite(t)}
    if not times:
        return None
    run = min(times, key=lambda r: times[r])
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
    fast_alone: float  # node8 alone with the tasks in kind.like
    slow_alone: float
    fast_best: float  # node8 alone with any number of tasks
    communication: float  # fraction of CG

    @property
    def ideal(self) -> float:
        """Seconds of the ideal split, without communication."""
        return ideal_split([self.slow_alone, self.fast_alone]).seconds

    @property
    def largest_gain(self) -> float:
        """Largest fraction of node8's time that node00 can save."""
        return ideal_split([self.slow_alone, self.fast_alone]).shares[0]

    @property
    def verdict(self) -> str:
        """Whether the slow host helps, in one line."""
        saved = 1 - self.seconds / self.fast_alone
        if saved > 0:
            return f"node00 saves {100 * saved:.1f} % of node8's time"
        most = f"it could save at most {100 * self.largest_gain:.1f} %"
        return f"leave node00 out: {-100 * saved:.0f} % slower with it; {most}"


def want(plan: StudyPlan, found: StudyRecords, mesh: str, storage: str, round_: int) -> Want | None:
    """The weighted case of a round; None until the runs that determine its shares are measured."""
    kind = kind_of(plan, found, mesh, storage)
    if kind is None:
        return None
    if round_ == 1:
        slow, fast = (found.total(_alone(plan, mesh, kind, host)) for host in HOSTS)
        if not np.isfinite(slow + fast):
            return None
        return _with_shares(plan, mesh, kind, first_shares(ideal_split([slow, fast]).shares[0], kind))
    before = found.record(want(plan, found, mesh, storage, 1))
    return _with_shares(plan, mesh, kind, corrected(before, KINDS[storage])) if before else None


def first_shares(part: float, kind: Kind) -> list[float]:
    """Shares of all tasks if node00 gets `part` of the cells."""
    return [part / kind.on_slow] * kind.on_slow + [(1 - part) / kind.on_fast] * kind.on_fast


def corrected(record: Record, exponent: float) -> list[float]:
    """Shares of the next round, from the computing time per rank."""
    busy = np.median(observe(record).compute, axis=0)
    cells = np.asarray(record.partition.cells, float)
    return list(normalise((cells * (busy.mean() / busy) ** exponent).tolist()))


def _with_shares(plan: StudyPlan, mesh: str, kind: Kind, shares: list[float]) -> Want:
    text = ",".join(f"{s:.5f}" for s in shares)
    return plan.on_hosts(mesh, _placement(plan, kind), kind.storage, text)


def _placement(plan: StudyPlan, kind: Kind) -> Placement:
    return plan.machines.mixed(kind.on_slow, kind.on_fast)


def _alone(plan: StudyPlan, mesh: str, kind: Kind, host: str, tasks: int = 0) -> Want:
    slow, fast = kind.like
    m = plan.machines
    return plan.on_hosts(
        mesh, m.mixed(tasks or slow, 0) if host == "node00" else m.mixed(0, tasks or fast), kind.storage
    )


def wants(plan: StudyPlan, found: StudyRecords, round_: int) -> list[Want]:
    """All weighted cases of a round."""
    made = (want(plan, found, mesh, storage, round_) for mesh in MESHES for storage in KINDS)
    return [w for w in made if w is not None]


def results(plan: StudyPlan, found: StudyRecords) -> list[Weighted]:
    """Every measured weighted run."""
    made = (_result(plan, found, mesh, s, r) for mesh in MESHES for s in KINDS for r in ROUNDS)
    return [w for w in made if w is not None]


def _result(plan: StudyPlan, found: StudyRecords, mesh: str, storage: str, round_: int) -> Weighted | None:
    kind, wanted = kind_of(plan, found, mesh, storage), want(plan, found, mesh, storage, round_)
    record, phases = found.record(wanted), found.phases(wanted)
    if kind is None or record is None:
        return None
    slow_alone, fast_alone = (found.total(_alone(plan, mesh, kind, host)) for host in HOSTS)
    cells = record.partition.cells
    counts = ONE_HOST if storage == "dense" else (kind.like[1],)
    return Weighted(
        mesh=mesh,
        kind=kind,
        round=round_,
        share=sum(cells[: kind.on_slow]) / sum(cells),
        seconds=phases.total,
        equal=found.total(plan.on_hosts(mesh, _placement(plan, kind), storage)),
        best_seconds=run_totals(plan, found, mesh)[kind.run] if kind.run else np.nan,
        fast_alone=fast_alone,
        slow_alone=slow_alone,
        fast_best=min(found.total(_alone(plan, mesh, kind, "node8", p)) for p in counts),
        communication=phases.communication / phases.cg,
    )
