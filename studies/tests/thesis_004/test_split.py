"""Bounds from the times of machines alone."""

import pytest

from fembench.base.errors import InputError
from fembench_studies.thesis_004.split import bottleneck_time, ideal_split


def test_equal_machines_share_alike():
    split = ideal_split((3.0, 3.0, 3.0))
    assert split.seconds == pytest.approx(1)
    assert split.shares == pytest.approx((1 / 3,) * 3)


def test_a_host_saves_at_most_its_share():
    split = ideal_split((1.0, 9.0))  # 1 s alone, 0.9 s with the other
    assert split.shares[1] == pytest.approx(1 - split.seconds / 1.0)


def test_the_bottleneck_is_the_host_that_ends_last():
    assert bottleneck_time((1, 1), (10.0, 4.0)) == 5.0


@pytest.mark.parametrize("times", [(), (1.0, 0.0), (1.0, float("nan")), (1.0, -2.0)])
def test_times_must_be_positive(times):
    with pytest.raises(InputError, match="positive seconds"):
        ideal_split(times)
