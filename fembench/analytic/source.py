"""Operations of a kernel, counted in its source: Python restricted to loops, arithmetic and conditionals.

The templates are those of thesis-000, 4.4.3 (Figs 4.17 to 4.20): z = x + y is access, access, sum_int,
assign_int; types follow from annotations (`x: int`, `double`, `"double[3000]"`) and literals. Bounds of
loops must be known: constants of the file, propagated into calls. A call of anything that is neither a
function of the file nor registered is an error: it would cost nothing otherwise.
"""

import ast
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from fembench.analytic.pamela import NOTHING, Choice, Loop, Node, Operation, sequence
from fembench.base.errors import InputError

Loops = Literal["figure", "listing"]  # Fig. 4.19, or App. A.3, which counts a turn differently
WIDTH = {"bool": 0, "int": 1, "long": 2, "float": 3, "double": 4}
OPERATORS = {
    ast.Add: "sum",
    ast.Sub: "sub",
    ast.Mult: "mpy",
    ast.Div: "div",
    ast.FloorDiv: "div",
    ast.Mod: "mod",
}


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


def analyse(
    text: str, *, where: str = "source", registry: Registry | None = None, loops: Loops = "figure"
) -> "Source":
    """The kernels of a file. Nothing of it is run. Raises InputError."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise InputError(f"{where}, line {error.lineno}: not Python: {error.msg}") from None
    return Source(module, where, registry or {}, loops)


class Source:
    """The functions and constants of one file; bodies are made as they are asked for."""

    def __init__(self, module: ast.Module, where: str, registry: Registry, loops: Loops) -> None:
        self.where, self.registry, self.style = where, registry, loops
        self.functions = {f.name: f for f in module.body if isinstance(f, ast.FunctionDef)}
        self.constants = _constants(module)
        self.bodies: dict[str, Node] = {}
        self.choices: dict[str, int] = {}
        self.open: list[str] = []  # functions that are being read

    def body(self, name: str) -> Node:
        """Operations of a function called with nothing known. Raises InputError."""
        if name not in self.bodies:
            self.bodies[name] = self._function(name, {})
        return self.bodies[name]

    def sizes(self) -> dict[str, dict[str, float]]:
        """BYTES of the file: code -> {"in": …, "out": …, "code": …}."""
        found = self.constants.get("BYTES", {})
        return found if isinstance(found, dict) else {}

    def _fail(self, node: ast.AST, message: str) -> InputError:
        return InputError(f"{self.where}, line {getattr(node, 'lineno', '?')}: {message}")

    def _function(self, name: str, values: Mapping[str, float]) -> Node:
        function = self.functions.get(name)
        if function is None:
            there = ", ".join(self.functions) or "none"
            raise InputError(f"{self.where}: no function {name}; functions of the file: {there}")
        if name in self.open:
            raise self._fail(function, f"'{name}' calls itself: its depth is not known")
        numbers = {k: v for k, v in self.constants.items() if isinstance(v, (int, float))}
        scope = Scope({}, {**numbers, **values}, {})
        for parameter in function.args.args:
            self._declare(parameter.arg, parameter.annotation, scope)
        self.open.append(name)
        body = Body(self, name, scope).block(function.body)
        self.open.remove(name)
        return body

    def _declare(self, name: str, annotation: ast.expr | None, scope: Scope) -> None:
        """Type, and length of an array, from `int` or "double[3000]"."""
        if annotation is None:
            return
        word = ast.unparse(annotation).strip("'\"")
        kind, bracket, length = word.partition("[")
        if kind not in WIDTH:
            raise self._fail(annotation, f"type '{word}': expected {', '.join(WIDTH)}, or one with a length")
        scope.types[name] = kind
        if bracket:
            size = ast.parse(length.rstrip("]"), mode="eval").body
            scope.lengths[name] = self._known(size, scope, f"length of {name}")

    def _known(self, node: ast.expr, scope: Scope, what: str) -> float:
        value = _value(node, scope.values)
        if value is None:
            raise self._fail(node, f"{what}: '{ast.unparse(node)}' is not known before it runs")
        return value


def _constants(module: ast.Module) -> dict:
    """Names that the file gives literal values."""
    found: dict = {}
    for line in module.body:
        if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
            value = _value(line.value, found)
            if value is None:
                try:
                    value = ast.literal_eval(line.value)
                except ValueError:
                    continue
            found[line.targets[0].id] = value
    return found


def _value(node: ast.expr, known: Mapping[str, float]) -> float | None:
    """A number that follows from literals and known names; None otherwise."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        value = known.get(node.id)
        return value if isinstance(value, (int, float)) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, known)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        a, b = _value(node.left, known), _value(node.right, known)
        if a is None or b is None or (b == 0 and not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))):
            return None
        return {
            ast.Add: lambda: a + b,
            ast.Sub: lambda: a - b,
            ast.Mult: lambda: a * b,
            ast.Div: lambda: a / b,
            ast.FloorDiv: lambda: a // b,
            ast.Mod: lambda: a % b,
        }[type(node.op)]()
    return None


