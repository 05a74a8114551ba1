"""Acceptance A1 and A2 of thesis-000."""

import random

import pytest

from fembench.analytic.interval import Interval, largest, shortest_window, total
from fembench.base.errors import InputError

X, Y = Interval(1, 2), Interval(3, 5)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (X + Y, Interval(4, 7)),
        (10 + X, Interval(11, 12)),
        (3 * X, Interval(3, 6)),
        (largest([Interval(1, 9), Y]), Interval(3, 9)),
        (total([X, Y, 1]), Interval(5, 8)),
        (Y - X, Interval(1, 4)),
        (Y / X, Interval(1.5, 5)),
        (-2 * X, Interval(-4, -2)),
        (Interval(-1, 2) * Y, Interval(-5, 10)),
    ],
)
def test_interval_algebra(found, expected):
    assert found == expected


def test_a_divisor_that_holds_zero_is_refused():
    with pytest.raises(InputError, match="without 0"):
        X / Interval(-1, 1)


def test_ends_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="low <= high"):
        Interval(2, 1)


@pytest.mark.parametrize(
    ("samples", "keep", "expected"),
    [
        ((1.0, 1.1, 1.12, 1.15, 1.2, 5.0, 0.2, 1.13, 1.18, 1.09), 80, Interval(1.0, 1.2)),
        ((3, 1, 2, 9), 100, Interval(1, 9)),
        ((3, 1, 2, 9), 75, Interval(1, 3)),
    ],
)
def test_windows_of_the_thesis(samples, keep, expected):
    assert shortest_window(samples, keep) == expected


def test_no_shorter_window_holds_as_many():
    draw = random.Random(1)
    for _ in range(200):
        x = sorted(draw.gauss(0, 1) for _ in range(draw.randint(1, 30)))
        keep = draw.randint(1, 100)
        kept = max(len(x) - (100 - keep) * len(x) // 100, 1)
        found = shortest_window(x, keep)
        assert sum(v in found for v in x) >= kept
        assert found.high - found.low == min(x[i + kept - 1] - x[i] for i in range(len(x) - kept + 1))
