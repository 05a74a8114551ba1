"""The source's method: processes walk through the blocks of a program that is not run.

As in Calzeta and de Souza (2008), a program has a master, rank 0, and slaves. One branch separates them:
behind it, both ways lead to messages. The master's way is the one with messages in loops; such a loop has
one iteration per slave, and its messages go to or come from the slaves in turn. Branches before the
separator lead to it. All other loops are drawn from an exponential distribution with a mean and a limit,
all other branches from a normal one (3.7). The costs of blocks are sums over their instructions.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fembench.errors import InputError
from fembench.model.graph import Collective, Compute, Event, Kind, Program, Receive, Send, Wait
from fembench_studies.binaries.blocks import Function, Vertex
from fembench_studies.binaries.counts import Passed, RankCounts, loop_counts
from fembench_studies.binaries.executable import ENDS, Executable, called
from fembench_studies.binaries.flow import NaturalLoop
from fembench_studies.binaries.given import COMMON, Given
from fembench_studies.binaries.rehearsal import COMPUTE, MESSAGE

MOST = 2_000_000  # vertices on the walk of a process
SENDS = ("MPI_Send", "MPI_Ssend", "MPI_Isend")
RECEIVES = ("MPI_Recv", "MPI_Irecv")
WAITS = ("MPI_Wait", "MPI_Waitall")
COLLECTIVES: Mapping[str, Kind] = {
    "MPI_Bcast": "bcast",
    "MPI_Reduce": "reduce",
    "MPI_Allreduce": "allreduce",
    "MPI_Allgather": "allgather",
    "MPI_Barrier": "barrier",
}


class Separator(NamedTuple):
    """The branch that separates the master from the slaves."""

    address: int
    master_takes: bool


class DrawnMessage(NamedTuple):
    """A passage of a communication point."""

    address: int
    event: Event


@dataclass
class Walk:
    """What a process did; the walk of a program is drawn."""

    parts: list[Counter[int] | Event] = field(
        default_factory=list
    )  # passes of vertices, and events, in order
    messages: list[DrawnMessage] = field(default_factory=list)
    branches: dict[int, Passed] = field(default_factory=dict)
    drawn: int = 0  # random numbers

    def counts(self, program: Executable) -> RankCounts:
        """Passes of blocks, branches and loops."""
        blocks: Counter[int] = sum((p for p in self.parts if isinstance(p, Counter)), Counter())
        whole = dict.fromkeys(program.owner, 0.0) | {a: float(n) for a, n in blocks.items()}
        return RankCounts(whole, self.branches, loop_counts(program, whole, self.branches))


def prices(program: Executable, calls: Mapping[str, float]) -> dict[int, float]:
    """Vertex -> seconds of a passage, with the function of a library that it calls."""
    known = {**COMMON, **calls}
    return {a: f.vertices[a].cost + known.get(called(f.vertices[a]), 0.0) for a, f in program.owner.items()}


def events(walk: Walk, price: Mapping[int, float]) -> Program:
    """The walk of a process as computing and messages."""
    found: list[Event] = []
    for part in walk.parts:
        if not isinstance(part, Counter):
            found.append(part)
        elif seconds := sum(n * price[a] for a, n in part.items()):
            found.append(Compute(COMPUTE, seconds))
    return tuple(found)


def talking(program: Executable) -> set[int]:
    """The vertices that send or receive, or call a function of the program that does."""
    found = {
        a for a, f in program.owner.items() if called(f.vertices[a]) in (*SENDS, *RECEIVES, "MPI_Sendrecv")
    }
    before = -1
    while before != len(found):
        before = len(found)
        functions = {program.owner[a].start for a in found}
        for a, f in program.owner.items():
            callee = program.callee(f.vertices[a])
            if callee and callee.start in functions:
                found.add(a)
    return found


def separator_of(program: Executable) -> Separator | None:
    """The outermost branch both of whose ways lead to messages. Raises InputError if none does.

    None for a program without messages between two ranks.
    """
    talks = talking(program)
    if not talks:
        return None
    for function in (program.entry, *program.functions.values()):
        flow = program.flow(function)
        for v in function.vertices.values():
            if v.kind != "branch" or v.target not in function.vertices:
                continue
            taken, other = (flow.before_joining(v.start, way) for way in (v.target, v.end))
            if taken & talks and other & talks and not taken & other & talks:
                return _sided(program, v, taken & talks, other & talks)
    raise InputError("no branch separates a master from its slaves; expected a program that can be rehearsed")


def _sided(program: Executable, v: Vertex, taken: set[int], other: set[int]) -> Separator:
    """The separator, with the way of the master: the one that has messages in loops."""
    flow = program.flow(program.owner[v.start])
    looped = {a for loop in flow.loops.values() for a in loop.body if v.start not in loop.body}
    if bool(taken & looped) == bool(other & looped):
        raise InputError(
            f"the branch at {v.start:x}: which way is the master's does not show; expected messages in loops "
            "on one of them, or a program that can be rehearsed"
        )
    return Separator(v.start, bool(taken & looped))


def walks(program: Executable, ranks: int, given: Given, seed: int) -> list[Walk]:
    """[rank] a walk of each process. Raises InputError where something has to be stated."""
    if ranks < 1:
        raise InputError(f"{ranks} ranks; expected at least 1")
    separator, talks = separator_of(program), talking(program)
    return [
        Walker(program, rank, ranks, given, separator, talks, np.random.default_rng((seed, rank))).walk()
        for rank in range(ranks)
    ]


@dataclass
class _Active:
    """A loop that is being executed."""

    loop: NaturalLoop
    depth: int  # of calls
    drawn: int | None = None  # iterations
    turns: int = 0  # so far


@dataclass
class Walker:
    """Walks one process from entry to return."""

    program: Executable
    rank: int
    ranks: int
    given: Given
    separator: Separator | None
    talks: set[int]
    rng: np.random.Generator
    found: Walk = field(default_factory=Walk)
    part: Counter[int] = field(default_factory=Counter)  # passes since the last message
    frames: list[tuple[Function, int]] = field(default_factory=list)
    active: list[_Active] = field(default_factory=list)
    outcomes: dict[int, tuple[bool, int]] = field(
        default_factory=dict
    )  # branch -> its last, and times in a row
    passed: Counter[int] = field(default_factory=Counter)  # messages of the master, by place

    def __post_init__(self) -> None:
        self.here = self.program.entry
        self.onwards: set[int] = set()  # vertices from which the separator can be reached
        if self.separator is not None:
            flow = self.program.flow(self.program.owner[self.separator.address])
            self.onwards = flow.leading_to(self.separator.address)

    def walk(self) -> Walk:
        """The walk. Raises InputError."""
        address: int | None = self.here.start
        for _ in range(MOST):
            if address is None:
                self.found.parts.append(self.part)
                return self.found
            v = self.here.at(address)
            self._arrive(address)
            self.part[address] += 1
            address = self._after(v)
        raise InputError(
            f"rank {self.rank} passes more than {MOST} blocks; expected fewer iterations of loops"
        )

    def _after(self, v: Vertex) -> int | None:
        """Execute a vertex; the next one, or None at the end of the program."""
        if v.kind == "return":
            return self._back()
        if v.kind == "branch":
            taken = self._taken(v)
            self._note(v.start, taken)
            return v.target if taken else v.end
        if callee := self.program.callee(v):
            if v.kind == "call":
                self.frames.append((self.here, v.end))
            self.here = callee
            return callee.start
        if v.kind == "jump" and v.target in self.here.vertices:
            return v.target
        if v.kind != "execute":
            self._library(v)
        return v.end if v.kind != "jump" and v.end in self.here.vertices else self._back()

    def _back(self) -> int | None:
        while self.active and self.active[-1].depth >= len(self.frames):
            self.active.pop()
        if not self.frames:
            return None
        self.here, address = self.frames.pop()
        return address

    def _arrive(self, address: int) -> None:
        """Leave loops that do not contain the address; begin a loop, or its next iteration."""
        depth, active = len(self.frames), self.active
        while active and active[-1].depth == depth and address not in active[-1].loop.body:
            active.pop()
        if active and active[-1].depth == depth and active[-1].loop.header == address:
            active[-1].turns += 1
        elif loop := self.program.flow(self.here).loops.get(address):
            active.append(_Active(loop, depth))

    # ---------------------------------------------------------------------------------- branches

    def _taken(self, v: Vertex) -> bool:
        """Whether a branch is taken."""
        if self.separator is not None and v.start == self.separator.address:
            return self.separator.master_takes == (self.rank == 0)
        flow, depth = self.program.flow(self.here), len(self.frames)
        ahead, beside = (a in flow.returning for a in (v.target, v.end))
        if ahead != beside:
            return ahead
        for one in reversed(self.active):
            if one.depth == depth and flow.exits(one.loop, v):
                stays = one.turns + flow.late(one.loop, v.start) < self._turns(one)
                return stays == (v.target in one.loop.body)
        if {v.target, v.end} & self.onwards and not {v.target, v.end} <= self.onwards:
            return v.target in self.onwards
        p = self.given.branches.get(f"{v.start:x}", 0.5)
        self.found.drawn += 0 < p < 1
        return p >= 1 or (p > 0 and bool(self.rng.normal() < NormalDist().inv_cdf(p)))

    def _turns(self, one: _Active) -> int:
        """The iterations of this execution of a loop."""
        if one.drawn is None:
            header = f"{one.loop.header:x}"
            if self.rank == 0 and self._of_slaves(one.loop):
                one.drawn = self.ranks - 1
                return one.drawn
            loops = self.given.loops.get(header, self.given.loop)
            if loops is None:
                raise InputError(
                    f"the loop at {header} in {self.here.name}: its count is not stated; "
                    f'expected --given with {{"loops": {{"{header}": [MEAN, LIMIT]}}}}, or "loop" for all'
                )
            one.drawn = loops.turns(self.rng)
            self.found.drawn += loops.mean < loops.limit
        return one.drawn

    def _of_slaves(self, loop: NaturalLoop) -> bool:
        """Whether a loop has messages, but none inside it has."""
        talking = [one for one in self.program.flow(self.here).loops.values() if one.body & self.talks]
        return loop in talking and not any(one.body < loop.body for one in talking)

    def _note(self, address: int, taken: bool) -> None:
        passed = self.found.branches.setdefault(address, Passed([0, 0], [0, 0]))
        passed.times[taken] += 1
        before, times = self.outcomes.get(address, (taken, 0))
        self.outcomes[address] = taken, times + 1 if before == taken else 1
        passed.longest[taken] = max(passed.longest[taken], self.outcomes[address][1])

    # ---------------------------------------------------------------------------------- messages

    def _library(self, v: Vertex) -> None:
        """A call of a library. Raises InputError if its cost is unknown."""
        name = called(v)
        made = self._events(name, v.start)
        if (not made and name not in (*COMMON, *self.given.calls)) or name in ENDS:
            where = f"{name or 'a pointer'} at {v.start:x} in {self.here.name}"
            entry = f'{{"calls": {{"{name}": SECONDS}}}}'
            raise InputError(f"{where}: a call of unknown cost; expected --given with {entry}")
        for event in made:
            self.found.parts += [self.part, event]
            self.part = Counter()
            self.found.messages.append(DrawnMessage(v.start, event))

    def _events(self, name: str, address: int) -> list[Event]:
        """What a call of MPI sends and receives."""
        if name in WAITS:
            return [Wait(MESSAGE)]
        if name not in (*SENDS, *RECEIVES, *COLLECTIVES, "MPI_Sendrecv"):
            return []
        m = 0 if name == "MPI_Barrier" else self.given.bytes
        if m is None:
            raise InputError(f'{name} at {address:x}: unknown size; expected --given with {{"bytes": N}}')
        if name in COLLECTIVES:
            return [Collective(COLLECTIVES[name], m, MESSAGE)]
        peer = 0 if self.rank else 1 + self.passed[address] % max(self.ranks - 1, 1)
        self.passed[address] += 1
        blocking = name in ("MPI_Send", "MPI_Ssend", "MPI_Recv")
        sent: list[Event] = [Send(peer, m, MESSAGE, 0, blocking=blocking)]
        received: list[Event] = [Receive(peer, m, MESSAGE, 0, blocking=blocking)]
        if name == "MPI_Sendrecv":
            return [*sent, *received, Wait(MESSAGE)]
        return sent if name in SENDS else received
