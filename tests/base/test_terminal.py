"""What a terminal shows: no line is wider than it is, and nothing is lost."""

import contextlib
import importlib
import inspect
import io
import os
import pkgutil
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fembench import report
from fembench.base.tables import table
from fembench.base.terminal import fitting, reader_left
from fembench.cli.main import main
from fembench.report.table import UNITS, Column, Table


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def shown(text, width, sink=None):
    """What this prints at this width, on a terminal or, as tests ask for it, elsewhere."""
    sink = io.StringIO() if sink is None else sink
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        with fitting(sink, contextlib.redirect_stdout):
            print(text)
    return sink.getvalue()


def words(text):
    return set(text.replace("─", " ").split())


WORDS = st.lists(st.text("abcdefgh-", min_size=1, max_size=25), min_size=1, max_size=12).map(" ".join)
NUMBERS = st.sampled_from(["12 345.6", "0.853 (0.831–0.871)", "4.13 ms", "", "–", "1 234 567 (9 999.1–1 s)"])
NOTES = st.one_of(st.just(""), WORDS)


@st.composite
def tables(draw):
    """(Markdown, heads, cells) of a table of words, numbers and remarks."""
    kinds = draw(st.lists(st.sampled_from("lr"), min_size=1, max_size=14))
    heads = [draw(WORDS) for _ in kinds]
    n = draw(st.integers(1, 5))
    rows = [[draw(NUMBERS if kind == "r" else WORDS) for kind in kinds] for _ in range(n)]
    if draw(st.booleans()):
        kinds, heads = [*kinds, "l"], [*heads, "remarks"]
        rows = [[*row, draw(NOTES)] for row in rows]
    return table(heads, rows, align="".join(kinds)), heads, rows, kinds


@settings(deadline=None, max_examples=50)
@given(tables(), st.sampled_from([80, 120]))
def test_no_table_is_wider_than_the_terminal_and_no_word_or_number_is_lost_or_broken(made, width):
    text, heads, rows, kinds = made
    found = shown(text, width)
    assert max(map(len, found.splitlines())) <= width
    said = " ".join(cell for row in [heads, *rows] for cell in row)
    lost = words(said) - words(found)  # heads of columns in which nothing stands
    empty = [head for k, head in enumerate(heads) if not any(row[k] for row in rows)]
    assert lost <= words(" ".join(empty))
    numbers = {cell for row in rows for cell, kind in zip(row, kinds) if kind == "r"}
    assert all(number in found for number in numbers)


def declared_tables():
    """{name of a function: the columns of its table}."""
    found = {}
    for module in pkgutil.iter_modules(report.__path__):
        if module.name != "plots":
            for name, made in vars(importlib.import_module(f"fembench.report.{module.name}")).items():
                if inspect.isfunction(made) and hasattr(made, "__wrapped__"):
                    found[name] = inspect.getclosurevars(made).nonlocals.get("heads")
    return {name: heads for name, heads in found.items() if heads}


DECLARED = declared_tables()


def test_the_declared_tables_are_found():
    assert len(DECLARED) > 35


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("n", [1, 3])
def test_every_declared_table_fits_with_long_cells(name, n, width):
    columns = DECLARED[name]
    numbers = [bool(c.form) or c.key.rpartition("_")[2] in UNITS for c in columns]
    cells = [
        "123 456.7 (123 444.1–123 467.8) ms" if number else f"several long words about {c.head} in a cell"
        for c, number in zip(columns, numbers)
    ]
    text = table(
        [c.head for c in columns],
        [[*cells[:-1], f"{cells[-1]} {k}"] for k in range(n)],
        align="".join("r" if number else "l" for number in numbers),
    )
    found = shown(text, width)
    assert max(map(len, found.splitlines())) <= width
    assert words(" ".join(cells)) <= words(found)
    assert not any(numbers[:-1]) or "123 456.7 (123 444.1–123 467.8) ms" in found


ROWS = [["m1", 2, "VALID", "a remark that would be too long to stand in a row of this table"]]
ROWS += [["m3", 2, "INVALID", ""], ["m3", 4, "VALID", ROWS[0][3]]]
WIDE = table(["mesh", "ranks", "verdict", "remarks"], ROWS)


