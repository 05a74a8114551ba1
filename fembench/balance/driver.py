"""The balancer on ranks: measures windows, looks when it is time, moves blocks, keeps the ledger.

Rank 0 decides from what all ranks measured and tells the others; a look is one gather and one broadcast.
Between looks nothing is communicated. Costs are charged to the look that caused them.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import receive, send
from fembench.balance.control import Control, Settings
from fembench.balance.observation import Links, Stats
from fembench.balance.pace import Pace
from fembench.balance.solver import BlockSolver
from fembench.ranks.comm import Comm
from fembench.records.ledger import Ledger, Look
from fembench.records.phases import AXPY, DOT, PRECOND, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.synthetic.slowness import FULL_SPEED, Slowness
from fembench.timing.tracer import TracerLike

COMPUTING = [SPMV_INTERFACE, SPMV_INTERIOR, DOT, AXPY, PRECOND]


@dataclass(frozen=True)
class Facts:
    """What does not change during a solve; the same on every rank."""

    work: NDArray[np.float64]  # (V,) of each block in an iteration, any unit
    size: NDArray[np.float64]  # (V,) bytes
    places: NDArray[np.float64]  # (V, 3)
    links: Links
    second_per_byte: float


@dataclass
class _Own:
    """What this rank noted of one look."""

    look_seconds: float = 0.0
    move_seconds: float = 0.0
    measured: float = -1.0


@dataclass
class Window:
    """Since when the present window is measured: the start, or the last look."""

    iteration: int = 0
    moment: float = 0.0
    ticks: int = 0


@dataclass
class Balancer:
    """Between two iterations: look, move, note."""

    comm: Comm
    solver: BlockSolver
    facts: Facts
    settings: Settings
    tracer: TracerLike
    remaining: Callable[[int, float], int]  # (iterations done, <r, r>) -> iterations to come
    drain: dict[int, int] = field(default_factory=dict)  # rank -> iteration from which on it is empty
    slowness: Slowness = FULL_SPEED

    def __post_init__(self) -> None:
        self.control = Control(self.settings)
        self.looks: list[Look] = []  # rank 0
        self._own: list[_Own] = []
        self._pace = Pace(self.facts.work, self.comm.size)
        self._window = Window()
        self.per_move = (
            self.solver.bind_seconds
        )  # that a move costs beyond its bytes; measured when there was one
        self.carried = 0.0  # matrix bytes x iterations on this rank
        self._since = 0

    def begin(self) -> None:
        """The first iteration is about to start."""
        self._name_work()
        self._open(0)

    def after(self, iteration: int, rr: float) -> bool:
        """As solver.Between says. Collective where it is time for a look."""
        if iteration % self.settings.gamma:
            return False
        if self._own and self._own[-1].measured < 0:
            self._own[-1].measured = self._elapsed(iteration)
        leaving = frozenset(rank for rank, at in self.drain.items() if at <= iteration)
        urgent = any((self.solver.owner == rank).any() for rank in leaving)
        if not self.control.due(iteration, urgent):
            return False
        moved = self._look(iteration, rr, *self._close(iteration), leaving)
        self._open(iteration)
        return moved

    def _open(self, iteration: int) -> None:
        self._window = Window(iteration, time.perf_counter(), self._computing())
        self.solver.seconds[:] = 0.0

    def _close(self, iteration: int) -> tuple[float, float]:
        """(own computing, elapsed) seconds an iteration of the window that ends here."""
        count = iteration - self._window.iteration
        compute = (self._computing() - self._window.ticks) / self.tracer.ticks_per_second / count
        return compute, self._elapsed(iteration)

    def _elapsed(self, iteration: int) -> float:
        """Seconds an iteration since the window began."""
        return (time.perf_counter() - self._window.moment) / (iteration - self._window.iteration)

    def _name_work(self) -> None:
        """What a rank computes is what its blocks make of it: emulated speeds go by how much they have."""
        blocks = self.solver.blocks.values()
        nodes, inner = sum(b.n_active for b in blocks), sum(b.n_interior for b in blocks)
        product = {SPMV_INTERIOR: max(inner, 1), SPMV_INTERFACE: max(nodes - inner, 1)}
        if blocks:
            self.slowness.new_work("blocks", dict.fromkeys(COMPUTING, nodes) | product)
        else:
            self.slowness.new_work("no blocks")

    def _agree(self) -> None:
        """Emulated ranks of a host differ by their speeds and their blocks alone. Collective."""
        blocks = self.solver.blocks.values()
        units = {
            "assembly": sum(len(b.arrays["cells"]) for b in blocks),
            "product": sum(b.flops for b in blocks),
            "vectors": sum(b.n_active for b in blocks),
        }
        self.slowness.agree(self.comm, units)

    def _computing(self) -> int:
        return int(self.tracer.ticks()[COMPUTING].sum())

    def _look(
        self, iteration: int, rr: float, compute: float, superstep: float, leaving: frozenset[int]
    ) -> bool:
        self._agree()
        begin = time.perf_counter()
        ids = list(self.solver.blocks)
        rows = self.comm.gather((ids, self.solver.seconds[ids].tolist(), compute, superstep, self.per_move))
        look = None
        if rows is not None:
            stats = self._stats(rows, iteration, rr, leaving)
            look = self.control.look(stats, iteration, max(row[3] for row in rows))
            self.looks.append(look)
        moves, alpha = self.comm.bcast(
            None if look is None else ([(m.block, m.source, m.target) for m in look.moves], look.next_alpha)
        )
        self.control.alpha = self.control.wait = alpha
        decided, took = time.perf_counter(), 0.0
        if moves:
            self._note_carried(iteration)
            migrate(self.comm, self.solver, moves)
            self._name_work()
            took = time.perf_counter() - decided
            carried = sum(self.facts.size[block] for block, _, _ in moves) * self.facts.second_per_byte
            self.per_move = max(0.0, took - carried) / len(moves)
        self._own.append(_Own(decided - begin, took))
        return bool(moves)

    def _stats(self, rows: list, iteration: int, rr: float, leaving: frozenset[int]) -> Stats:
        owner = self.solver.owner
        seconds = block_times(rows, self.facts.work)
        self._pace.learn(seconds, owner)
        time = self._pace.times(owner)
        longest = float(np.bincount(owner, time, self.comm.size).max())
        return Stats(
            owner=owner.copy(),
            time=time,
            speed=self._pace.speeds,
            seen=np.bincount(owner, seconds, self.comm.size).astype(np.float64),
            noise=self._pace.noise,
            size=self.facts.size,
            links=self.facts.links,
            second_per_byte=self.facts.second_per_byte,
            per_move=max(row[4] for row in rows),
            communication=max(0.0, max(row[3] for row in rows) - longest),
            remaining=self.remaining(iteration, rr),
            places=self.facts.places,
            leaving=leaving,
            seed=iteration,
        )

    def _note_carried(self, iteration: int) -> None:
        held = sum(block.matrix_bytes for block in self.solver.blocks.values())
        self.carried += held * (iteration - self._since)
        self._since = iteration

    def ledger(self, iterations: int, seconds: float, *, warmup: bool) -> Ledger | None:
        """The ledger of the solve on rank 0, None elsewhere. From then on emulated ranks go by what they
        found out in it. Collective."""
        self._agree()
        self._note_carried(iterations)
        table = self.comm.gather(([(o.look_seconds, o.move_seconds, o.measured) for o in self._own], seconds))
        if table is None:
            return None
        looks = []
        for k, look in enumerate(self.looks):
            look_seconds, move_seconds, measured = (max(row[0][k][c] for row in table) for c in range(3))
            looks.append(
                msgspec.structs.replace(
                    look, look_seconds=look_seconds, move_seconds=move_seconds, measured=measured
                )
            )
        return Ledger(
            looks=tuple(looks),
            owner=tuple(int(r) for r in self.solver.owner),
            iterations=iterations,
            seconds=max(row[1] for row in table),
            warmup=warmup,
        )


def block_times(rows: list, work: NDArray[np.float64]) -> NDArray[np.float64]:
    """(V,) seconds an iteration: each rank's computing, shared out as its products took processor time, or
    by work where that was too short to be measured."""
    seconds = np.zeros(work.size)
    for ids, parts, compute, *_ in rows:
        weight = np.asarray(parts) if sum(parts) > 0 else work[ids]
        if len(ids):
            seconds[ids] = compute * weight / weight.sum()
    return seconds


def migrate(comm: Comm, solver: BlockSolver, moves: list[tuple[int, int, int]]) -> int:
    """Blocks go where they are to go, plans are made anew; bytes that this rank sent. Collective.

    Moves are (block, from, to), done in their order by all ranks, so nobody waits for somebody who waits.
    """
    sent = 0
    for block, source, target in moves:
        if comm.rank == source:
            sent += send(comm, solver.blocks.pop(block), target)
        elif comm.rank == target:
            solver.blocks[block] = receive(comm, source)
        solver.owner[block] = target
    solver.rebind()
    return sent


def expected(iteration: int, residual: float, first: float, target: float, limit: int) -> int:
    """Iterations still to come if the residual goes on falling at its mean rate; at most up to the limit."""
    left = limit - iteration
    if target <= 0 or residual >= first or residual <= 0:
        return max(left, 0)
    rate = math.log(first / residual) / iteration
    return max(0, min(left, math.ceil(math.log(max(residual / target, 1.0)) / rate)))
