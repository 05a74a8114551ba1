import pytest

from fembench.base.errors import InputError
from fembench.weights.make import natural_tasks, tasks_per_host


@pytest.mark.row("004:F15")
def test_a_ratio_of_7_7_gives_one_task_to_the_slow_and_seven_to_the_fast_machine():
    assert natural_tasks((7.7, 1.0)) == 8
    assert tasks_per_host((7.7, 1.0), 8) == (1, 7)


def test_a_whole_ratio_is_not_rounded_down():
    assert 0.3 / 0.1 < 3
    assert natural_tasks((0.3, 0.1)) == 4


def test_like_for_like_times_give_13_to_1():
    assert tasks_per_host((316.657648, 24.417126), 14) == (1, 13)


def test_tasks_minimise_the_time_of_the_slowest_host():
    times = (1.0, 1.4, 3.0)
    for total in range(3, 20):
        best = min(
            max(a * times[0], b * times[1], (total - a - b) * times[2])
            for a in range(1, total)
            for b in range(1, total - a)
        )
        found = tasks_per_host(times, total)
        assert sum(found) == total
        assert max(k * t for k, t in zip(found, times)) == pytest.approx(best)


def test_every_host_gets_a_task_or_it_is_an_error():
    assert tasks_per_host((1.0, 1000.0), 2) == (1, 1)
    with pytest.raises(InputError, match="1 task for 2 hosts"):
        tasks_per_host((1.0, 2.0), 1)


def test_equal_machines_share_alike():
    assert tasks_per_host((3.0, 3.0), 5) == (3, 2)


@pytest.mark.parametrize("times", [(), (1.0, 0.0), (1.0, float("nan")), (1.0, -2.0)])
def test_times_must_be_positive(times):
    with pytest.raises(InputError, match="positive seconds"):
        natural_tasks(times)
