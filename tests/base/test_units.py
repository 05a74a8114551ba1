import re
from pathlib import Path

import pytest

import fembench
from fembench.base import units
from fembench.report.plots.canvas import seconds_scale


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9997, "1 s"),
        (0.9994, "999 ms"),
        (0.9997e-3, "1 ms"),
        (0.9997e-6, "1 µs"),
        (-0.9997, "-1 s"),
        (1.234, "1.23 s"),
        (999.7, "1000 s"),
        (3600.0, "3600 s"),
        (12.3e-9, "12.3 ns"),
        (0.0, "0 s"),
    ],
)
def test_seconds_round_to_the_next_unit_and_never_print_a_power_of_ten(value, text):
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(6.2, "6 s"), (99.4, "99 s"), (99.6, "2 minutes"), (5400.0, "90 minutes"), (5970.0, "1.7 h")]
    + [(172_600.0, "47.9 h"), (172_700.0, "2 days"), (864_000.0, "10 days")],
)
def test_a_span_of_time_has_the_unit_that_reads_best(value, text):
    assert units.span(value) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (512, "512 B"),
        (1023.7, "1 KiB"),
        (1000 * 2**10, "1000 KiB"),
        (1023.7 * 2**10, "1 MiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (1023.9 * 2**30, "1 TiB"),
        (5000 * 2**40, "5000 TiB"),
    ],
)
def test_sizes_round_to_the_next_unit_and_never_print_a_power_of_ten(n_bytes, text):
    assert units.size(n_bytes) == text


def test_a_plot_whose_tallest_bar_rounds_to_a_second_is_drawn_in_seconds():
    assert seconds_scale(0.9997) == (1.0, "s")
    assert seconds_scale(0.9994) == (1e3, "ms")


@pytest.mark.parametrize(("n", "text"), [(0, "0 ranks"), (1, "1 rank"), (2, "2 ranks")])
def test_one_of_a_thing_is_not_named_in_the_plural(n, text):
    assert units.plural(n, "rank") == text


@pytest.mark.parametrize(
    ("names", "text"), [("", ""), ("ab", "a, b"), ("abc", "a, b, c"), ("abcd", "a, b and 2 more")]
)
def test_of_many_names_a_few_are_said_and_never_all_but_one(names, text):
    assert units.few(list(names), 2) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (750, "12:30"), (3723, "1:02:03")]
)
def test_a_duration_is_told_as_on_a_clock(value, text):
    assert units.clock(value) == text


OWN_PLURAL = re.compile(r"""['"]s['"] \* \(|else ['"]s['"]|placement\.ranks\} ranks""")


def test_nobody_else_forms_plurals():
    package = Path(fembench.__file__).parent
    found = [path for path in package.rglob("*.py") if OWN_PLURAL.search(path.read_text())]
    assert [path.relative_to(package).as_posix() for path in found] == ["base/units.py"]


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(0.846, 2, "0.85"), (0.0042, 2, "0.0042"), (0.0, 2, "0.00"), (-0.00031, 3, "-0.00031"), (0.3, 0, "0.3")],
)
def test_a_number_below_its_decimals_keeps_significant_digits(value, decimals, text):
    assert units.fixed(value, decimals) == text


def test_percentages_have_one_spelling_everywhere():
    assert (units.percent(0.2318), units.percent(0.95, 0)) == ("23.2 %", "95 %")
    assert units.percent(4e-5) == "0.004 %"
    for path in Path(fembench.__file__).parent.rglob("*.py"):
        assert "%}" not in path.read_text(encoding="utf-8"), f"{path}: use units.percent"
