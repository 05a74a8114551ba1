"""What is measured of messages: on the ranks of the test, by structure and sanity; times are not judged."""

import math
import platform

import numpy as np
import pytest

from fembench.characterize.cold import overlap_left, polling_factor
from fembench.characterize.estimate import estimated
from fembench.characterize.exchange import (
    allreduce_time,
    counts_of,
    measure_exchange,
    message_seconds,
    pairs_at_once,
)
from fembench.characterize.jobs import NetworkJob
from fembench.characterize.messages import SIZES as USUAL
from fembench.characterize.messages import Measuring, measure_network, rank_pairs, sizes_of, taken_by_host
from fembench.characterize.pingpong import (
    MOST,
    PingPongEffort,
    Side,
    lengths,
    measure_pair,
    measure_trains,
    saturated,
)
from fembench.characterize.pingpong import SIZES as TRAIN_SIZES
from fembench.records.network import HostTaken, NetworkSettings, check_network
from fembench.records.sites import by_pair, by_site, with_nodes

SMALL = PingPongEffort(seconds=0.1, visits=3, longest=5.0)
SIZES = (8, 1024, 65536)


@pytest.fixture
def brief(monkeypatch):
    """Parts of the measurement of a network that take seconds take less."""
    monkeypatch.setattr("fembench.characterize.messages.QUICK", SMALL)
    monkeypatch.setattr("fembench.characterize.exchange.ROOM", 0.05)
    monkeypatch.setattr("fembench.characterize.cold.SECONDS", (1e-4,))


def network_job(ranks, pairs="", **settings):
    asked = NetworkSettings(**settings)
    return NetworkJob(ranks=ranks, quick=True, pairs=pairs, sites="", emulate="", dilate=1.0, settings=asked)


@pytest.mark.row("001:3.6")
@pytest.mark.mpi(2)
@pytest.mark.parametrize("mode", ["isend", "send"])
def test_a_ping_pong_has_five_times_of_each_trip_and_they_fit_into_it(comm, mode):
    found = measure_pair(comm, 0, 1, SIZES, SMALL, mode)
    if comm.rank:
        assert found == []
        return
    assert [s.m for s in found] == list(SIZES)
    for s in found:
        columns = np.array([s.os_measure, s.or_mirror, s.os_mirror, s.or_measure, s.rtt])
        assert columns.shape[1] in range(SMALL.visits, SMALL.visits * MOST + 1)
        assert (s.measure, s.mirror, s.mode) == (0, 1, mode)
        assert np.all(columns > 0)
        assert np.all(columns[0] + columns[3] <= columns[4])


def test_every_size_has_buffers_of_its_own_and_other_ones_in_the_next_visit():
    side = Side(None, 1, SIZES)
    first = [*side.out.values(), *side.into.values()]
    assert [b.nbytes for b in first] == [*SIZES, *SIZES]
    assert all(b.base is None and b.all() for b in first)  # no part of a larger buffer; its pages are there
    side.renew()
    assert not {id(b) for b in first} & {id(b) for b in (*side.out.values(), *side.into.values())}


@pytest.mark.mpi(2)
def test_sizes_beyond_a_trip_that_takes_too_long_are_left_out(comm):
    hasty = PingPongEffort(seconds=0.01, visits=2, longest=0.0)
    found = measure_pair(comm, 0, 1, SIZES, hasty)
    assert [s.m for s in found] == ([8] if comm.rank == 0 else [])


@pytest.mark.mpi(2)
def test_trains_begin_with_single_messages_and_grow(comm):
    found = measure_trains(comm, 0, 1, (0, 64, 1024), 2, 5.0)
    if comm.rank == 0:
        assert [t.m for t in found] == [0, 64, 1024]
        for t in found:
            assert len(t.counts) == len(t.seconds)
            assert t.counts[0] == 1
            assert list(t.counts) == sorted(t.counts)
            assert {10, 20} <= set(t.counts) if t.m == 0 else {3, 6} <= set(t.counts)
            assert min(t.seconds) > 0
    sizes = [m for m in TRAIN_SIZES if m <= 64]
    found = measure_trains(comm, 0, 1, sizes, 2, 0.0)  # trains that last too long
    assert [max(t.counts) for t in found] == ([10, 3] if comm.rank == 0 else [])


