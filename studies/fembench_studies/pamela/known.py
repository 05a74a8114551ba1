"""Values that are known before a kernel runs: they follow from literals and known names."""

import ast
from collections.abc import Mapping

LARGEST = 1e300  # larger values count as unknown
OPERATORS = {
    ast.Add: "sum",
    ast.Sub: "sub",
    ast.Mult: "mpy",
    ast.Div: "div",
    ast.FloorDiv: "div",
    ast.Mod: "mod",
}


def value_of(node: ast.expr, known: Mapping[str, float]) -> float | None:
    """The value of an expression of literals and known names; None for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value if abs(node.value) < LARGEST else None
    if isinstance(node, ast.Name):
        value = known.get(node.id)
        return value if isinstance(value, (int, float)) and abs(value) < LARGEST else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, known)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        a, b = value_of(node.left, known), value_of(node.right, known)
        if a is None or b is None or (b == 0 and not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult))):
            return None
        found = {
            ast.Add: lambda: a + b,
            ast.Sub: lambda: a - b,
            ast.Mult: lambda: a * b,
            ast.Div: lambda: a / b,
            ast.FloorDiv: lambda: a // b,
            ast.Mod: lambda: a % b,
        }[type(node.op)]()
        return found if abs(found) < LARGEST else None
    return None


class Known(ast.NodeTransformer):
    """Replaces names by their known values."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


def shortened(text: str) -> str:
    """The expression, or its value if known."""
    value = value_of(ast.parse(text, mode="eval").body, {})
    return text if value is None else f"{value:.0f}"
