"""docs/sources.md: every item has a command that exists and tests that mention it, or says what is missing.

A test mentions the items that it holds by a marker: @pytest.mark.row("004:E10", …).
"""

import ast
import re
import shlex
from pathlib import Path

import pytest

from fembench.cli.verbs import build_parser

ROOT = Path(__file__).parents[2]
TESTS = {"": ROOT / "tests", "studies/": Path(__file__).parent}  # prefix on the page: folder
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
STUDIES = {"Ferreira": "004", "Mendes": "001", "Herai": "000", "Gomes": "002", "Calzeta": "003"}
FEWEST = {"004": 111, "001": 90, "000": 55, "002": 53, "003": 46}  # items
SECTION = PAGE.split("\n## Item by item\n")[1].split("\n## ")[0]
NO = "*no*"


def items():
    """(id, command, tests or reason) of each row of the section."""
    for part in SECTION.split("\n### ")[1:]:
        title, *lines = part.splitlines()
        for line in lines:
            if line.startswith("| ") and not line.startswith("| id "):
                name, _, command, told = (cell.strip() for cell in line.strip("|").split(" | "))
                yield f"{STUDIES[title.split()[0]]}:{name}", command, told


def mentioned(prefix, path):
    """(node id, items) of each test of a module."""
    node = f"{prefix}{path.relative_to(TESTS[prefix])}"
    for made in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(made, ast.FunctionDef) and made.name.startswith("test_"):
            marks = [d for d in made.decorator_list if ast.unparse(d).startswith("pytest.mark.row(")]
            yield f"{node}::{made.name}", {ast.literal_eval(a) for d in marks for a in d.args}


PARSER = build_parser()
ROWS = list(items())
SERVED = [row for row in ROWS if row[1] != NO]
TESTED = {
    node: names
    for prefix, folder in TESTS.items()
    for path in folder.rglob("test_*.py")
    for node, names in mentioned(prefix, path)
}


@pytest.mark.parametrize("study", FEWEST)
def test_every_item_of_a_source_is_listed_once(study):
    names = [name for name, *_ in ROWS if name.startswith(f"{study}:")]
    assert len(names) == len(set(names)) >= FEWEST[study]


def test_an_item_has_a_command_or_says_in_words_what_is_missing():
    assert all(command.startswith("`") for _, command, _ in SERVED)
    assert all(len(reason.split()) > 2 for _, command, reason in ROWS if command == NO)
    assert "partly" not in SECTION.lower()


def test_the_page_says_how_many_items_there_are_and_how_many_are_served():
    assert f"{len(SERVED)} of {len(ROWS)} items" in SECTION.split("\n### ")[0]


@pytest.mark.parametrize("row", SERVED, ids=lambda row: row[0])
def test_the_command_of_an_item_exists(row):
    first, *words = shlex.split(row[1].strip("`"))
    if first != "python":
        PARSER.parse_args([first, *words])
        return
    benchmark = (ROOT / words[0]).read_text(encoding="utf-8")
    assert all(f'"{word}"' in benchmark for word in words[1:])


@pytest.mark.parametrize("row", SERVED, ids=lambda row: row[0])
def test_each_test_of_an_item_exists_and_mentions_it(row):
    name, _, told = row
    named = re.findall(r"`([^`]+)`", told)
    assert named
    assert [test for test in named if name not in TESTED.get(test, ())] == []


def test_an_item_that_a_test_mentions_names_that_test():
    told = {name: told for name, _, told in SERVED}
    wrong = [
        (test, name) for test, names in TESTED.items() for name in names if test not in told.get(name, "")
    ]
    assert wrong == []
