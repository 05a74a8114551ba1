"""Table: columns and raw values, which become text, Markdown, CSV or JSON.

A table is declared before the function of its rows, by texts of columns: 'keys: head | form'.

keys    names in CSV and JSON, separated by blanks; the value of several keys is a tuple. The end of a key
        says its unit: _s, _bytes, or _fraction, which is shown in per cent
head    the key in words, if left out
form    how values are shown: '.3f', or a template such as 'rank {0} on {1}', aligned right if it begins
        with '>'. If left out, the unit says it; numbers without a unit have two decimals, and counts none.
        A number below its last decimal has two significant digits.
        Two numbers are the ends of an interval, three a number with its interval
"""

import csv
import dataclasses
import functools
import io
import math
import re
import string
from collections.abc import Callable, Iterable
from html import escape
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
import numpy.typing as npt

from fembench.base import tables, units
from fembench.base.errors import InputError
from fembench.base.terminal import as_on_terminal
from fembench.records.compare import ranks_in_words

if TYPE_CHECKING:
    import pandas

P = ParamSpec("P")
Rows = Iterable[tuple[object, ...]]
LONG = 24  # rows; a longer table is folded on the page
FIXED = re.compile(r"\.(\d)f")
UNITS: dict[str, Callable[[Any], str]] = {
    "s": units.seconds,
    "bytes": units.size,
    "fraction": units.percent,
}
FORMS = {
    **UNITS,
    "count": units.count,
    "digits": units.digits,
    "giga": lambda v: f"{v / 1e9:.3g}",
    "on_ranks": ranks_in_words,
}


class _Templates(string.Formatter):
    """Templates such as '{0:s} on {1:on_ranks}'."""

    def format_field(self, value: Any, form: str) -> str:
        return _formatted(value, form)


def _formatted(value: Any, form: str) -> str:
    """A value in a form; text stays as it is."""
    if isinstance(value, str):
        return value
    decimals = FIXED.fullmatch(form)
    if decimals:
        return units.fixed(value, int(decimals[1]))
    return FORMS[form](value) if form in FORMS else format(value, form)


_TEMPLATES = _Templates()


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column: its head, its names in CSV and JSON, and how it is shown.

    With several names in `key`, values are tuples: shown in one
    column, stored in several.
    """

    head: str
    key: str  # names separated by blanks; each ends in its SI unit
    form: str = ""
    text_of: Callable[[Any], str] | None = None  # instead of a form

    @property
    def names(self) -> list[str]:
        """In CSV and JSON."""
        return self.key.split()

    def raw(self, values: Iterable[Any]) -> list[list[object]]:
        """The raw values of each name, of one or more; None for missing ones."""
        names = self.names
        parts = (v if isinstance(v, tuple) else (v,) * len(names) for v in values)
        columns = zip(names, zip(*parts, strict=True), strict=True)
        return [[None if missing(part) else part for part in column] for _, column in columns]

    def show(self, value: Any) -> str:
        """A value as text."""
        if missing(value):
            return tables.MISSING
        if self.text_of is not None:
            return self.text_of(value)
        if "{" not in self.form and not isinstance(value, tuple):
            return self._text(value)
        parts = value if isinstance(value, tuple) else (value,)
        if "{" in self.form:
            return _TEMPLATES.format(self.form.lstrip(">"), *parts).rstrip()
        counts = all(isinstance(part, int) for part in parts)
        return _joined(*map(self._text, dict.fromkeys(parts) if counts else parts))

    def _text(self, part: Any) -> str:
        if isinstance(part, str) or self.form:
            return _formatted(part, self.form)
        plain = units.count if isinstance(part, int) else units.fixed
        return UNITS.get(self.key.rpartition("_")[2], plain)(part)

    def number(self, values: Iterable[object]) -> bool:
        """Whether these values are numbers, which are aligned right."""
        if "{" in self.form:
            return self.form.startswith(">")
        found = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
        known = [v for v in found if v is not None]
        if not known:
            return bool(self.form or self.text_of) or self.key.rpartition("_")[2] in UNITS
        return not any(isinstance(v, str) for v in known)


def _joined(first: str, *others: str) -> str:
    """'4.1 ms', '4.1–4.3 ms' or '0.85 (0.83–0.87)'."""
    if len(others) == 2:
        return f"{first} ({_joined(*others)})"
    if not others:
        return first
    (low, _, unit), (_, _, same) = first.partition(" "), others[0].partition(" ")
    return f"{low}–{others[0]}" if unit == same else f"{first} – {others[0]}"


def column(text: str) -> Column:
    """The column of 'keys: head | form'."""
    named, _, form = text.partition(" | ")
    key, _, head = named.partition(": ")
    name, _, unit = key.rpartition("_")
    return Column(head or (name if unit in UNITS else key).replace("_", " "), key, form)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Table:
    """Rows of raw values (SI units; None or nan if missing)."""

    name: str  # of its files
    title: str
    note: str  # what it shows and how to read it
    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]

    @property
    def long(self) -> bool:
        return len(self.rows) > LONG

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the raw columns, as in CSV and JSON."""
        return tuple(name for c in self.columns for name in c.names)

    @property
    def raw(self) -> list[list[object]]:
        """The values of each of `names`, row after row; None for missing ones."""
        if not self.rows:
            return [[] for _ in self.names]
        columns = zip(self.columns, zip(*self.rows, strict=True), strict=True)
        return [values for c, column in columns for values in c.raw(column)]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """One raw column, (n_rows,): int64, float64 (nan for missing values), or objects.

        Raises InputError for an unknown name.
        """
        if name not in self.names:
            raise InputError(
                f"table {self.name}: no column '{name}'; expected one of {', '.join(self.names)}"
            )
        values = self.raw[self.names.index(name)]
        if all(isinstance(v, int) for v in values):
            return np.array(values, np.int64)
        if all(v is None or isinstance(v, (int, float)) for v in values):
            return np.array([np.nan if v is None else v for v in values], float)
        return np.array(values, object)

    def to_pandas(self) -> "pandas.DataFrame":
        """Raw values as a DataFrame. Raises ModuleNotFoundError if pandas is not installed."""
        try:
            import pandas
        except ImportError:
            told = "to_pandas: pandas is not installed; pip install pandas"
            raise ModuleNotFoundError(told, name="pandas") from None
        return pandas.DataFrame({name: self[name] for name in self.names})

    def shown(self, most: int | None = None) -> list[list[str]]:
        """Every value as text, of the first `most` rows."""
        return [[c.show(v) for c, v in zip(self.columns, row, strict=True)] for row in self.rows[:most]]

    @property
    def numbers(self) -> list[bool]:
        """Of each column: whether it has numbers, which are aligned right."""
        return [c.number(row[k] for row in self.rows) for k, c in enumerate(self.columns)]

    def __repr__(self) -> str:
        return as_on_terminal(f"{self.title}\n\n{text(self)}")

    def _repr_html_(self) -> str:
        """HTML for notebooks: title, values as text, note."""
        heads = "".join(f"<th>{escape(c.head)}</th>" for c in self.columns)
        cells = ("".join(f"<td>{escape(v)}</td>" for v in row) for row in self.shown())
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        head = f"<b>{escape(self.title)}</b>" if self.title else ""
        body = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{head}{body}<p>{escape(self.note)}</p>"


