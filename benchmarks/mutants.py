"""Small mutations of Python modules: one constant, sign, term, comparison or branch changed at a time.

    constant    n -> n + 1, x -> 1.5 x (1.0 if it is 0), True <-> False
    sign        a + b <-> a - b, a * b <-> a / b, a // b -> a / b, -a -> a
    term        a + b -> a, a - b -> a
    comparison  < <-> <=, > <-> >=, == <-> !=, in <-> not in, is <-> is not
    branch      if c -> if not c, a if c else b -> b if c else a, and <-> or
    extreme     min <-> max, argmin <-> argmax, floor <-> ceil

Text, annotations, decorators, imports and raised errors stay as they are.
"""

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
EXTREMES = {"min": "max", "argmin": "argmax", "floor": "ceil", "minimum": "maximum"}
EXTREMES |= {there: back for back, there in EXTREMES.items()}
UNTOUCHED = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Assert)


class Mutant(NamedTuple):
    """One changed expression of one module."""

    path: Path  # relative to the tree
    line: int
    source: str  # that line
    kind: str
    before: str
    after: str
    start: int  # of the expression in the text, in characters
    end: int

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def change(self) -> str:
        return f"{self.before} -> {self.after}"

    def applied(self, text: str) -> str:
        """The module with this change."""
        return f"{text[: self.start]}({self.after}){text[self.end :]}"


def mutants(path: Path, text: str) -> list[Mutant]:
    """All mutants of a module, in the order of its text."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw, lines = text.encode(), text.splitlines()

    def at(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    found = []
    for node, kind, after in _changes(ast.parse(text)):
        start, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
        before = " ".join(text[start:end].split())
        line = lines[node.lineno - 1].strip()
        found.append(Mutant(path, node.lineno, line, kind, before, ast.unparse(after), start, end))
    return sorted(found, key=lambda m: (m.start, m.end))


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """(expression, kind, what takes its place)."""
    if isinstance(node, UNTOUCHED):
        return
    if isinstance(node, ast.expr):
        for kind, after in _variants(node):
            yield node, kind, after
    if isinstance(node, (ast.If, ast.While)) and not isinstance(node.test, (ast.Compare, ast.Constant)):
        test = node.test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield test, "branch", test.operand
        else:
            yield test, "branch", ast.UnaryOp(ast.Not(), test)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _variants(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Constant):
        value = _constant(node.value)
        if value is not None:
            yield "constant", ast.Constant(value)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _texts(node):
        yield "sign", _with(node, op=OPERATORS[type(node.op)]())
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield "term", node.left
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "comparison", _with(node, ops=[OPERATORS[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield "branch", _with(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.IfExp):
        yield "branch", _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in EXTREMES:
            field = "attr" if isinstance(node.func, ast.Attribute) else "id"
            yield "extreme", _with(node, func=_with(node.func, **{field: EXTREMES[name]}))


def _constant(value: object) -> bool | int | float | None:
    """Another constant; None for text and the like."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.5 * value or 1.0
    return None


def _texts(node: ast.BinOp) -> bool:
    """Whether text or lists are joined or repeated."""
    sides = (node.left, node.right)
    return any(
        isinstance(n, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))
        or (isinstance(n, ast.Constant) and isinstance(n.value, (str, bytes)))
        or (isinstance(n, ast.BinOp) and _texts(n))
        for n in sides
    )


def _with(node: ast.expr, **fields: object) -> ast.expr:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
