"""Visits in rounds: everybody has his turn, and time is shared fairly."""

from collections import Counter

import pytest

from fembench.characterize.speeds import corunning_counts, groups, periods, visits_a_round, visits_of


def test_numbers_of_ranks_double_up_to_all():
    assert corunning_counts(1, quick=False) == (1,)
    assert corunning_counts(2, quick=False) == (1, 2)
    assert corunning_counts(6, quick=False) == (1, 2, 4, 6)
    assert corunning_counts(8, quick=True) == (1, 8)
    assert corunning_counts(1, quick=True) == (1,)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 7, 64])
def test_groups_have_exactly_so_many_ranks_are_spread_and_leave_nobody_out(ranks):
    for count in corunning_counts(ranks, quick=False):
        found = groups(ranks, count)
        assert all(len(set(group)) == count for group in found)
        assert set().union(*found) == set(range(ranks))
    assert (groups(8, 2)[0], groups(8, 4)[1]) == ((0, 4), (1, 3, 5, 7))


def test_a_round_visits_every_probe_with_all_ranks_once_and_fewer_ranks_have_their_turn():
    seen = Counter()
    for number in range(12):
        visits = visits_of(number, 4, (1, 2, 4), [1, 1, 1], n_groups=1)
        assert sorted(v.probe for v in visits if len(v.ranks) == 4) == [0, 1, 2]
        seen.update(v.ranks for v in visits if v.probe == 0)
    assert seen[0, 1, 2, 3] == 12
    assert all(seen[ranks] > 0 for ranks in ((0,), (1,), (2,), (3,), (0, 2), (1, 3)))
    periods_of_zero = {v.probe for n in range(9) for v in visits_of(n, 1, (1,), [1, 0, 3], 1)}
    assert periods_of_zero == {0, 2}  # never


def test_the_order_differs_from_round_to_round_and_is_the_same_on_all_ranks():
    first, again = (visits_of(0, 2, (1, 2), [1] * 9, 4) for _ in range(2))
    assert first == again
    second = visits_of(1, 2, (1, 2), [1] * 9, 4)
    assert first != second
    assert sorted(first) == sorted(second)


def test_long_visits_are_made_less_often_so_that_rounds_fit():
    costs, seconds, rounds, visits = [0.05, 0.05, 0.1, 3.0], 12.0, 6, 2
    every = periods(costs, visits, seconds, rounds)
    assert every[:3] == [1, 1, 1]
    assert every[3] > 1
    spent = sum(cost / period for cost, period in zip(costs, every)) * visits * rounds
    assert spent <= seconds * 1.001
    assert periods([1.0, 1.0], 1, 2.0, 10) == [10, 10]  # where none fits


def test_the_visits_of_a_mean_round_are_counted():
    counts = corunning_counts(4, quick=False)
    mean = sum(len(visits_of(n, 4, counts, [1], 4)) for n in range(8)) / 8
    assert visits_a_round(4, counts, 4) == mean
    assert visits_a_round(1, (1,), 4) == 1
