"""Columns of events: groups and partners against what sorting and dictionaries find."""

from collections import defaultdict

import numpy as np
import pytest

from fembench.model.event_table import ANY, groups, partners

N = 60
RNG = np.random.default_rng(5)
COLUMNS = {
    "few": RNG.integers(-3, 4, N),
    "flags": RNG.random(N) < 0.5,
    "far apart": RNG.choice([ANY, -1, 7, 1 << 40], N),
    "seconds": RNG.choice([0.0, 1e-9, 2.5], N),
}


@pytest.mark.parametrize("names", [["few"], ["far apart"], ["seconds", "flags"], list(COLUMNS)])
@pytest.mark.parametrize("n", [0, 1, N])
def test_equal_rows_are_one_group_and_groups_are_in_ascending_order(names, n):
    columns = [COLUMNS[name][:n] for name in names]
    rows = list(zip(*(column.tolist() for column in columns)))
    distinct = sorted(set(rows))
    first, group = groups(*columns)
    assert group.tolist() == [distinct.index(row) for row in rows]
    assert first.tolist() == [rows.index(one) for one in distinct]


def test_the_second_of_equal_rows_is_the_partner_of_the_second():
    rows, others = (tuple(RNG.integers(0, 4, (2, n))) for n in (40, 50))
    left = defaultdict(list)
    for k, row in enumerate(zip(*rows)):
        left[row].append(k)
    expected = [left[other].pop(0) if left[other] else -1 for other in zip(*others)]
    assert partners(rows, others).tolist() == expected
    assert -1 in expected
