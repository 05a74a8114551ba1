"""Estimators against known networks: the tables of Mendes (2004) and a made-up one with noise."""

import functools
import re

import numpy as np
import pytest
from thesis_001 import columns

from fembench.base.errors import InputError
from fembench.characterize.estimate import beside_of, estimate_class, estimated, gap_of
from fembench.characterize.fit import Curve, find_switch, fit_jointly
from fembench.records.hlogp import message_cost
from fembench.records.network import CurvePiece, Exchange, Network, PairSamples, Trains, value_at

SIZES = [64 << k for k in range(17)]
SWITCH = 65536
TRUTH = {  # seconds; eager below the switch, rendezvous from it on
    "send": (
        CurvePiece(first=0, coefficients=(4e-6, 1e-10)),
        CurvePiece(first=SWITCH, coefficients=(9e-6, 1e-11)),
    ),
    "latency": (
        CurvePiece(first=0, coefficients=(5e-5, 8e-9)),
        CurvePiece(first=SWITCH, coefficients=(8.5e-4, 8e-9)),
    ),
    "receive": (
        CurvePiece(first=0, coefficients=(2e-6, 3e-10)),
        CurvePiece(first=SWITCH, coefficients=(4e-5, 2e-10)),
    ),
}


def fitted(m, *curves, signed=()):
    made = [Curve(y, 0.03 * np.abs(y) + 0.5, k in signed) for k, y in enumerate(curves)]
    return fit_jointly(m, made)


def test_the_fit_finds_the_bandwidth_of_table_4_16():
    t = columns("4.16")
    fit = fitted(t["m"], t["Isend.Os"], t["Isend.L"], t["Isend.Or"])
    last = fit.pieces[1][-1]
    assert last.coefficients[1] == pytest.approx(0.0865, rel=0.03)


@pytest.mark.row("001:A5")
def test_the_fit_finds_break_and_slopes_of_table_5_4():
    t = columns("5.4")
    fit = fitted(t["m"], t["Send.Os"], t["Send.L"], t["Send.Or"], signed=(1,))
    assert 65536 <= find_switch(fit) <= 131072
    os, latency, receive = (pieces[-1].coefficients[1] for pieces in fit.pieces)
    assert os == pytest.approx(0.0847, rel=0.03)
    assert latency == pytest.approx(-0.085, rel=0.03)
    assert receive == pytest.approx(0.0849, rel=0.03)


@pytest.mark.parametrize(
    ("number", "column", "hand"),
    [("4.33", "L_meas", 4.7), ("4.34", "Os_meas", 6.8), ("4.35", "Or_meas", 10.4)],
)
def test_the_fit_is_no_worse_than_the_lines_drawn_by_hand(number, column, hand):
    t = columns(number)
    pieces = fitted(t["m"], t[column]).pieces[0]
    error = [abs(value_at(pieces, m) / y - 1) for m, y in zip(t["m"], t[column])]
    assert 100 * np.mean(error) <= hand


@pytest.mark.row("001:3.7", "001:E3")
@pytest.mark.parametrize(
    ("number", "mode", "switch"),
    [
        *(
            ("4.16", "Isend", None),
            ("5.2", "Isend", 131072),
            ("5.4", "Isend", 131072),
            ("5.5", "Isend", 131072),
        ),
        *(("4.8", "", 262144), ("4.9", "", 131072), ("4.10", "", 65536)),  # version I: MPI_Send, MPICH-G2
        *(
            ("4.15", "Send", 262144),
            ("4.17", "Send", 131072),
            ("5.2", "Send", 131072),
            ("5.5", "Send", 131072),
        ),
    ],
)
def test_a_switch_is_where_the_parts_of_a_message_change_places(number, mode, switch):
    """Eager up to 64 KiB in both libraries; on one busy host Os takes over the time a size later."""
    t = columns(number)
    curves = (t[f"{mode}.{part}".lstrip(".")] for part in ("Os", "L", "Or"))
    assert find_switch(fitted(t["m"], *curves, signed=(1,))) == switch


