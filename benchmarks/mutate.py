"""Small mutations of a Python text: each is a fault that a test should notice.

    constant   n -> n + 1, x -> 1.1 x
    sign       a + b -> a - b, a * b -> a / b, -a -> a, and the reverse
    term       a + b -> a, a - b -> a
    compare    < -> <=, == -> !=, in -> not in, …, and the reverse
    branch     if a -> if not a, a and b -> a or b, and the reverse
    extreme    max -> min, and the reverse; their numpy namesakes, too

Left alone: annotations, messages of exceptions, assertions (which only narrow types here), texts.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
COMPARE = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
EXTREMES = {"max": "min", "maximum": "minimum", "argmax": "argmin"}
NEAR = 25  # characters shown on either side of a change
COSMETIC = {
    "alpha",
    "digits",
    "dpi",
    "figsize",
    "fontsize",
    "linewidth",
    "pad",
}  # arguments of pictures, tables
EXTREMES |= {low: high for high, low in EXTREMES.items()}


@dataclass(frozen=True)
class Mutation:
    """One change of a text."""

    kind: str
    line: int  # from 1
    before: str  # what is replaced, with what is around it
    after: str
    begin: int  # byte offsets into the text
    end: int
    put: str

    def of(self, text: str) -> str:
        """The changed text."""
        raw = text.encode()
        return (raw[: self.begin] + self.put.encode() + raw[self.end :]).decode()


def mutations(text: str) -> list[Mutation]:
    """All mutations of a text, in its order."""
    return sorted(_Finder(text).found(), key=lambda m: (m.begin, m.end, m.kind))


class _Finder:
    def __init__(self, text: str) -> None:
        self._raw = text.encode()
        starts = [0]
        for line in self._raw.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self._starts = starts
        self._tree = ast.parse(text)

    def found(self) -> Iterator[Mutation]:
        for node in _living(self._tree):
            for kind, part, put in self._changes(node):
                begin, end = part
                first, last = self._starts[node.lineno - 1], self._raw.find(b"\n", end)
                before = self._text((first, last))
                after = self._text((first, begin)) + put + self._text((end, last))
                yield Mutation(kind, node.lineno, *_short(before, after), begin, end, put)

    def _changes(self, node: ast.expr | ast.stmt) -> Iterator[tuple[str, tuple[int, int], str]]:
        """(kind, what to replace, by what) of each mutation of a node."""
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int(n)):
                yield "constant", self._span(node), str(n + 1)
            case ast.Constant(value=float(x)):
                yield "constant", self._span(node), repr(1.1 * x if x else 1.0)
            case ast.BinOp(left, op, right) if type(op) in ARITHMETIC and not _is_text(node):
                gap = (self._span(left)[1], self._span(right)[0])
                sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(op)]
                put = self._text(gap).replace(sign, ARITHMETIC[type(op)], 1)
                yield "sign", gap, put
                if isinstance(op, ast.Add | ast.Sub):
                    yield "term", self._span(node), f"({self._text(self._span(left))})"
            case ast.UnaryOp(ast.USub()):
                yield "sign", (self._span(node)[0], self._span(node)[0] + 1), ""
            case ast.Compare(left, [op], [right]):
                gap = (self._span(left)[1], self._span(right)[0])
                yield "compare", gap, f"{self._around(gap)[0]} {COMPARE[type(op)]} {self._around(gap)[1]}"
            case ast.BoolOp(op, [left, right, *_]):
                old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                gap = (self._span(left)[1], self._span(right)[0])
                yield "branch", gap, self._text(gap).replace(old, new, 1)
            case ast.If(test) | ast.While(test) | ast.IfExp(test):
                yield "branch", self._span(test), f"not ({self._text(self._span(test))})"
            case ast.Call(ast.Name(name)) if name in EXTREMES:
                yield "extreme", self._span(node.func), EXTREMES[name]
            case ast.Call(ast.Attribute(_, name)) if name in EXTREMES:
                end = self._span(node.func)[1]
                yield "extreme", (end - len(name), end), EXTREMES[name]

    def _around(self, gap: tuple[int, int]) -> tuple[str, str]:
        """Brackets that an operator stands between: those of its operands."""
        text = self._text(gap)
        return ")" * text.count(")"), "(" * text.count("(")

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, span: tuple[int, int]) -> str:
        return self._raw[span[0] : span[1]].decode()


def _living(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The nodes whose change could be noticed."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "format_spec", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_dead(child):
                continue
            if isinstance(child, ast.keyword) and child.arg in COSMETIC:
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _living(child)


def _is_dead(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return True
        case ast.If(ast.Name("TYPE_CHECKING")) | ast.Subscript(ast.Name("Literal")):
            return True
    return False


def _is_text(node: ast.BinOp) -> bool:
    """Whether texts or lists are joined or repeated, as far as can be seen."""
    texts = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(
        isinstance(n, texts) or (isinstance(n, ast.Constant) and isinstance(n.value, str))
        for n in (node.left, node.right)
    )


def _short(before: str, after: str) -> tuple[str, str]:
    """Both without what they have in common, but for a few words on either side."""
    before, after = " ".join(before.split()), " ".join(after.split())
    cut = max(0, _alike(before, after) - NEAR)
    rest = max(0, _alike(before[::-1], after[::-1]) - NEAR)
    shorter = [one[cut : len(one) - min(rest, len(one) - cut)] for one in (before, after)]
    return shorter[0], shorter[1]


def _alike(a: str, b: str) -> int:
    """How many characters at the beginning agree."""
    return next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
