"""Every item of docs/sources.md has a command and a test that exist, or the reason why it was left out."""

import re
import shlex
from pathlib import Path

import pytest
from doc_pages import ROOT

from fembench.cli.verbs import build_parser

TESTS = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
MOST_LEFT_OUT = 50
ITEMS = {"Ferreira": 111, "Mendes": 90, "Herai": 55, "Gomes": 53, "Calzeta": 46}  # at least


def items():
    """(source, id, what, command, test) of each row of the section 'Item by item'."""
    section = PAGE.split("\n## Item by item\n")[1].split("\n## ")[0]
    for part in section.split("\n### ")[1:]:
        title, *lines = part.splitlines()
        for line in lines:
            if line.startswith("| ") and not line.startswith("| id "):
                yield (title.split()[0], *(cell.strip() for cell in line.strip("|").split(" | ")))


PARSER = build_parser()
ROWS = list(items())
SERVED = [row for row in ROWS if row[3].startswith("`")]
LEFT_OUT = [row for row in ROWS if row[3] == "*left out*"]


def named(row):
    return f"{row[0]} {row[1]}"


@pytest.mark.parametrize("source", ITEMS)
def test_every_item_of_a_source_is_listed_once(source):
    names = [row[1] for row in ROWS if row[0] == source]
    assert len(names) == len(set(names)) >= ITEMS[source]


def test_a_row_is_served_or_partly_served_or_left_out_and_few_are():
    others = [row for row in ROWS if row not in SERVED and row not in LEFT_OUT]
    assert all(row[3].startswith("*partly*: ") for row in others)
    assert len(LEFT_OUT) <= MOST_LEFT_OUT
    assert all(len(row[4].split()) > 4 for row in LEFT_OUT)


@pytest.mark.parametrize("row", SERVED, ids=named)
def test_the_command_of_an_item_exists(row):
    first, *words = shlex.split(row[3].strip("`"))
    if first != "python":
        PARSER.parse_args([first, *words])
        return
    benchmark = (ROOT / words[0]).read_text(encoding="utf-8")
    assert all(f'"{word}"' in benchmark for word in words[1:])


@pytest.mark.parametrize("row", [row for row in ROWS if row not in LEFT_OUT], ids=named)
def test_the_test_of_an_item_exists(row):
    path = TESTS / f"{row[4].strip('`')}.py"
    assert re.search(r"^(?:async )?def test_", path.read_text(encoding="utf-8"), re.MULTILINE)
