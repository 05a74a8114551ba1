"""Bulk-synchronous programs over migratable blocks, balanced by the solver's
balancer (balance/driver.py).

In each superstep all blocks compute, then communicate, then meet at a barrier. A block
is a dictionary of arrays, all of which move with it. Computing is slowed to emulated
speeds (SYNTHETIC, synthetic/slowness.py); the balancer knows only the elapsed time of
each block, not the speeds.
"""

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import receive_arrays, send_arrays
from fembench.balance.control import Settings
from fembench.balance.driver import Balancer, BlockFacts, Measured, Route
from fembench.balance.link import probe
from fembench.balance.observation import Links, PairCosts
from fembench.ranks.comm import Comm, alone
from fembench.records.ledger import Ledger
from fembench.synthetic.slowness import FULL_SPEED, TASK, Slowness
from fembench_studies.programs.calibrate import low

Arrays = dict[str, NDArray]
BLOCK = "block"  # the only piece of work
LEARN = 3.0  # seconds, in which all ranks compute at full speed


class BspProgram(Protocol):
    """A bulk-synchronous program."""

    n_blocks: int
    supersteps: int
    links: Links  # messages between blocks; those of collectives are not counted, as in the thesis

    def make(self, block: int) -> Arrays:
        """The arrays of a block at the start."""

    def compute(self, step: int, block: int, arrays: Arrays) -> None:
        """The local part of a superstep."""

    def amount(self, arrays: Arrays) -> float:
        """How much a block of these arrays computes in a superstep; twice as much takes twice as long."""

    def talk(self, comm: Comm, step: int, blocks: dict[int, Arrays], owner: NDArray[np.int64]) -> None:
        """The communication of a superstep. Collective."""

    def result(self, comm: Comm, blocks: dict[int, Arrays]) -> NDArray | None:
        """The answer on rank 0, None elsewhere. Collective."""


@dataclass(frozen=True)
class Ran:
    """The outcome of a program; result and ledger are None except on rank 0."""

    seconds: float
    result: NDArray | None
    ledger: Ledger | None


def run_program(
    comm: Comm,
    program: BspProgram,
    settings: Settings,
    slowness: Slowness = FULL_SPEED,
    pairs: PairCosts | None = None,
) -> Ran:
    """Run a program to its end, with balancing; `pairs` are
    measured if not given. Collective."""
    blocks, steps = ArrayBlocks(comm, program, slowness), program.supersteps
    facts = _facts(program, pairs or probe(comm))
    balancer = Balancer(comm, blocks, facts, settings, lambda done, rr: steps - done)
    comm.Barrier()
    begin = time.perf_counter()
    balancer.begin()
    for step in range(steps):
        blocks.superstep(step)
        balancer.after(step + 1)
    seconds = time.perf_counter() - begin
    answer = program.result(comm, blocks.blocks)
    return Ran(seconds, answer, balancer.ledger(steps, seconds))


def learn(comm: Comm, program: BspProgram, slowness: Slowness) -> None:
    """Let emulated ranks find the time of their blocks at full speed, which they keep: so all runs of a job
    have the same emulated machines. The program cannot be run afterwards. Collective."""
    blocks = ArrayBlocks(comm, program, slowness)
    for _ in slowness.rehearsals(alone(), LEARN, among=low):
        for i, arrays in blocks.blocks.items():
            blocks.compute(0, i, arrays)
    slowness.share(comm)


class ArrayBlocks:
    """The program's blocks currently on this rank: dictionaries of
    arrays, timed individually."""

    per_move = 0.0

    def __init__(self, comm: Comm, program: BspProgram, slowness: Slowness) -> None:
        self._comm, self._program, self._slowness = comm, program, slowness
        n = program.n_blocks
        self.owner = np.arange(n, dtype=np.int64) * comm.size // n
        self.blocks = {i: program.make(i) for i in range(n) if self.owner[i] == comm.rank}
        self._spent = np.zeros(n)  # [block] seconds of computing in this window

    def superstep(self, step: int) -> None:
        """Compute, communicate, wait for all ranks."""
        for i, arrays in self.blocks.items():
            begin = time.perf_counter()
            self.compute(step, i, arrays)
            self._spent[i] += time.perf_counter() - begin
        self._program.talk(self._comm, step, self.blocks, self.owner)
        self._comm.Barrier()

    def compute(self, step: int, block: int, arrays: Arrays) -> None:
        """Compute a block, at the emulated speed."""
        self._slowness.new_work(BLOCK, {TASK: self._program.amount(arrays)})
        self._slowness.begin()
        self._program.compute(step, block, arrays)
        self._slowness.end()

    def begin(self) -> None:
        """Do nothing: the times of blocks are learned before all runs."""

    def open(self, iteration: int) -> None:
        """Open a measurement window."""
        self._spent[:] = 0.0

    def measured(self, iterations: int) -> Measured:
        """Computing time per superstep and bytes of each block."""
        ids = list(self.blocks)
        sizes = [sum(a.nbytes for a in arrays.values()) for arrays in self.blocks.values()]
        return Measured(ids, (self._spent[ids] / iterations).tolist(), sizes)

    def agree(self) -> None:
        """Do nothing, for the same reason."""

    def move(self, routes: list[Route], iteration: int) -> None:
        """Send and receive the arrays of blocks. Collective."""
        for block, source, target in routes:
            if self._comm.rank == source:
                send_arrays(self._comm, self.blocks.pop(block), target)
            elif self._comm.rank == target:
                self.blocks[block] = receive_arrays(self._comm, source)
            self.owner[block] = target
        self.blocks = dict(sorted(self.blocks.items()))


def gathered(comm: Comm, arrays: dict[int, NDArray]) -> NDArray | None:
    """All blocks' arrays in the order of blocks on rank 0, None elsewhere. Collective."""
    parts = comm.gather(arrays)
    if parts is None:
        return None
    merged = {i: array for part in parts for i, array in part.items()}
    return np.concatenate([merged[i] for i in sorted(merged)])


def _facts(program: BspProgram, pairs: PairCosts) -> BlockFacts:
    """Blocks in a row; their work is unknown in advance and
    assumed equal until measured."""
    n = program.n_blocks
    row = np.zeros((n, 3))
    row[:, 0] = np.arange(n)
    return BlockFacts(np.ones(n), np.zeros(n), row, program.links, pairs)