@pytest.mark.row("001:E6")
@pytest.mark.parametrize(
    ("number", "least", "most"),
    [("4.16", 0.0, 0.01), ("5.4", 0.0, 0.01), ("4.17", 0.03, 0.10), ("5.5", 0.03, 0.29)],
)
def test_large_messages_take_as_long_with_either_call_but_over_the_internet(number, least, most):
    """Mendes (2004): mean differences 0.56, 0.16, 4.9 and 11.3 % in these tables."""
    t = columns(number)

    def sample(row, mode):
        os, latency, receive = (1e-6 * t[f"{mode}.{part}"][row] for part in ("Os", "L", "Or"))
        return PairSamples(
            measure=0, mirror=1, m=int(t["m"][row]), mode=mode.lower(), rtt=(2 * (os + latency + receive),),
            os_measure=(os,), os_mirror=(os,), or_measure=(receive,), or_mirror=(receive,),
        )  # fmt: skip

    samples = tuple(sample(row, mode) for row in range(len(t["m"])) for mode in ("Send", "Isend"))
    network = Network(
        send_mode="isend", pairs="all", sites=("a", "b"), classes=(), pair_class=((0, 1), (1, 0)),
        class_names=("same host", "a"), samples=samples,
    )  # fmt: skip
    note = estimated(network, (0, 1)).notes[0]
    apart = float(re.search(r"differ by ([0-9.]+) %", note)[1]) / 100
    assert least <= apart <= most


def measured(rng, m, repetitions=30):
    """A ping-pong over the made-up network: 5 % noise, one time in a hundred a hundred times too long."""
    os, latency, receive = (value_at(TRUTH[name], m) for name in ("send", "latency", "receive"))

    def noisy(value):
        outlier = np.where(rng.random(repetitions) < 0.01, 100.0, 1.0)
        return tuple(value * rng.lognormal(0, 0.05, repetitions) * outlier)

    names = ("os_measure", "or_mirror", "os_mirror", "or_measure", "rtt")
    times = zip(names, (os, receive, os, receive, 2 * (os + latency + receive)))
    return PairSamples(measure=0, mirror=1, m=m, **{name: noisy(value) for name, value in times})


def one_trip(m, whole, there=1e-6, back=1e-6):
    """A ping-pong without noise; `there`, `back`: Or on either side."""
    return PairSamples(
        measure=0, mirror=1, m=m, rtt=(2 * whole,) * 5, os_measure=(1e-7,) * 5, os_mirror=(1e-7,) * 5,
        or_measure=(back,) * 5, or_mirror=(there,) * 5,
    )  # fmt: skip


def found_on_one_host(samples=(), trains=(), exchanges=()):
    network = Network(
        send_mode="isend", pairs="all", sites=("a",), classes=(), pair_class=((0,),),
        class_names=("same host",), samples=tuple(samples), trains=tuple(trains),
        exchanges=tuple(exchanges),
    )  # fmt: skip
    return estimated(network, (0, 0))


def test_both_directions_between_ranks_of_a_host_make_its_overheads():
    sizes = (64, 1024, 8192)
    (one,) = found_on_one_host([one_trip(m, 1e-5, there=1e-6, back=3e-6) for m in sizes]).classes
    assert value_at(one.receive, 1024) == pytest.approx(2e-6)
    apart = estimate_class("a > b", [one_trip(m, 1e-5, there=1e-6, back=3e-6) for m in sizes])
    assert value_at(apart.receive, 1024) == pytest.approx(1e-6)


def test_a_message_takes_half_a_round_trip_if_one_of_two_cores_is_slower():
    """Of both directions together, half of Os and Or are at most 2.8 µs and the others 3 µs."""
    fast, slow = np.array([1.0, 1.0, 1.0, 1.0, 2.8]) * 1e-6, np.full(5, 3e-6)
    trips = [
        PairSamples(
            measure=0, mirror=1, m=m, rtt=tuple(2 * (fast + slow) + 1e-6), os_measure=tuple(fast),
            os_mirror=tuple(slow), or_measure=tuple(slow), or_mirror=tuple(fast),
        )
        for m in (64, 1024, 8192)
    ]  # fmt: skip
    (one,) = found_on_one_host(trips).classes
    cost = message_cost(one, 1024)
    assert cost == pytest.approx((2e-6, 0.5e-6, 2e-6))
    assert cost.total == pytest.approx(np.median(trips[0].rtt) / 2)


