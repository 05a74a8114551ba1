import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.slow_rank import slow_rank

HOSTS = ("a", "a", "b", "b")


def planted(speeds, n_sets=10, seed=0, share=None):
    """(cost, waiting) of ranks with these speeds in a run with these shares: all wait for the slowest."""
    rng = np.random.default_rng(seed)
    speeds = np.asarray(speeds, float)
    share = np.ones(len(speeds)) / len(speeds) if share is None else np.asarray(share)
    cost = 1 / speeds * (1 + 0.005 * rng.standard_normal((n_sets, len(speeds))))
    busy = cost * share
    total = busy.max(axis=1, keepdims=True)
    return cost, (total - busy) / total


def test_a_slow_rank_is_named_with_its_host():
    found = slow_rank(*planted([1, 1, 1, 0.5]), HOSTS)
    assert (found.answer, found.rank, found.host) == ("rank", 3, "b")
    assert found.slowness == pytest.approx(2, rel=0.02)
    assert str(found).startswith("rank 3 on b: 2")


def test_ranks_of_seven_percent_difference_are_told_apart():
    assert slow_rank(*planted([1, 0.93, 1, 1]), HOSTS).rank == 1


def test_equal_ranks_have_no_slow_one():
    assert slow_rank(*planted([1, 1, 1, 1]), HOSTS).answer == "equal"
    assert slow_rank(*planted([1]), ("a",)).answer == "equal"


@pytest.mark.parametrize("seed", range(20))
def test_two_equally_slow_ranks_of_one_host_name_one_of_them_and_the_host(seed):
    found = slow_rank(*planted([1, 1, 0.5, 0.5], seed=seed), HOSTS)
    assert (found.answer, found.host) == ("rank", "b")
    assert found.rank in (2, 3)


def test_estimators_that_disagree_leave_it_undecided():
    cost, waiting = planted([1, 1, 1, 0.5])
    found = slow_rank(cost, waiting[:, ::-1], HOSTS)
    assert (found.answer, found.rank, found.host) == ("undecided", -1, "")
    assert (found.by_work, found.by_waiting) == (3, 0)
    assert "undecided" in str(found)


def test_two_ranks_of_one_host_that_each_estimator_names_agree_on_the_host():
    cost, waiting = planted([1, 1, 1, 0.5])
    waiting[:, [2, 3]] = waiting[:, [3, 2]]  # the other rank of host b waits least
    found = slow_rank(cost, waiting, HOSTS)
    assert (found.answer, found.rank, found.host) == ("host", -1, "b")
    assert str(found).startswith("host b")


def test_a_slow_rank_with_a_smaller_share_holds_nobody_up():
    found = slow_rank(*planted([1, 1, 1, 0.5], share=[0.45, 0.2, 0.2, 0.15]), HOSTS)
    assert (found.answer, found.by_work, found.by_waiting) == ("undecided", 3, 0)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="one per rank"):
        slow_rank([[1, 2]], [[1, 2]], ("a",))


def test_a_host_that_both_estimators_name_among_others_is_named():
    cost, waiting = planted([1, 1, 1, 0.5])
    waiting[:, [2, 3]] = waiting[:, [3, 2]]
    waiting[:, 0] = waiting[:, 2]  # a rank of host a waits as little
    found = slow_rank(cost, waiting, HOSTS)
    assert (found.answer, found.host) == ("host", "b")
