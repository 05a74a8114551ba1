"""The cost of a task: count the operations of its body, decide
conditionals, sum up for one machine.

Conditionals (Herai 2005, 4.5.1, 5.4.3): `worst` takes the more expensive branch
(default), `best` the cheaper one, `mean` their mean, `q` their mean weighted by the
probability Q of the first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fembench.base.errors import shown
from fembench.errors import InputError
from fembench.model.closed_form import TimeRange, largest
from fembench_studies.pamela.amounts import names_in, number
from fembench_studies.pamela.pamela import (
    Choice,
    Node,
    Operation,
    PamelaLoop,
    PamelaModel,
    Sequence,
    Set,
    amounts_of,
    children,
)

Policy = Literal["worst", "mean", "best", "q"]
MOST_TURNS = 100_000  # iterations of a loop whose body depends on its variable
Price = Callable[[str], TimeRange]  # operation -> seconds


@dataclass(frozen=True)
class Alternatives:
    """The costs of both branches of a conditional."""

    then: "OperationCost"
    other: "OperationCost"
    name: str = ""


@dataclass
class OperationCost:
    """Operations by name, loops (iterations, cost of one) and conditionals."""

    operations: dict[str, float] = field(default_factory=dict)
    loops: list[tuple[float, "OperationCost"]] = field(default_factory=list)
    choices: list[Alternatives] = field(default_factory=list)


@dataclass(frozen=True)
class Conditionals:
    """The policy for conditionals; `q`: name -> probability of the
    first branch ("": all others)."""

    policy: Policy = "worst"
    q: Mapping[str, float] = field(default_factory=dict)

    def seconds(self, branches: Alternatives, then: TimeRange, other: TimeRange) -> TimeRange:
        """The cost of a conditional. Raises InputError if Q is
        missing or outside [0, 1]."""
        if self.policy == "worst":
            return largest([then, other])
        if self.policy == "best":
            return TimeRange(min(then.low, other.low), min(then.high, other.high))
        if self.policy == "mean":
            return (then + other) * 0.5
        q = self.q.get(branches.name, self.q.get(""))
        if q is None or not 0 <= q <= 1:
            raise InputError(f"conditional '{branches.name}': Q = {q}; expected a probability, 0 to 1")
        return then * q + other * (1 - q)


def count(body: Node, model: PamelaModel) -> OperationCost:
    """The cost of a task's body, including bodies that it calls. Raises InputError."""
    cost = OperationCost()
    _count(body, model, {}, cost, ())
    return cost


def _count(
    node: Node, model: PamelaModel, known: dict[str, float], into: OperationCost, inside: tuple[str, ...]
) -> None:
    if isinstance(node, Sequence):
        for item in node.items:
            _count(item, model, known, into, inside)
    elif isinstance(node, Operation):
        _operation(node, model, known, into, inside)
    elif isinstance(node, Choice):
        then, other = OperationCost(), OperationCost()
        _count(node.then, model, known, then, inside)
        _count(node.other, model, known, other, inside)
        into.choices.append(Alternatives(then, other, node.name))
    elif isinstance(node, PamelaLoop) and node.kind == "seq":
        _loop(node, model, known, into, inside)
    elif isinstance(node, Set):
        known[node.name] = _number(node.amount, known)
    else:
        raise InputError(
            f"{type(node).__name__.removeprefix('Pamela').lower()} in a task's body: expected operations"
        )


def _operation(
    node: Operation, model: PamelaModel, known: dict[str, float], into: OperationCost, inside: tuple[str, ...]
) -> None:
    times = _number(node.times, known)
    if node.name not in model.parts:
        into.operations[node.name] = into.operations.get(node.name, 0.0) + times
        return
    if node.name in inside:
        raise InputError(f"'{node.name}' calls itself: {' → '.join([*inside, node.name])}")
    called = OperationCost()
    _count(model.parts[node.name], model, known, called, (*inside, node.name))
    into.loops.append((times, called))


def _loop(
    node: PamelaLoop,
    model: PamelaModel,
    known: dict[str, float],
    into: OperationCost,
    inside: tuple[str, ...],
) -> None:
    low, high = (round(_number(text, known)) for text in (node.low, node.high))
    turns = max(high - low + 1, 0)
    if not depends(node.body, node.variable):
        one = OperationCost()
        _count(node.body, model, known, one, inside)
        into.loops.append((float(turns), one))
        return
    if turns > MOST_TURNS:
        raise InputError(
            f"loop over {node.variable}: {turns} different iterations; expected at most {MOST_TURNS}"
        )
    for value in range(low, high + 1):
        _count(node.body, model, known | {node.variable: float(value)}, into, inside)


def _number(text: str, known: Mapping[str, float]) -> float:
    def unknown(name: str, *_: object) -> float:
        raise InputError(f"'{shown(text)}': undefined name '{name}'")

    return number(text, known, unknown)


def depends(node: Node, name: str) -> bool:
    """Whether a node reads the loop variable or sets a counter, so
    that iterations may differ."""
    if isinstance(node, Set) or any(name in names_in(text) for text in amounts_of(node)):
        return True
    return any(depends(inner, name) for inner in children(node))


def seconds(cost: OperationCost, price: Price, conditionals: Conditionals) -> TimeRange:
    """Seconds of a cost, from the price of each operation."""
    low = high = 0.0
    for name, times in cost.operations.items():
        one = price(name)
        low, high = low + times * one.low, high + times * one.high
    whole = TimeRange(low, high)
    for turns, body in cost.loops:
        whole = whole + seconds(body, price, conditionals) * turns
    for branches in cost.choices:
        then, other = (seconds(b, price, conditionals) for b in (branches.then, branches.other))
        whole = whole + conditionals.seconds(branches, then, other)
    return whole


def as_text(cost: OperationCost, conditionals: Conditionals | None = None) -> str:
    """The cost in the form of Herai 2005, App. A.4: 2*inter_sum_int+10*(inter_access+max(…,0))."""
    policy = (conditionals or Conditionals()).policy
    terms = [f"{_times(n)}inter_{name}" for name, n in cost.operations.items() if n]
    terms += [f"{turns:.0f}*({as_text(body, conditionals)})" for turns, body in cost.loops]
    for c in cost.choices:
        then, other = as_text(c.then, conditionals), as_text(c.other, conditionals)
        if policy == "q":
            name = f"Q{f'[{c.name}]' if c.name else ''}"
            terms.append(f"{name}*({then})+(1-{name})*({other})")
        else:
            terms.append(f"{ {'worst': 'max', 'best': 'min', 'mean': 'mean'}[policy] }({then},{other})")
    return "+".join(terms) or "0"


def _times(n: float) -> str:
    return "" if n == 1 else f"{n:g}*" if n < 1e6 else f"{n:.0f}*"
