"""One process walks through a compiled program.

Values that follow from the code, the rank, the number of ranks and the arguments are followed exactly, so
the walk knows which branches this rank takes, how often most loops iterate, and with whom it exchanges how
many bytes. Branches and loops that depend on anything else are drawn: loops from an exponential distribution
with a mean and a limit (if mean = limit, exactly that number), branches from a normal one (Calzeta and de
Souza 2008, 3.7). Iterations of a loop whose costs and values change linearly are added at once.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from fembench.base.errors import InputError
from fembench.model.graph import Event
from fembench.studies.binaries import mpi_calls
from fembench.studies.binaries.blocks import Function, Vertex
from fembench.studies.binaries.emulator import STACK, BranchTest, State, Value, signed
from fembench.studies.binaries.flow import Flow, NaturalLoop
from fembench.studies.binaries.image import Image

MOST = 2_000_000  # vertices on the walk of a process
DEEP = 1000  # calls inside each other
TOGETHER = 600  # instructions of a loop and what is around it that are timed together, as they overlap
SHORT = 16  # iterations that are walked rather than added at once, so that all values stay known
SAMPLED = 100  # iterations that are walked before the rest is taken to be like their mean
HEAP = 0x30000000
LINUX = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
CLOBBERED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
Key = tuple[str, int | str]  # ("segment", n), ("turns", header), ("entries", header), ("call", function), …
Counts = dict[Key, float]


class Loops(NamedTuple):
    """The distribution of the number of iterations of a loop that the program does not fix."""

    mean: float
    limit: int
    cut: bool = False  # whether `mean` is that of the numbers drawn, after the limit has cut some

    def turns(self, rng: np.random.Generator) -> int:
        """A number of iterations, at most `limit`; drawn at each entry of a loop."""
        if self.mean >= self.limit:
            return self.limit
        scale = _scale(self.mean, self.limit) if self.cut else self.mean
        return int(min(self.limit, round(rng.exponential(scale))))


@lru_cache
def _scale(mean: float, limit: int) -> float:
    """The mean of the exponential distribution which, cut at the limit, has this mean."""
    low, high = mean, mean
    while high * -math.expm1(-limit / high) < mean and high < 1e6 * limit:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * -math.expm1(-limit / middle) < mean else (low, middle)
    return high


@dataclass(frozen=True)
class Given:
    """What the program does not tell, and somebody has stated or counted."""

    loops: Loops | None = None  # all loops that are not in `each`
    each: Mapping[int, Loops] = field(default_factory=dict)  # header -> distribution
    branches: Mapping[int, float] = field(default_factory=dict)  # branch -> probability that it is taken
    calls: Mapping[str, float] = field(default_factory=dict)  # function of a library -> seconds
    m: int | None = None  # bytes of messages of unknown size
    arguments: tuple[str, ...] = ()  # of the program
    counted: frozenset[int] = frozenset()  # loops and branches of which a run told


class Program(Protocol):
    """What a walk needs to know about an executable."""

    image: Image
    entry: Function
    by_start: dict[int, Function]

    def flow(self, function: Function) -> Flow: ...
    def steps(self, v: Vertex) -> tuple: ...
    def around(self, address: int) -> Function | None: ...
    def segment(self, trace: tuple[int, ...], start: "Start") -> int: ...
    def length(self, vertex: int) -> int: ...
    def repeated(self, segment: int, turns: int) -> None: ...


class Start(NamedTuple):
    """What is known at the start of a segment."""

    registers: dict[str, int]
    cells: dict[int, tuple[int, int]]  # address -> width, value


class LoopTurn(NamedTuple):
    """What happened in one iteration of a loop."""

    tests: list[tuple[int, BranchTest]]
    counts: Counts
    quiet: bool  # without messages
    drew: bool  # with random numbers
    registers: dict[str, Value | None]
    cells: dict[int, tuple[int, Value | None]]  # written
    trace: tuple[int, ...]


@dataclass
class Activation:
    """A loop that is being executed."""

    loop: NaturalLoop
    depth: int  # of calls
    turns: int = 0  # edges back to the header so far
    draw: int | None = None  # iterations drawn
    tests: list[tuple[int, BranchTest]] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)  # of this iteration
    before: Counts = field(default_factory=dict)  # of those before it
    written: dict[int, int] = field(default_factory=dict)  # address -> width, in this iteration
    quiet: bool = True
    drew: bool = False
    last: list[LoopTurn] = field(default_factory=list)
    sampled: int = 0  # quiet iterations in a row
    total: Counts = field(default_factory=dict)  # of those
    touched: dict[int, int] = field(default_factory=dict)  # written by all
    prefix: list[int] = field(default_factory=list)  # the trace before the loop
    start: "Start | None" = None  # of the prefix
    whole: list[int] | None = field(default_factory=list)  # the trace of all iterations; None: too long
    segments: set[int] = field(default_factory=set)  # that are one iteration


@dataclass
class Point:
    """What is known about a loop, over all its executions by a process."""

    function: str
    least: float = math.inf
    most: float = 0
    exits: set[str] = field(default_factory=set)  # "known", "drawn"
    bound: float = math.inf  # iterations after which a known test ends it
    limited: int = 0  # executions that reached the limit of their distribution


class Message(NamedTuple):
    """A passage of a communication point."""

    function: str
    address: int
    name: str
    event: Event
    callers: tuple[tuple[str, int], ...]  # function, address of the calls that lead here


@dataclass
class Walk:
    """What a process did."""

    rank: int
    parts: list[Counts | Event] = field(default_factory=list)  # computing and events, in order
    totals: Counter[Key] = field(default_factory=Counter)
    messages: list[Message] = field(default_factory=list)
    loops: dict[int, Point] = field(default_factory=dict)  # by header
    decisions: dict[int, set[bool]] = field(default_factory=dict)  # branch on the rank -> taken
    unknown: dict[int, str] = field(default_factory=dict)  # branch drawn -> function
    exits: set[int] = field(default_factory=set)  # branches by which a drawn loop may be left
    drawn: int = 0  # random numbers


class Walker:
    """Walks one process from entry to return."""

    def __init__(
        self,
        program: Program,
        rank: int,
        ranks: int,
        given: Given,
        rng: np.random.Generator,
        heard: dict[tuple[int, int, int], list[mpi_calls.Cells]],
        shared: dict[tuple[str, int, int], mpi_calls.Cells],
    ) -> None:
        self.program, self.rank, self.ranks, self.given, self.rng = program, rank, ranks, given, rng
        self.heard, self.shared = heard, shared  # values in messages of ranks that walked before
        self.received = self.broadcasts = 0
        self.state = State(program.image)
        self.found = Walk(rank)
        self.here = program.entry
        self._frames: list[tuple[Function, int]] = []
        self._active: list[Activation] = []
        self._pending: Counts = {}
        self._trace: list[int] = []
        self._start = Start({}, {})
        self._heap = HEAP
        self._enter_main()

    # -------------------------------------------------------------------------- what calls use

    def argument(self, position: int) -> Value | None:
        """An argument of the call that is being made."""
        if self.state.word == 8 and position < len(LINUX):
            return self.state.registers.get(LINUX[position])
        top = self.state.registers.get("rsp")
        skip = len(LINUX) if self.state.word == 8 else 0
        return self.state.load(top.n + self.state.word * (position - skip), self.state.word) if top else None

    def give(self, position: int, value: Value) -> None:
        """Write an int where an argument points to."""
        where = self.argument(position)
        if where is not None:
            self.state.store(where.n, 4, value)

    def returned(self, value: Value | None) -> None:
        """Set the result of a call; registers that it may change become unknown."""
        for name in CLOBBERED if self.state.word == 8 else CLOBBERED[:3]:
            self.state.registers[name] = None
        for name in [r for r in self.state.registers if r.startswith("xmm")]:
            self.state.registers[name] = None
        self.state.registers["rax"] = value

    def forget(self, start: int, end: int) -> None:
        """Make memory unknown."""
        self.state.memory.forget(start, end)
        self.state.written[start] = max(end - start, self.state.written.get(start, 0))

    def allocate(self, size: int) -> int:
        """The address of new memory, of unknown contents."""
        found, self._heap = self._heap + 16, self._heap + ((size + 8191) & ~4095)
        return found

    def refuse(self, name: str, address: int, what: str, expected: str) -> NoReturn:
        """Raises InputError about a call."""
        raise InputError(
            f"{name} at {address:x} in {self.here.name}, rank {self.rank}: {what}; expected {expected}"
        )

    # ------------------------------------------------------------------------------- the walk

    def walk(self) -> Walk:
        """The walk. Raises InputError if it takes too many steps, or meets what it cannot follow."""
        address: int | None = self.here.start
        for _ in range(MOST):
            if address is None:
                self._flush()
                self._emit(None)
                return self.found
            v = self.here.vertices.get(address)
            if v is None:
                raise InputError(
                    f"rank {self.rank} reaches {address:x} in {self.here.name}, where no instruction begins"
                )
            self._arrive(address)
            self._trace.append(address)
            address = self._pass(v)
        raise InputError(
            f"rank {self.rank} passes more than {MOST} blocks, now in {self.here.name}; "
            "expected fewer iterations of loops with messages or drawn branches"
        )

    def _pass(self, v: Vertex) -> int | None:
        """Execute a vertex; the address of the next one, None at the end of the entry."""
        if v.kind == "execute":
            for step in self.program.steps(v):
                self.state.run(step)
            return v.end if v.end in self.here.vertices else self._back()
        if v.kind == "return":
            return self._back()
        if v.kind == "branch":
            return self._go(v.target if self._taken(v) else v.end, v)
        if v.kind == "jump":
            return self._go(v.target if v.target is not None else self._pointed(v), v)
        return self._call(v)

    def _go(self, target: int | None, v: Vertex) -> int | None:
        """Continue at an address, here or in another function."""
        if target in self.here.vertices:
            return target
        function = self.program.around(target) if target is not None else None
        name = v.name or (function.name if function else "")
        if function is None or function.name.endswith("@plt") or name.startswith("MPI_"):
            if not name:
                raise InputError(
                    f"the jump at {v.start:x} in {self.here.name} leads to an unknown place; "
                    "expected direct jumps, and tables of a switch over a known value"
                )
            self._library(name.removesuffix("@plt").split("@")[0], v.start)
            return self._back()
        self._leave(len(self._frames))
        self.here = function
        return target

    def _pointed(self, v: Vertex) -> int | None:
        """The target of an indirect jump or call."""
        step = self.program.steps(v)[0]
        value = self.state.get(step.operands[0], self.state.word) if step.operands else None
        return value.n - self.program.image.base if value else None

    def _back(self) -> int | None:
        self._leave(len(self._frames))
        if not self._frames:
            return None
        top = self.state.registers.get("rsp")
        self.state.registers["rsp"] = top and Value(top.n + self.state.word)
        self.here, address = self._frames.pop()
        return address

    def _call(self, v: Vertex) -> int | None:
        target = v.target if v.target is not None else self._pointed(v)
        function = self.program.by_start.get(target) if target is not None else None
        name = v.name.split("@")[0] or self.program.image.name((target or 0) + self.program.image.base)
        if function is not None and not function.name.endswith("@plt") and not name.startswith("MPI_"):
            self._count(("call", function.name))
            self._frames.append((self.here, v.end))
            top = self.state.registers.get("rsp")
            if top is not None:
                self.state.registers["rsp"] = Value(top.n - self.state.word)
                self.state.store(top.n - self.state.word, self.state.word, None)
            if len(self._frames) > DEEP:
                raise InputError(f"{function.name} is called {DEEP} levels deep; expected less recursion")
            self.here = function
            return function.start
        if not name:
            raise InputError(
                f"the call at {v.start:x} in {self.here.name} goes through a pointer that is unknown; "
                "expected direct calls"
            )
        self._library(name, v.start)
        return v.end if v.end in self.here.vertices else self._back()

    def _library(self, name: str, address: int) -> None:
        if name in mpi_calls.ENDS:
            self.refuse(name, address, "the program ends here", "--args with which it computes")
        cost = self.given.calls.get(name)
        if cost is None and not mpi_calls.known(name) and name not in mpi_calls.FREE:
            self.refuse(name, address, "a call of unknown cost", f"--calls {name}=SECONDS")
        if cost is not None and mpi_calls.known(name):
            self.refuse(name, address, "a cost for a message", "its cost from the network")
        self._count(("library", name))
        events = mpi_calls.call(self, name, address)
        callers = (*((f.name, at) for f, at in self._frames), (self.here.name, address))
        for event in events:
            self._flush()
            self._emit(event)
            self.found.messages.append(Message(self.here.name, address, name, event, callers))
        if events:
            self.returned(Value(0))

    def _enter_main(self) -> None:
        """The arguments of main, as the C library passes them."""
        texts = ("program", *self.given.arguments)
        places, at = [], STACK + 0x2000
        for text in texts:
            places.append(at)
            for byte in (*text.encode(), 0):
                self.state.memory.write(at, 1, Value(byte))
                at += 1
        word = self.state.word
        for k, place in enumerate((*places, 0)):
            self.state.memory.write(STACK + 0x1000 + word * k, word, Value(place))
        if word == 8:
            self.state.registers |= {"rdi": Value(len(texts)), "rsi": Value(STACK + 0x1000)}
        else:
            self.state.memory.write(STACK + 4, 4, Value(len(texts)))
            self.state.memory.write(STACK + 8, 4, Value(STACK + 0x1000))

    # ------------------------------------------------------------------------------- branches

    def _taken(self, v: Vertex) -> bool:
        """Whether a branch is taken."""
        flow = self.program.flow(self.here)
        instruction = self.program.steps(v)[0]
        test = self.state.test(instruction.name[1:])
        act = next((a for a in self._mine() if flow.exits(a.loop, v)), None)
        if test is not None:
            self._note(v.start, test)
            if test.rank:
                self.found.decisions.setdefault(v.start, set()).add(test.holds)
            if act is not None:
                self._point(act).exits.add("known")
            return test.holds
        ahead, beside = (a in flow.returning for a in (v.target, v.end))
        if ahead != beside and (v.target in self.here.vertices or beside):
            return ahead
        if act is not None:
            inside = v.target in act.loop.body
            return inside == self._stays(act, v)
        p = self.given.branches.get(v.start, 0.5)
        self.found.unknown[v.start] = self.here.name
        if p <= 0 or p >= 1:
            return p >= 1
        self._draws(self._active)
        return bool(self.rng.normal() < NormalDist().inv_cdf(p))

    def _stays(self, act: Activation, v: Vertex) -> bool:
        """Whether a loop with a drawn number of iterations goes on."""
        point = self._point(act)
        point.exits.add("drawn")
        self.found.exits.add(v.start)
        if act.draw is None:
            loops = self.given.each.get(act.loop.header, self.given.loops)
            if loops is None:
                raise InputError(
                    f"the loop at {act.loop.header:x} in {self.here.name}: its count is not fixed; "
                    f"expected --profile, --loop {act.loop.header:x}=MEAN,LIMIT or --loop-mean"
                )
            act.draw = loops.turns(self.rng)
            point.limited += act.draw >= loops.limit
            if loops.mean < loops.limit:
                self._draws(self._active[: self._active.index(act)])
        done = act.turns + self.program.flow(self.here).late(act.loop, v.start)
        test = BranchTest("<", done, act.draw, rank=False, drawn=True)
        self._note(v.start, test)
        return test.holds

    def _draws(self, acts: Iterable[Activation]) -> None:
        self.found.drawn += 1
        for act in acts:
            act.drew = True

    def _note(self, address: int, test: BranchTest) -> None:
        if self._active:
            self._active[-1].tests.append((address, test))

    # ---------------------------------------------------------------------------------- loops

    def _mine(self) -> list[Activation]:
        """Loops of the function that is executed now, the innermost first."""
        depth = len(self._frames)
        return [act for act in reversed(self._active) if act.depth == depth]

    def _point(self, act: Activation) -> Point:
        return self.found.loops.setdefault(act.loop.header, Point(self.here.name))

    def _arrive(self, address: int) -> None:
        """Leave loops that do not contain the address; begin a loop, or its next iteration."""
        depth = len(self._frames)
        while self._active and self._active[-1].depth == depth:
            if address in self._active[-1].loop.body:
                break
            self._exit()
        top = self._active[-1] if self._active else None
        if top is not None and top.depth == depth and top.loop.header == address:
            self._iterate(top)
            return
        loop = self.program.flow(self.here).loop_of(address)
        if loop is not None:
            start = self._start._replace(cells=self.state.first)
            act = Activation(loop, depth, prefix=self._trace, start=start)
            self._trace = []
            self._settle()
            self._active.append(act)

    def _leave(self, depth: int) -> None:
        while self._active and self._active[-1].depth >= depth:
            self._exit()

    def _exit(self) -> None:
        act = self._active[-1]
        last = self._trace[-1] if self._trace else 0
        point = self._point(act)
        turns = act.turns + self.program.flow(self.here).late(act.loop, last)
        point.least, point.most = min(point.least, turns), max(point.most, turns)
        together = [*act.prefix, *(act.whole or []), *self._trace]
        whole = act.whole is not None and self._short(together)
        if whole:
            first = self.state.first
        else:
            self._flush()
        self._count(("turns", act.loop.header), turns)
        self._count(("entries", act.loop.header))
        for segment in act.segments:
            self.program.repeated(segment, act.turns)
        self._settle()
        self._active.pop()
        parent = self._active[-1] if self._active else None
        for counts in (act.before, act.counts):
            if whole:
                counts = {key: n for key, n in counts.items() if key[0] != "segment"}
            _add(parent.counts if parent else self._pending, counts)
        if parent is not None:
            parent.tests += act.tests
            parent.written |= act.touched | act.written
        if whole and act.start is not None:
            self._trace, self._start = together, act.start
            self.state.first = {**first, **act.start.cells}
            return
        if act.prefix and act.start is not None:
            self._count(("segment", self.program.segment(tuple(act.prefix), act.start)))
        if parent is not None:
            parent.whole = None

    def _iterate(self, act: Activation) -> None:
        """The next iteration begins: keep what the last did; add those that will be like it."""
        trace = tuple(self._trace)
        if trace:
            act.segments.add(self._flush())
        self._settle()
        if act.whole is not None:
            act.whole = [*act.whole, *trace] if self._short([*act.whole, *trace]) else None
        act.turns += 1
        memory = self.state.memory.cells
        cells = {a: memory.get(a, (w, None)) if w <= 16 else (w, None) for a, w in act.written.items()}
        turn = LoopTurn(act.tests, act.counts, act.quiet, act.drew, dict(self.state.registers), cells, trace)
        act.last = [*act.last[-2:], turn]
        act.touched |= act.written
        _add(act.total, turn.counts)
        act.sampled = act.sampled + 1 if turn.quiet else 0
        if not turn.quiet:
            act.total = {}
        _add(act.before, turn.counts)
        act.tests, act.counts, act.written = [], {}, {}
        act.quiet, act.drew = True, False
        if act.sampled >= 3:
            self._skip(act)

    def _skip(self, act: Activation) -> None:
        """Add the iterations that follow, as far as they continue the last three linearly."""
        t0, t1, t2 = act.last
        drew = t0.drew or t1.drew or t2.drew
        steps = None if drew else _linear(t0.tests, t1.tests, t2.tests)
        keys = {*t0.counts, *t1.counts, *t2.counts}
        slope = {k: t2.counts.get(k, 0) - t1.counts.get(k, 0) for k in keys}
        if steps is None or any(slope[k] != t1.counts.get(k, 0) - t0.counts.get(k, 0) for k in keys):
            if act.sampled >= SAMPLED:
                self._extrapolate(act)
            return
        same = t1.trace == t2.trace
        if not same:
            act.whole = None
        more = min((further(test, dx, dy) for test, dx, dy in steps), default=math.inf)
        if more == math.inf:
            raise InputError(
                f"the loop at {act.loop.header:x} in {self.here.name} never ends; expected tests that change"
            )
        k = int(more)
        if k < SHORT:
            return
        self._bound(act, steps)
        self._advance(act, k, t2.cells)
        _add(act.before, {key: k * t2.counts.get(key, 0) + slope[key] * k * (k + 1) / 2 for key in keys})

    def _bound(self, act: Activation, steps: Sequence[tuple[BranchTest, int, int]]) -> None:
        """Note after how many iterations the tests of the program end a loop, whatever is drawn."""
        known = [further(*step) for step in steps if not step[0].drawn]
        self._point(act).bound = min(known, default=math.inf) + act.turns + 1

    def _extrapolate(self, act: Activation) -> None:
        """Add the iterations up to the known end of a loop with random ones, each like the mean so far."""
        flow = self.program.flow(self.here)
        more, turns = math.inf, [dict(t.tests) for t in act.last]
        for address in set.intersection(*(set(t) for t in turns)):
            v = self.here.vertices.get(address)
            if v is not None and flow.exits(act.loop, v):
                steps = _linear(*([(address, t[address])] for t in turns))
                more = min([more, *(further(*step) for step in steps or [])])
        if more == math.inf or more < 1:
            return
        k = int(more)
        self._advance(act, k, {a: (w, None) for a, w in act.touched.items()})
        _add(act.before, {key: n / act.sampled * k for key, n in act.total.items()})

    def _advance(self, act: Activation, k: int, cells: Mapping[int, tuple[int, Value | None]]) -> None:
        """Set the state to that after k more iterations: values that change linearly, and unknown ones."""
        t0, t1, t2 = act.last
        for name, value in t2.registers.items():
            self.state.registers[name] = _ahead(t0.registers.get(name), t1.registers.get(name), value, k, 8)
        old = [a for a in t1.cells if a not in t0.cells]
        new = [a for a in t2.cells if a not in t1.cells]
        for address, (width, _) in cells.items():
            rows = [t.cells.get(address) for t in act.last]
            value = None
            if all(row and row[0] == width for row in rows):
                v0, v1, v2 = (row[1] if row else None for row in rows)
                value = _ahead(v0, v1, v2, k, width)
            if width <= 16:
                self.state.store(address, width, value)
            else:
                self.forget(address, address + width)
        for a, b in zip(old, new):
            last, width = b + (b - a) * k, t2.cells[b][0]
            self.forget(min(b, last), max(b, last) + width)
        if len(old) != len(new) and new:
            self.forget(min(new), max(new) + (1 << 20))
        act.turns += k
        if act.whole is not None:
            length = len(act.whole) + k * len(t2.trace)
            act.whole = [*act.whole, *(t2.trace * k)] if length <= TOGETHER else None
        self.state.flags = None
        self._settle()

    def _short(self, trace: Sequence[int]) -> bool:
        """Whether a trace is short enough to be timed as a whole."""
        owner = self.program.length
        return len(trace) <= TOGETHER and sum(map(owner, trace)) <= TOGETHER

    # ---------------------------------------------------------------------------------- counts

    def _count(self, key: Key, n: float = 1) -> None:
        counts = self._active[-1].counts if self._active else self._pending
        counts[key] = counts.get(key, 0) + n

    def _flush(self) -> int:
        """The trace so far is a segment; its number, -1 if there is none."""
        segment = -1
        if self._trace:
            start = self._start._replace(cells=self.state.first)
            segment = self.program.segment(tuple(self._trace), start)
            self._count(("segment", segment))
            self._trace = []
        self._settle()
        return segment

    def _settle(self) -> None:
        """A trace begins here, with what is known now."""
        if self._active:
            for address, width in self.state.written.items():
                self._active[-1].written[address] = max(width, self._active[-1].written.get(address, 0))
        self.state.written, self.state.first = {}, {}
        known = {name: v.n for name, v in self.state.registers.items() if v is not None}
        self._start = Start(known, {})

    def _emit(self, event: Event | None) -> None:
        """Computing so far ends with an event, or with the program."""
        for act in self._active:
            if act.prefix and act.start is not None:
                segment = self.program.segment(tuple(act.prefix), act.start)
                _add(self._pending, {("segment", segment): 1})
            for counts in (act.before, act.counts):
                _add(self._pending, counts)
            act.before, act.counts, act.quiet, act.prefix, act.whole = {}, {}, False, [], None
        part = {key: n for key, n in self._pending.items() if key[0] in ("segment", "library")}
        self.found.totals.update(self._pending)
        if part:
            self.found.parts.append(part)
        self._pending = {}
        if event is not None:
            self.found.parts.append(event)


def _add(to: Counts, more: Counts) -> None:
    for key, n in more.items():
        to[key] = to.get(key, 0) + n


def _linear(
    first: Sequence[tuple[int, BranchTest]],
    second: Sequence[tuple[int, BranchTest]],
    third: Sequence[tuple[int, BranchTest]],
) -> list[tuple[BranchTest, int, int]] | None:
    """(last test, change of x, change of y) of all tests, if they are the same and change linearly."""
    if not len(first) == len(second) == len(third):
        return None
    found = []
    for (a, p), (b, q), (c, r) in zip(first, second, third):
        same = a == b == c and p.holds == q.holds == r.holds
        if not same or r.x - q.x != q.x - p.x or r.y - q.y != q.y - p.y:
            return None
        found.append((r, r.x - q.x, r.y - q.y))
    return found


def further(test: BranchTest, dx: int, dy: int) -> float:
    """How often more a test has the same result, if its sides change by dx and dy each time; may be inf."""
    d, step, relation = test.x - test.y, dx - dy, test.relation
    if relation in ("==", "!="):
        if d == 0:
            return 0 if step else math.inf
        ends = step != 0 and -d % step == 0 and -d // step > 0
        return -d // step - 1 if ends else math.inf
    if relation in (">", "<="):
        d, step = -d, -step
    if d < 0:
        return (-d - 1) // step if step > 0 else math.inf
    return d // -step if step < 0 else math.inf


def _ahead(v0: Value | None, v1: Value | None, v2: Value | None, k: int, width: int) -> Value | None:
    """The value after k more iterations; None if it does not change linearly."""
    if v0 is None or v1 is None or v2 is None or v2.n - v1.n != v1.n - v0.n:
        return None
    bits = 32 if width == 8 and max(v0.n, v1.n, v2.n) < 2**32 else 8 * width
    return Value((v2.n + k * signed(v2.n - v1.n, 8 * width)) & ((1 << bits) - 1), v2.rank)