def words(head: str, key: str = "") -> Column:
    """A column of text or of counts, its key the head if left out."""
    return Column(head, key or head.replace(" ", "_"))


def columns(texts: str) -> tuple[Column, ...]:
    """The columns of 'keys: head | form; …'."""
    return tuple(map(column, texts.split("; ")))


def declared(
    name: str, title: str, note: str, *texts: str
) -> Callable[[Callable[P, Rows]], Callable[P, Table]]:
    """Make a function that yields rows one that returns a table.

    `texts`: of columns, separated by '; '. One with '?' is left
    out if no row has a value.
    """
    optional = [text.startswith("?") for text in "; ".join(texts).split("; ")]
    heads = columns("; ".join(texts).replace("?", ""))

    def decorate(rows_of: Callable[P, Rows]) -> Callable[P, Table]:
        @functools.wraps(rows_of)
        def made(*values: P.args, **named: P.kwargs) -> Table:
            rows = tuple(rows_of(*values, **named))
            empty = [all(missing(row[k]) for row in rows) for k in range(len(optional))]
            kept = [k for k, may in enumerate(optional) if not (may and empty[k])]
            if len(kept) < len(heads):
                rows = tuple(tuple(row[k] for k in kept) for row in rows)
            return Table(name, title, note, tuple(heads[k] for k in kept), rows)

        return made

    return decorate


def text(table: Table) -> str:
    """Aligned lines that are also Markdown."""
    cells = table.shown()
    align = "".join("r" if number else "l" for number in table.numbers)
    return tables.table([c.head for c in table.columns], cells, align=align)


def to_csv(table: Table) -> str:
    """Comma-separated raw values (`tables.csv_cell`); empty if missing."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.names)
    writer.writerows(zip(*(map(tables.csv_cell, values) for values in table.raw)))
    return stream.getvalue()


def to_json(table: Table) -> list[dict[str, object]]:
    """One object per row; None for missing values."""
    return [dict(zip(table.names, row)) for row in zip(*table.raw)]


def missing(value: object) -> bool:
    """Whether a value is None, not finite, or a tuple that contains such a value."""
    if isinstance(value, tuple):
        return any(missing(v) for v in value)
    return value is None or (isinstance(value, float) and not math.isfinite(value))
