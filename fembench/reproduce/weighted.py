"""E13: partitions with unequal parts, which the thesis left as future work.

Two kinds, each on node8 and node00 together:
    dense, 8 tasks    7 on node8 and 1 on node00, as run 3, but with parts of unequal size
    csr, 3 tasks      one part a processor

Shares, round 1, are E9's: the time of each host alone, as many tasks. Round 2 corrects them by what each
rank computed in round 1: share x (mean time / own time)^e, e = 1/2 where work is the square of a part.
"""

from typing import NamedTuple

import numpy as np

from fembench.partition.shares import normalise
from fembench.records.record import Record
from fembench.reproduce.machines import Placement
from fembench.reproduce.pair_tables import run_totals
from fembench.reproduce.plan import ONE_HOST, Plan, Want
from fembench.reproduce.thesis import MESHES
from fembench.reproduce.times import Measured
from fembench.weights.observe import observe
from fembench.weights.slowness import ideal_split

ROUNDS = (1, 2)


class Kind(NamedTuple):
    """Storage and tasks of a weighted run."""

    storage: str
    on_slow: int
    on_fast: int
    like: tuple[int, int]  # tasks of node00 and of node8 alone that it is held against
    exponent: float  # of the correction


KINDS = (Kind("dense", 1, 7, (8, 8), 0.5), Kind("csr", 1, 2, (1, 2), 1.0))


class Weighted(NamedTuple):
    """A weighted run and all that it is held against; seconds."""

    mesh: str
    kind: Kind
    round: int
    share: float  # of the cells, node00's, achieved
    seconds: float
    equal: float  # the same tasks, equal parts
    best_run: int  # of 1 to 11; 0: the kind has none
    best_seconds: float
    fast_alone: float  # like for like
    slow_alone: float
    fast_best: float  # node8 alone with any number of tasks
    communication: float  # part of CG

    @property
    def ideal(self) -> float:
        """Seconds: the bound of a weighted split, communication not counted."""
        return ideal_split([self.slow_alone, self.fast_alone]).seconds

    @property
    def largest_gain(self) -> float:
        """The most that node00 can save of node8's time."""
        return ideal_split([self.slow_alone, self.fast_alone]).shares[0]

    @property
    def verdict(self) -> str:
        """One line: does the slow host help?"""
        saved = 1 - self.seconds / self.fast_alone
        if saved > 0:
            return f"node00 saves {100 * saved:.1f} % of node8's time"
        most = f"it can gain at most {100 * self.largest_gain:.1f} %"
        return f"leave node00 out: {-100 * saved:.0f} % longer, and {most}"


def want(plan: Plan, found: Measured, mesh: str, kind: Kind, round_: int) -> Want | None:
    """The weighted case of a round; None until what its shares follow from is there."""
    if round_ == 1:
        slow, fast = (found.total(_alone(plan, mesh, kind, host)) for host in ("node00", "node8"))
        if not np.isfinite(slow + fast):
            return None
        part = ideal_split([slow, fast]).shares[0]
        return _with_shares(plan, mesh, kind, first_shares(part, kind))
    before = found.record(want(plan, found, mesh, kind, 1))
    return _with_shares(plan, mesh, kind, corrected(before, kind.exponent)) if before else None


def first_shares(part: float, kind: Kind) -> list[float]:
    """Shares of all tasks where node00 gets `part` of the cells."""
    return [part / kind.on_slow] * kind.on_slow + [(1 - part) / kind.on_fast] * kind.on_fast


def corrected(record: Record, exponent: float) -> list[float]:
    """Shares of the next round from what every rank computed."""
    busy = np.median(observe(record).compute, axis=0)
    cells = np.asarray(record.partition.cells, float)
    return list(normalise((cells * (busy.mean() / busy) ** exponent).tolist()))


def _with_shares(plan: Plan, mesh: str, kind: Kind, shares: list[float]) -> Want:
    text = ",".join(f"{s:.5f}" for s in shares)
    return plan.on_hosts(mesh, _placement(plan, kind), kind.storage, text)


def _placement(plan: Plan, kind: Kind) -> Placement:
    return plan.machines.mixed(kind.on_slow, kind.on_fast)


def _alone(plan: Plan, mesh: str, kind: Kind, host: str, tasks: int = 0) -> Want:
    slow, fast = kind.like
    placement = (
        plan.machines.mixed(tasks or slow, 0) if host == "node00" else plan.machines.mixed(0, tasks or fast)
    )
    return plan.on_hosts(mesh, placement, kind.storage)


def wants(plan: Plan, found: Measured, round_: int) -> list[Want]:
    """All weighted cases of a round."""
    made = (want(plan, found, mesh, kind, round_) for mesh in MESHES for kind in KINDS)
    return [w for w in made if w is not None]


def results(plan: Plan, found: Measured) -> list[Weighted]:
    """Every weighted run that was measured."""
    made = (_result(plan, found, mesh, k, r) for mesh in MESHES for k in KINDS for r in ROUNDS)
    return [w for w in made if w is not None]


def _result(plan: Plan, found: Measured, mesh: str, kind: Kind, round_: int) -> Weighted | None:
    wanted = want(plan, found, mesh, kind, round_)
    record, phases = found.record(wanted), found.phases(wanted)
    if record is None or phases is None:
        return None
    fast_alone, slow_alone = (found.total(_alone(plan, mesh, kind, host)) for host in ("node8", "node00"))
    best, best_seconds = _best_run(plan, found, mesh) if kind.storage == "dense" else (0, np.nan)
    cells = record.partition.cells
    counts = ONE_HOST if kind.storage == "dense" else (kind.like[1],)
    return Weighted(
        mesh=mesh,
        kind=kind,
        round=round_,
        share=sum(cells[: kind.on_slow]) / sum(cells),
        seconds=phases.total,
        equal=found.total(plan.on_hosts(mesh, _placement(plan, kind), kind.storage)),
        best_run=best,
        best_seconds=best_seconds,
        fast_alone=fast_alone,
        slow_alone=slow_alone,
        fast_best=min(found.total(_alone(plan, mesh, kind, "node8", p)) for p in counts),
        communication=phases.communication / phases.cg,
    )


def _best_run(plan: Plan, found: Measured, mesh: str) -> tuple[int, float]:
    times = {r: t for r, t in run_totals(plan, found, mesh).items() if np.isfinite(t)}
    run = min(times, key=lambda r: times[r], default=0)
    return run, times.get(run, np.nan)
