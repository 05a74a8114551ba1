"""Bulk-synchronous programs over migratable blocks: supersteps, looks, moves, the same ledger as a solve's.

A program (`Program`) is a set of blocks that compute and then talk; a superstep is both, with a barrier.
Blocks are dictionaries of arrays, and what is in the dictionary moves with them. Computing is stretched to
emulated speeds (SYNTHETIC, synthetic/slowness.py).
"""

import time
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import receive_arrays, send_arrays
from fembench.balance.control import Control, Settings
from fembench.balance.observation import Links, Stats
from fembench.balance.pace import Pace
from fembench.ranks.comm import Comm
from fembench.records.ledger import Ledger, Look
from fembench.synthetic.slowness import FULL_SPEED, ONCE, Slowness

Arrays = dict[str, NDArray]


class BspProgram(Protocol):
    """A bulk-synchronous program."""

    n_blocks: int
    supersteps: int

    def make(self, block: int) -> Arrays:
        """The arrays of a block at the start."""

    def compute(self, step: int, block: int, arrays: Arrays) -> None:
        """The local part of a superstep."""

    def talk(self, comm: Comm, step: int, blocks: dict[int, Arrays], owner: NDArray[np.int64]) -> None:
        """The communication of a superstep. Collective."""

    def result(self, comm: Comm, blocks: dict[int, Arrays]) -> NDArray | None:
        """The answer on rank 0, None elsewhere. Collective."""


@dataclass(frozen=True)
class Ran:
    """What came of a program; result and ledger on rank 0."""

    seconds: float
    result: NDArray | None
    ledger: Ledger | None


def run_program(
    comm: Comm,
    program: BspProgram,
    settings: Settings,
    slowness: Slowness = FULL_SPEED,
    second_per_byte: float = 1e-9,
) -> Ran:
    """Run a program to its end, balanced. Collective."""
    run = _Run(comm, program, settings, slowness, second_per_byte)
    comm.Barrier()
    begin = time.perf_counter()
    for step in range(program.supersteps):
        run.superstep(step)
    seconds = time.perf_counter() - begin
    answer = program.result(comm, run.blocks)
    return Ran(seconds, answer, run.ledger(seconds))


class _Run:
    def __init__(
        self, comm: Comm, program: BspProgram, settings: Settings, slowness: Slowness, second_per_byte: float
    ) -> None:
        self.comm, self.program, self.settings, self.slowness = comm, program, settings, slowness
        slowness.new_work(ONCE)
        n = program.n_blocks
        self.owner = np.arange(n, dtype=np.int64) * comm.size // n
        self.blocks = {i: program.make(i) for i in range(n) if self.owner[i] == comm.rank}
        self.control = Control(settings)
        self.per_byte = second_per_byte
        self._spent = np.zeros(n)  # s of computing by block in this window, stretched
        self._begin, self._from = time.perf_counter(), 0
        # nobody counts the work of these programs: alike for all blocks until they are seen
        self._pace = Pace(np.ones(n), comm.size)
        self._looks: list[Look] = []
        self._own: list[list[float]] = []

    def superstep(self, step: int) -> None:
        """Compute, talk; at the end of a window perhaps a look."""
        for i, arrays in self.blocks.items():
            self.slowness.begin()
            used = time.thread_time_ns()
            self.program.compute(step, i, arrays)
            used = time.thread_time_ns() - used
            self.slowness.end()
            self._spent[i] += used * self.slowness.factor * 1e-9
        self.program.talk(self.comm, step, self.blocks, self.owner)
        self.comm.Barrier()
        if (step + 1) % self.settings.gamma == 0:
            self._close(step + 1)

    def _close(self, done: int) -> None:
        elapsed = (time.perf_counter() - self._begin) / (done - self._from)
        if self._own and self._own[-1][2] < 0:
            self._own[-1][2] = elapsed
        if self.control.due(done) and done < self.program.supersteps:
            self._look(done, elapsed)
        self._spent[:] = 0.0
        self._begin, self._from = time.perf_counter(), done

    def _look(self, done: int, elapsed: float) -> None:
        begin = time.perf_counter()
        sizes = {i: sum(a.nbytes for a in arrays.values()) for i, arrays in self.blocks.items()}
        rows = self.comm.gather((sizes, self._spent / (done - self._from), elapsed))
        look = None
        if rows is not None:
            look = self.control.look(self._stats(rows, done), done, max(row[2] for row in rows))
            self._looks.append(look)
        moves, alpha = self.comm.bcast(
            None if look is None else ([(m.block, m.source, m.target) for m in look.moves], look.next_alpha)
        )
        self.control.alpha = self.control.wait = alpha
        decided = time.perf_counter()
        for block, source, target in moves:
            if self.comm.rank == source:
                send_arrays(self.comm, self.blocks.pop(block), target)
            elif self.comm.rank == target:
                self.blocks[block] = receive_arrays(self.comm, source)
            self.owner[block] = target
        self.blocks = dict(sorted(self.blocks.items()))
        self._own.append([decided - begin, time.perf_counter() - decided, -1.0])

    def _stats(self, rows: list, done: int) -> Stats:
        seconds = np.sum([row[1] for row in rows], axis=0)
        size = np.zeros(seconds.size)
        for sizes, _, _ in rows:
            for i, n in sizes.items():
                size[i] = n
        self._pace.learn(seconds, self.owner)
        time_ = self._pace.times(self.owner)
        longest = float(np.bincount(self.owner, time_, self.comm.size).max())
        return Stats(
            owner=self.owner.copy(),
            time=time_,
            speed=self._pace.speeds,
            seen=np.bincount(self.owner, seconds, self.comm.size).astype(np.float64),
            noise=self._pace.noise,
            size=size,
            links=Links.none(),
            second_per_byte=self.per_byte,
            communication=max(0.0, max(row[2] for row in rows) - longest),
            remaining=self.program.supersteps - done,
            places=np.column_stack((np.arange(seconds.size), np.zeros((seconds.size, 2)))),
            seed=done,
        )

    def ledger(self, seconds: float) -> Ledger | None:
        """The ledger on rank 0. Collective."""
        table = self.comm.gather((self._own, seconds))
        if table is None:
            return None
        looks = []
        for k, look in enumerate(self._looks):
            own = [max(row[0][k][c] for row in table) for c in range(3)]
            looks.append(
                msgspec.structs.replace(look, look_seconds=own[0], move_seconds=own[1], measured=own[2])
            )
        return Ledger(
            looks=tuple(looks),
            owner=tuple(int(r) for r in self.owner),
            iterations=self.program.supersteps,
            seconds=max(row[1] for row in table),
        )
