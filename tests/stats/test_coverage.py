"""Every interval and verdict of `stats` against its nominal rate, and the tables of docs/statistics.md."""

import re
from pathlib import Path

import numpy as np
import pytest
from simulated_rates import (
    ALARMS,
    INTERVALS,
    apart,
    as_markdown,
    clustered,
    generator,
    median_ends,
    normal,
    simulated,
    typical_ends,
)

from fembench.stats.compare import compare_paired
from fembench.stats.student import (
    by_run,
    log_interval,
    next_interval,
    ratio_unpaired,
    share_intervals,
    typical_interval,
)
from fembench.stats.summary import median_interval, order_statistics
from fembench.weights.scaling import captured_gain

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def named(row):
    return f"{row.what} {row.samples}"


def conservative(row, n):
    """Intervals of order statistics cover with at least 95 %: as much as the binomial distribution says."""
    exact = ("order statistics", "by_run", "share_intervals", "compare_paired")
    return n >= 6 and any(word in row.what for word in exact)


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in INTERVALS if r.kept], ids=named)
def test_an_interval_covers_as_often_as_it_says_where_its_assumptions_hold(row):
    for n in row.ns:
        most = order_statistics(n)[1] + 0.015 if conservative(row, n) else 0.97
        if "slowing" in row.samples or "no pairs" in row.what:
            most = 1.0  # reversed turns scatter on both sides; degrees of freedom of the shortest series
        assert 0.93 <= simulated()[row, n] <= most, n


@pytest.mark.parametrize("row", [r for r in ALARMS if r.kept], ids=named)
def test_equal_things_are_called_different_in_at_most_one_case_of_twenty(row):
    assert max(simulated()[row, n] for n in row.ns) <= 0.05


@pytest.mark.parametrize(("heading", "table"), [("Intervals", INTERVALS), ("Verdicts", ALARMS)])
def test_the_page_has_the_rates_that_the_simulation_gives(heading, table):
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    printed = [line for line in section.splitlines() if line.startswith("|")]
    made = as_markdown(table).splitlines()
    assert len(printed) == len(made)
    for ours, theirs in zip(printed, made):
        assert re.sub(r"\d+", "", ours) == re.sub(r"\d+", "", theirs)
        pairs = zip(re.findall(r"(?<=\| )\d+(?= \|)", ours), re.findall(r"(?<=\| )\d+(?= \|)", theirs))
        assert all(abs(int(a) - int(b)) <= 1 for a, b in pairs), theirs


def test_where_assumptions_do_not_hold_intervals_do_miss():
    worst = {row.what: min(simulated()[row, n] for n in row.ns) for row in INTERVALS if not row.kept}
    assert worst["`median_interval` of all sets"] < 0.6
    assert worst["`compare_paired`, same order"] < 0.2


@pytest.mark.parametrize("n", [3, 5, 6, 20])
def test_rows_are_simulated_as_single_samples_are_judged(n):
    x = normal(generator("rows"), (2, n))
    low, high = typical_ends(x)
    for k in range(2):
        assert typical_interval(x[k])[:2] == pytest.approx((low[k], high[k]))
    if n >= 6:
        assert median_interval(x[0])[:2] == tuple(e[0] for e in median_ends(x))
        assert compare_paired(*x).interval[:2] == tuple(median_ends(x[0] / x[1]))
    runs = clustered(generator("rows"), (40, n))
    assert apart(runs).tolist() == [by_run(sets).apart for sets in runs]


def test_students_interval_is_that_of_the_textbook():
    # logarithms 0, 1, 2: mean 1, standard error 1 / sqrt(3), t(2) = 4.3027
    found = log_interval(np.exp([0.0, 1.0, 2.0]))
    half = 4.302653 / 3**0.5
    assert np.log(found[:2]) == pytest.approx([1 - half, 1 + half], rel=1e-6)


def test_welchs_interval_is_that_of_the_textbook():
    # logarithms of equal spread: df = 4, t(4) = 2.7764, standard error sqrt(2 / 3)
    found = ratio_unpaired(np.exp([1.0, 2.0, 3.0]), np.exp([0.0, 1.0, 2.0]))
    half = 2.776445 * (2 / 3) ** 0.5
    assert found.value == pytest.approx(np.e)
    assert np.log(found.interval[:2]) == pytest.approx([1 - half, 1 + half], rel=1e-6)


def test_fewer_samples_than_an_interval_needs_have_none():
    two, eight = [1.0, 1.1], [1.0, 1.1] * 4
    assert typical_interval(two) is None
    assert log_interval(two) is None
    assert next_interval(two) is None
    assert ratio_unpaired(two, eight).interval is None
    assert ratio_unpaired([], eight).interval is None
    assert share_intervals([[0.5, 0.5]] * 2) == (None, None)
    assert by_run([eight, eight]).interval is None


def test_no_interval_of_a_share_exceeds_the_whole():
    first = np.array([0.2, 0.4, 0.7])
    intervals = share_intervals(np.stack([first, 1 - first], axis=1))
    assert typical_interval(1 - first).high > 1
    assert [each.high for each in intervals] == [1.0, 1.0]


def test_what_has_no_logarithm_has_no_interval_by_logarithms():
    assert log_interval([0.0, 1.0, 1.0]) is None
    assert ratio_unpaired([1.0, 1.0, 1.0], [1.0, 0.0, 1.0]).interval is None

    nan = float("nan")
    for few in (typical_interval, log_interval, next_interval):
        assert few([1.0, 2.0, nan]) is None
    assert ratio_unpaired([1.0, 2.0, nan], [1.0, 2.0, 3.0]).interval is None
    assert by_run([[1.0, 2.0], [2.0, 3.0], [3.0, nan]]).interval is None


@pytest.mark.parametrize("n", [3, 5, 12])
def test_identical_samples_have_no_interval_of_student(n):
    same = [3.0] * n  # log(3) is rounded: mean and spread of the logarithms are not exact
    assert log_interval(same) is None
    assert next_interval(same) is None
    assert ratio_unpaired(same, [2.9997] * n).interval is None
    assert captured_gain(same, [2.0] * n, 1.0).interval is None
    assert ratio_unpaired(same, [1.0, 1.1, 1.2]).interval  # the spread of one side is known
    ends = typical_interval(same)
    assert ends is None if n < 6 else ends[:2] == (3.0, 3.0)


def test_an_interval_of_the_median_holds_the_median_whatever_is_rounded():
    rng = np.random.default_rng(6)
    for samples in 1 / 3 * (1 + 3e-16 * rng.standard_normal((500, 4))):
        found = typical_interval(samples)
        assert found is None or np.median(samples) in found
    assert by_run([[3.0]] * 3).interval is None


def test_runs_that_their_own_sets_tell_apart_are_called_apart():
    first, second = np.linspace(33.6, 37.8, 10), np.linspace(17.4, 27.0, 10)
    found = by_run([first, second])
    assert found.apart
    assert found.interval is None
    assert found.median == pytest.approx((35.7 + 22.2) / 2)
    assert found.within == (median_interval(first), median_interval(second))
    assert not by_run([first, first + 0.1]).apart
    assert not by_run([]).apart