def test_a_table_that_fits_stays_one_and_remarks_that_do_not_become_notes():
    assert shown(table(["mesh", "ranks"], [["m1", 2]]), 80).splitlines() == [
        "mesh  ranks",
        "────  ─────",
        "m1        2",
    ]
    assert shown(WIDE, 60).splitlines() == [
        "mesh  ranks  verdict  remarks",
        "────  ─────  ───────  ───────",
        "m1        2  VALID    [1]",
        "m3        2  INVALID",
        "m3        4  VALID    [1]",
        "[1] a remark that would be too long to stand in a row of",
        "  this table",
    ]


def test_a_remark_that_all_rows_share_is_said_once_and_needs_no_column():
    rows = [[name, *["0123456789"] * 3, ROWS[0][3]] for name in ("m1", "m3")]
    assert shown(table(["mesh", *["0123456789"] * 3, "remarks"], rows), 40).splitlines() == [
        "mesh  0123456789  0123456789  0123456789",
        "────  ──────────  ──────────  ──────────",
        "m1    0123456789  0123456789  0123456789",
        "m3    0123456789  0123456789  0123456789",
        "remarks on all rows: a remark that would",
        "  be too long to stand in a row of this",
        "  table",
    ]


def test_rows_that_are_too_wide_are_split_into_blocks_that_begin_with_what_tells_them_apart():
    heads = ["mesh", "ranks", "one", "two", "three", "four"]
    rows = [["m1", 1, *["123 456 789 012"] * 4], ["m1", 2, *["123 456 789 013"] * 4]]
    found = shown(table(heads, rows, align="lrrrrr"), 60).splitlines()
    assert [line.split()[:2] for line in found if line.startswith("mesh")] == [["mesh", "ranks"]] * 2
    assert [line.split()[:2] for line in found if line.startswith("m1")] == [["m1", "1"], ["m1", "2"]] * 2


def test_of_a_table_that_is_split_the_columns_that_tell_no_rows_apart_are_not_repeated():
    heads = ["mesh", "method", "ranks", "one", "two", "three"]
    rows = [["the-mesh-of-a-long-name.msh", "sym", ranks, *["123 456 789 012"] * 3] for ranks in (1, 2)]
    blocks = shown(table(heads, rows, align="llrrrr"), 80).split("\n\n")
    assert [block.splitlines()[0].split() for block in blocks] == [heads[:5], ["mesh", "ranks", "three"]]


@pytest.mark.parametrize("n", [1, 2])
def test_a_table_that_is_too_wide_has_its_heads_above_its_values_for_any_number_of_rows(n):
    heads = ["mesh", "one", "two", "three", "four"]
    rows = [[f"m{k}", *["123 456 789 012 345"] * 4] for k in range(n)]
    lines = shown(table(heads, rows, align="lrrrr"), 60).splitlines()
    assert [line.split() for line in lines if line.startswith("mesh")] == [
        ["mesh", "one", "two"],
        ["mesh", "three", "four"],
    ]
    assert sum(line.startswith("m0") for line in lines) == 2


def test_lines_break_between_words_and_commands_stay_whole():
    text = "  the result of this run is there; next: fembench report results/single"
    assert shown(text, 60).splitlines() == [
        "  the result of this run is there;",
        "    next: fembench report results/single",
    ]
    assert shown("x" * 90, 60) == "x" * 90 + "\n"  # a path could not be used in two parts


def test_a_file_gets_everything_as_it_was_printed_and_json_is_never_changed(monkeypatch, capsys):
    with fitting(sys.stdout, contextlib.redirect_stdout):
        print(WIDE, "x " * 80, sep="\n")
    assert capsys.readouterr().out == f"{WIDE}\n{'x ' * 80}\n"
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["mesh", "info", "m1", "--json"]) == 0
    as_it_is = capsys.readouterr().out
    monkeypatch.delenv("COLUMNS")
    assert main(["mesh", "info", "m1", "--json"]) == 0
    assert capsys.readouterr().out == as_it_is


