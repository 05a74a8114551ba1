"""Series-parallel form of a task graph, step by step as Herai 2005, Fig. 4.12.

𝔹i is batch i alone, 𝕃i everything from batch i to the end: 𝕃i = 𝔹i, or 𝔹i;𝕃j, or 𝔹i;(𝕃j‖𝕃k). Substitution
from 𝕃1 on repeats the batches after a join; the rule (X;Z)‖(Y;Z) = (X‖Y);Z removes the repetitions.

If repetitions remain, the graph is not series-parallel. Its critical path is still exact, because a repeated
Z does not change a maximum of sums. Demand on resources and phases would count Z repeatedly; they are taken
from a graph with levels instead: every batch is in the first level after all its predecessors, and each level
waits for the one before. That series-parallel graph has more constraints, so its time is an upper bound
(Gonzalez-Escribano, van Gemund, Cardenoso-Payo, Mapping unstructured applications into nested parallelism,
VECPAR 2002; for its slowdown see Bounds on series-parallel slowdown, arXiv:0904.4512).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from fembench.errors import InputError
from fembench_studies.pamela.pasl import BatchGraph

SIGN = {"B": "𝔹", "L": "𝕃"}
MOST = 5000  # batches in an expression, with repetitions


@dataclass(frozen=True)
class Leaf:
    """𝔹i or 𝕃i."""

    kind: Literal["B", "L"]
    number: int


@dataclass(frozen=True)
class Series:
    items: tuple["Expression", ...]


@dataclass(frozen=True)
class Branches:
    items: tuple["Expression", ...]


Expression = Leaf | Series | Branches


def definition(graph: BatchGraph, number: int) -> Expression:
    """𝕃 of a batch in terms of its 𝔹 and the 𝕃 of its successors (Fig. 4.10)."""
    own, feeds = Leaf("B", number), graph.successors(number)
    if not feeds:
        return own
    after = tuple(Leaf("L", k) for k in feeds)
    return Series((own, after[0] if len(after) == 1 else Branches(after)))


def repeated(expression: Expression) -> tuple[int, ...]:
    """Batches that occur more than once; () for a series-parallel graph."""
    return tuple(k for k, n in Counter(_batches(expression)).items() if n > 1)


def layered(graph: BatchGraph) -> Expression:
    """The graph as a sequence of levels, with each batch once: at least as slow as the graph itself."""
    level: dict[int, int] = {}
    for batch in graph.batches:  # in topological order
        level[batch.number] = 1 + max((level[k] for k in batch.inputs), default=-1)
    rows = [tuple(Leaf("B", k) for k, at in level.items() if at == n) for n in range(max(level.values()) + 1)]
    return _series(tuple(Branches(row) if len(row) > 1 else row[0] for row in rows))


def steps(graph: BatchGraph) -> tuple[list[str], Expression]:
    """(the lines of Fig. 4.12, the last expression). Raises InputError for a graph with too many paths."""
    first = graph.batches[0].number
    now: Expression = Leaf("L", first)
    own = {b.number: definition(graph, b.number) for b in graph.batches}
    lines = [f"L = {text(now)}", *(f"{SIGN['L']}{k} = {text(e)}" for k, e in own.items())]
    for number, expression in own.items():
        now = _substituted(now, Leaf("L", number), expression)
        if len(_leaves(now)) > MOST:
            raise InputError(f"more than {MOST} batches on the paths of the graph; expected fewer crossings")
        lines.append(f"L = {text(now)}")
    while (simpler := _simplified(now)) != now:
        now = simpler
        lines.append(f"L = {text(now)}")
    return lines, now


def _substituted(node: Expression, old: Leaf, new: Expression) -> Expression:
    if node == old:
        return new
    if isinstance(node, Leaf):
        return node
    items = tuple(_substituted(i, old, new) for i in node.items)
    return _series(items) if isinstance(node, Series) else Branches(items)


def _series(items: tuple[Expression, ...]) -> Expression:
    """A sequence of branches and leaves, flattened."""
    flat = tuple(x for i in items for x in (i.items if isinstance(i, Series) else (i,)))
    return flat[0] if len(flat) == 1 else Series(flat)


def _simplified(node: Expression) -> Expression:
    """The node with one innermost common tail factored out; the node itself if there is none."""
    if isinstance(node, Leaf):
        return node
    for k, item in enumerate(node.items):
        simpler = _simplified(item)
        if simpler != item:
            items = (*node.items[:k], simpler, *node.items[k + 1 :])
            return _series(items) if isinstance(node, Series) else Branches(items)
    return _without_tail(node) if isinstance(node, Branches) else node


def _without_tail(node: Branches) -> Expression:
    """(X;Z)‖(Y;Z) = (X‖Y);Z with the longest Z."""
    branches = [i.items if isinstance(i, Series) else (i,) for i in node.items]
    common = 0
    while all(len(b) > common for b in branches) and len({b[-1 - common] for b in branches}) == 1:
        common += 1
    if not common:
        return node
    heads = [b[: len(b) - common] for b in branches]
    left = tuple(_series(h) for h in heads if h)
    head = (Branches(left),) if len(left) > 1 else left
    return _series((*head, *branches[0][len(branches[0]) - common :]))


def _leaves(node: Expression) -> list[Leaf]:
    if isinstance(node, Leaf):
        return [node]
    return [leaf for i in node.items for leaf in _leaves(i)]


def _batches(node: Expression) -> list[int]:
    return [leaf.number for leaf in _leaves(node) if leaf.kind == "B"]


def text(node: Expression, inside: bool = False) -> str:
    """'𝔹1;(𝔹2‖(𝔹3;(𝔹4‖𝔹5)));𝔹6'."""
    if isinstance(node, Leaf):
        return f"{SIGN[node.kind]}{node.number}"
    if isinstance(node, Branches):
        return f"({'‖'.join(text(i, True) for i in node.items)})"
    joined = ";".join(text(i) for i in node.items)
    return f"({joined})" if inside else joined