class Body:
    """The statements of one function, one after the other."""

    def __init__(self, source: Source, name: str, scope: Scope) -> None:
        self.source, self.name, self.scope = source, name, scope

    def block(self, lines: list[ast.stmt]) -> Node:
        """Operations of some statements."""
        return sequence(*(n for line in lines for n in self.statement(line)))

    def statement(self, line: ast.stmt) -> list[Node]:
        if isinstance(line, (ast.Pass, ast.Import, ast.ImportFrom)):
            return []
        if isinstance(line, ast.Expr):
            return [] if isinstance(line.value, ast.Constant) else self.expression(line.value)[0]
        if isinstance(line, ast.Return):
            return [] if line.value is None else self.expression(line.value)[0]
        if isinstance(line, (ast.Assign, ast.AnnAssign)):
            return self.assignment(line)
        if isinstance(line, ast.AugAssign):
            before = ast.parse(ast.unparse(line.target), mode="eval").body
            whole = ast.copy_location(ast.BinOp(before, line.op, line.value), line)
            return self.stored(line.target, *self.expression(whole), None)
        if isinstance(line, ast.If):
            return [*self.expression(line.test)[0], self.choice(line)]
        if isinstance(line, ast.For):
            return self.counted(line)
        if isinstance(line, ast.While):
            return self.while_loop(line)
        raise self.source._fail(line, f"cannot cost '{ast.unparse(line).splitlines()[0]}'")

    def assignment(self, line: ast.Assign | ast.AnnAssign) -> list[Node]:
        target = line.targets[0] if isinstance(line, ast.Assign) else line.target
        if isinstance(line, ast.AnnAssign):
            self.source._declare(ast.unparse(target), line.annotation, self.scope)
        if line.value is None:
            return []
        nodes, kind = self.expression(line.value)
        return self.stored(target, nodes, kind, _value(line.value, self.scope.values))

    def stored(self, target: ast.expr, nodes: list[Node], kind: str, value: float | None) -> list[Node]:
        """After its value, the assignment; what is known of the name changes."""
        if isinstance(target, ast.Name):
            self.scope.values.pop(target.id, None)
            if value is not None and not self.scope.loops:
                self.scope.values[target.id] = value
            declared = self.scope.types.setdefault(target.id, kind)
            return [*nodes, Operation(f"assign_{declared}")]
        if isinstance(target, ast.Subscript):
            array = ast.unparse(target.value)
            index = self.expression(target.slice)[0]
            return [
                *nodes,
                *index,
                Operation("array_access"),
                Operation(f"assign_{self.type_of(array, kind)}"),
            ]
        raise self.source._fail(target, f"cannot assign to '{ast.unparse(target)}'")

    def type_of(self, name: str, default: str) -> str:
        return self.scope.types.get(name, default)

    def choice(self, line: ast.If | ast.IfExp) -> Node:
        number = self.source.choices[self.name] = self.source.choices.get(self.name, 0) + 1
        before = dict(self.scope.values)
        if isinstance(line, ast.If):
            then = self.block(line.body)
            after, self.scope.values = self.scope.values, dict(before)
            other = self.block(line.orelse) if line.orelse else NOTHING
        else:
            then, other = (sequence(*self.expression(e)[0]) for e in (line.body, line.orelse))
            after = self.scope.values
        same = {k: v for k, v in self.scope.values.items() if after.get(k) == v}
        self.scope.values = same
        return Choice(then, other, f"{self.name}_{number}")

    def counted(self, line: ast.For) -> list[Node]:
        """for i in range(…): Fig. 4.19, or as App. A.3 lists it."""
        call = line.iter
        if not (
            isinstance(call, ast.Call)
            and ast.unparse(call.func) == "range"
            and isinstance(line.target, ast.Name)
        ):
            raise self.source._fail(line, "expected 'for i in range(…)'")
        variable = line.target.id
        ends = [self.bound(a) for a in call.args]
        low, high = ("0", ends[0]) if len(ends) == 1 else (ends[0], ends[1])
        last = f"{high}-1"
        if len(ends) == 3:
            low, last = "1", str(self.turns(call))
        body = self.looped(line.body, variable)
        return self.turn_costs(variable, low, _short(last), body)

    def turn_costs(self, variable: str, low: str, last: str, body: Node) -> list[Node]:
        step = ["access", "sum_int", "assign_int"]
        if self.source.style == "figure":
            head, tail = ["assign_int", "access", "compare"], [*step, "access", "compare"]
            return [*_operations(head), Loop("seq", variable, low, last, sequence(body, *_operations(tail)))]
        first = _operations(["access", "compare", "access", "access", "assign_int", "sum_int"])
        return [Operation("assign_int"), Loop("seq", variable, low, last, sequence(*first, body))]

    def bound(self, node: ast.expr) -> str:
        """A bound as text: numbers where they are known, else variables of the loops around."""
        value = _value(node, self.scope.values)
        if value is not None:
            return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        unknown = sorted(names - set(self.scope.loops) - set(self.scope.values))
        if unknown or any(isinstance(n, (ast.Call, ast.Subscript)) for n in ast.walk(node)):
            what = unknown[0] if unknown else ast.unparse(node)
            raise self.source._fail(node, f"bound of a loop: '{what}' is not known before it runs")
        return ast.unparse(_Known(self.scope.values).visit(ast.parse(ast.unparse(node), mode="eval")).body)

    def turns(self, call: ast.Call) -> int:
        a, b, step = (self.source._known(n, self.scope, "range with a step") for n in call.args)
        return len(range(int(a), int(b), int(step)))

    def looped(self, lines: list[ast.stmt], variable: str) -> Node:
        """A loop's body: what it changes is not known inside."""
        for line in lines:
            for node in ast.walk(line):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self.scope.values.pop(node.id, None)
        self.scope.values.pop(variable, None)
        inner = dataclasses.replace(self.scope, loops=(*self.scope.loops, variable))
        inner.types.setdefault(variable, "int")
        outer, self.scope = self.scope, inner
        body = self.block(lines)
        self.scope = outer
        return body

    def while_loop(self, line: ast.While) -> list[Node]:
        """while i <= n, where i begins at a known value and its last statement is i += 1."""
        variable, turns = self.while_turns(line)
        test = self.expression(line.test)[0]
        body = self.looped(line.body, variable)
        return [*test, Loop("seq", variable, "1", f"{turns:.0f}", sequence(body, *test))]

    def while_turns(self, line: ast.While) -> tuple[str, float]:
        test, last = line.test, line.body[-1]
        form = "expected 'while i < n', i known before, and 'i += 1' at its end"
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1):
            raise self.source._fail(line, f"a loop whose turns are not known: {form}")
        name, extra = test.left.id, {ast.Lt: 0, ast.LtE: 1}.get(type(test.ops[0]))
        counts = isinstance(last, ast.AugAssign) and ast.unparse(last) == f"{name} += 1"
        start = self.scope.values.get(name)
        end = _value(test.comparators[0], self.scope.values)
        stored = [n.id for n in ast.walk(line) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        fixed = not any(isinstance(n, ast.Name) and n.id in stored for n in ast.walk(test.comparators[0]))
        counts = counts and fixed and stored.count(name) == 1
        if extra is None or not counts or start is None or end is None:
            raise self.source._fail(line, f"a loop whose turns are not known: {form}")
        return name, max(end + extra - start, 0.0)

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
            return [*self.expression(node.test)[0], self.choice(node)], self.expression(node.body)[1]
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.source._fail(node, f"cannot cost '{ast.unparse(node)}'")

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
            raise self.source._fail(node, f"operator in '{ast.unparse(node)}': expected + - * / // % or **2")
        return [*left, *right, Operation(f"{name}_{kind}")], kind

    def call(self, node: ast.Call) -> tuple[list[Node], str]:
        name = ast.unparse(node.func)
        if name in self.source.registry:
            return self.registered(name, node.args, node)
        if name in ("int", "float"):
            kind = "int" if name == "int" else "double"
            return [*self.expression(node.args[0])[0], Operation("cast")], kind
        if name in self.source.functions:
            return self.called(name, node)
        raise self.source._fail(node, f"call of '{name}': not registered, so its cost is not known")

    def called(self, name: str, node: ast.Call) -> tuple[list[Node], str]:
        """A function of the file: an assignment for each parameter, known values passed on."""
        function = self.source.functions[name]
        nodes: list[Node] = []
        values = {}
        for parameter, argument in zip(function.args.args, node.args):
            made, kind = self.expression(argument)
            nodes += [*made, Operation(f"assign_{kind}")]
            if (value := _value(argument, self.scope.values)) is not None:
                values[parameter.arg] = value
        own = "__".join(
            [name, *(f"{k}_{v:g}".replace(".", "_").replace("-", "m") for k, v in values.items())]
        )
        if own not in self.source.bodies:
            self.source.bodies[own] = self.source._function(name, values)
        return [*nodes, Operation(own)], "double"

    def registered(self, name: str, arguments: list[ast.expr], node: ast.expr) -> tuple[list[Node], str]:
        entry = self.source.registry.get(name)
        if entry is None:
            raise self.source._fail(node, f"call of '{name}': not registered, so its cost is not known")
        if not entry.operation:
            return [], entry.result
        if entry.argument < 0:
            return [Operation(entry.operation)], entry.result
        array = ast.unparse(arguments[entry.argument])
        length = self.scope.lengths.get(array)
        if length is None:
            raise self.source._fail(
                node, f"'{name}': length of '{array}' is not known; annotate it: {array}: \"double[3000]\""
            )
        return [Operation(entry.operation, f"{length:.0f}")], entry.result


class _Known(ast.NodeTransformer):
    """Names that have a known value become it."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


def _operations(names: list[str]) -> list[Node]:
    return [Operation(n) for n in names]


def _short(text: str) -> str:
    value = _value(ast.parse(text, mode="eval").body, {})
    return text if value is None else f"{value:.0f}"
