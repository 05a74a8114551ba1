"""Tables of text: aligned for a terminal and valid Markdown at once. Cells of CSV files."""

import re
from collections.abc import Sequence

MISSING = "–"
BAR = "│"  # for a bar inside a cell: an escaped one would show its backslash on a terminal
TAG = "‹"  # for a < that Markdown would take for the begin of HTML, for the same reason
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula begins so


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    align: str = "",
    digits: int = 4,
) -> str:
    """`headers` over `rows` as lines that paste into Markdown.

    `align` has one letter per column, `l` or `r`; by default, columns of numbers are
    aligned right. Floats are shown with `digits` significant digits, None as a dash.
    Short rows are padded with blanks.
    """
    cells = [[_text(value, digits) for value in row] + [""] * (len(headers) - len(row)) for row in rows]
    headers = [_text(h, digits) for h in headers]
    columns = [[h, *(row[i] for row in cells)] for i, h in enumerate(headers)]
    widths = [max(3, *map(len, column)) for column in columns]
    sides = [align[i : i + 1] or _side([row[i : i + 1] for row in rows]) for i in range(len(headers))]
    filled = (
        [cell.rjust(width) if side == "r" else cell.ljust(width) for cell in column]
        for column, width, side in zip(columns, widths, sides)
    )
    head, *lines = (f"| {' | '.join(row)} |" for row in zip(*filled))
    return "\n".join([head, _rule(widths, sides), *lines])


def _text(value: object, digits: int) -> str:
    if value is None:
        return MISSING
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    text = str(value).replace("|", BAR).replace("\n", " ")
    return re.sub(r"<(?=[A-Za-z/!?])", TAG, text) if "<" in text else text


def csv_cell(value: object) -> object:
    """A value for a CSV file: no spreadsheet executes its text.

    A text that one would execute, or that begins with an apostrophe, has one more
    apostrophe before it. A program drops the first apostrophe of a cell, if it begins
    with one.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith((*FORMULA, "'")) else value


def _side(column: Sequence[Sequence[object]]) -> str:
    """'r' if every value present is a number."""
    values = [cell[0] for cell in column if len(cell) and cell[0] is not None]
    return "r" if values and all(isinstance(v, (int, float)) for v in values) else "l"


def _rule(widths: Sequence[int], sides: Sequence[str]) -> str:
    rules = ("-" * (w - 1) + ":" if s == "r" else "-" * w for w, s in zip(widths, sides))
    return f"| {' | '.join(rules)} |"
