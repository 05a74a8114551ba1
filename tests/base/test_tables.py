"""Tables of text."""

import csv
import io

import pytest

from fembench.base.tables import csv_cell, table


def test_numbers_lean_right_and_words_left_unless_told_otherwise():
    assert table(["name", "n"], [["a", 1], ["long name", 12345]]).splitlines() == [
        "| name      |     n |",
        "| --------- | ----: |",
        "| a         |     1 |",
        "| long name | 12345 |",
    ]
    lines = table(["a", "b"], [["1", 2]], align="rl").splitlines()
    assert lines[1:] == ["| --: | --- |", "|   1 | 2   |"]
    assert table(["x"], []).splitlines() == ["| x   |", "| --- |"]


def test_a_cell_shows_significant_digits_a_dash_for_nothing_and_a_line_for_a_bar():
    assert table(["x", "y"], [[3.14159265, None]], digits=3).splitlines()[-1] == "| 3.14 | –   |"
    assert table(["norm"], [["|r|/|f|"]]).splitlines()[-1] == "| │r│/│f│ |"


def test_markdown_takes_no_cell_and_no_head_for_html_and_smaller_than_stays():
    lines = table(["<b>", "n"], [["<script>alert(1)</script>", "< 3"], ["<!-- x", "a <- b"]]).splitlines()
    cells = [line.strip("| ").split(" | ")[0].strip() for line in lines]
    assert cells[::2] == ["‹b>", "‹script>alert(1)‹/script>"]
    assert cells[3] == "‹!-- x"
    assert "< 3" in lines[2]
    assert "a <- b" in lines[3]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-O2", "@SUM(A1)", "\tx", "'quoted", "''", "plain", "a=b", ""]
)
def test_no_text_in_a_csv_file_is_a_formula_and_programs_get_it_back(text):
    stream = io.StringIO()
    csv.writer(stream).writerow([csv_cell(text), csv_cell(-1.5), csv_cell(None)])
    found, number, nothing = next(csv.reader(io.StringIO(stream.getvalue())))
    assert found[:1] not in ("=", "+", "-", "@", "\t", "\r")
    assert found.removeprefix("'") == text
    assert (number, nothing) == ("-1.5", "")


def test_every_line_has_as_many_bars_also_where_a_row_is_short_or_holds_a_bar():
    text = table(["a", "b", "c"], [["x|y", 1.0], [None, 2.5, "two\nlines"]])
    assert {line.count("|") for line in text.splitlines()} == {4}
    assert len(text.splitlines()) == 4
    assert len({len(line) for line in text.splitlines()}) == 1
