"""Operations of an expression: accesses, arithmetic by type, calls (Herai
2005, 4.4.3, Figs 4.17, 4.18).

Operands that `and` and `or` may skip count as conditionals. A part of a statement that
matches no template is an error, unless it is a name or a literal.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from fembench.base.units import plural
from fembench_studies.pamela.names import OPERATORS, value_of
from fembench_studies.pamela.pamela import NOTHING, Choice, Node, Operation, sequence

if TYPE_CHECKING:
    from fembench_studies.pamela.source import Source

AS_INT = ("byte", "short", "char")  # types whose arithmetic is that of int
WIDTH = {"bool": 0, "int": 1, "long": 2, "float": 3, "double": 4}
BARE = (ast.Name, ast.Attribute, ast.Constant)  # parts without work, which need no template


Registry = Mapping[
    str, str
]  # call, as in the source, such as "random" -> its operation; "": it costs nothing


def operations(registry: Registry) -> set[str]:
    """The names of all possible operations."""
    typed = {f"{name}_{kind}" for name, _ in (("assign", None), *OPERATORS.values()) for kind in WIDTH}
    return typed | {"access", "array_access", "compare", "cast"} | set(registry.values())


@dataclass
class Scope:
    """What is known of names at a point in a function."""

    types: dict[str, str]
    values: dict[str, float]
    loops: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()  # names that the function binds


class Expressions:
    """The expressions of one function, in order: the known values
    of names change on the way."""

    def __init__(self, source: "Source", name: str, scope: Scope) -> None:
        self.source, self.name, self.scope = source, name, scope
        self.read: set[ast.AST] = set()  # expressions whose operations are counted

    def all_read(self, line: ast.stmt) -> None:
        """Raises InputError if a part of the statement's own
        expressions was not counted."""
        parts = [part for name, part in ast.iter_fields(line) if name != "annotation"]
        own = [n for part in parts for n in (part if isinstance(part, list) else [part])]
        for node in chain.from_iterable(ast.walk(n) for n in own if isinstance(n, ast.expr)):
            if isinstance(node, ast.expr) and not isinstance(node, BARE) and node not in self.read:
                raise self.source.fail(node, f"cannot count the operations of '{ast.unparse(node)}'")

    def expression(self, node: ast.expr) -> tuple[list[Node], str]:
        """(operations, type of the value)."""
        self.read.add(node)
        if isinstance(node, ast.Constant):
            return [], {bool: "bool", int: "int", float: "double"}.get(type(node.value), "int")
        if isinstance(node, ast.Name):
            value = self.scope.values.get(node.id)
            return [Operation("access")], self.type_of(
                node.id, "double" if isinstance(value, float) else "int"
            )
        if isinstance(node, ast.Subscript):
            kind = self.type_of(ast.unparse(node.value), "double")
            return [*self.place(node), Operation("array_access")], kind
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node)
        if isinstance(node, ast.Compare):
            if len(node.ops) > 1 or isinstance(node.ops[0], (ast.In, ast.NotIn)):
                told = f"cannot count the operations of '{ast.unparse(node)}': expected a < b and its kin"
                raise self.source.fail(node, told)
            operands = [*self.expression(node.left)[0], *self.expression(node.comparators[0])[0]]
            return [*operands, Operation("compare")], "bool"
        if isinstance(node, ast.BoolOp):
            return self.until_decided(node.values), "bool"
        if isinstance(node, (ast.Tuple, ast.List)):
            return list(chain.from_iterable(self.expression(v)[0] for v in node.elts)), "bool"
        if isinstance(node, ast.UnaryOp):
            nodes, kind = self.expression(node.operand)
            negated = isinstance(node.op, ast.USub) and nodes
            return [*nodes, *([Operation(f"sub_{kind}")] if negated else [])], kind
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.source.fail(node, f"cannot count the operations of '{ast.unparse(node)}'")

    def until_decided(self, operands: Sequence[ast.expr]) -> list[Node]:
        """`a and b`, `a or b`: later operands are evaluated only if the
        earlier ones leave it open."""
        nodes = self.expression(operands[0])[0]
        if len(operands) == 1:
            return nodes
        return [*nodes, self.choice(lambda: sequence(*self.until_decided(operands[1:])), lambda: NOTHING)]

    def place(self, node: ast.Subscript) -> list[Node]:
        """Operations that locate an element: its array, unless that
        is a name, and its index."""
        array = [] if isinstance(node.value, ast.Name) else self.expression(node.value)[0]
        return [*array, *self.expression(node.slice)[0]]

    def stored(self, target: ast.expr, nodes: list[Node], kind: str, value: float | None) -> list[Node]:
        """Operations of the value and of its assignment; updates the
        known value of the name."""
        if isinstance(target, ast.Name):
            self.scope.values.pop(target.id, None)
            if value is not None and not self.scope.loops:
                self.scope.values[target.id] = value
            declared = self.scope.types.setdefault(target.id, kind)
            return [*nodes, Operation(f"assign_{declared}")]
        if isinstance(target, ast.Subscript):
            self.read.add(target)
            return [*nodes, *self.place(target), *self.element(target, kind)]
        raise self.source.fail(target, f"cannot assign to '{ast.unparse(target)}'")

    def element(self, target: ast.Subscript, kind: str) -> list[Node]:
        """The assignment to an element that is already located."""
        declared = self.type_of(ast.unparse(target.value), kind)
        return [Operation("array_access"), Operation(f"assign_{declared}")]

    def augmented(self, line: ast.AugAssign) -> list[Node]:
        """a op= b: like a = a op b, but an element is located only once."""
        target = line.target
        before: ast.expr = ast.copy_location(ast.Name(ast.unparse(target), ast.Load()), target)
        if isinstance(target, ast.Subscript):
            before = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
        whole = ast.copy_location(ast.BinOp(before, line.op, line.value), line)
        nodes, kind = self.expression(whole)
        if isinstance(target, ast.Subscript):
            self.read.add(target)
            return [*nodes, *self.element(target, kind)]
        return self.stored(target, nodes, kind, value_of(whole, self.scope.values))

    def arithmetic(self, node: ast.BinOp) -> tuple[list[Node], str]:
        (left, a), (right, b) = self.expression(node.left), self.expression(node.right)
        kind = max(a, b, key=lambda k: WIDTH[k])
        if isinstance(node.op, ast.Div) and WIDTH[kind] < WIDTH["float"]:
            kind = "double"
        name = OPERATORS.get(type(node.op), ("", None))[0]
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            return [*left, Operation(f"mpy_{kind}")], kind
        if not name:
            raise self.source.fail(node, f"operator in '{ast.unparse(node)}': expected + - * / // % or **2")
        return [*left, *right, Operation(f"{name}_{kind}")], kind

    def call(self, node: ast.Call) -> tuple[list[Node], str]:
        name = ast.unparse(node.func)
        if name.split(".")[0] in self.scope.own:
            raise self.source.fail(node, f"call of '{name}', a local name of '{self.name}'")
        if name in self.source.registry:
            operation = self.source.registry[name]
            handed = self.handed([*node.args, *(k.value for k in node.keywords)])
            return [*handed, *([Operation(operation)] if operation else [])], "double"
        if name in self.source.functions:
            return self.called(name, node)
        if name in {"int", "float"} - self.source.bound and len(node.args) == 1 and not node.keywords:
            kind = "int" if name == "int" else "double"
            return [*self.expression(node.args[0])[0], Operation("cast")], kind
        raise self.source.fail(node, f"call of '{name}': not registered, so its cost is unknown")

    def handed(self, arguments: list[ast.expr]) -> list[Node]:
        """Operations of the arguments of a registered call; plain names are part
        of the cost of the call."""
        made = [a for a in arguments if not isinstance(a, (ast.Name, ast.Attribute))]
        return list(chain.from_iterable(self.expression(a)[0] for a in made))

    def called(self, name: str, node: ast.Call) -> tuple[list[Node], str]:
        """A call of a function of the file: one assignment per parameter,
        with known values passed on."""
        function = self.source.functions[name]
        names = [parameter.arg for parameter in function.args.args]
        if name in self.source.open:
            raise self.source.fail(function, f"'{name}' calls itself: the depth is unknown")
        if (
            node.keywords
            or len(node.args) != len(names)
            or any(isinstance(a, ast.Starred) for a in node.args)
        ):
            expected = f"expected {plural(len(names), 'argument')} by position"
            raise self.source.fail(node, f"call of '{name}': {expected}")
        nodes: list[Node] = []
        values: dict[str, float] = {}
        for parameter, argument in zip(names, node.args):
            made, kind = self.expression(argument)
            nodes += [*made, Operation(f"assign_{kind}")]
            if (value := value_of(argument, self.scope.values)) is not None:
                values[parameter] = value
        own = "$".join([name, *(f"{k}${_word(values[k])}" for k in sorted(values))])
        own += "" if values else "$"  # Python names have no $
        if own not in self.source.bodies:
            self.source.bodies[own] = self.source.function(name, values)
        return [*nodes, Operation(own)], "double"

    def type_of(self, name: str, default: str) -> str:
        return self.scope.types.get(name, default)

    def choice(self, then: Callable[[], Node], other: Callable[[], Node]) -> Choice:
        """A conditional; afterwards only values on which both branches agree are known."""
        number = self.source.choices[self.name] = self.source.choices.get(self.name, 0) + 1
        before = dict(self.scope.values)
        one = then()
        after, self.scope.values = self.scope.values, before
        two = other()
        self.scope.values = {k: v for k, v in self.scope.values.items() if after.get(k) == v}
        return Choice(one, two, f"{self.name}_{number}")


def _word(value: float) -> str:
    """A number as part of a name, unique per value and type: 1000, 0_5, 1em05, True."""
    return repr(value).replace(".", "_").replace("-", "m").replace("+", "p")
