"""Operations of an expression: accesses, arithmetic by type, calls (thesis-000, 4.4.3, Figs 4.17, 4.18)."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from fembench.analytic.known import OPERATORS, value_of
from fembench.analytic.names import matched
from fembench.analytic.pamela import Choice, Node, Operation, sequence
from fembench.base.errors import InputError

if TYPE_CHECKING:
    from fembench.analytic.source import Source

WIDTH = {"bool": 0, "int": 1, "long": 2, "float": 3, "double": 4}


@dataclass(frozen=True)
class Registered:
    """What a vectorised call costs: `operation` for each element of one of its arguments."""

    operation: str  # "" : known to cost nothing
    argument: int = -1  # whose elements count; -1: the call counts once
    result: str = "double"  # type


Registry = Mapping[str, Registered]  # name as it is called: "np.dot", "@"


@dataclass
class Scope:
    """What is known of names at a place in a function."""

    types: dict[str, str]
    values: dict[str, float]
    lengths: dict[str, float]
    loops: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()  # names that the function binds


class Expressions:
    """The expressions of one function; what is known of names changes from one to the next."""

    def __init__(self, source: "Source", name: str, scope: Scope) -> None:
        self.source, self.name, self.scope = source, name, scope

    def expression(self, node: ast.expr) -> tuple[list[Node], str]:
        """(operations, type of the value)."""
        if isinstance(node, ast.Constant):
            return [], {bool: "bool", int: "int", float: "double"}.get(type(node.value), "int")
        if isinstance(node, ast.Name):
            value = self.scope.values.get(node.id)
            return [Operation("access")], self.type_of(
                node.id, "double" if isinstance(value, float) else "int"
            )
        if isinstance(node, ast.Subscript):
            kind = self.type_of(ast.unparse(node.value), "double")
            return [*self.expression(node.slice)[0], Operation("array_access")], kind
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node)
        if isinstance(node, ast.Compare):
            each = [self.expression(n)[0] for n in (node.left, *node.comparators)]
            return [*chain.from_iterable(each), *[Operation("compare")] * len(node.ops)], "bool"
        if isinstance(node, (ast.BoolOp, ast.Tuple, ast.List)):
            values = node.values if isinstance(node, ast.BoolOp) else node.elts
            return list(chain.from_iterable(self.expression(v)[0] for v in values)), "bool"
        if isinstance(node, ast.UnaryOp):
            nodes, kind = self.expression(node.operand)
            negated = isinstance(node.op, ast.USub) and nodes
            return [*nodes, *([Operation(f"sub_{kind}")] if negated else [])], kind
        if isinstance(node, ast.IfExp):
            either = (lambda e=e: sequence(*self.expression(e)[0]) for e in (node.body, node.orelse))
            return [*self.expression(node.test)[0], self.choice(*either)], self.expression(node.body)[1]
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.source.fail(node, f"cannot cost '{ast.unparse(node)}'")

    def arithmetic(self, node: ast.BinOp) -> tuple[list[Node], str]:
        if isinstance(node.op, ast.MatMult):
            return self.registered("@", [node.left, node.right], node)
        (left, a), (right, b) = self.expression(node.left), self.expression(node.right)
        kind = max(a, b, key=lambda k: WIDTH[k])
        if isinstance(node.op, ast.Div) and WIDTH[kind] < WIDTH["float"]:
            kind = "double"
        name = OPERATORS.get(type(node.op))
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            return [*left, Operation(f"mpy_{kind}")], kind
        if name is None:
            raise self.source.fail(node, f"operator in '{ast.unparse(node)}': expected + - * / // % or **2")
        return [*left, *right, Operation(f"{name}_{kind}")], kind

    def call(self, node: ast.Call) -> tuple[list[Node], str]:
        name = ast.unparse(node.func)
        if name.split(".")[0] in self.scope.own:
            raise self.source.fail(node, f"call of '{name}', a name that '{self.name}' binds itself")
        if name in self.source.registry:
            arguments = [*node.args, *(k.value for k in node.keywords)]
            calls = [a for a in arguments if any(isinstance(n, ast.Call) for n in ast.walk(a))]
            inside = list(chain.from_iterable(self.expression(a)[0] for a in calls))
            nodes, kind = self.registered(name, node.args, node)
            return [*inside, *nodes], kind
        if name in self.source.functions:
            return self.called(name, node)
        if name in ("int", "float") and len(node.args) == 1 and not node.keywords:
            kind = "int" if name == "int" else "double"
            return [*self.expression(node.args[0])[0], Operation("cast")], kind
        raise self.source.fail(node, f"call of '{name}': not registered, so its cost is not known")

    def called(self, name: str, node: ast.Call) -> tuple[list[Node], str]:
        """A function of the file: an assignment for each parameter, known values passed on."""
        function = self.source.functions[name]
        if name in self.source.open:
            raise self.source.fail(function, f"'{name}' calls itself: its depth is not known")
        try:
            given, defaults = matched(function, node)
        except InputError as error:
            raise self.source.fail(node, f"call of '{name}': {error}") from None
        nodes: list[Node] = []
        values = self.source.default_values(function, defaults)
        for parameter, argument in given.items():
            made, kind = self.expression(argument)
            nodes += [*made, Operation(f"assign_{kind}")]
            if (value := value_of(argument, self.scope.values)) is not None:
                values[parameter] = value
        for parameter in defaults:
            nodes.append(Operation(f"assign_{'int' if isinstance(values.get(parameter), int) else 'double'}"))
        own = "__".join([name, *(f"{k}_{_word(values[k])}" for k in sorted(values))])
        if own not in self.source.bodies:
            self.source.bodies[own] = self.source.function(name, values)
        return [*nodes, Operation(own)], "double"

    def registered(self, name: str, arguments: list[ast.expr], node: ast.expr) -> tuple[list[Node], str]:
        entry = self.source.registry.get(name)
        if entry is None:
            raise self.source.fail(node, f"call of '{name}': not registered, so its cost is not known")
        if not entry.operation:
            return [], entry.result
        if entry.argument < 0:
            return [Operation(entry.operation)], entry.result
        if entry.argument >= len(arguments):
            raise self.source.fail(node, f"call of '{name}': expected {entry.argument + 1} arguments or more")
        array = ast.unparse(arguments[entry.argument])
        length = self.scope.lengths.get(array)
        if length is None:
            raise self.source.fail(
                node, f"'{name}': length of '{array}' is not known; annotate it: {array}: \"double[3000]\""
            )
        return [Operation(entry.operation, f"{length:.0f}")], entry.result

    def type_of(self, name: str, default: str) -> str:
        return self.scope.types.get(name, default)

    def choice(self, then: Callable[[], Node], other: Callable[[], Node]) -> Choice:
        """Either of two; known afterwards is what both leave alike."""
        number = self.source.choices[self.name] = self.source.choices.get(self.name, 0) + 1
        before = dict(self.scope.values)
        one = then()
        after, self.scope.values = self.scope.values, before
        two = other()
        self.scope.values = {k: v for k, v in self.scope.values.items() if after.get(k) == v}
        return Choice(one, two, f"{self.name}_{number}")


def _word(value: float) -> str:
    """A number as part of a name, each number another: 1000, 0_5, m1e_05."""
    text = f"{value:.17g}" if float(f"{value:g}") != value else f"{value:g}"
    return text.replace(".", "_").replace("-", "m").replace("+", "p")
