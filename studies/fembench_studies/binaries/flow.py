"""The control flow of a function: natural loops, and the branches on which a vertex depends.

A loop is a set of vertices entered at its header, which dominates them; a branch controls a vertex if one of
its ways always leads there and the other need not (Ferrante, Ottenstein and Warren 1987). So the order in
which a compiler places the code does not matter.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fembench_studies.binaries.blocks import Function, Vertex, successors

END = -1  # the end of every path
Edges = Mapping[int, Iterable[int]]


@dataclass
class NaturalLoop:
    """A loop of a function, by addresses."""

    header: int
    body: set[int] = field(default_factory=set)
    latches: set[int] = field(default_factory=set)  # vertices that lead back to the header


class Flow:
    """The control flow of one function; `ends`: whether a call never returns."""

    def __init__(self, function: Function, ends: Callable[[Vertex], bool]) -> None:
        self.function = function
        after = {
            v.start: [] if ends(v) else list(successors(function, v)) for v in function.vertices.values()
        }
        before: dict[int, list[int]] = {a: [] for a in after}
        for a, followers in after.items():
            for b in followers:
                before[b].append(a)
        self._returns = {v.start for v in function.vertices.values() if v.kind == "return"}
        self._returns |= {a for a, b in after.items() if not b and not ends(function.vertices[a])}
        self.loops = _loops(after, before, dominators(function.start, after, before))
        self.returning = _reached(self._returns, before)
        self._after, self._before = after, before
        back: dict[int, list[int]] = {a: list(b) for a, b in before.items()} | {END: sorted(self._returns)}
        ahead = {a: [*b, END] if a in self._returns else list(b) for a, b in after.items()}
        self._always = dominators(END, back, ahead)  # vertex -> those on every path from it to the end
        self._controls = self._controlled()

    def leading_to(self, address: int) -> set[int]:
        """The vertices from which a path leads to this one."""
        return _reached({address}, self._before)

    def before_joining(self, branch: int, way: int) -> set[int]:
        """The vertices that one way of a branch leads to before both ways join again."""
        joins = self._always.get(branch, set()) - {branch}
        join = max(joins, key=lambda a: len(self._always[a]), default=END)
        return _reached({way} - {join}, {**self._after, join: []}) - {join}

    def exits(self, loop: NaturalLoop, branch: Vertex) -> bool:
        """Whether one way of a branch leaves a loop and the other stays."""
        return (branch.target in loop.body) != (branch.end in loop.body)

    def late(self, loop: NaturalLoop, branch: int) -> bool:
        """Whether an iteration is over when a branch leaves a loop; a test at its head leaves before it."""
        at = loop.header
        while at != branch:
            v = self.function.vertices.get(at)
            if v is None or v.kind != "execute":
                return True
            at = v.end
        return branch in loop.latches

    def controls(self, address: int) -> frozenset[int]:
        """The branches on which it depends whether a vertex is reached, directly or through others."""
        found: set[int] = set()
        todo = [address]
        while todo:
            new = self._controls.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return frozenset(found)

    def _controlled(self) -> dict[int, set[int]]:
        """vertex -> the branches that control it directly."""
        found: dict[int, set[int]] = {}
        for branch, ways in self._after.items():
            ways = [way for way in ways if way in self.returning]
            if len(ways) < 2 or branch not in self._always:
                continue
            for way in ways:
                for v in self._always[way] - (self._always[branch] - {branch}):
                    found.setdefault(v, set()).add(branch)
        return found


def dominators(start: int, after: Edges, before: Edges) -> dict[int, set[int]]:
    """vertex -> the vertices on every path from the start to it, itself included."""
    order = _ordered(start, after)
    found: dict[int, set[int]] = {start: {start}}
    changed = True
    while changed:
        changed = False
        for v in order[1:]:
            known = [found[u] for u in before.get(v, ()) if u in found]
            new = set.intersection(*known) | {v} if known else {v}
            if found.get(v) != new:
                found[v], changed = new, True
    return found


def _ordered(start: int, after: Edges) -> list[int]:
    """All vertices that can be reached, in reverse postorder."""
    seen, done = {start}, []
    stack = [(start, iter(after.get(start, ())))]
    while stack:
        v, rest = stack[-1]
        for u in rest:
            if u not in seen:
                seen.add(u)
                stack.append((u, iter(after.get(u, ()))))
                break
        else:
            done.append(v)
            stack.pop()
    return done[::-1]


def _loops(
    after: Edges, before: Mapping[int, list[int]], dominating: Mapping[int, set[int]]
) -> dict[int, NaturalLoop]:
    """header -> loop; edges back to the same header make one loop."""
    found: dict[int, NaturalLoop] = {}
    for latch, followers in after.items():
        for header in followers:
            if header in dominating.get(latch, ()):
                loop = found.setdefault(header, NaturalLoop(header, {header}))
                loop.latches.add(latch)
                loop.body |= _reached({latch}, {**before, header: []})
    return found


def _reached(starts: Iterable[int], edges: Mapping[int, Iterable[int]]) -> set[int]:
    """These vertices, and all to which edges lead from them."""
    found, todo = set(starts), list(starts)
    while todo:
        for u in edges.get(todo.pop(), ()):
            if u not in found:
                found.add(u)
                todo.append(u)
    return found
