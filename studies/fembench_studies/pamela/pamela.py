"""Extended PAMELA: sequences, branches, loops, conditionals, the use of
resources (Herai 2005, 3.2).

    a;b   a||b   seq(i=1,10){…}   par(p=1,P){…}   if{…}else{…}   use(net,send[0,p](64))   delay(τ)   id=id+1

Operations of a task's body are plain names (`sum_int;`), possibly with a factor
(`100*assign_int;`). Amounts are texts, evaluated by `amounts`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fembench_studies.pamela.amounts import compact


@dataclass(frozen=True)
class Sequence:
    """A sequence: a;b."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class PamelaParallel:
    """Parallel branches: a||b."""

    items: tuple["Node", ...]


@dataclass(frozen=True)
class PamelaLoop:
    """A loop over the values of a variable; `seq` iterates in
    sequence, `par` in parallel."""

    kind: Literal["seq", "par"]
    variable: str
    low: str
    high: str  # inclusive
    body: "Node"


@dataclass(frozen=True)
class Choice:
    """if{then}else{other}: a branch without its condition; `name`
    identifies its probability Q."""

    then: "Node"
    other: "Node"
    name: str = ""


@dataclass(frozen=True)
class Use:
    """Use of a resource for an amount of seconds."""

    resource: str
    amount: str


@dataclass(frozen=True)
class Delay:
    """A delay in seconds that uses no resource."""

    amount: str


@dataclass(frozen=True)
class Operation:
    """`times` operations in a task's body, or the part of the model of that name."""

    name: str
    times: str = "1"


@dataclass(frozen=True)
class Set:
    """An assignment to a counter: id=id+1."""

    name: str
    amount: str


PATH = "L_path"  # the exact form, used for the critical path only, if it is not series-parallel
Node = Sequence | PamelaParallel | PamelaLoop | Choice | Use | Delay | Operation | Set
NOTHING = Sequence(())


@dataclass(frozen=True)
class PamelaModel:
    """Definitions by name. `L` is the application; if that is an upper bound,
    `L_path` is the exact form."""

    parts: Mapping[str, Node]  # "L", "L_0", and bodies of tasks: "ProcessData"
    tasks: Mapping[int, str] = field(default_factory=dict)  # batch (from 0) -> name of its body
    sizes: Mapping[tuple[str, int], float] = field(default_factory=dict)  # ("codeSize", batch) -> bytes


def children(node: Node) -> tuple[Node, ...]:
    """The nodes inside a node."""
    if isinstance(node, (Sequence, PamelaParallel)):
        return node.items
    if isinstance(node, PamelaLoop):
        return (node.body,)
    return (node.then, node.other) if isinstance(node, Choice) else ()


def amounts_of(node: Node) -> tuple[str, ...]:
    """The amounts of a node itself, without those of its children."""
    if isinstance(node, PamelaLoop):
        return node.low, node.high
    if isinstance(node, Operation):
        return (node.times,)
    if isinstance(node, Use):
        return node.amount, node.resource
    return (node.amount,) if isinstance(node, (Delay, Set)) else ()


def sequence(*items: Node) -> Node:
    """A sequence, with nested sequences flattened."""
    flat: list[Node] = []
    for item in items:
        flat += item.items if isinstance(item, Sequence) else [item]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def as_text(model: PamelaModel) -> str:
    """The model as text, in the form of its file."""
    lines = [f"{name}={shown(node, 0)}" for name, node in model.parts.items()]
    lines += [f"task[{k}]={name};" for k, name in sorted(model.tasks.items())]
    lines += [f"{what}(task[{k}])={size:g};" for (what, k), size in sorted(model.sizes.items())]
    return "\n".join(lines) + "\n"


def shown(node: Node, depth: int = 0) -> str:
    """A node as text, with one line per statement of a block."""
    if isinstance(node, Sequence):
        if all(isinstance(i, Operation) for i in node.items) and depth == 0:
            return ";".join(_line(i, depth) for i in node.items) + ";"
        return _block(node, depth)
    return _line(node, depth)


def _block(node: Node, depth: int) -> str:
    items = node.items if isinstance(node, Sequence) else (node,)
    pad = "  " * (depth + 1)
    lines = [f"{pad}{_line(i, depth + 1)}{'' if isinstance(i, (PamelaLoop, Choice)) else ';'}" for i in items]
    return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}" if lines else "{ }"


def _line(node: Node, depth: int) -> str:
    if isinstance(node, Operation):
        return node.name if node.times == "1" else f"{compact(node.times)}*{node.name}"
    if isinstance(node, Use):
        return f"use({node.resource},{compact(node.amount)})"
    if isinstance(node, Delay):
        return f"delay({compact(node.amount)})"
    if isinstance(node, Set):
        return f"{node.name}={compact(node.amount)}"
    if isinstance(node, PamelaLoop):
        head = f"{node.kind}({node.variable}={compact(node.low)},{compact(node.high)})"
        return f"{head}{_block(node.body, depth)}"
    if isinstance(node, Choice):
        mark = f"[{node.name}]" if node.name else ""
        other = "" if node.other == NOTHING else f"else{_block(node.other, depth)}"
        return f"if{mark}{_block(node.then, depth)}{other}"
    if isinstance(node, PamelaParallel):
        return "(" + "||".join(_line(i, depth) for i in node.items) + ")"
    return _block(node, depth)
