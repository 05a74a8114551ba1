"""Findings in a file, as the ending of its name says: Markdown, JSON, JUnit XML, one page."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from xml.etree import ElementTree

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.records.record import Record
from fembench.report.table import Table, text, to_json

if TYPE_CHECKING:
    from fembench.report.plots.canvas import Plot

T = TypeVar("T")


class Checked(NamedTuple):
    """One test of a JUnit report."""

    group: str
    name: str
    failure: str = ""  # why it failed
    skipped: str = ""  # why it cannot be judged
    seconds: float = 0.0
    error: str = ""  # why nothing at all can be judged


class Findings(Generic[T]):
    """What was found: sentences, tables and plots. A notebook shows it; `save` writes it to a file.

    `found` is what the sentences are about: one comparison per other results, with its `verdict`,
    or one series of points per case. `records`: the runs that were compared.
    """

    def __init__(
        self,
        title: str,
        found: Sequence[T],
        said: Sequence[str],
        summary: Table,
        tables: Sequence[Table],
        drawn: Callable[[Sequence[T]], "list[Plot]"],
        records: Sequence[Record] = (),
        tests: Sequence[Checked] = (),
    ) -> None:
        """`tables`: all of them; those without rows are left out. `drawn`: the plots of what was found."""
        self.title = title
        self.found = found
        self.records = records
        self.tests = tests
        self._said = said
        self._summary = summary
        self._drawn = drawn
        self._tables = {table.name: table for table in tables if table.rows}

    def conclusions(self) -> list[str]:
        """What it shows, in sentences: the answer first."""
        return list(self._said)

    def summary(self) -> Table:
        """One row per case."""
        return self._summary

    def tables(self) -> dict[str, Table]:
        """Every table that has rows, by name."""
        return dict(self._tables)

    def plots(self) -> "list[Plot]":
        """A plot per comparison, or per case of a history that has several points."""
        return self._drawn(self.found)

    @property
    def failed(self) -> list[str]:
        """What is slower than `fail_above` allows, or why nothing can be judged, a line each."""
        said = [(test.name, test.failure or test.error) for test in self.tests]
        return [f"{name}: {why}" for name, why in said if why]

    @property
    def judged(self) -> bool:
        """Whether something of all results could be compared with `fail_above`."""
        return not any(test.error for test in self.tests)

    def save(self, path: Path | str) -> None:
        """Write everything to a file: .md, .json, .html (one page), or .xml (JUnit) of a comparison.

        Raises InputError for another ending, or if the file cannot be written.
        """
        check_form(path, tuple(FORMS) if self.tests else WITHOUT_TESTS)
        write_atomic(path, FORMS[Path(path).suffix.lower()](self))

    def __repr__(self) -> str:
        return "\n".join([*self._said, "", *map(text, list(self._tables.values())[:1])])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(line)}</p>" for line in self._said)
        return said + "".join(table._repr_html_() for table in list(self._tables.values())[:1])


def check_form(path: Path | str, endings: Sequence[str]) -> None:
    """Raises InputError unless the name of a file ends in one of these."""
    if Path(path).suffix.lower() not in endings:
        raise InputError(f"{path}: unknown ending; expected one of {', '.join(endings)}")


def markdown(found: Findings[T]) -> str:
    """Title, sentences, and every table with its note."""
    parts = [f"# {found.title}", "\n".join(f"* {line}" for line in found.conclusions())]
    parts += [f"## {t.title}\n\n{text(t)}\n\n{t.note}" for t in found.tables().values()]
    return "\n\n".join(filter(None, parts)).replace("<", "&lt;") + "\n"


def as_json(found: Findings[T]) -> str:
    """Sentences and tables."""
    tables = {name: to_json(table) for name, table in found.tables().items()}
    tree = {"conclusions": found.conclusions(), "failed": found.failed, "tables": tables}
    return json_text(tree) + "\n"


def junit(found: Findings[T]) -> str:
    """A JUnit report, as continuous integration reads it."""
    heads = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {head: sum(bool(getattr(t, kind)) for t in found.tests) for head, kind in heads.items()}
    counts["tests"] = len(found.tests)
    suite = ElementTree.Element("testsuite", {"name": found.title, **{k: str(n) for k, n in counts.items()}})
    for test in found.tests:
        case = ElementTree.SubElement(suite, "testcase", classname=test.group, name=test.name)
        if test.seconds:
            case.set("time", f"{test.seconds:.6g}")
        for kind in heads.values():
            if said := getattr(test, kind):
                ElementTree.SubElement(case, kind, message=said)
    ElementTree.SubElement(suite, "system-out").text = "\n".join(found.conclusions())
    ElementTree.indent(suite)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}{ElementTree.tostring(suite, encoding='unicode')}\n"


def _page(found: Findings[T]) -> str:
    from fembench.report.page import single_page

    return single_page(found)


FORMS: dict[str, Callable[[Findings[Any]], str]] = {
    ".md": markdown,
    ".json": as_json,
    ".xml": junit,
    ".html": _page,
}
WITHOUT_TESTS = tuple(ending for ending in FORMS if ending != ".xml")
