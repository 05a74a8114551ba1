"""One peer: built, compared with u, timed; an error ends its part alone.

All functions are collective. A peer on one rank works on rank 0 while the other ranks
sleep, so that they take neither its memory bandwidth nor its core.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import FembenchError
from fembench.bench.prepare import Prepared
from fembench.peers.catalog import Entry, Peer, PeersJob, Sample
from fembench.peers.solvers import FOREIGN_ERRORS, Numpy, make_parallel, make_serial
from fembench.peers.system import System
from fembench.ranks.comm import MAX, Comm, all_arrive, on_root
from fembench.records.contest import PeerRun
from fembench.solve.iterate import StoppingCriterion

PARITY = 1e-6  # |u - u_exported| / |u_exported| that a peer must reach to be timed
ENOUGH = 10.0  # seconds of building after which a peer is not built again
T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """The data of the peers: the whole system on rank 0, and its parts on all ranks."""

    comm: Comm
    job: PeersJob
    serial: Prepared | None  # on rank 0
    parallel: Prepared | None  # on all ranks, if there are several
    system: System | None  # on rank 0
    iterates: dict[str, F64] = field(default_factory=dict)  # on rank 0, by preconditioner

    def control(self, fixed: int = 0) -> StoppingCriterion:
        """Stop at the tolerance, or after a number of iterations."""
        equations = self.serial.mesh.n_equations if self.serial else 1
        limit = self.comm.bcast(10 * equations)
        return StoppingCriterion(
            tolerance=self.job.case.stop.tolerance, relative=True, max_iterations=limit, fixed=fixed
        )


@dataclass
class Contest:
    """An entry on a given number of ranks, and its results so far; equal on all ranks."""

    entry: Entry
    ranks: int
    peer: Peer | None = None  # where it runs
    failed: str = ""
    library: str = ""
    difference: float | None = None
    iterations: int = 0
    assembly: list[float] = field(default_factory=list)
    setup: list[float] = field(default_factory=list)
    solves: list[float] = field(default_factory=list)
    per_iteration: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.entry.name} on {self.ranks}"

    @property
    def agrees(self) -> bool:
        return not self.failed and self.difference is not None and self.difference <= PARITY

    def result(self) -> PeerRun:
        """The result for the record: no time without parity."""
        note = self.failed
        if not note and not self.agrees:
            reached = math.nan if self.difference is None else self.difference
            note = f"|du|/|u| = {reached:.1e}, expected at most {PARITY:g}"
        timed = not note
        return PeerRun(
            peer=self.entry.peer,
            precond=self.entry.precond,
            ranks=self.ranks,
            status="timed" if timed else "failed" if self.failed else "no parity",
            library=self.library,
            note=note,
            difference=self.difference,
            iterations=self.iterations,
            solves=tuple(self.solves) if timed else (),
            per_iteration=tuple(self.per_iteration) if timed else (),
            assembly=_warm(self.assembly) if timed else (),
            setup=_warm(self.setup) if timed else (),
        )


def _warm(seconds: list[float]) -> tuple[float, ...]:
    """All but the first, which loads libraries and touches pages; or the only one."""
    return tuple(seconds[1:] or seconds)


def on_one(comm: Comm, function: Callable[[], T]) -> T | None:
    """function() on rank 0 while others sleep, with None; all raise its FembenchError."""
    result, error = None, None
    if comm.rank == 0:
        try:
            result = function()
        except FembenchError as raised:
            error = raised
    all_arrive(comm, math.inf)

    def finish() -> T | None:
        if error is not None:
            raise error
        return result

    return on_root(comm, finish)


def attempt(stage: Stage, contest: Contest, act: Callable[[], T]) -> T | None:
    """act() on the contest's ranks; an error ends the contest alone. Collective."""
    comm = stage.comm
    if contest.ranks > 1:  # what is raised here is raised on all ranks alike
        try:
            return act()
        except FembenchError as error:
            contest.failed = str(error)
            return None
    own = contest.entry.peer.startswith("own-")  # whose errors are ours
    caught = (FembenchError,) if own else (FembenchError, *FOREIGN_ERRORS)
    result = None
    if comm.rank == 0:
        try:
            result = act()
        except caught as error:
            ours = isinstance(error, FembenchError)
            words = str(error) if ours else f"{type(error).__name__}: {error}"
            contest.failed = words.splitlines()[0]
    all_arrive(comm, math.inf)
    contest.failed = comm.bcast(contest.failed)
    return result


