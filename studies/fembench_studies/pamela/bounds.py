"""Bounds on the time of an application: critical path, and demand on each
resource (Herai 2005, 3.2.3).

    T_0   critical path without contention: branches and par loops take their maximum
    T_r   all uses of resource r in sequence
    T     max(T_0, T_r …), of the whole program (`global`, Eq. 3.4)
          or of each phase, summed over phases (`phase`)

All processes wait for each other between two phases, so no resource starts the next
phase early. The global bound ignores that and can be too low by a factor of two: ten
seconds of computing followed by ten seconds of sending count as 10.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fembench.errors import InputError
from fembench.model.closed_form import ZERO, TimeRange, as_interval, largest
from fembench_studies.pamela.amounts import Environment, Term, Value, evaluate, number, parts, tree
from fembench_studies.pamela.costs import Conditionals, OperationCost, count, depends, seconds
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.pamela.pamela import (
    PATH,
    Choice,
    Delay,
    Node,
    Operation,
    PamelaLoop,
    PamelaModel,
    PamelaParallel,
    Sequence,
    Set,
    Use,
)

Compose = Literal["global", "phase"]


@dataclass(frozen=True)
class Bound:
    """Bounds of a part of a model, in seconds."""

    path: TimeRange  # T_0
    phased: TimeRange
    demand: dict[str, TimeRange]  # resource -> T_r


@dataclass(frozen=True)
class TimeBounds:
    """The interval of the total time, and each term of the maximum."""

    seconds: TimeRange
    compose: Compose
    terms: dict[str, TimeRange]  # "T_0", then each resource

    @property
    def bottleneck(self) -> str:
        """The term whose interval has the largest midpoint."""
        return max(self.terms, key=lambda name: self.terms[name].middle)


@dataclass
class Setting:
    """The machines and values with which a model is evaluated."""

    model: PamelaModel
    machine: MachineModel
    workers: int
    tasks: Mapping[int, Mapping[int, int]] = field(default_factory=dict)  # batch (from 0) -> machine -> S
    conditionals: Conditionals = field(default_factory=Conditionals)
    costs: Mapping[str, Mapping[int, Value]] = field(
        default_factory=dict
    )  # further terms: name -> index -> value
    _known: dict[tuple[int, int], TimeRange] = field(default_factory=dict)
    _counts: dict[str, OperationCost] = field(default_factory=dict)

    def environment(self) -> dict[str, float]:
        """Values of all names except loop variables."""
        return {"P": float(self.workers), "COORD": 0.0}

    def task(self, batch: int, machine: int) -> TimeRange:
        """Seconds of a task of a batch on a machine. Raises InputError."""
        key = batch, machine
        if key not in self._known:
            name = self.model.tasks.get(batch)
            if name is None:
                raise InputError(f"task[{batch}]: expected a line task[{batch}]=NAME;")
            if name not in self._counts:
                if name not in self.model.parts:
                    raise InputError(f"task[{batch}]={name}: no definition of {name}")
                self._counts[name] = count(self.model.parts[name], self.model)
            price = lambda operation: self.machine.cost(operation, machine)  # noqa: E731
            self._known[key] = seconds(self._counts[name], price, self.conditionals)
        return self._known[key]


def predict(setting: Setting, compose: Compose = "global") -> TimeBounds:
    """The interval of the application L. Raises InputError if something is undefined.

    If L is not series-parallel, the critical path is that of its exact form, and
    every use of a resource counts once. By phase, the upper end is that of the graph
    with levels, which is slower.
    """
    parts = setting.model.parts
    whole = bound(expand(parts["L"], setting.model), setting, setting.environment())
    path = whole.path
    if PATH in parts:
        path = bound(expand(parts[PATH], setting.model), setting, setting.environment()).path
    terms = {"T_0": path} | {f"T_{r}": d for r, d in whole.demand.items()}
    time = largest(terms.values())
    if compose == "phase":
        exact = PATH not in parts
        time = whole.phased if exact else TimeRange(time.low, max(time.high, whole.phased.high))
    return TimeBounds(time, compose, terms)


def expand(node: Node, model: PamelaModel, inside: tuple[str, ...] = ()) -> Node:
    """The node with all names of model parts replaced by the parts. Raises InputError."""
    if isinstance(node, Operation):
        if node.name not in model.parts or node.name in inside:
            raise InputError(f"'{node.name}': not a part of the model; outside of tasks expected use(…)")
        return expand(model.parts[node.name], model, (*inside, node.name))
    if isinstance(node, (Sequence, PamelaParallel)):
        return type(node)(tuple(expand(i, model, inside) for i in node.items))
    if isinstance(node, PamelaLoop):
        return PamelaLoop(node.kind, node.variable, node.low, node.high, expand(node.body, model, inside))
    if isinstance(node, Choice):
        return Choice(expand(node.then, model, inside), expand(node.other, model, inside), node.name)
    return node


def bound(node: Node, setting: Setting, environment: dict[str, float]) -> Bound:
    """The bounds of a node; counters that it sets change in `environment`."""
    if isinstance(node, Sequence):
        return _after([bound(i, setting, environment) for i in node.items])
    if isinstance(node, PamelaParallel):
        return _beside([bound(i, setting, environment) for i in node.items])
    if isinstance(node, PamelaLoop):
        return _loop(node, setting, environment)
    if isinstance(node, Set):
        environment[node.name] = number(node.amount, environment, term_of(setting, environment))
        return Bound(ZERO, ZERO, {})
    if isinstance(node, Choice):
        return _choice(node, setting, environment)
    if not isinstance(node, (Use, Delay)):
        raise InputError(f"cannot bound {type(node).__name__.removeprefix('Pamela').lower()}")
    time = as_interval(evaluate(node.amount, environment, term_of(setting, environment)))
    if isinstance(node, Delay):
        return Bound(time, time, {})
    resource = resource_name(node.resource, setting, environment)
    return Bound(time, time, {resource: time})


def _loop(node: PamelaLoop, setting: Setting, environment: dict[str, float]) -> Bound:
    term = term_of(setting, environment)
    low, high = (round(number(text, environment, term)) for text in (node.low, node.high))
    turns = max(high - low + 1, 0)
    if turns and not depends(node.body, node.variable):
        return _repeated(bound(node.body, setting, environment), turns, node.kind)
    made, before = [], environment.get(node.variable)
    for value in range(low, high + 1):
        environment[node.variable] = float(value)
        made.append(bound(node.body, setting, environment))
    if before is None:
        environment.pop(node.variable, None)
    else:
        environment[node.variable] = before
    return _after(made) if node.kind == "seq" else _beside(made)


def _repeated(one: Bound, turns: int, kind: str) -> Bound:
    """The bounds of equal iterations."""
    demand = {r: d * turns for r, d in one.demand.items()}
    if kind == "seq":
        return Bound(one.path * turns, one.phased * turns, demand)
    return Bound(one.path, largest([one.phased, *demand.values()]), demand)


def _choice(node: Choice, setting: Setting, environment: dict[str, float]) -> Bound:
    """The more expensive branch, whatever the policy: policies apply only inside tasks."""
    then, other = bound(node.then, setting, environment), bound(node.other, setting, environment)
    resources = {**then.demand, **other.demand}
    demand = {r: largest([then.demand.get(r, ZERO), other.demand.get(r, ZERO)]) for r in resources}
    return Bound(largest([then.path, other.path]), largest([then.phased, other.phased]), demand)


def _after(bounds: list[Bound]) -> Bound:
    path = phased = ZERO
    for b in bounds:
        path, phased = path + b.path, phased + b.phased
    return Bound(path, phased, _summed(bounds))


def _beside(bounds: list[Bound]) -> Bound:
    if not bounds:
        return Bound(ZERO, ZERO, {})
    demand = _summed(bounds)
    phased = largest([*(b.phased for b in bounds), *demand.values()])
    return Bound(largest(b.path for b in bounds), phased, demand)


def _summed(bounds: list[Bound]) -> dict[str, TimeRange]:
    demand: dict[str, TimeRange] = {}
    for b in bounds:
        for resource, time in b.demand.items():
            demand[resource] = demand[resource] + time if resource in demand else time
    return demand


def resource_name(text: str, setting: Setting, environment: Environment) -> str:
    """'net', 'COORD', 'comp_3', 'net_3'; a loop variable alone means the
    processor of that machine."""
    node = tree(text)
    word = getattr(node, "id", None)
    if word is not None:
        machine = environment.get(word)
        return word if machine is None or word == "COORD" else f"comp_{machine:.0f}"
    name, indices, _ = parts(node, text)
    from_term = term_of(setting, environment)
    numbers = [number(ast.unparse(i), environment, from_term) for i in indices]
    return "_".join([name, *(f"{n:.0f}" for n in numbers)])


def term_of(setting: Setting, environment: Environment) -> Term:
    """A function that looks up the terms of an amount. It raises InputError."""

    def term(name: str, indices: tuple[float, ...], arguments: list[ast.expr]) -> Value:
        def argument() -> Value:
            return evaluate(ast.unparse(arguments[0]), environment, term)

        if name == "task" and arguments:
            return setting.task(int(indices[0]), int(argument()))  # type: ignore[arg-type]
        if name == "send" and arguments:
            return setting.machine.message(int(indices[0]), int(indices[1]), float(argument()))  # type: ignore[arg-type]
        if name in ("codeSize", "dataSizeIn", "dataSizeOut") and arguments:
            return _size(name, arguments[0], setting, environment, term)
        if name in ("S", "W") and indices:
            return _dealt(name, indices, setting)
        if name in setting.costs and indices:
            return setting.costs[name][int(indices[0])]
        raise InputError(f"undefined name '{name}'")

    return term


def _size(name: str, argument: ast.expr, setting: Setting, environment: Environment, term: Term) -> float:
    """Bytes of a task's code, input or output."""
    _, indices, _ = parts(argument, name)
    batch = int(number(ast.unparse(indices[0]), environment, term))
    found = setting.model.sizes.get((name, batch))
    if found is None:
        raise InputError(f"{name}(task[{batch}]): expected a line {name}(task[{batch}])=BYTES;")
    return found


def _dealt(name: str, indices: tuple[float, ...], setting: Setting) -> float:
    """S[batch,p]: tasks of a batch on machine p; W[p]: share of machine
    p in the only dealt batch."""
    if name == "S" and len(indices) == 2:
        batch, machine = (int(i) for i in indices)
    elif len(setting.tasks) == 1 and len(indices) == 1:
        batch, machine = next(iter(setting.tasks)), int(indices[0])
    else:
        raise InputError(f"{name}{list(indices)}: expected S[BATCH,p], or W[p] of the only batch dealt")
    dealt = setting.tasks.get(batch, {})
    if machine not in dealt:
        raise InputError(f"S[{batch},{machine}]: no tasks of batch {batch} are dealt to machine {machine}")
    return float(dealt[machine]) / (sum(dealt.values()) if name == "W" else 1)