@pytest.mark.parametrize(("last", "provisional"), [(3e-6, False), (9e-6, True)])
def test_functions_that_miss_a_measured_time_make_the_network_provisional(last, provisional):
    times = {64: 1e-6, 128: 8e-6 if provisional else 1.03e-6, 65536: last}
    trains = [
        Trains(measure=0, mirror=1, m=m, counts=(1, 1, 10), seconds=(t + 1e-6, t + 1e-6, 10 * t))
        for m, t in {0: 1e-6, **times}.items()
    ]
    notes = found_on_one_host(trains=trains).notes
    assert any(note.startswith("PROVISIONAL: same host: a message of") for note in notes) == provisional


@pytest.mark.parametrize(("left", "priced"), [(3e-4, 2e-5), (1.2e-5, 1.2e-5)])
def test_a_wait_after_computing_is_bounded_by_the_time_of_its_messages_and_its_spread_is_kept(left, priced):
    """Messages both ways take 10 µs; of 21 turns, two wait half and two three times as long."""
    waits = (0.5 * left,) * 2 + (left,) * 17 + (3 * left,) * 2
    one = Exchange(
        measure=0, mirror=1, m=1024, in_turn=(6e-6,) * 21, at_once=(1e-5,) * 21, alone=(2e-5,) * 21,
        beside=(2.1e-5,) * 21, left=waits,
    )  # fmt: skip
    found = beside_of(one)
    assert (found.longer, found.left) == pytest.approx((1e-6, priced))
    assert found.slower == pytest.approx(3 * left - priced)
    assert found.faster == pytest.approx(max(priced - 0.5 * left, 0.0))
    network = found_on_one_host([one_trip(m, 1e-5) for m in (64, 1024, 8192)], exchanges=[one])
    notes = [n for n in network.notes if n.startswith("PROVISIONAL: same host: messages of 1 KiB")]
    assert bool(notes) == (left > 2e-5)
    assert all("waiting for 300 µs after computing, and took 10 µs without it" in note for note in notes)


@functools.cache
def estimates(seeds=300):
    return [
        estimate_class("a", [measured(rng, m) for m in SIZES])
        for rng in map(np.random.default_rng, range(seeds))
    ]


@pytest.mark.row("001:7.1c")
@pytest.mark.slow
def test_every_parameter_is_found_through_noise_and_outliers():
    for name, pieces in TRUTH.items():
        for m in (64, 4096, 32768, SWITCH, 1 << 20, 1 << 22):
            found = np.array([value_at(getattr(e, name), m) for e in estimates()])
            assert np.median(np.abs(found / value_at(pieces, m) - 1)) <= 0.05, (name, m)


def test_slopes_and_values_of_pieces_are_found_and_never_negative():
    for name, pieces in TRUTH.items():
        ends = [(getattr(e, name)[0], getattr(e, name)[-1]) for e in estimates()]
        for k, true in enumerate(pieces):
            for c in (0, 1):
                found = np.array([e[k].coefficients[c] for e in ends])
                assert np.median(np.abs(found / true.coefficients[c] - 1)) <= 0.05, (name, k, c)
        assert all(c >= 0 for e in estimates() for piece in getattr(e, name) for c in piece.coefficients)


def test_the_switch_is_found_within_a_step_of_the_grid():
    near = {SWITCH // 2, SWITCH, SWITCH * 2}
    assert np.mean([e.switch in near for e in estimates()]) >= 0.95


def test_a_network_without_a_switch_has_none():
    m = np.array(SIZES, float)
    smooth = [np.full(len(m), 5e-6), 5e-5 + 8e-9 * m, 2e-6 + 3e-10 * m]
    assert find_switch(fit_jointly(m, [Curve(y, 0.01 * y) for y in smooth])) is None


def test_the_gap_is_the_slope_of_trains_and_one_disturbed_train_does_not_move_it():
    counts = [1, 2, 4, 8, 16, 32]
    seconds = [5e-5 + 8e-6 * n for n in counts]
    seconds[3] *= 100
    assert gap_of(counts, seconds) == pytest.approx(8e-6, rel=0.05)
    assert gap_of([1, 2, 3], [3.0, 2.0, 1.0]) == 0.0


@pytest.mark.parametrize("sizes", [[1.0, 2.0], [1.0, 3.0, 2.0]])
def test_too_few_or_unsorted_sizes_are_refused(sizes):
    with pytest.raises(InputError, match="expected at least 3, ascending"):
        fit_jointly(sizes, [])
