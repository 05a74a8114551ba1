"""Tables of thesis-001: one pair of hosts stands for its class, by both methods of measuring."""

import numpy as np
import pytest
from thesis_001 import SITES, matrix

from fembench.records.sites import by_site

INSIDE, BETWEEN = "inside", "between"


def errors(number):
    """{where: (pairs,) |error| in per cent} of a class's measured pair, relative to each of its pairs."""
    _, values = matrix(number)
    classes = by_site(SITES)
    found = {INSIDE: [], BETWEEN: []}
    for a, row in enumerate(classes.pair_class):
        for b, of in enumerate(row):
            if a != b:
                where = INSIDE if SITES[a] == SITES[b] else BETWEEN
                found[where].append(100 * abs(values[classes.pairs[of]] / values[a, b] - 1))
    return {where: np.array(each) for where, each in found.items()}


@pytest.mark.row("001:E2")
def test_latency_was_less_uniform_by_the_method_of_version_one():
    """Tables 4.4 to 4.7: Kielmann's method, MPI_Send; large messages (4.6) take the network's time."""
    first, second = errors("4.4"), errors("4.18")
    assert first[INSIDE].mean() > 5 * second[INSIDE].mean()
    assert first[BETWEEN].mean() > 2 * second[BETWEEN].mean()
    assert np.median(errors("4.6")[INSIDE]) <= 1.3
    for number in ("4.5", "4.7"):  # overheads are those of a host, not of a site
        assert errors(number)[INSIDE].mean() > 15
