"""Time ranges against the tables of Herai (2005)."""

import random

import pytest

from fembench.base.errors import InputError
from fembench.model.interval import TimeRange, largest, shortest_window, total

X, Y = TimeRange(1, 2), TimeRange(3, 5)


@pytest.mark.row("000:F28")
@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (X + Y, TimeRange(4, 7)),
        (10 + X, TimeRange(11, 12)),
        (3 * X, TimeRange(3, 6)),
        (largest([TimeRange(1, 9), Y]), TimeRange(3, 9)),
        (total([X, Y, 1]), TimeRange(5, 8)),
        (Y - X, TimeRange(1, 4)),
        (Y / X, TimeRange(1.5, 5)),
        (-2 * X, TimeRange(-4, -2)),
        (TimeRange(-1, 2) * Y, TimeRange(-5, 10)),
    ],
)
def test_interval_algebra(found, expected):
    assert found == expected


def test_a_divisor_that_holds_zero_is_refused():
    with pytest.raises(InputError, match="without 0"):
        X / TimeRange(-1, 1)


def test_ends_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="low <= high"):
        TimeRange(2, 1)


@pytest.mark.row("000:F12")
@pytest.mark.parametrize(
    ("samples", "keep", "expected"),
    [
        ((1.0, 1.1, 1.12, 1.15, 1.2, 5.0, 0.2, 1.13, 1.18, 1.09), 80, TimeRange(1.0, 1.2)),
        ((3, 1, 2, 9), 100, TimeRange(1, 9)),
        ((3, 1, 2, 9), 75, TimeRange(1, 3)),
    ],
)
def test_published_windows(samples, keep, expected):
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
