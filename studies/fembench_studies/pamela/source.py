"""Operations of a kernel, counted in its source: Python restricted to loops,
arithmetic and conditionals.

The templates are those of Herai 2005, 4.4.3 (Figs 4.17 to 4.20): z = x + y counts as
access, access, sum_int, assign_int. Types follow from annotations (`x: int`,
`double`, `"double[3000]"`) and literals. Loop bounds must follow from constants of
the file, which are propagated into calls (names.py). Arguments are matched by
position. Calls of anything that is neither a function of the file nor registered are
errors, so that no call is free by accident.
"""

import ast
import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

from fembench.base.config import convert
from fembench.errors import InputError
from fembench_studies.pamela.expressions import AS_INT, WIDTH, Expressions, Registry, Scope, operations
from fembench_studies.pamela.names import (
    UNREADABLE,
    Known,
    bindings,
    bound,
    constants_of,
    functions_of,
    own_names,
    value_of,
)
from fembench_studies.pamela.pamela import Node, Operation, PamelaLoop, sequence

Sizes = dict[str, dict[Literal["in", "out", "code"], float]]
Loops = Literal["figure", "listing"]  # Fig. 4.19, or App. A.3, which counts an iteration differently


def analyse(
    text: str, *, where: str = "source", registry: Registry | None = None, loops: Loops = "figure"
) -> "Source":
    """The kernels of a file, which is parsed but never run. Raises InputError."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise InputError(f"{where}, line {error.lineno}: not Python: {error.msg}") from None
    except UNREADABLE as error:
        raise InputError(f"{where}: not Python: {error}") from None
    return Source(module, where, registry or {}, loops)


class Source:
    """The functions and constants of one file; bodies are derived on demand."""

    def __init__(self, module: ast.Module, where: str, registry: Registry, loops: Loops) -> None:
        self.where, self.registry, self.style = where, registry, loops
        self.functions = functions_of(module)
        self.constants, self.bound = constants_of(module), bindings(module).keys()
        self.bodies: dict[str, Node] = {}
        self.choices: dict[str, int] = {}
        self.open: list[str] = []  # functions being read

    def body(self, name: str) -> Node:
        """Operations of a function whose parameters are unknown. Raises InputError."""
        if name in operations(self.registry):
            raise InputError(f"{self.where}: {name} is the name of an operation; expected another name")
        if name not in self.bodies:
            try:
                self.bodies[name] = self.function(name, {})
            except RecursionError:
                raise InputError(f"{self.where}: {name}: nested too deeply to be read") from None
        return self.bodies[name]

    def sizes(self) -> Sizes:
        """The constant BYTES of the file: code -> {"in": …, "out": …, "code": …}. Raises InputError."""
        found = convert(self.constants.get("BYTES", {}), Sizes, where=f"{self.where}, BYTES")
        for code, entry in found.items():
            if not all(0 <= size < math.inf for size in entry.values()):
                raise InputError(f"{self.where}, BYTES of {code}: expected numbers of 0 or more")
        return found

    def fail(self, node: ast.AST, message: str) -> InputError:
        """The error, with the line of the node."""
        return InputError(f"{self.where}, line {getattr(node, 'lineno', '?')}: {message}")

    def function(self, name: str, values: Mapping[str, float]) -> Node:
        """Operations of a function, given these values of its
        parameters. Raises InputError."""
        function = self.functions.get(name)
        if function is None:
            there = ", ".join(self.functions) or "none"
            raise InputError(f"{self.where}: no function {name}; functions of the file: {there}")
        if function.decorator_list:
            raise self.fail(function, f"'{name}' is decorated: the effect of a decorator is unknown")
        if len(function.args.args) < sum(isinstance(n, ast.arg) for n in ast.walk(function.args)):
            raise self.fail(function, f"'{name}': expected parameters without * and /")
        if function.args.defaults:
            raise self.fail(function, f"'{name}': expected parameters without defaults")
        own = own_names(function)
        numbers = {k: v for k, v in self.constants.items() if isinstance(v, (int, float)) and k not in own}
        scope = Scope({}, {**numbers, **values}, own=frozenset(own))
        for parameter in function.args.args:
            self.declare(parameter.arg, parameter.annotation, scope)
        self.open.append(name)
        body = FunctionBody(self, name, scope).block(function.body)
        self.open.remove(name)
        return body

    def declare(self, name: str, annotation: ast.expr | None, scope: Scope) -> None:
        """Record the type from an annotation; the length of an array is for the
        reader. Raises InputError."""
        if annotation is None:
            return
        word = ast.unparse(annotation).strip("'\"")
        kind = word.partition("[")[0]
        if kind not in (*WIDTH, *AS_INT):
            kinds = ", ".join((*WIDTH, *AS_INT))
            raise self.fail(annotation, f"type '{word}': expected {kinds}, or one with a length")
        scope.types[name] = "int" if kind in AS_INT else kind


class FunctionBody(Expressions):
    """The statements of one function, in order."""

    def block(self, lines: list[ast.stmt]) -> Node:
        """Operations of statements; those after a conditional return
        belong to its other branch."""
        nodes: list[Node] = []
        for k, line in enumerate(map(self.as_conditional, lines)):
            if isinstance(line, ast.If) and _returns(line):
                rest = lines[k + 1 :]
                line = ast.copy_location(ast.If(line.test, [*line.body, *rest], [*line.orelse, *rest]), line)
            nodes += self.statement(line)
            self.all_read(line)
            if isinstance(line, (ast.If, ast.Return)) and _returns(line):
                break
        return sequence(*nodes)

    def as_conditional(self, line: ast.stmt) -> ast.stmt:
        """A `match` of a name with constants as the conditionals that it stands
        for; others as they are."""
        if not isinstance(line, ast.Match):
            return line
        if not isinstance(line.subject, ast.Name):
            raise self.source.fail(line, "match: expected a name, such as 'match kind:'")
        cases, other = line.cases, list[ast.stmt]()
        if ast.unparse(cases[-1].pattern) == "_" and not cases[-1].guard:
            cases, other = cases[:-1], cases[-1].body
        for case in reversed(cases):
            alike = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
            values = [p.value for p in alike if isinstance(p, ast.MatchValue)]
            if case.guard or len(values) < len(alike):
                raise self.source.fail(case.pattern, "case: expected constants, or _ as the last one")
            tests: list[ast.expr] = [ast.Compare(line.subject, [ast.Eq()], [v]) for v in values]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
            other = [ast.copy_location(ast.If(test, case.body, other), line)]
        if not cases:
            raise self.source.fail(line, "match without a constant: expected one, such as 'case 1:'")
        return ast.fix_missing_locations(other[0])

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
            return self.augmented(line)
        if isinstance(line, ast.If):
            then, other = line.body, line.orelse
            return [
                *self.expression(line.test)[0],
                self.choice(lambda: self.block(then), lambda: self.block(other)),
            ]
        if isinstance(line, ast.For):
            if _returns(line):
                raise self.source.fail(line, "return inside a loop: the number of iterations is unknown")
            return self.counted(line)
        raise self.source.fail(line, f"cannot count the operations of '{ast.unparse(line).splitlines()[0]}'")

    def assignment(self, line: ast.Assign | ast.AnnAssign) -> list[Node]:
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        if isinstance(line, ast.AnnAssign):
            self.source.declare(ast.unparse(line.target), line.annotation, self.scope)
        if line.value is None:
            if isinstance(targets[0], ast.Name):
                return []
            raise self.source.fail(
                line, f"cannot count the operations of '{ast.unparse(line)}': expected a value"
            )
        nodes, kind = self.expression(line.value)
        value = value_of(line.value, self.scope.values)
        for target in targets:
            nodes = self.stored(target, nodes, kind, value)
        return nodes

    def counted(self, line: ast.For) -> list[Node]:
        """for i in range(…): as in Fig. 4.19 or App. A.3."""
        call = line.iter
        if not (
            isinstance(call, ast.Call)
            and ast.unparse(call.func) == "range"
            and "range" not in self.scope.own | self.source.bound
            and isinstance(line.target, ast.Name)
            and 1 <= len(call.args) <= 2
            and not call.keywords
            and not line.orelse
        ):
            raise self.source.fail(line, "expected 'for i in range(n)' or 'for i in range(a, b)'")
        parts = [n for a in call.args for n in ast.walk(a) if isinstance(n, (ast.BinOp, ast.UnaryOp))]
        self.read.update([call, *parts])
        variable = line.target.id
        low, high = ("0", *map(self.bound, call.args))[-2:]
        last = ast.parse(f"{high}-1", mode="eval").body
        value = value_of(last, {})
        body = self.looped(line.body, variable)
        return self.turn_costs(variable, low, f"{high}-1" if value is None else f"{value:.0f}", body)

    def turn_costs(self, variable: str, low: str, last: str, body: Node) -> list[Node]:
        step = ["access", "sum_int", "assign_int"]
        if self.source.style == "figure":
            head, tail = ["assign_int", "access", "compare"], [*step, "access", "compare"]
            return [
                *_operations(head),
                PamelaLoop("seq", variable, low, last, sequence(body, *_operations(tail))),
            ]
        first = _operations(["access", "compare", "access", "access", "assign_int", "sum_int"])
        return [Operation("assign_int"), PamelaLoop("seq", variable, low, last, sequence(*first, body))]

    def bound(self, node: ast.expr) -> str:
        """A loop bound as text, of known values and variables of enclosing
        loops. Raises InputError."""
        value = value_of(node, self.scope.values)
        if value is not None:
            return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        unknown = sorted(names - set(self.scope.loops) - set(self.scope.values))
        if unknown or any(isinstance(n, (ast.Call, ast.Subscript)) for n in ast.walk(node)):
            what = unknown[0] if unknown else ast.unparse(node)
            raise self.source.fail(node, f"bound of a loop: '{what}' is not known before the run")
        return ast.unparse(Known(self.scope.values).visit(ast.parse(ast.unparse(node), mode="eval")).body)

    def looped(self, lines: list[ast.stmt], variable: str) -> Node:
        """A loop's body, in which changed names are unknown."""
        inside = set[str]().union(*map(bound, lines))
        changed = inside | {variable}
        for name in changed:
            self.scope.values.pop(name, None)
        loops = ["" if name in changed else name for name in self.scope.loops]
        inner = dataclasses.replace(self.scope, loops=(*loops, "" if variable in inside else variable))
        inner.types.setdefault(variable, "int")
        outer, self.scope = self.scope, inner
        body = self.block(lines)
        self.scope = outer
        return body


def _returns(line: ast.stmt) -> bool:
    return any(isinstance(n, ast.Return) for n in ast.walk(line))


def _operations(names: list[str]) -> list[Node]:
    return [Operation(n) for n in names]
