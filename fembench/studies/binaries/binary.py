"""The execution graph of a compiled master/slave MPI program, without its source and without running it.

After Calzeta and de Souza (2008): objdump gives the blocks, and each process walks through them. The
iterations of a loop are drawn from an exponential distribution with a mean and a limit (if mean = limit,
exactly that number), branches from a normal one. Two things are not random: the branch after MPI_Comm_rank,
which tells the master's code from the slaves', and loops with messages, which iterate once per slave.
Instruction costs are measured.
"""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fembench.base.errors import InputError
from fembench.model.graph import Compute, Event, ExecutionGraph, Receive, Send
from fembench.studies.binaries.block_reduce import reduce_blocks
from fembench.studies.binaries.blocks import Function, Vertex, functions_of, masters_messages, separator
from fembench.studies.binaries.instructions import class_of

MOST = 2_000_000  # vertices on the walk of a process
PHASES = ("compute", "message")
COMPUTE, MESSAGE = range(2)


class Loops(NamedTuple):
    """The distribution of the number of iterations of loops without messages."""

    mean: float
    limit: int

    def turns(self, rng: np.random.Generator) -> int:
        """A number of iterations, at most `limit`; drawn at each entry of a loop."""
        if self.mean >= self.limit:
            return self.limit
        return int(min(self.limit, round(rng.exponential(self.mean))))


@dataclass
class Passage:
    """One execution of a loop."""

    turns: int
    taken: int = 0
    spent: float = 0.0  # seconds of the process at the end of the last iteration
    drawn: int = 0  # random numbers drawn until then
    events: int = 0  # events until then


@dataclass
class Walk:
    """The state of a process walking through the program."""

    rank: int
    ranks: int
    seconds: float = 0.0  # of computing so far
    pending: float = 0.0  # of computing since the last message
    events: list[Event] = field(default_factory=list)
    loops: dict[tuple[int, int], Passage] = field(default_factory=dict)  # (depth of calls, branch)
    calls: dict[str, int] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)  # branch -> iterations so far
    drawn: int = 0  # random numbers
    peers: dict[int, int] = field(default_factory=dict)  # message -> number of passages

    def compute(self, seconds: float) -> None:
        self.seconds += seconds
        self.pending += seconds

    def message(self, event: Event) -> None:
        if self.pending:
            self.events.append(Compute(COMPUTE, self.pending))
        self.pending = 0.0
        self.events.append(event)


