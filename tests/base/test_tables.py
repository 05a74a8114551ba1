"""Tables of text."""

from fembench.base.tables import table


def test_numbers_lean_right_and_words_left():
    assert table(["name", "n"], [["a", 1], ["long name", 12345]]).splitlines() == [
        "| name      |     n |",
        "| --------- | ----: |",
        "| a         |     1 |",
        "| long name | 12345 |",
    ]


def test_a_column_leans_as_told():
    lines = table(["a", "b"], [["1", 2]], align="rl").splitlines()
    assert lines[1:] == ["| --: | --- |", "|   1 | 2   |"]


def test_a_bar_in_a_cell_shows_no_backslash():
    assert table(["norm"], [["|r|/|f|"]]).splitlines()[-1] == "| │r│/│f│ |"


def test_every_line_has_as_many_bars_also_where_a_row_is_short_or_holds_a_bar():
    text = table(["a", "b", "c"], [["x|y", 1.0], [None, 2.5, "two\nlines"]])
    assert {line.count("|") for line in text.splitlines()} == {4}
    assert len(text.splitlines()) == 4
    assert len({len(line) for line in text.splitlines()}) == 1


def test_floats_show_significant_digits_and_nothing_shows_a_dash():
    text = table(["x", "y"], [[3.14159265, None]], digits=3)
    assert text.splitlines()[-1] == "| 3.14 | –   |"


def test_a_table_without_rows_is_its_head():
    assert table(["x"], []).splitlines() == ["| x   |", "| --- |"]
