"""Fewer blocks of a compiled program: the reductions of Calzeta and de Souza (2008), 3.4, in three levels.

    1   a computing block is merged with its successor, if it is its only predecessor (Figs 2.3, 2.4a)
    2   a computing block with several predecessors is removed; each of them takes over its cost and leads
        on to its successor (Fig. 2.4b)
    3   the cost common to both branches of a decision moves into the decision (Fig. 2.5)

Every path from entry to return keeps its time, and messages stay separate. That needs more conditions than
the thesis gives: in 2 the predecessors have no other successor, in 3 the branches have no other predecessor,
and blocks where loops are entered or tested stay, because their iterations are counted there.
"""

from fembench_studies.binaries.blocks import Function, Vertex, successors

TAKEN = ("execute", "jump", "branch", "return")  # kinds that may pass cost to the decision before them


def reduce_blocks(function: Function, level: int) -> None:
    """Apply the reductions up to `level`, in place, until none applies."""
    if level < 1:
        return
    before = 0
    while len(function.vertices) != before:
        before = len(function.vertices)
        merge_passages(function)
        if level >= 2:
            merge_groupings(function)
        if level >= 3:
            hoist_common(function)


def merge_passages(function: Function) -> None:
    """Level 1, in place."""
    entered = {address: len(who) for address, who in _leading_to(function).items()}
    merged: dict[int, Vertex] = {}
    open_vertex: Vertex | None = None
    for v in function.vertices.values():
        joins = open_vertex is not None and v.kind != "message" and entered.get(v.start) == 1
        if open_vertex is not None and not joins:
            merged[open_vertex.start] = open_vertex
        start, cost = (open_vertex.start, open_vertex.cost) if joins and open_vertex else (v.start, 0.0)
        now = Vertex(start, v.end, v.kind, cost + v.cost, v.target, v.name)
        open_vertex = now if v.kind == "execute" else None
        if open_vertex is None:
            merged[now.start] = now
    if open_vertex is not None:
        merged[open_vertex.start] = open_vertex
    function.vertices = merged


def merge_groupings(function: Function) -> None:
    """Level 2, in place; one block at a time, since each removal changes predecessors."""
    while (found := _grouping(function)) is not None:
        v, leading = found
        for u in leading:
            u.cost += v.cost
            if u.kind == "jump":
                u.target = v.end
            else:
                u.end = v.end
        del function.vertices[v.start]


def _grouping(function: Function) -> tuple[Vertex, list[Vertex]] | None:
    """The first removable block, and its predecessors."""
    leading, tests = _leading_to(function), _tests_of_loops(function)
    for v in function.vertices.values():
        who = leading.get(v.start, [])
        goes = v.kind == "execute" and len(who) > 1 and v.start not in tests and v.end in function.vertices
        if goes and all(_leads_on(function, u, v) for u in who):
            return v, who
    return None


def _leads_on(function: Function, u: Vertex, v: Vertex) -> bool:
    """Whether v is the only successor of u and lies behind it, so that u can take over its cost."""
    plain = u.kind == "jump" if u.end != v.start else u.kind == "execute"
    return plain and u.start < v.start and list(successors(function, u)) == [v.start]


def hoist_common(function: Function) -> None:
    """Level 3, in place."""
    for v in list(function.vertices.values()):
        if v.start not in function.vertices or v.kind != "branch" or v.backward or v.target is None:
            continue
        leading, tests = _leading_to(function), _tests_of_loops(function)
        heads = [function.vertices.get(v.end), function.vertices.get(v.target)]
        ways = [u for u in heads if u is not None and u.kind in TAKEN and u.start not in tests]
        if len(ways) < 2 or v.end == v.target or any(len(leading[u.start]) > 1 for u in ways):
            continue
        least = min(u.cost for u in ways)
        v.cost += least
        for u in ways:
            u.cost -= least
            if u.cost == 0 and u.kind == "execute" and u.end in function.vertices:
                _skip(function, v, u)


def _skip(function: Function, decision: Vertex, v: Vertex) -> None:
    """Redirect a decision from the empty block v to its successor, and remove v."""
    if decision.end == v.start:
        decision.end = v.end
    else:
        decision.target = v.end
    del function.vertices[v.start]


def _leading_to(function: Function) -> dict[int, list[Vertex]]:
    """address -> its predecessors."""
    found: dict[int, list[Vertex]] = {}
    for v in function.vertices.values():
        for after in successors(function, v):
            found.setdefault(after, []).append(v)
    return found


def _tests_of_loops(function: Function) -> set[int]:
    """Blocks that are targets of backward jumps, and blocks that end where such a target or jump begins."""
    loops = [v for v in function.vertices.values() if v.kind in ("jump", "branch") and v.backward]
    tests = {v.target for v in loops if v.target is not None} | {v.start for v in loops}
    return tests | {v.start for v in function.vertices.values() if v.end in tests}
