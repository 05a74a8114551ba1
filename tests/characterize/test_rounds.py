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
def test_groups_have_exactly_so_many_ranks_and_leave_nobody_out(ranks):
    for count in corunning_counts(ranks, quick=False):
        found = groups(ranks, count)
        assert all(len(set(group)) == count for group in found)
        assert set().union(*found) == set(range(ranks))
        assert all(0 <= rank < ranks for group in found for rank in group)


def test_groups_are_spread_over_the_host():
    assert groups(8, 2)[0] == (0, 4)
    assert groups(8, 4)[1] == (1, 3, 5, 7)


def test_a_round_visits_every_probe_with_all_ranks_once():
    for number in range(5):
        visits = visits_of(number, 4, (1, 2, 4), [1, 1, 1], n_groups=4)
        everyone = [v.probe for v in visits if len(v.ranks) == 4]
        assert sorted(everyone) == [0, 1, 2]


def test_fewer_ranks_have_their_turn():
    seen = Counter()
    for number in range(12):
        seen.update(v.ranks for v in visits_of(number, 4, (1, 2, 4), [1], n_groups=1))
    assert seen[0, 1, 2, 3] == 12
    assert all(seen[rank,] > 0 for rank in range(4))
    assert seen[0, 2] > 0
    assert seen[1, 3] > 0


def test_the_order_differs_from_round_to_round_and_is_the_same_on_all_ranks():
    first, again = (visits_of(0, 2, (1, 2), [1] * 9, 4) for _ in range(2))
    assert first == again
    second = visits_of(1, 2, (1, 2), [1] * 9, 4)
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_period_of_zero_is_never():
    assert {v.probe for n in range(9) for v in visits_of(n, 1, (1,), [1, 0, 3], 1)} == {0, 2}


def test_long_visits_are_made_less_often_so_that_rounds_fit():
    costs, seconds, rounds, visits = [0.05, 0.05, 0.1, 3.0], 12.0, 6, 2
    every = periods(costs, visits, seconds, rounds)
    assert every[:3] == [1, 1, 1]
    assert every[3] > 1
    spent = sum(cost / period for cost, period in zip(costs, every)) * visits * rounds
    assert spent <= seconds * 1.001


def test_all_probes_come_less_often_where_none_fits():
    every = periods([1.0, 1.0], 1, 2.0, 10)
    assert every == [10, 10]


def test_the_visits_of_a_mean_round_are_counted():
    counts = corunning_counts(4, quick=False)
    mean = sum(len(visits_of(n, 4, counts, [1], 4)) for n in range(8)) / 8
    assert visits_a_round(4, counts, 4) == mean
    assert visits_a_round(1, (1,), 4) == 1
