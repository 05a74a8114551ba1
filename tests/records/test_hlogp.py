"""HLogP against the tables of Mendes (2004), exactly."""

import numpy as np
import pytest
from thesis_001 import SITES, UFF, UFF_PUC, columns, matrix, piece_around

from fembench.records.hlogp import (
    kielmann,
    message_cost,
    ping_pong_latency,
)
from fembench.records.network import Network, PairClass, class_of
from fembench.records.sites import by_pair, by_site


@pytest.mark.parametrize(
    ("actual", "printed", "within", "agree"),
    [("4.18", "4.21", 0.15, 85), ("4.19", "4.22", 0.06, 88), ("4.20", "4.23", 0.06, 87)],
)
def test_one_pair_stands_for_its_class_as_published(actual, printed, within, agree):
    _, values = matrix(actual)
    _, errors = matrix(printed)
    classes = by_site(SITES)
    found = 0
    for a, row in enumerate(classes.pair_class):
        for b, number in enumerate(row):
            if a != b:
                mine = values[classes.pairs[number]]
                found += abs(100 * (mine - values[a, b]) / mine - errors[a, b]) <= within
    assert found >= agree


def test_three_sites_need_nine_pairs_instead_of_ninety():
    assert sum(a != b for a, b in by_site(SITES).pairs) == 9
    assert len(by_pair([f"h{i}" for i in range(10)]).names) == 90 + 1


def test_latency_of_the_equations_is_that_of_table_4_33():
    table = columns("4.33")
    mine = np.array([message_cost(UFF, m).latency for m in table["m"]])
    error = 100 * np.abs(mine / table["L_meas"] - 1)
    assert error.mean() <= 4.7 + 0.05
    assert error[table["m"] >= 32768].max() <= 1.8 + 0.05


def test_the_equations_give_the_numbers_of_the_published_ring():
    near, far = message_cost(UFF, 2097152), message_cost(UFF_PUC, 2097152)
    assert near.latency == pytest.approx(181712, abs=1)
    assert near.receive == pytest.approx(3438, abs=1)
    assert near.send == 37
    assert far.latency == pytest.approx(3417691, abs=1)
    assert far.receive == pytest.approx(6307, abs=1)


def test_latency_is_half_of_what_the_round_trip_leaves_over():
    assert ping_pong_latency(100.0, 3.0, 5.0, 7.0, 11.0) == 37.0


def test_version_one_reads_latency_and_gap_from_round_trips():
    found = kielmann(rtt_0=400.0, gap_0=44.0, rtt_m=6468.0)
    assert found == (156.0, 6112.0)
    assert found.total == 6268.0


def test_on_one_host_overlapping_overheads_become_a_quarter_of_the_round_trip_each():
    same = PairClass(
        name="same host",
        send=(piece_around(0, 0, 466.0),),
        latency=(piece_around(0, 0, -382.0),),
        receive=(piece_around(0, 0, 468.0),),
    )
    assert message_cost(same, 131072, same_host=True) == (276.0, 0.0, 276.0)  # Table 5.2
    assert message_cost(same, 131072) == (466.0, -382.0, 468.0)


def test_a_printed_polynomial_keeps_its_values_in_a_piece():
    piece = piece_around(65536, 64, 314.0, 0.0865, 1e-9)
    for m in (65536, 100000):
        x = m - piece.first
        value = sum(c * x**k for k, c in enumerate(piece.coefficients))
        assert value == pytest.approx(314 + 0.0865 * (m - 64) + 1e-9 * (m - 64) ** 2, rel=1e-12)


def test_a_pair_finds_its_class_by_direction():
    classes = by_site(["A", "A", "B"])
    assert classes.names == ("same host", "A", "A > B", "B > A")
    flat = tuple(
        PairClass(name=n, send=UFF.send, latency=UFF.latency, receive=UFF.receive) for n in classes.names
    )
    network = Network(
        send_mode="isend", pairs="classes", sites=("A", "A", "B"), classes=flat, pair_class=classes.pair_class
    )
    assert [class_of(network, *pair).name for pair in [(1, 1), (1, 0), (1, 2), (2, 0)]] == [*classes.names]
