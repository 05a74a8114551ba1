"""Findings in a file, in the form that the ending of its name says: Markdown, JSON, JUnit XML, one page."""

import dataclasses
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.records.record import Record
from fembench.report.table import Table, text, to_json

if TYPE_CHECKING:
    from fembench.report.plots.canvas import Plot


class Checked(NamedTuple):
    """One test of a JUnit report."""

    group: str
    name: str
    failure: str = ""  # why it failed
    skipped: str = ""  # why it cannot be judged
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Findings:
    """What a verb found."""

    title: str
    said: Sequence[str]  # sentences, the answer first
    tables: Sequence[Table]
    plots: Callable[[], Sequence["Plot"]]  # drawn only where they are shown
    records: Sequence[Record] = ()
    tests: Sequence[Checked] = ()

    def save(self, path: Path | str) -> None:
        """Write them as .md, .json, .xml (JUnit) or .html. Raises InputError."""
        forms = forms_of(self)
        form = Path(path).suffix.lower()
        check_form(path, tuple(forms))
        write_atomic(path, forms[form]())

    def __repr__(self) -> str:
        return "\n".join([*self.said, "", *map(text, self.tables[:1])])

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(line)}</p>" for line in self.said)
        return said + "".join(t._repr_html_() for t in self.tables[:1])


def forms_of(found: Findings) -> dict[str, Callable[[], str]]:
    """ending -> the text in that form."""
    forms = {".md": lambda: markdown(found), ".json": lambda: json_text(tree(found)) + "\n"}
    forms |= {".html": lambda: _page(found)}
    return forms | ({".xml": lambda: junit(found)} if found.tests else {})


def check_form(path: Path | str, endings: Sequence[str]) -> None:
    """Raises InputError unless the name of a file ends in one of these."""
    if Path(path).suffix.lower() not in endings:
        raise InputError(f"{path}: unknown ending; expected one of {', '.join(endings)}")


def markdown(found: Findings) -> str:
    """Title, sentences, and every table with its note."""
    parts = [f"# {found.title}", "\n".join(f"* {line}" for line in found.said)]
    parts += [f"## {t.title}\n\n{text(t)}\n\n{t.note}" for t in found.tables]
    return "\n\n".join(filter(None, parts)).replace("<", "&lt;") + "\n"


def tree(found: Findings) -> dict[str, object]:
    """For JSON."""
    return {
        "conclusions": list(found.said),
        "failed": [f"{t.name}: {t.failure}" for t in found.tests if t.failure],
        "tables": {t.name: to_json(t) for t in found.tables},
    }


def junit(found: Findings) -> str:
    """A JUnit report, as continuous integration reads it."""
    counts = {"failures": sum(bool(t.failure) for t in found.tests)}
    counts |= {"tests": len(found.tests), "skipped": sum(bool(t.skipped) for t in found.tests)}
    suite = ElementTree.Element("testsuite", {"name": found.title, **{k: str(n) for k, n in counts.items()}})
    for test in found.tests:
        case = ElementTree.SubElement(
            suite, "testcase", classname=test.group, name=test.name, time=f"{test.seconds:.6g}"
        )
        for kind in ("failure", "skipped"):
            if said := getattr(test, kind):
                ElementTree.SubElement(case, kind, message=said)
    ElementTree.SubElement(suite, "system-out").text = "\n".join(found.said)
    ElementTree.indent(suite)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}{ElementTree.tostring(suite, encoding='unicode')}\n"


def _page(found: Findings) -> str:
    from fembench.report.page import single_page

    return single_page(found.title, found.said, found.tables, found.plots(), found.records)
