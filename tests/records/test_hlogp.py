"""HLogP against thesis-001's own numbers: every table that it can be held against, exactly."""

import numpy as np
import pytest
from thesis_001 import SITES, UFF, UFF_PUC, columns, matrix

from fembench.records.hlogp import (
    MessageCost,
    error_percent,
    fork_delay,
    kielmann,
    message_cost,
    piece_around,
    ping_pong_latency,
    ring_makespan,
)
from fembench.records.network import Network, PairClass, class_of
from fembench.records.sites import by_pair, by_site, representatives

P0, P1 = (5133257, 5079766, 5057399), (5133257, 8161396, 5057399)
LAM = 10088984
NEAR, FAR = MessageCost(172133, -173024, 178497), MessageCost(3063740, -2781950, 3136989)


@pytest.mark.parametrize(
    ("computing", "messages", "total"),
    [
        (P0, [(20, 6126, 60), (19, 6073, 51), (71, 6044, 281)], 15289167),  # II(a), UFF-UFF
        (P1, [(18, 124914, 58), (52, 149797, 148), (21, 5948, 94)], 18633102),
        (P0, [(20, 6126, 60), (20, 6126, 60), (20, 6126, 60)], 15289040),  # II(b)
        (P1, [(18, 124914, 58), (53, 131723, 147), (20, 6126, 60)], 18615171),
        ([LAM] * 3, [NEAR] * 3, 30799770),
        ([LAM] * 3, [FAR._replace(receive=178497), FAR, NEAR._replace(receive=3136989)], 37282116),
        # version I: L and g; the thesis prints 13650426, which its own summands do not give
        ((4544512, 4544870, 4547739), [(0, 156, 6112), (0, 157, 6112), (0, 156, 6112)], 13655926),
        ((4544870, 6923074, 4544512), [(0, 5871, 192828), (0, 5871, 177890), (0, 156, 6112)], 16401184),
        # analytic: printed 31549625 and 38027918
        ((10331554, 10331554, 10351651), [(37, 181712, 3438)] * 3, 31570320),
        ((10331554,) * 3, [(35, 3417691, 3438), (35, 3417691, 6307), (35, 181712, 6307)], 38027913),
    ],
)
def test_the_ring_ends_when_its_timeline_says(computing, messages, total):
    assert ring_makespan(computing, [MessageCost(*m) for m in messages]) == total


@pytest.mark.parametrize(
    ("measured", "estimated", "percent"),
    [
        (13782189, 13650426, 0.96),
        (17171094, 16401184, 4.48),
        (15320844, 15289167, 0.21),
        (19021120, 18633102, 2.04),
        (15320844, 15289040, 0.21),
        (19021120, 18615171, 2.13),
        (31408734, 31549625, 0.45),
        (37814766, 38027918, 0.56),
        (30093816, 30799770, 2.35),
        (36424200, 37282116, 2.36),
        (50193367, 50153376, 0.08),
        (50193367, 51474996, 2.55),
        (57476327, 47238064, 17.81),
    ],
)
def test_errors_are_percent_of_what_was_measured(measured, estimated, percent):
    assert error_percent(measured, estimated) == pytest.approx(percent, abs=0.01)


@pytest.mark.parametrize(
    ("actual", "printed", "within", "agree"),
    [("4.18", "4.21", 0.15, 85), ("4.19", "4.22", 0.06, 88), ("4.20", "4.23", 0.06, 87)],
)
def test_one_pair_stands_for_its_class_as_in_the_thesis(actual, printed, within, agree):
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
    assert len(representatives(SITES)) == 9
    assert len(by_pair([f"h{i}" for i in range(10)]).names) == 90 + 1


def test_latency_of_the_equations_is_that_of_table_4_33():
    table = columns("4.33")
    mine = np.array([message_cost(UFF, m).latency for m in table["m"]])
    error = 100 * np.abs(mine / table["L_meas"] - 1)
    assert error.mean() <= 4.7 + 0.05
    assert error[table["m"] >= 32768].max() <= 1.8 + 0.05


def test_the_equations_give_the_numbers_of_the_thesis_ring():
    near, far = message_cost(UFF, 2097152), message_cost(UFF_PUC, 2097152)
    assert near.latency == pytest.approx(181712, abs=1)
    assert near.receive == pytest.approx(3438, abs=1)
    assert near.send == 37
    assert far.latency == pytest.approx(3417691, abs=1)
    assert far.receive == pytest.approx(6307, abs=1)


def test_overheads_of_a_fork_and_a_join_add_up():
    assert fork_delay([357241] * 8, 8136) == 2866064
    assert error_percent(2866306, 2866064) <= 0.01
    assert fork_delay([361216] * 8, 12126) == 2901854
    assert error_percent(2906737, 2901854) <= 0.2


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
