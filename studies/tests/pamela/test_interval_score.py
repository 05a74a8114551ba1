"""Acceptance A10 and A14 of thesis-000: its 400 errors and their means."""

import pytest
from thesis_000 import factors, rows

from fembench.model.closed_form import TimeRange
from fembench.model.score import Grid, ideal
from fembench_studies.pamela.interval_score import score

RESULTS = rows("results")


def times(row):
    return [float(row[f"measured_{k}_s"]) for k in range(1, 5)]


def printed_range(row):
    return TimeRange(float(row["estimate_min_s"]), float(row["estimate_max_s"]))


def scored(row):
    return score(times(row), [printed_range(row)] * 4)


SCORES = [(row["version"], scored(row)) for row in RESULTS]


@pytest.mark.row("000:Eq5.2/5.3", "000:A11")
def test_every_error_is_the_printed_one():
    assert len(RESULTS) == 100
    for row, (_, found) in zip(RESULTS, SCORES):
        printed = [float(row[f"error_{k}_printed_percent"]) for k in range(1, 5)]
        # most tables print the magnitude
        assert [abs(100 * e) for e in found.errors] == pytest.approx([abs(e) for e in printed], abs=0.011), (
            row
        )
        assert 100 * found.mean_error == pytest.approx(float(row["mean_error_printed_percent"]), abs=0.011)


def of_application(name):
    """(row of the results, its score) of the four versions of one application."""
    return [(r, s) for r, (v, s) in zip(RESULTS, SCORES) if v.split("_")[0] == name]


@pytest.mark.row("000:Eq5.1")
@pytest.mark.parametrize("row", rows("summary"), ids=lambda r: r["application"])
def test_the_summary_of_each_application(row):
    found = of_application(row["application"])
    ranges = [printed_range(r) for r, _ in found]
    pooled = score([t for r, _ in found for t in times(r)], [p for p in ranges for _ in range(4)])
    assert len(pooled.errors) == int(row["runs"])
    assert pooled.hits == int(row["hits"])
    assert 100 * pooled.hits / len(pooled.errors) == float(row["coverage_percent"])
    expected = {
        "mean_absolute_error_percent": (pooled.mean_error, 0.005),
        "largest_absolute_error_percent": (max(map(abs, pooled.errors)), 0.005),
        "mape_of_interval_midpoint_percent": (pooled.middle_error, 0.05),
        "mean_half_width_of_estimate_percent": (pooled.half_width, 0.05),
    }
    for column, (value, within) in expected.items():
        assert 100 * value == pytest.approx(float(row[column]), abs=1.01 * within), column
    assert sum(e > 0 for e in pooled.errors) == int(row["misses_above"])
    assert sum(e < 0 for e in pooled.errors) == int(row["misses_below"])


def on_machines(row):
    """The measured runs of a row as a cell of a prediction's grid: unit work on the fastest workers."""
    p = int(row["machines"])
    return Grid(p, 1.0, factors(p), sum(times(row)) / 4)


def beyond_two(name, predicted):
    """Mean error in per cent of predictions' midpoints, over the runs on 4 to 32 machines."""
    found = [(r, predicted(r)) for r, _ in of_application(name) if r["machines"] != "2"]
    measured = [t for r, _ in found for t in times(r)]
    return 100 * score(measured, [p for _, p in found for _ in range(4)]).middle_error


def from_two(row):
    """The time of the same version on two machines, scaled by the sum of speeds."""
    base = next(r for r in RESULTS if (r["version"], r["machines"]) == (row["version"], "2"))
    (seconds,) = ideal([on_machines(base)], [on_machines(row)])
    return TimeRange(seconds, seconds)


@pytest.mark.row("000:4.7-7")
@pytest.mark.parametrize("row", rows("naive_scaling_comparison"), ids=lambda r: r["application"])
def test_scaling_a_run_by_the_sum_of_speeds_errs_as_much_as_the_model_in_half_of_the_applications(row):
    name = row["application"]
    naive, model = beyond_two(name, from_two), beyond_two(name, printed_range)
    assert naive == pytest.approx(float(row["naive_scaling_mape_percent"]), abs=0.051)
    assert model == pytest.approx(float(row["pempsys_midpoint_mape_percent"]), abs=0.051)
    if row["pempsys_with_q_midpoint_mape_percent"]:
        informed = beyond_two(f"{name}Q", printed_range)
        assert informed == pytest.approx(float(row["pempsys_with_q_midpoint_mape_percent"]), abs=0.051)
    assert (model < naive) == (name in ("pi", "mat"))
