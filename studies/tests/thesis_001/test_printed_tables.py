"""Tables of thesis-001 that other modules of fembench recompute: one pair per class, load on the hosts."""

import numpy as np
import pytest
from thesis_001 import SITES, columns, matrix

from fembench.records.sites import by_site
from fembench.stats.compare import compare_paired

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


@pytest.mark.parametrize(
    ("number", "inside", "largest", "between"),
    [("4.18", 1.2, 5.2, 8.6), ("4.19", 16.0, 71.8, 18.3), ("4.20", 26.9, 79.2, 18.2)],
)
def test_one_pair_stands_for_the_latency_of_its_class_but_not_for_overheads(number, inside, largest, between):
    found = errors(number)
    assert found[INSIDE].mean() == pytest.approx(inside, abs=0.05)
    assert found[INSIDE].max() == pytest.approx(largest, abs=0.05)
    assert found[BETWEEN].mean() == pytest.approx(between, abs=0.05)


@pytest.mark.row("001:E2")
def test_latency_was_less_uniform_by_the_method_of_version_one():
    """Tables 4.4 to 4.7: Kielmann's method, MPI_Send; large messages (4.6) take the network's time."""
    first, second = errors("4.4"), errors("4.18")
    assert first[INSIDE].mean() > 5 * second[INSIDE].mean()
    assert first[BETWEEN].mean() > 2 * second[BETWEEN].mean()
    assert np.median(errors("4.6")[INSIDE]) <= 1.3
    for number in ("4.5", "4.7"):  # overheads are those of a host, not of a site
        assert errors(number)[INSIDE].mean() > 15


def test_senders_of_a_blocking_send_wait_for_the_internet():
    """Table 4.5: from UFF to PUC Os is a hundred times that inside the site; 116 and 146 are misprints."""
    names, values = matrix("4.5")
    _, far = np.split(values[:4], [6], axis=1)
    assert np.median(far) > 100 * np.nanmedian(values[:4, :4])
    low = [(names[a], names[b]) for a, b in np.argwhere(values[:6, 6:] < 1000) + [0, 6]]
    assert low == [("sn16", "n19"), ("sn17", "n20")]


@pytest.mark.parametrize(
    ("number", "verdict", "low", "high"),
    [
        ("4.39", "no difference shown", 0.95, 1.05),  # Os
        ("4.40", "no difference shown", 0.95, 1.05),  # Or
        ("4.41", "slower", 6.0, 7.0),  # L
    ],
)
def test_load_on_the_hosts_lengthens_latency_and_leaves_overheads(number, verdict, low, high):
    t = columns(number)
    found = compare_paired(t["loaded"], t["alone"], noise=0.05)
    assert found.verdict == verdict
    assert low <= found.ratio <= high


def test_small_messages_wait_for_a_time_slice_on_loaded_hosts():
    t = columns("4.41")
    ratio = t["loaded"] / t["alone"]
    assert ratio[t["m"] < 131072].max() > 100
    assert ratio[t["m"] >= 131072].min() > 3
    assert ratio[t["m"] >= 131072].max() < 8
