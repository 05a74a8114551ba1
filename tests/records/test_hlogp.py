"""HLogP against the tables of Mendes (2004), exactly."""

import numpy as np
import pytest
from thesis_001 import SITES, columns, equations, matrix, named_rows, piece_around

from fembench.records.hlogp import kielmann, message_cost, ping_pong_latency
from fembench.records.network import PairClass
from fembench.records.sites import by_pair, by_site

UFF, UFF_PUC = (equations("mpich")[name] for name in ("UFF", "UFF-PUC"))


@pytest.mark.row("001:E7", "001:E8", "001:A3")
@pytest.mark.parametrize(
    ("actual", "printed", "within", "agree"),
    [("4.18", "4.21", 0.15, 85), ("4.19", "4.22", 0.06, 88), ("4.20", "4.23", 0.06, 87)],
)
def test_one_pair_stands_for_its_class_as_published(actual, printed, within, agree):
    _, values = matrix(actual)
    _, errors = matrix(printed)
    classes = by_site(SITES)
    found = 0
    for (a, b), number in np.ndenumerate(np.array(classes.pair_class)):
        if a != b:
            mine = values[classes.pairs[number]]
            found += abs(100 * (mine - values[a, b]) / mine - errors[a, b]) <= within
    assert found >= agree


@pytest.mark.row("001:E9")
def test_the_versions_of_the_modeller_measure_as_many_pairs_as_published():
    """Ten hosts of three sites; the published times fall with the pairs, from six minutes to six seconds."""
    cost = {r["version"]: r for r in named_rows("modeller_cost")}
    all_pairs, by_sites = by_pair([f"h{i}" for i in range(10)]), by_site(SITES)
    for version, classes in (("I", all_pairs), ("II(a)", all_pairs), ("II(b)", by_sites)):
        assert sum(a != b for a, b in classes.pairs) == int(cost[version]["pair_measurements"])
        # chapter 7 calls these fractions of the first version's time "faster"
        ratio = float(cost[version]["time_us"]) / float(cost["I"]["time_us"])
        assert ratio == pytest.approx(float(cost[version]["fraction_of_version_i"]), abs=5e-5)


@pytest.mark.row("001:E12")
def test_latency_of_the_equations_is_that_of_table_4_33():
    table = columns("4.33")
    mine = np.array([message_cost(UFF, m).latency for m in table["m"]])
    error = 100 * np.abs(mine / table["L_meas"] - 1)
    assert error.mean() <= 4.7 + 0.05
    assert error[table["m"] >= 32768].max() <= 1.8 + 0.05


@pytest.mark.row("001:E12")
@pytest.mark.parametrize(
    ("library", "name", "number", "mode", "percent"),
    [
        ("mpich", "UFF", "4.16", "Isend", 2.5),
        ("mpich", "UFF-PUC", "4.17", "Isend", 11.5),
        ("lam", "UFF", "5.4", "Send", 2.3),
        # between sites the measured times jump from size to size
        ("lam", "UFF-Sinergia", "5.5", "Send", 50.0),
    ],
)
def test_times_of_the_equations_are_those_of_the_sweeps_from_128_kib_on(library, name, number, mode, percent):
    table = columns(number)
    for row in np.flatnonzero(table["m"] >= 131072):
        measured = sum(table[f"{mode}.{part}"][row] for part in ("L", "Os", "Or"))
        mine = message_cost(equations(library)[name], table["m"][row]).total
        assert 100 * abs(mine / measured - 1) <= percent, table["m"][row]


@pytest.mark.row("001:3.8-9")
def test_all_ten_sets_of_equations_are_read():
    assert [*equations("mpich")] == ["UFF", "PUC", "Sinergia", "UFF-Sinergia", "UFF-PUC", "Sinergia-PUC"]
    assert [*equations("lam")] == ["UFF", "same host", "Sinergia", "UFF-Sinergia"]
    for functions in (*equations("mpich").values(), *equations("lam").values()):
        pieces = [len(f) for f in (functions.latency, functions.send, functions.receive)]
        assert pieces in ([1, 2, 2], [2, 2, 2])


@pytest.mark.row("001:A4")
def test_the_equations_give_the_numbers_of_the_published_ring():
    near, far = message_cost(UFF, 2097152), message_cost(UFF_PUC, 2097152)
    assert (near.send, near.latency, near.receive) == pytest.approx((37, 181712, 3438), abs=1)
    assert (far.latency, far.receive) == pytest.approx((3417691, 6307), abs=1)


def test_latency_is_half_of_what_the_round_trip_leaves_over():
    assert ping_pong_latency(100.0, 3.0, 5.0, 7.0, 11.0) == 37.0


def test_version_one_reads_latency_and_gap_from_round_trips():
    found = kielmann(rtt_0=400.0, gap_0=44.0, rtt_m=6468.0)
    assert found == (156.0, 6112.0)
    assert found.total == 6268.0


@pytest.mark.row("001:F9")
def test_on_one_host_overlapping_overheads_become_a_quarter_of_the_round_trip_each():
    measured, corrected = columns("5.2"), columns("5.3")
    for row, m in enumerate(measured["m"]):
        parts = [float(measured[f"Send.{part}"][row]) for part in ("Os", "L", "Or")]
        send, latency, receive = ((piece_around(0, 0, part),) for part in parts)
        same = PairClass("same host", send=send, latency=latency, receive=receive)
        whole, found = message_cost(same, m), message_cost(same, m, same_host=True)
        assert found.total == pytest.approx(whole.total, abs=1e-9)
        assert (found == whole) == (whole.latency >= 0)
        printed = [corrected[f"Send.{part}"][row] for part in ("Os", "L", "Or")]
        # Table 5.3 prints the mean of Os and Or instead, which counts the overlap twice
        overlap = min(whole.latency, 0.0)
        assert sum(printed) + overlap == pytest.approx(whole.total, rel=2e-3, abs=1)
    assert message_cost(same, m, same_host=True) == (87428.5, 0.0, 87428.5)
