"""Task graph to PAMELA model: its series-parallel form, where
tasks compute, and the messages.

The form is found step by step, as in Herai 2005, Fig. 4.12. 𝔹i is batch i alone, 𝕃i everything from batch i
to the end: 𝕃i = 𝔹i, or 𝔹i;𝕃j, or 𝔹i;(𝕃j‖𝕃k). Substitution from 𝕃1 on repeats the batches after a join; the
rule (X;Z)‖(Y;Z) = (X‖Y);Z removes the repetitions.

If repetitions remain, the graph is not series-parallel. Its critical path is still
exact, because a repeated Z does not change a maximum of sums. Demand on resources and
phases would count Z repeatedly; they are taken from a graph with levels instead: every
batch is in the first level after all its predecessors, and each level waits for the one
before. That series-parallel graph has more constraints, so its time is an upper bound
(Gonzalez-Escribano, van Gemund, Cardenoso-Payo, Mapping unstructured applications into
nested parallelism, VECPAR 2002; for its slowdown see Bounds on series-parallel
slowdown, arXiv:0904.4512).

Batches of one task run on the coordinator. Others are dealt to the workers: S[k,p]
tasks of batch k on machine p (4.4.3, Figs 4.13 to 4.16). The network is one bus (App.
A) or one link per machine (4.4.3).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from fembench.errors import InputError
from fembench_studies.pamela.pamela import (
    PATH,
    Node,
    Operation,
    PamelaLoop,
    PamelaModel,
    PamelaParallel,
    Sequence,
    Use,
    children,
    sequence,
)
from fembench_studies.pamela.pasl import Batch, BatchGraph

Network = Literal["bus", "links"]
MOST = 5000  # batches in an expression, with repetitions
SIGN = {"L": "𝔹", "rest": "𝕃"}  # of "L_2", the part of the model for batch 2, and of all from batch 2 on


def definition(graph: BatchGraph, number: int) -> Node:
    """𝕃 of a batch in terms of its 𝔹 and the 𝕃 of its successors (Fig. 4.10)."""
    after = tuple(Operation(f"rest_{k}") for k in graph.successors(number))
    return sequence(Operation(f"L_{number}"), *(after if len(after) < 2 else [PamelaParallel(after)]))


def repeated(expression: Node) -> tuple[int, ...]:
    """Batches that occur more than once; () for a series-parallel graph."""
    names = Counter(leaf.name for leaf in _leaves(expression))
    return tuple(int(name.partition("_")[2]) for name, n in names.items() if n > 1)


def layered(graph: BatchGraph) -> Node:
    """The graph as a sequence of levels, with each batch once: at least
    as slow as the graph itself."""
    level: dict[int, int] = {}
    for batch in graph.batches:  # in topological order
        level[batch.number] = 1 + max((level[k] for k in batch.inputs), default=-1)
    rows = [
        [Operation(f"L_{k}") for k, at in level.items() if at == n] for n in range(max(level.values()) + 1)
    ]
    return sequence(*(PamelaParallel(tuple(row)) if len(row) > 1 else row[0] for row in rows))


def steps(graph: BatchGraph) -> tuple[list[str], Node]:
    """(the lines of Fig. 4.12, the last expression). Raises InputError for a
    graph with too many paths."""
    now: Node = Operation(f"rest_{graph.batches[0].number}")
    own = {f"rest_{b.number}": definition(graph, b.number) for b in graph.batches}
    lines = [f"L = {text(now)}", *(f"{text(Operation(name))} = {text(e)}" for name, e in own.items())]
    for name, expression in own.items():
        now = _substituted(now, name, expression)
        if len(_leaves(now)) > MOST:
            raise InputError(f"more than {MOST} batches on the paths of the graph; expected fewer crossings")
        lines.append(f"L = {text(now)}")
    while (simpler := _simplified(now)) != now:
        now = simpler
        lines.append(f"L = {text(now)}")
    return lines, now


def _with(node: Node, items: tuple[Node, ...]) -> Node:
    """A sequence or parallel branches with other items."""
    return PamelaParallel(items) if isinstance(node, PamelaParallel) else sequence(*items)


def _substituted(node: Node, name: str, new: Node) -> Node:
    if isinstance(node, Operation):
        return new if node.name == name else node
    return _with(node, tuple(_substituted(i, name, new) for i in children(node)))


def _simplified(node: Node) -> Node:
    """The node with one innermost common tail factored out; the
    node itself if there is none."""
    items = children(node)
    for k, item in enumerate(items):
        simpler = _simplified(item)
        if simpler != item:
            return _with(node, (*items[:k], simpler, *items[k + 1 :]))
    return _without_tail(node) if isinstance(node, PamelaParallel) else node


def _without_tail(node: PamelaParallel) -> Node:
    """(X;Z)‖(Y;Z) = (X‖Y);Z with the longest Z."""
    branches = [i.items if isinstance(i, Sequence) else (i,) for i in node.items]
    common = 0
    while all(len(b) > common for b in branches) and len({b[-1 - common] for b in branches}) == 1:
        common += 1
    if not common:
        return node
    left = tuple(sequence(*b[:-common]) for b in branches if len(b) > common)
    head = (PamelaParallel(left),) if len(left) > 1 else left
    return sequence(*head, *branches[0][-common:])


def _leaves(node: Node) -> list[Operation]:
    if isinstance(node, Operation):
        return [node]
    return [leaf for i in children(node) for leaf in _leaves(i)]


def text(node: Node, inside: bool = False) -> str:
    """'𝔹1;(𝔹2‖(𝔹3;(𝔹4‖𝔹5)));𝔹6'."""
    if isinstance(node, Operation):
        sign, _, number = node.name.partition("_")
        return f"{SIGN[sign]}{number}"
    if isinstance(node, PamelaParallel):
        return f"({'‖'.join(text(i, True) for i in node.items)})"
    joined = ";".join(text(i) for i in children(node))
    return f"({joined})" if inside else joined


def build(
    graph: BatchGraph,
    bodies: Mapping[str, Node],
    sizes: Mapping[tuple[str, int], float],
    network: Network = "bus",
) -> PamelaModel:
    """The model of an application. Raises InputError.

    `bodies`: code or function called by it -> its body; `sizes`: ("codeSize" |
    "dataSizeIn" | "dataSizeOut", batch from 0) -> bytes.
    """
    missing = [b.code for b in graph.batches if b.code not in bodies]
    if missing:
        raise InputError(f"no source of {missing[0]}; expected a function of that name")
    form = steps(graph)[1]
    parts = {"L": layered(graph), PATH: form} if repeated(form) else {"L": form}
    for batch in graph.batches:
        parts[f"L_{batch.number}"] = _batch(graph, batch, sizes, network)
    tasks = {b.number - 1: b.code for b in graph.batches}
    return PamelaModel(parts | dict(bodies), tasks, dict(sizes))


def _batch(graph: BatchGraph, batch: Batch, sizes: Mapping[tuple[str, int], float], network: Network) -> Node:
    """𝔹 of a batch: its tasks, then its messages to each successor."""
    k = batch.number - 1
    consumers = [graph.batch(n) for n in graph.successors(batch.number)]
    done: list[Node] = []
    if batch.cardinality == 1:
        done.append(Use("COORD", f"task[{k},0](COORD)"))
    else:
        results = [_send("p", "COORD", f"dataSizeOut(task[{k},0])", network) for _ in consumers]
        done.append(_all_tasks(k, sequence(Use("p", f"task[{k},0](p)"), *results)))
    for consumer in (c for c in consumers if c.cardinality > 1):
        to = consumer.number - 1
        if ("codeSize", to) in sizes:
            code = _send("COORD", "p", f"codeSize(task[{to},0])", network)
            done.append(PamelaLoop("seq", "p", "1", "P", code))
        done.append(_all_tasks(to, _send("COORD", "p", f"dataSizeIn(task[{to},0])", network)))
    return sequence(*done) if len(done) > 1 else Sequence((done[0],))


def _all_tasks(k: int, body: Node) -> Node:
    return PamelaLoop("par", "p", "1", "P", PamelaLoop("par", "i", "1", f"S[{k},p]", body))


def _send(source: str, target: str, size: str, network: Network) -> Use:
    resource = "net" if network == "bus" else "net[0]" if source == "COORD" else "net[p]"
    return Use(resource, f"send[{source},{target}]({size})")
