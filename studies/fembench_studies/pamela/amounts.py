"""Amounts: the arithmetic inside a model, such as 100*W[p]-1 or
send[COORD,p](dataSizeIn(task[1,id])).

They are written, parsed and printed as Python expressions. The value of a name
with brackets or parentheses, a *term*, is looked up; everything else is
computed in interval arithmetic.
"""

import ast
import functools
from collections.abc import Callable, Mapping

from fembench.base.errors import shown
from fembench.errors import InputError
from fembench.model.closed_form import TimeRange, largest

Value = TimeRange | float
Term = Callable[[str, tuple[float, ...], list[ast.expr]], Value]  # name, [indices], (unevaluated arguments)
Environment = Mapping[str, float]


@functools.lru_cache(maxsize=4096)
def tree(text: str) -> ast.expr:
    """The parsed text. Raises InputError."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"cannot read '{shown(text)}'; expected arithmetic such as 100*W[p]-1") from None


@functools.lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Names in an amount."""
    return frozenset(n.id for n in ast.walk(tree(text)) if isinstance(n, ast.Name))


def compact(text: str) -> str:
    """The text without blanks, as in the thesis."""
    return ast.unparse(tree(text)).replace(" ", "")


def evaluate(text: str, environment: Environment, term: Term) -> Value:
    """The value of an amount. Raises InputError for an undefined name."""
    return _value(tree(text), environment, term, text)


def number(text: str, environment: Environment, term: Term) -> float:
    """The value of an amount that must be a plain number: an index or a
    loop bound. Raises InputError."""
    return _number(tree(text), environment, term, text)


def _value(node: ast.expr, environment: Environment, term: Term, text: str) -> Value:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name):
        if node.id in environment:
            return environment[node.id]
        return term(node.id, (), [])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, environment, term, text)
    if isinstance(node, ast.BinOp):
        left, right = (_value(n, environment, term, text) for n in (node.left, node.right))
        return _combined(node.op, left, right, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "max":
        each = [_value(n, environment, term, text) for n in node.args]
        return largest(each) if any(isinstance(v, TimeRange) for v in each) else max(each)  # type: ignore[type-var]
    if isinstance(node, (ast.Call, ast.Subscript)):
        name, indices, arguments = parts(node, text)
        return term(name, tuple(_number(i, environment, term, text) for i in indices), arguments)
    raise InputError(f"'{shown(text)}': cannot compute '{shown(ast.unparse(node))}'")


def _combined(operator: ast.operator, left: Value, right: Value, text: str) -> Value:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Div):
        if right == 0:
            raise InputError(f"'{shown(text)}': division by 0")
        return left / right
    raise InputError(f"'{shown(text)}': expected + - * /")


def _number(node: ast.expr, environment: Environment, term: Term, text: str) -> float:
    value = _value(node, environment, term, text)
    if isinstance(value, TimeRange):
        place = shown(ast.unparse(node))
        raise InputError(f"'{shown(text)}': '{place}' is the interval {value}; expected a number")
    return value


def parts(node: ast.expr, text: str) -> tuple[str, list[ast.expr], list[ast.expr]]:
    """(name, [indices], (arguments)) of a term such as
    send[0,p](64). Raises InputError."""
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Call):
        arguments, node = node.args, node.func
    indices: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        indices = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        node = node.value
    if not isinstance(node, ast.Name):
        raise InputError(f"'{shown(text)}': expected a name such as task[1,id](p)")
    return node.id, indices, arguments
