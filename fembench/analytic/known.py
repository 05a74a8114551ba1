"""What is known of a kernel before it runs: constants of its file, and what follows from them."""

import ast
from collections.abc import Mapping

OPERATORS = {
    ast.Add: "sum",
    ast.Sub: "sub",
    ast.Mult: "mpy",
    ast.Div: "div",
    ast.FloorDiv: "div",
    ast.Mod: "mod",
}


def constants_of(module: ast.Module) -> dict:
    """Names that the file gives literal values."""
    found: dict = {}
    for line in module.body:
        if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
            value = value_of(line.value, found)
            if value is None:
                try:
                    value = ast.literal_eval(line.value)
                except ValueError:
                    continue
            found[line.targets[0].id] = value
    return found


def value_of(node: ast.expr, known: Mapping[str, float]) -> float | None:
    """A number that follows from literals and known names; None otherwise."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name):
        value = known.get(node.id)
        return value if isinstance(value, (int, float)) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, known)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        a, b = value_of(node.left, known), value_of(node.right, known)
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


class Known(ast.NodeTransformer):
    """Names that have a known value become it."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


def shortened(text: str) -> str:
    """An expression; its value where that is known."""
    value = value_of(ast.parse(text, mode="eval").body, {})
    return text if value is None else f"{value:.0f}"