def test_what_has_no_line_end_yet_is_written_when_it_is_flushed():
    sink = Terminal()
    with fitting(sink, contextlib.redirect_stdout):
        print("\rwaiting", end="", flush=True)
        assert sink.getvalue() == "\rwaiting"
        print(table(["a"], [["b"]]), flush=True)
    assert sink.getvalue() == "\rwaiting" + shown(table(["a"], [["b"]]), 80)


def test_only_verdicts_have_a_color_and_only_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    found = shown(f"{WIDE}\nrun-1: PROVISIONAL\nWhy runs are not VALID", 80, Terminal())
    colored = [part.partition("\x1b[0m")[0] for part in found.split("\x1b[")[1::2]]
    assert [part.partition("m")[2].strip() for part in colored] == [
        "VALID",
        "INVALID",
        "VALID",
        "PROVISIONAL",
    ]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(WIDE, 80, Terminal())
    assert "\x1b" not in shown(WIDE, 80)


def test_errors_and_progress_are_fitted_as_well(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["run", "m1", "--precond", "jacoby"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 60


def test_a_table_with_rows_of_unequal_length_is_left_as_it_is():
    assert shown("| a | b |\n| - | - |\n| c |", 80) == "| a | b |\n| - | - |\n| c |\n"


def test_a_table_printed_from_python_fits_the_terminal_too(monkeypatch):
    made = Table(
        "t", "Title", "", (Column("mesh", "mesh"), Column("remarks", "remarks")), (("m1", "x " * 60),)
    )
    assert repr(made).splitlines()[2].startswith("| mesh")
    monkeypatch.setenv("COLUMNS", "60")
    assert repr(made).splitlines()[2:5] == ["mesh  remarks", "────  ───────", "m1    [1]"]


def test_no_number_in_a_text_is_parted_from_its_unit_or_its_thousands():
    cell = "it moved 123 456 cells in 4.56 ms"
    for width in range(40, 70):
        found = shown(table(["a" * 12, "b" * 12, "text"], [["x" * 12, "y" * 12, cell]]), width)
        assert "123 456" in found
        assert "4.56 ms" in found
        assert "123 456" in shown(f"{'word ' * 6}{cell}", width)


def test_a_column_of_remarks_without_any_gives_its_room_to_the_others():
    heads = ["mesh", *["0123456789"] * 4, "remarks"]
    rows = [["m1", *["0123456789"] * 4, ""], ["m3", *["0123456789"] * 4, ""]]
    assert shown(table(heads, rows), 52).splitlines() == [
        "  ".join(["mesh", *["0123456789"] * 4]),
        "  ".join(["────", *["──────────"] * 4]),
        "  ".join(["m1  ", *["0123456789"] * 4]),
        "  ".join(["m3  ", *["0123456789"] * 4]),
    ]


@pytest.mark.parametrize("n", [1, 3])
def test_times_fit_eighty_columns_side_by_side(n):
    heads = [c.head for c in DECLARED["summary"]]
    row = ["m1", "sym · OVERSUBSCRIBED", "4", "1.24 ms", "154 ms", "11.9–18.9 ms", "3", "1170", "27.5 s"]
    found = shown(table(heads, [row] * n, align="lllrrrrrr"), 80).splitlines()
    assert (found[0].split()[0], found[0].split()[-1]) == ("mesh", "run")
    assert "" not in found  # one block


def test_reasons_fit_eighty_columns_side_by_side():
    heads = [c.head for c in DECLARED["reasons"]]
    row = [
        "PROVISIONAL",
        "enough sets and warm-ups (D1) not met",
        "median known to ± 37.4 % (expected ± 2 %)",
    ]
    found = shown(table(heads, [[*row, "m1 · sym · ranks 2", "stop the other work"]] * 2), 80).splitlines()
    assert found[0].split() == ["verdict", "rule", "found", "cases"]
    assert "" not in found


def test_a_pipe_whose_reader_has_gone_is_known(monkeypatch):
    read, write = os.pipe()
    with open(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert not reader_left()
        os.close(read)
        assert reader_left()
    for other in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stdout", other)
        assert not reader_left()
