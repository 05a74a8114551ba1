"""What is known of names before a kernel runs: constants and functions of its
file, and values that follow.

A name is known if the file binds it once, at its top level, to a literal, to
an expression of known names, or to a function. A name that a function binds
is local to it, as in Python.
"""

import ast
import operator
from collections import Counter
from collections.abc import Mapping
from typing import Any

LARGEST = 1e300  # larger values count as unknown
UNREADABLE = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
OPERATORS = {
    ast.Add: ("sum", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mpy", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("div", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
}


def value_of(node: ast.expr, known: Mapping[str, Any]) -> float | None:
    """The value of an expression of literals and known names; None for any other."""
    value: Any = None
    if isinstance(node, ast.Constant):
        value = node.value
    elif isinstance(node, ast.Name):
        value = known.get(node.id)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, known)
        value = None if inner is None else -inner
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        a, b = value_of(node.left, known), value_of(node.right, known)
        if a is not None and b is not None:
            try:
                value = OPERATORS[type(node.op)][1](a, b)
            except (ArithmeticError, MemoryError):
                return None
    return value if isinstance(value, (int, float)) and abs(value) < LARGEST else None


class Known(ast.NodeTransformer):
    """Replaces names by their known values."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


def bound(node: ast.AST) -> set[str]:
    """Names that a statement binds, including those inside nested functions."""
    found = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            found.add(n.id)
        elif isinstance(n, ast.alias):
            found.add((n.asname or n.name).split(".")[0])
        elif isinstance(n, Definition):
            found.add(n.name)
        elif isinstance(n, (ast.Global, ast.Nonlocal)):
            found |= set(n.names)
        elif isinstance(n, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and n.name:
            found.add(n.name)
    return found


def own_names(function: ast.FunctionDef) -> set[str]:
    """The local names of a function: its parameters, and the names that it binds."""
    return {a.arg for a in function.args.args}.union(*(bound(line) for line in function.body))


def bindings(module: ast.Module) -> Counter[str]:
    """Name -> how often a file binds it at its top level; those that a
    function changes count twice."""
    made = Counter[str]()
    for line in module.body:
        made.update({line.name} if isinstance(line, Definition) else bound(line))
    for n in ast.walk(module):
        if isinstance(n, ast.Global):
            made.update(n.names * 2)
    return made


def _once(module: ast.Module) -> set[str]:
    """Names that a file binds once; none if it may import any name."""
    made = bindings(module)
    return set() if "*" in made else {name for name, times in made.items() if times == 1}


def functions_of(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions by name."""
    once = _once(module)
    return {f.name: f for f in module.body if isinstance(f, ast.FunctionDef) and f.name in once}


def constants_of(module: ast.Module) -> dict[str, Any]:
    """Constants by name."""
    found: dict[str, Any] = {}
    once = _once(module)
    for line in module.body:
        if isinstance(line, (ast.Assign, ast.AnnAssign)) and line.value is not None:
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            value = _literal(line.value, found)
            names = [t.id for t in targets if isinstance(t, ast.Name) and t.id in once]
            found |= dict.fromkeys(names, value) if value is not None else {}
    return found


def _literal(value: ast.expr, known: Mapping[str, Any]) -> Any:
    number = value_of(value, known)
    if number is not None:
        return number
    try:
        return ast.literal_eval(value)
    except UNREADABLE:
        return None