def free(contest: Contest) -> None:
    """Free the peer."""
    if contest.peer is not None:
        contest.peer.close()
        contest.peer = None


def build(stage: Stage, contest: Contest) -> None:
    """Build the peer; rebuild it if it exists and building is quick. Collective."""
    slow = sum(contest.assembly) + sum(contest.setup) > ENOUGH
    if contest.failed or slow:
        return
    free(contest)

    def make() -> Peer:
        if contest.ranks > 1:
            assert stage.parallel is not None
            return make_parallel(contest.entry, stage.parallel)
        assert stage.serial is not None
        assert stage.system is not None
        if contest.entry.parallel:
            return make_parallel(contest.entry, stage.serial)
        return make_serial(contest.entry, stage.system)

    if contest.ranks > 1:
        stage.comm.Barrier()
    contest.peer = attempt(stage, contest, make)
    if contest.failed:
        return
    peer = contest.peer
    contest.library, assembles = stage.comm.bcast(
        (peer.library, peer.assembly is not None) if peer else ("", False)
    )
    if assembles:
        contest.assembly.append(_slowest(stage, contest, peer.assembly if peer else None))
    contest.setup.append(_slowest(stage, contest, peer.setup if peer else None))


def _slowest(stage: Stage, contest: Contest, seconds: float | None) -> float:
    """The largest time of the ranks that took part. Collective."""
    return float(stage.comm.allreduce(seconds if seconds is not None else 0.0, MAX))


def solve(stage: Stage, contest: Contest, control: StoppingCriterion) -> tuple[float, int, F64 | None]:
    """(seconds of the slowest rank, iterations, x where it ran). Collective."""
    if contest.ranks > 1:
        stage.comm.Barrier()
    sample: Sample | None = attempt(
        stage, contest, lambda: contest.peer.solve(control) if contest.peer else None
    )
    if contest.failed:
        return math.nan, 0, None
    seconds = _slowest(stage, contest, sample.seconds if sample else None)
    return seconds, stage.comm.bcast(sample.iterations if sample else 0), sample.x if sample else None


def check(stage: Stage, contest: Contest) -> None:
    """Solve to the tolerance or for a fixed number of iterations; compare. Collective."""
    to_solution = stage.job.parity == "solution"
    control = stage.control(0 if to_solution else stage.job.iterations)
    seconds, contest.iterations, x = solve(stage, contest, control)
    if contest.failed:
        return
    if contest.ranks > 1:
        assert x is not None
        x = whole(stage, x)
    difference = None
    if stage.system is not None and x is not None:
        u = stage.system.u if to_solution else iterate_of_numpy(stage, contest.entry.precond, control)
        alike = x.shape == u.shape
        difference = float(np.linalg.norm(x - u) / np.linalg.norm(u)) if alike else math.nan
    contest.difference = stage.comm.bcast(difference)
    if stage.job.iterations and to_solution:
        contest.solves.append(seconds)


def iterate_of_numpy(stage: Stage, precond: str, control: StoppingCriterion) -> F64:
    """The iterate of textbook conjugate gradients after a number of iterations."""
    assert stage.system is not None
    if precond not in stage.iterates:
        stage.iterates[precond] = Numpy(stage.system, precond).solve(control).x
    return stage.iterates[precond]


def whole(stage: Stage, x: F64) -> F64 | None:
    """The whole solution on rank 0, in the order of the system. Collective."""
    assert stage.parallel is not None
    sub = stage.parallel.sub
    owned = sub.owned_nodes[: sub.n_active]
    parts = stage.comm.gather((sub.global_nodes[: sub.n_active][owned], x.reshape(-1, 3)[owned]))
    if parts is None or stage.serial is None:
        return None
    nodes = stage.serial.sub.global_nodes
    position = np.empty(int(nodes.max()) + 1, np.int64)
    position[nodes] = np.arange(nodes.size)
    out = np.zeros((stage.serial.sub.n_active, 3))
    for global_nodes, values in parts:
        out[position[global_nodes]] = values
    return out.reshape(-1)


def repeat(stage: Stage, contest: Contest) -> None:
    """One more sample. Collective."""
    fixed = stage.job.iterations
    seconds, iterations, _ = solve(stage, contest, stage.control(fixed))
    if contest.failed:
        return
    contest.per_iteration.append(seconds / max(iterations, 1))
    if not fixed:
        contest.solves.append(seconds)