def test_a_host_lost_what_was_taken_from_its_worst_rank():
    seen = ((1, 0), (2, 0), (2, 5))
    taken = [HostTaken(others_percent=o, others_resolution=1.0, steal_percent=s) for o, s in seen]
    assert taken_by_host((0, 1, 1), taken) == (taken[0], taken[2])


def test_trains_of_empty_messages_double_and_others_grow_by_three():
    assert list(lengths(0)) == [10, 20, 40, 80, 160, 320, 640]
    assert list(lengths(8)) == [3, 6, 9, 12, 15, 18]
    assert not saturated([1.0])
    assert not saturated([1.0, 0.98])
    assert saturated([1.0, 0.98, 0.975])


@pytest.mark.mpi(2)
def test_messages_both_ways_are_timed_beside_those_in_turn(comm, brief):
    found = measure_exchange(comm, 1, 0, 8192 if comm.rank == 1 else 0, 5)
    assert [e.m for e in found] == ([1024, 8192] if comm.rank == 1 else [])
    for e in found:
        assert (e.measure, e.mirror) == (1, 0)
        assert 4 <= len(e.in_turn) == len(e.at_once) <= 5
        times = e.in_turn + e.at_once + e.alone + e.beside + e.left
        assert len(times) == 5 * len(e.left)
        assert 0 < min(times) <= max(times) < 1


@pytest.mark.row("001:7.3.10")
@pytest.mark.mpi(2, 3, 4)
def test_an_all_reduce_is_timed_by_all_its_ranks(comm):
    found = allreduce_time(comm, 8, 8)
    assert (found.ranks, found.m) == (comm.size, 8)
    assert 0 < found.low <= found.seconds <= found.high < 1
    assert len(set(comm.allgather(found.seconds))) == 1  # the slowest rank's, on all


def test_pairs_that_meet_are_of_one_host_two_hosts_or_hosts_of_their_own():
    assert pairs_at_once([0, 0]) == []
    assert pairs_at_once([0, 0, 0, 0]) == [("inside", ((0, 1), (2, 3)))]
    assert pairs_at_once([0, 0, 1, 1]) == [("between", ((0, 2), (1, 3)))]
    assert pairs_at_once([0, 1, 2, 3]) == [("apart", ((0, 1), (2, 3)))]
    assert counts_of(((0, 1),) * 5) == [2, 4, 5]
    assert counts_of(((0, 1),) * 4) == [2, 4]


@pytest.mark.mpi(4)
def test_messages_of_several_pairs_are_timed_on_the_first_of_each(comm):
    found = message_seconds(comm, ((0, 1), (2, 3)), 4096, 6)
    assert len(found) == (6 if comm.rank in (0, 2) else 0)
    assert all(t > 0 for t in found)


@pytest.mark.mpi(2)
def test_overlap_is_told_by_the_receiver_and_what_waiting_costs_by_who_computes(comm):
    left = overlap_left(comm, 0, 1, 1 << 20)
    factor = polling_factor(comm, 0, 1)
    assert (left is None) == (comm.rank != 1)
    assert (factor is None) == (comm.rank != 0)
    assert left is None or 0 <= left < math.inf  # on a busy machine, any time passes
    assert factor is None or 0 < factor < math.inf


@pytest.mark.row("001:F6")
def test_a_pair_of_ranks_stands_for_each_class_that_ranks_can_measure():
    hosts = ("a", "b")
    assert rank_pairs(by_pair(hosts), [0, 0, 1]) == [(0, 1), (0, 2), (2, 0)]
    assert rank_pairs(by_pair(hosts), [0, 1, 1]) == [(1, 2), (0, 1), (1, 0)]
    assert rank_pairs(by_pair(hosts), [0, 1]) == [None, (0, 1), (1, 0)]
    kinds = by_site(("x", "x"), ("old", "new"))
    assert [rank_pairs(kinds, [0, 1, 1])[kinds.pair_class[h][h]] for h in (0, 1)] == [None, (1, 2)]
    assert rank_pairs(by_site(("x", "x", "y")), [0, 1, 2]) == [None, (0, 1), (0, 2), (2, 0)]


