"""Table: columns and raw values, which become text, Markdown, CSV or JSON."""

import csv
import dataclasses
import io
import math
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fembench.base import tables, units
from fembench.base.errors import InputError
from fembench.report.results import Result

if TYPE_CHECKING:
    import pandas

LONG = 24  # rows; a longer table is folded on the page


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One column: how it is shown, and its name in CSV and JSON.

    With several names in `key`, each value is a tuple: shown in one column, stored in several.
    """

    head: str
    key: str  # names separated by blanks; each ends in its SI unit
    show: Callable[[Any], str] = str
    number: bool = False  # aligned right

    def parts(self, value: Any) -> dict[str, object]:
        """Raw values by name; None for missing ones."""
        names = self.key.split()
        values = value if isinstance(value, tuple) else (value,) * len(names)
        return {n: None if missing(v) else v for n, v in zip(names, values, strict=True)}


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
        return tuple(name for c in self.columns for name in c.key.split())

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """One raw column, (n_rows,): int64, float64 (nan for missing values), or objects.

        Raises InputError for an unknown name.
        """
        if name not in self.names:
            raise InputError(
                f"table {self.name}: no column '{name}'; expected one of {', '.join(self.names)}"
            )
        values = [row[name] for row in to_json(self)]
        if all(isinstance(v, int) for v in values):
            return np.array(values, np.int64)
        if all(v is None or isinstance(v, (int, float)) for v in values):
            return np.array([np.nan if v is None else v for v in values], float)
        return np.array(values, object)

    def to_pandas(self) -> "pandas.DataFrame":
        """Raw values as a DataFrame. Raises InputError if pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas: pandas is not installed; pip install pandas") from None
        return pandas.DataFrame({name: self[name] for name in self.names})

    def shown(self) -> list[list[str]]:
        """Every value as text."""
        return [[_show(c, v) for c, v in zip(self.columns, row, strict=True)] for row in self.rows]

    def __repr__(self) -> str:
        return f"{self.title}\n\n{text(self)}"

    def _repr_html_(self) -> str:
        """HTML for notebooks: title, values as text, note."""
        heads = "".join(f"<th>{escape(c.head)}</th>" for c in self.columns)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(v)}</td>' for v in row)}</tr>" for row in self.shown())
        head = f"<b>{escape(self.title)}</b>" if self.title else ""
        body = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"{head}{body}<p>{escape(self.note)}</p>"


def text(table: Table) -> str:
    """Aligned lines that are also Markdown."""
    align = "".join("r" if c.number else "l" for c in table.columns)
    return tables.table([c.head for c in table.columns], table.shown(), align=align)


def to_csv(table: Table) -> str:
    """Comma-separated raw values (`tables.csv_cell`); empty if missing."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([name for c in table.columns for name in c.key.split()])
    writer.writerows(map(tables.csv_cell, row.values()) for row in to_json(table))
    return stream.getvalue()


def to_json(table: Table) -> list[dict[str, object]]:
    """One object per row; None for missing values."""
    return [
        {
            name: part
            for c, value in zip(table.columns, row, strict=True)
            for name, part in c.parts(value).items()
        }
        for row in table.rows
    ]


def missing(value: object) -> bool:
    """Whether a value is None, not finite, or a tuple that contains such a value."""
    if isinstance(value, tuple):
        return any(missing(v) for v in value)
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _show(column: Column, value: object) -> str:
    return tables.MISSING if missing(value) else column.show(value)


def case_columns() -> tuple[Column, ...]:
    """The columns that name a result."""
    return words("mesh"), words("variant"), Column("ranks", "ranks setting", lambda v: v[1])


def case_of(result: Result) -> tuple[object, ...]:
    """Values of `case_columns`."""
    return result.mesh, result.variant, (result.ranks, result.setting)


def words(head: str, key: str | None = None) -> Column:
    """A column of text."""
    return Column(head, key or head.replace(" ", "_"))


def integer(head: str, key: str | None = None) -> Column:
    """A column of counts."""
    return Column(head, key or head.replace(" ", "_"), units.count, number=True)


def time(head: str, key: str) -> Column:
    """A column of seconds, each shown in a suitable unit."""
    return Column(head, f"{key}_s", units.seconds, number=True)


def interval(key: str) -> Column:
    """A column with the 95 % interval of a time."""
    return Column("95 % interval", f"{key}_low_s {key}_high_s", lambda ends: span(*ends), number=True)


def span(low: float, high: float) -> str:
    """'4.1–4.3 ms'."""
    (a, unit), (b, other) = units.seconds(low).split(" "), units.seconds(high).split(" ")
    return f"{a}–{b} {other}" if unit == other else f"{a} {unit} – {b} {other}"


def ratio(head: str, key: str, digits: int = 2) -> Column:
    """A column of plain numbers."""
    return Column(head, key, lambda v: f"{v:.{digits}f}", number=True)


def percent(head: str, key: str) -> Column:
    """A column of fractions, shown in per cent."""
    return Column(head, f"{key}_fraction", lambda v: f"{v:.1%}", number=True)


def size(head: str, key: str) -> Column:
    """A column of bytes."""
    return Column(head, f"{key}_bytes", units.size, number=True)
