"""Tables with our numbers next to those printed in the source."""

import csv
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from fembench.report.table import Column, Table, words

THESIS = "thesis_"


@functools.cache
def source_table(study: str, name: str) -> tuple[dict[str, str], ...]:
    """Rows of a printed table, from data/NAME.csv of a study's
    package such as 'thesis_000'."""
    path = Path(__file__).parent / study / "data" / f"{name}.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        return tuple(csv.DictReader(stream))


def figure_of(value: float) -> str:
    """Four significant digits; groups of thousands; powers of ten only below 1e-4."""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.4g}" if abs(value) >= 1e-4 or not value else f"{value:.2e}"


def value(name: str, head: str = "") -> Column:
    """A column of numbers."""
    return Column(head or name.replace("_", " "), name, text_of=figure_of)


def count(name: str, head: str = "") -> Column:
    """A column of whole numbers."""
    return Column(head or name.replace("_", " "), name, ".0f")


def ratio(name: str, head: str = "") -> Column:
    """A column of ratios, which are compared with each other: three decimals."""
    return Column(head or name.replace("_", " "), name, ".3f")


def _column(key: str, kind: str = "value", head: str = "") -> Column:
    head = head or key.replace("_", " ")
    numbers = {"value": value, "count": count, "ratio": ratio}
    units = {"words": "", "integer": "", "percent": "_fraction", "time": "_s"}
    return numbers[kind](key, head) if kind in numbers else words(head, key + units[kind])


def columns(texts: str) -> tuple[Column, ...]:
    """The columns of 'key [kind [head]]; …': a value unless said otherwise, headed by its key in words."""
    return tuple(_column(*text.split(" ", 2)) for text in texts.split("; "))


Beside = tuple[Sequence[object], Sequence[float], Sequence[float]]  # keys, our values, printed values


def beside(
    name: str, title: str, note: str, keys: Sequence[Column], measures: Sequence[str], rows: Iterable[Beside]
) -> Table:
    """A table of keys and measures, each of our columns followed by the printed one."""
    heads = list(keys)
    for m in measures:
        heads += [value(m), value(f"{THESIS}{m}", "thesis")]
    pairs = ((k, [v for pair in zip(ours, theirs) for v in pair]) for k, ours, theirs in rows)
    return Table(name, title, note, tuple(heads), tuple((*k, *values) for k, values in pairs))