@pytest.mark.parametrize(
    ("numa", "inside", "between"),
    [
        ((0, 1, 1, 0), (0, 3), (0, 1)),
        ((0, 1, 0, 0), (0, 2), (0, 1)),
        ((0, 0, 0, 0), (0, 1), None),
        ((-1, 1, 1, 0), (1, 2), (1, 3)),  # a rank that is bound to several nodes
    ],
)
def test_a_pair_across_the_nodes_of_a_host_has_a_class_where_it_can_be_compared(numa, inside, between):
    placed = [0] * 4
    classes, across = with_nodes(by_pair(("a",)), placed, numa)
    assert across == (-1 if between is None else 1,)
    assert classes.names == ("same host", "same host, other NUMA node")[: 1 + bool(between)]
    assert rank_pairs(classes, placed, numa, across) == [inside, between][: len(classes.names)]


@pytest.mark.row("001:F15", "001:7.1b")
@pytest.mark.mpi(2)
def test_sizes_repetitions_and_ways_of_sending_are_those_asked_for(comm, brief):
    sizes, measured = (8, 3000, 70000), []
    for methods in (("I", "II"), ("I",)):
        job = network_job(2, sizes=sizes, repetitions=2, methods=methods, modes=("send",))
        measuring = Measuring(comm, job, [0, 0], lambda text: None)
        measuring.messages([("same host", (0, 1))])
        measured.append(measuring.found)
    found, alone = measured
    if comm.rank == 0:
        assert [(s.m, s.mode, len(s.rtt)) for s in found.samples] == [(m, "send", 2) for m in sizes]
        assert [t.m for t in found.trains] == [0, *sizes]
        assert {e.m for e in found.exchanges} == {1024, 8192, 32768}
    assert not alone.samples
    assert len(alone.trains) == (4 if comm.rank == 0 else 0)


@pytest.mark.row("001:F4b")
@pytest.mark.mpi(2, 3, 4)
@pytest.mark.parametrize("separate", [False, True])
def test_a_network_is_measured_whole_and_what_follows_from_it_is_sound(comm, brief, monkeypatch, separate):
    if separate:  # ranks on hosts of their own, as far as they can tell
        monkeypatch.setattr(platform, "node", lambda: f"host{comm.rank}.site{comm.rank % 2}")
        processor = "fembench.characterize.messages.named_processor"
        monkeypatch.setattr(processor, lambda: f"kind {comm.rank % 2}")
    told, job = [], network_job(comm.size, "classes" if separate else "", sizes=(8, 1024, 16384))
    assert sizes_of(network_job(comm.size)) == USUAL[:18]
    found = measure_network(comm, job, told.append)
    if comm.rank:
        assert found is None
        assert not told
        return
    assert any("messages" in line for line in told)
    network = estimated(found.network, found.rank_host)
    assert network.settings == job.settings
    check_network(network, len(found.hosts), len(found.rank_host), "measured")
    assert len(found.hosts) == (comm.size if separate else 1)
    assert sum(name.startswith("same host") for name in network.class_names) == 1 + separate  # kinds of hosts
    assert len(network.blocking) == len(network.classes) == len(network.class_names)
    for one in network.classes:
        for functions in (one.send, one.receive, one.gap):
            assert all(c >= 0 for piece in functions for c in piece.coefficients)
    assert {a.ranks for a in network.allreduce} == {2, comm.size}
    assert {k.rank for k in network.kernels} == set(range(comm.size))
    assert all(k.seconds > 0 and k.cpu > 0 for k in network.kernels)
    assert network.overlap in (True, False)
    assert (network.polling is None) == separate
    assert any("not measured" in note for note in network.notes) == separate
    assert bool(network.contention) == (comm.size > 3)


@pytest.mark.mpi(3, 4)
def test_ranks_on_two_nodes_of_a_host_are_measured_apart(comm, brief, monkeypatch):
    monkeypatch.setattr("fembench.characterize.messages.numa_node", lambda cpus: comm.rank // 2)
    job = network_job(comm.size, sizes=(8, 1024, 8192), methods=("II",), modes=("isend",))
    found = measure_network(comm, job, lambda text: None)
    if comm.rank == 0:
        network = found.network
        assert network.class_names == ("same host", "same host, other NUMA node")
        assert (network.across, network.numa) == ((1,), tuple(rank // 2 for rank in range(comm.size)))
        assert {(s.measure, s.mirror) for s in network.samples} == {(0, 1), (0, 2)}
        assert len(estimated(network, found.rank_host).classes) == 2
