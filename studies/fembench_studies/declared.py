"""Tables and figures declared in files of a study.

page.toml: each quantity is an expression, computed for us and for the source. captions.toml: the texts of
those whose rows a function computes.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from fembench.base.config import read_toml
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table, words
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import Beside, beside, columns, count

Space = dict[str, str | list[Any]]  # key -> its values, listed or computed from the keys before it
Row = dict[str, Any]  # key -> value


class DeclaredTable(Struct, frozen=True, forbid_unknown_fields=True):
    """One row for each combination of keys, our measures beside those of the source."""

    name: str
    title: str
    note: str
    rows: Space
    measures: dict[str, str]
    more: dict[str, str] = {}  # further columns, computed from the keys
    each: str | list[Any] = []  # what {} in a measure stands for


class DeclaredFigure(Struct, frozen=True, forbid_unknown_fields=True):
    """One panel for each combination of keys; `x` are its categories."""

    name: str
    title: str
    caption: str
    panel: str  # its title
    over: Space
    x: Space
    y: str
    series: dict[str, str]
    kind: Literal["grouped", "stacked", "curves"] = "grouped"
    names: str = ""  # of a category; "": its value
    label: str | None = None  # of the categories; None: the key of `x`
    each: str | list[Any] = []
    options: dict[str, Any] = {}  # of the chart


class DeclaredPage(Struct, frozen=True, forbid_unknown_fields=True):
    """What an experiment shows."""

    tables: tuple[DeclaredTable, ...] = ()
    figures: tuple[DeclaredFigure, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Our side and the source's, which an expression calls `side`, and
    other names that it may use."""

    here: object
    thesis: object
    names: Mapping[str, object]

    def table(self, asked: DeclaredTable) -> Table:
        """The declared table."""
        measures = self._each(asked.measures, asked.each)
        rows = []
        for row in self._rows(asked.rows, {}):
            keys = [*row.values(), *(self._value(text, row) for text in asked.more.values())]
            ours, theirs = ([self._value(t, row, side) for t in measures.values()] for _, side in self._sides)
            rows.append((keys, ours, theirs))
        heads = [words(k) if k == "platform" else count(k) for k in (*asked.rows, *asked.more)]
        return beside(asked.name, asked.title, asked.note, heads, list(measures), rows)

    def figure(self, asked: DeclaredFigure) -> Plot:
        """The declared figure. Bars on top of each other have a panel for each side."""
        sides = self._sides
        groups = [[side] for side in sides] if asked.kind == "stacked" else [sides]
        panels = [self._panel(asked, row, group) for group in groups for row in self._rows(asked.over, {})]
        chart = getattr(charts, asked.kind)
        made: Plot = chart(asked.name, asked.title, asked.caption, panels, **asked.options)
        return made

    @property
    def _sides(self) -> Sequence[tuple[str, object]]:
        return ("here", self.here), ("thesis", self.thesis)

    def _panel(self, asked: DeclaredFigure, row: Row, sides: Sequence[tuple[str, object]]) -> Panel:
        points = list(self._rows(asked.x, row))
        key = next(iter(asked.x))
        alone = len(sides) == 1
        series = {
            name if alone else f"{name}, {who}".removeprefix(", "): [
                self._value(text, point, side) for point in points
            ]
            for name, text in self._each(asked.series, asked.each).items()
            for who, side in sides
        }
        title = asked.panel.format(**row) + (f", {sides[0][0]}" if alone else "")
        names = [str(self._value(asked.names or key, point)) for point in points]
        return Panel(title, names, series, asked.y, key if asked.label is None else asked.label)

    def _each(self, texts: Mapping[str, str], values: str | list[Any]) -> dict[str, str]:
        """The texts, those with {} once for each value."""
        found: dict[str, str] = {}
        for name, text in texts.items():
            for value in self._values(values, {}) if "{}" in name else ("",):
                found[name.replace("{}", str(value))] = text.replace("{}", str(value))
        return found

    def _rows(self, space: Space, row: Row) -> Iterator[Row]:
        """All combinations of the keys, the last one changing first."""
        if not space:
            yield row
            return
        (name, values), *rest = space.items()
        for value in self._values(values, row):
            yield from self._rows(dict(rest), row | {name: value})

    def _values(self, values: str | list[Any], row: Row) -> Sequence[Any]:
        return list(self._value(values, row)) if isinstance(values, str) else values

    def _value(self, text: str, row: Row, side: object = None) -> Any:
        """An expression of a file of this package, evaluated."""
        return eval(text, {**self.names, **row, "side": side})


class TableText(Struct, frozen=True, forbid_unknown_fields=True):
    """What a page says of a table."""

    title: str
    note: str
    columns: str
    measures: tuple[str, ...] = ()  # further columns, ours beside the source's


class FigureText(Struct, frozen=True, forbid_unknown_fields=True):
    """What a page says of a figure."""

    title: str
    caption: str
    kind: Literal["grouped", "curves"] = "grouped"
    options: dict[str, Any] = {}  # of the chart


class Captions(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of tables and figures by name; {…} in names and texts is filled in."""

    tables: dict[str, TableText] = {}
    figures: dict[str, FigureText] = {}
    notes: dict[str, str] = {}  # by what they are about
    statements: tuple[tuple[str, str, str], ...] = ()  # experiment, statement, expression of a side
    limits: tuple[tuple[str, str, str, float, bool], ...] = ()  # of claims; True: of the smallest found

    def table(self, name: str, rows: Iterable[tuple[object, ...]], /, **values: object) -> Table:
        """The table of these rows."""
        text = self.tables[name]
        name, title, note = (each.format(**values) for each in (name, text.title, text.note))
        return Table(name, title, note, columns(text.columns), tuple(rows))

    def beside(self, name: str, rows: Iterable[Beside], /, **values: object) -> Table:
        """The table of these rows, our measures beside those of the source."""
        text = self.tables[name]
        name, title, note = (each.format(**values) for each in (name, text.title, text.note))
        return beside(name, title, note, columns(text.columns), text.measures, rows)

    def figure(self, name: str, panels: Sequence[Panel], /, **values: object) -> Plot:
        """The figure of these panels."""
        text = self.figures[name]
        name, title, caption = (each.format(**values) for each in (name, text.title, text.caption))
        made: Plot = getattr(charts, text.kind)(name, title, caption, panels, **text.options)
        return made


@functools.cache
def captions(study: str) -> Captions:
    """The texts in captions.toml of a study's package such as
    'thesis_000'. Raises InputError."""
    return read_toml(Path(__file__).parent / study / "captions.toml", Captions)