class Executable:
    """All functions of an executable."""

    def __init__(self, functions: Mapping[str, Function], entry: str) -> None:
        if entry not in functions:
            raise InputError(
                f"no function {entry} in the executable; expected a function of an unstripped executable"
            )
        self.functions, self.entry = functions, functions[entry]
        self.master = masters_messages(self.entry)
        self.separator = separator(self.entry, self.master)
        self.by_start = {f.start: f for f in functions.values()}

    def walk(self, rank: int, ranks: int, loops: Loops, rng: np.random.Generator, m: int) -> Walk:
        """Walk one process from entry to return. Raises InputError if that takes too many steps."""
        w = Walk(rank, ranks)
        stack: list[tuple[Function, int]] = []
        here, address = self.entry, self.entry.start
        for _ in range(MOST):
            v = here.vertices.get(address)
            if v is None or v.kind == "return":
                w.compute(v.cost if v else 0.0)
                if not stack:
                    if w.pending:
                        w.events.append(Compute(COMPUTE, w.pending))
                    return w
                here, address = stack.pop()
                continue
            w.compute(v.cost)
            called = self._called(v)
            if called is not None:
                w.calls[called.name] = w.calls.get(called.name, 0) + 1
                stack.append((here, v.end))
                here, address = called, called.start
                continue
            address = self._next(w, here, v, len(stack), loops, rng, m)
        raise InputError(f"rank {rank} passes more than {MOST} blocks; expected fewer iterations of loops")

    def _called(self, v: Vertex) -> Function | None:
        """The function that a call enters; None for MPI and other libraries, which are not followed."""
        if v.kind != "call" or v.name.startswith("MPI_") or v.target is None:
            return None
        return self.by_start.get(v.target)

    def _next(
        self, w: Walk, here: Function, v: Vertex, depth: int, loops: Loops, rng: np.random.Generator, m: int
    ) -> int:
        if v.kind == "message":
            for event in self._events(w, here, v, m):
                w.message(event)
            return v.end
        if v.kind == "jump" and v.target in here.vertices:
            return v.target
        if v.kind != "branch" or v.target is None:
            return v.end
        if v.start == self.separator:
            return v.end if w.rank == 0 else v.target
        if not v.backward:
            w.drawn += 1
            return v.target if rng.normal() < 0 else v.end
        return v.target if self._again(w, here, v, depth, loops, rng) else v.end

    def _again(
        self, w: Walk, here: Function, v: Vertex, depth: int, loops: Loops, rng: np.random.Generator
    ) -> bool:
        """Whether a loop iterates again; iterations identical to the last are added at once."""
        key = depth, v.start
        passage = w.loops.get(key)
        if passage is None:
            passage = w.loops[key] = Passage(self._turns(w, here, v, loops, rng))
            passage.turns -= not _tested_first(here, v)
        elif w.drawn == passage.drawn and len(w.events) == passage.events and passage.taken < passage.turns:
            skipped = passage.turns - passage.taken
            w.compute(skipped * (w.seconds - passage.spent))
            passage.taken = passage.turns
        passage.spent, passage.drawn, passage.events = w.seconds, w.drawn, len(w.events)
        if passage.taken < passage.turns:
            passage.taken += 1
            return True
        w.turns[v.start] = w.turns.get(v.start, 0) + passage.turns
        del w.loops[key]
        return False

    def _turns(self, w: Walk, here: Function, v: Vertex, loops: Loops, rng: np.random.Generator) -> int:
        if any(u.kind == "message" for u in _body(here, v)):
            return w.ranks - 1
        if loops.mean < loops.limit:
            w.drawn += 1
        return loops.turns(rng)

    def _events(self, w: Walk, here: Function, v: Vertex, m: int) -> Iterator[Event]:
        """The events of a message: the master addresses the slaves in turn, a slave the master."""
        passed = w.peers.get(v.start, 0)
        w.peers[v.start] = passed + 1
        peer = 1 + passed % max(w.ranks - 1, 1) if w.rank == 0 else 0
        if v.name in ("MPI_Send", "MPI_Sendrecv"):
            yield Send(peer, m, MESSAGE, blocking=True)
        if v.name in ("MPI_Recv", "MPI_Sendrecv"):
            yield Receive(peer, m, MESSAGE, blocking=True)


def _body(function: Function, branch: Vertex) -> Iterator[Vertex]:
    """Vertices of the loop that a backward branch closes."""
    assert branch.target is not None
    return (v for v in function.vertices.values() if branch.target <= v.start <= branch.start)


def _tested_first(function: Function, branch: Vertex) -> bool:
    """Whether the loop is entered at its test, by a jump from outside; otherwise its body runs first."""
    assert branch.target is not None
    return any(
        v.kind == "jump"
        and v.target is not None
        and branch.target < v.target <= branch.start
        and v.start < branch.target
        for v in function.vertices.values()
    )


def disassemble(path: Path) -> str:
    """objdump's listing of an executable. Raises InputError."""
    if not shutil.which("objdump"):
        raise InputError("no objdump; expected GNU binutils to be installed")
    done = subprocess.run(["objdump", "-d", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{path}: {(done.stderr.strip().splitlines() or ['objdump failed'])[-1]}")
    return done.stdout


def program_of(text: str, costs: Mapping[str, float], entry: str, level: int = 0) -> Executable:
    """The program in a disassembly, with costs; `level` > 0: with reduced blocks. Raises InputError."""
    functions = functions_of(text, lambda i: costs[class_of(i)])
    for function in functions.values():
        reduce_blocks(function, level)
    return Executable(functions, entry)


def graph_of_program(
    program: Executable, ranks: int, loops: Loops, m: int, seed: int, source: str
) -> ExecutionGraph:
    """The graph of the walks of all processes. Raises InputError."""
    if loops.limit < 1 or not loops.mean > 0:
        raise InputError(f"loops of mean {loops.mean}, limit {loops.limit}; expected positive numbers")
    walks = [program.walk(r, ranks, loops, np.random.default_rng((seed, r)), m) for r in range(ranks)]
    return ExecutionGraph(phases=PHASES, programs=tuple(tuple(w.events) for w in walks), source=source)
