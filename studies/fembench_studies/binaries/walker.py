"""One process walks through a compiled program.

Values that follow from the code, the rank, the number of ranks and the arguments are followed exactly, so
the walk knows which branches this rank takes, how often most loops iterate, and with whom it exchanges how
many bytes. Branches and loops that depend on anything else are drawn: loops from an exponential distribution
with a mean and a limit (if mean = limit, exactly that number), branches from a normal one (Calzeta and de
Souza 2008, 3.7). Iterations of a loop whose costs and values change linearly are added at once.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NoReturn

import numpy as np

from fembench.errors import InputError
from fembench.model.graph import Event
from fembench_studies.binaries import mpi_calls
from fembench_studies.binaries.blocks import Function, Vertex
from fembench_studies.binaries.emulator import STACK, BranchTest, State, Value
from fembench_studies.binaries.linear import add, ahead, further, linear
from fembench_studies.binaries.walk import (
    Activation,
    Counts,
    Given,
    Key,
    LoopTurn,
    Message,
    Point,
    Program,
    Walk,
)

MOST = 2_000_000  # vertices on the walk of a process
DEEP = 1000  # calls inside each other
SHORT = 16  # iterations that are walked rather than added at once, so that all values stay known
SAMPLED = 100  # iterations that are walked before the rest is taken to be like their mean
HEAP = 0x30000000
LINUX = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
CLOBBERED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


class Walker:
    """Walks one process from entry to return."""

    def __init__(
        self,
        program: Program,
        rank: int,
        ranks: int,
        given: Given,
        rng: np.random.Generator,
        heard: dict[tuple[int, int], list[tuple[int, mpi_calls.Cells]]],
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
        self._last = 0  # vertex before this one
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
                self._emit(None)
                return self._ended()
            v = self.here.vertices.get(address)
            if v is None:
                raise InputError(
                    f"rank {self.rank} reaches {address:x} in {self.here.name}, where no instruction begins"
                )
            self._arrive(address)
            self._count(("block", address))
            self._last = address
            address = self._pass(v)
        raise InputError(
            f"rank {self.rank} passes more than {MOST} blocks, now in {self.here.name}; "
            "expected fewer iterations of loops with messages or drawn branches"
        )

    def _ended(self) -> Walk:
        """The walk; a main that returned without MPI is an error."""
        begun = any(("library", name) in self.found.totals for name in mpi_calls.BEGINS)
        if not begun and self.here.name == "main" and mpi_calls.BEGINS & set(self.program.called):
            raise InputError(
                f"rank {self.rank} ends before MPI_Init; expected --args with which the program computes"
            )
        return self.found

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
        if cost is None and not self.given.rehearsed and not mpi_calls.costs(name):
            self.refuse(name, address, "a call of unknown cost", f"--calls {name}=SECONDS")
        if cost is not None and mpi_calls.known(name):
            self.refuse(name, address, "a cost for a message", "its cost from the network")
        self._count(("library", name))
        events = mpi_calls.call(self, name, address)
        callers = (*((f.name, at) for f, at in self._frames), (self.here.name, address))
        for event in events:
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
            self._settle()
            self._active.append(Activation(loop, depth))

    def _leave(self, depth: int) -> None:
        while self._active and self._active[-1].depth >= depth:
            self._exit()

    def _exit(self) -> None:
        act = self._active[-1]
        point = self._point(act)
        turns = act.turns + self.program.flow(self.here).late(act.loop, self._last)
        point.least, point.most = min(point.least, turns), max(point.most, turns)
        self._count(("turns", act.loop.header), turns)
        self._count(("entries", act.loop.header))
        self._settle()
        self._active.pop()
        parent = self._active[-1] if self._active else None
        for counts in (act.before, act.counts):
            add(parent.counts if parent else self._pending, counts)
        if parent is not None:
            parent.tests += act.tests
            parent.written |= act.touched | act.written

    def _iterate(self, act: Activation) -> None:
        """The next iteration begins: keep what the last did; add those that will be like it."""
        self._settle()
        act.turns += 1
        memory = self.state.memory.cells
        cells = {a: memory.get(a, (w, None)) if w <= 16 else (w, None) for a, w in act.written.items()}
        fresh = [a for a in cells if a not in act.touched]
        turn = LoopTurn(act.tests, act.counts, act.quiet, act.drew, dict(self.state.registers), cells, fresh)
        act.last = [*act.last[-2:], turn]
        act.touched |= act.written
        add(act.total, turn.counts)
        act.sampled = act.sampled + 1 if turn.quiet else 0
        if not turn.quiet:
            act.total = {}
        add(act.before, turn.counts)
        act.tests, act.counts, act.written = [], {}, {}
        act.quiet, act.drew = True, False
        if act.sampled >= 3:
            self._skip(act)

    def _skip(self, act: Activation) -> None:
        """Add the iterations that follow, as far as they continue the last three linearly."""
        t0, t1, t2 = act.last
        drew = t0.drew or t1.drew or t2.drew
        steps = None if drew else linear(t0.tests, t1.tests, t2.tests)
        keys = {*t0.counts, *t1.counts, *t2.counts}
        slope = {k: t2.counts.get(k, 0) - t1.counts.get(k, 0) for k in keys}
        if steps is None or any(slope[k] != t1.counts.get(k, 0) - t0.counts.get(k, 0) for k in keys):
            if act.sampled >= SAMPLED:
                self._extrapolate(act)
            return
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
        add(act.before, {key: k * t2.counts.get(key, 0) + slope[key] * k * (k + 1) / 2 for key in keys})
        self._spread({key: t2.counts.get(key, 0) + slope[key] * k for key in keys})

    def _spread(self, counts: Counts) -> None:
        """Note the iterations of inner loops in the last of the iterations that were added at once."""
        for (kind, header), entries in counts.items():
            if kind == "entries" and entries:
                point = self.found.loops[int(header)]
                turns = round(counts.get(("turns", header), 0) / entries)
                point.least, point.most = min(point.least, turns), max(point.most, turns)

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
                steps = linear(*([(address, t[address])] for t in turns))
                more = min([more, *(further(*step) for step in steps or [])])
        if more == math.inf or more < 1:
            return
        k = int(more)
        self._advance(act, k, {a: (w, None) for a, w in act.touched.items()})
        add(act.before, {key: n / act.sampled * k for key, n in act.total.items()})

    def _advance(self, act: Activation, k: int, cells: Mapping[int, tuple[int, Value | None]]) -> None:
        """Set the state to that after k more iterations: values that change linearly, and unknown ones."""
        t0, t1, t2 = act.last
        for name, value in t2.registers.items():
            self.state.registers[name] = ahead(t0.registers.get(name), t1.registers.get(name), value, k, 8)
        old, new = t1.fresh, t2.fresh
        for address, (width, _) in cells.items():
            rows = [t.cells.get(address) for t in act.last]
            value = None
            if all(row and row[0] == width for row in rows):
                v0, v1, v2 = (row[1] if row else None for row in rows)
                value = ahead(v0, v1, v2, k, width)
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
        self.state.flags = None
        self._settle()

    # ---------------------------------------------------------------------------------- counts

    def _count(self, key: Key, n: float = 1) -> None:
        counts = self._active[-1].counts if self._active else self._pending
        counts[key] = counts.get(key, 0) + n

    def _settle(self) -> None:
        """What was written since the last time was written by the innermost loop."""
        if self._active:
            for address, width in self.state.written.items():
                self._active[-1].written[address] = max(width, self._active[-1].written.get(address, 0))
        self.state.written = {}

    def _emit(self, event: Event | None) -> None:
        """Computing so far ends with an event, or with the program."""
        self._settle()
        for act in self._active:
            for counts in (act.before, act.counts):
                add(self._pending, counts)
            act.before, act.counts, act.quiet = {}, {}, False
        part = {key: n for key, n in self._pending.items() if key[0] in ("block", "library")}
        self.found.totals.update(self._pending)
        if part:
            self.found.parts.append(part)
        self._pending = {}
        if event is not None:
            self.found.parts.append(event)
