"""Messages after computing: what is measured, the costs found from it, and their interpolation."""

import msgspec
import pytest
from planted_machine import line

from fembench.characterize import cold
from fembench.characterize.estimate import cold_costs
from fembench.characterize.messages import cold_sizes
from fembench.records.hlogp import Computed, message_cost
from fembench.records.network import ColdCost, PairClass, PairSamples

OS, LATENCY, OR = 1e-6, 2e-6, 3e-6


def samples(m, computed=0.0, swept=False, slower=1.0):
    send, latency, receive = slower * OS, slower * LATENCY, slower * OR
    one = {"os_measure": send, "os_mirror": send, "or_measure": receive, "or_mirror": receive}
    trip = 2 * (send + latency + receive)
    return PairSamples(
        measure=0,
        mirror=1,
        m=m,
        **{k: (v,) * 5 for k, v in one.items()},
        rtt=(trip,) * 5,
        computed=computed,
        swept=swept,
    )


def test_the_cost_of_computing_is_what_it_adds_to_each_part_of_a_message():
    found = cold_costs([samples(64), samples(64, 1e-3, True, slower=4.0), samples(64, 1e-4, slower=0.9)])
    (less, more) = found
    assert (less.computed, less.send, less.latency, less.receive) == (1e-4, 0.0, 0.0, 0.0)  # never faster
    assert (more.swept, more.computed) == (True, 1e-3)
    assert (more.send, more.latency, more.receive) == pytest.approx((3 * OS, 3 * LATENCY, 3 * OR))


def test_computing_adds_as_much_to_a_message_as_to_half_a_round_trip_if_one_core_is_slower():
    def uneven(slower, computed=0.0):
        fast, slow = ([slower * OS * t for t in times] for times in ((1, 1, 1, 1, 2.8), (3,) * 5))
        trips = [a + b + 2 * slower * (LATENCY + OR) for a, b in zip(fast, slow)]
        return msgspec.structs.replace(
            samples(64, computed, slower=slower),
            os_measure=tuple(fast),
            os_mirror=tuple(slow),
            rtt=tuple(trips),
        )

    (found,) = cold_costs([uneven(1.0), uneven(2.0, 1e-3)])
    assert (found.send, found.latency, found.receive) == pytest.approx((2 * OS, LATENCY, OR))


def test_a_message_costs_more_the_longer_its_ranks_computed():
    rows = tuple(
        ColdCost(m=m, computed=t, swept=True, send=m * t, latency=0.0, receive=2 * m * t)
        for m in (100, 10000)
        for t in (1e-3, 2e-3)
    )
    one = PairClass(name="x", send=line(OS), latency=line(LATENCY), receive=line(OR), cold=rows)
    old = msgspec.structs.replace(one, cold=())
    assert message_cost(one, 100) == message_cost(old, 100, computed=Computed(1.0, 1.0)) == (OS, LATENCY, OR)
    after = message_cost(one, 100, computed=Computed(0.5e-3, 5.0))
    assert after == pytest.approx((OS + 0.05, LATENCY, OR + 0.4))  # linear up to the longest time


def test_slow_messages_are_not_measured_after_computing():
    quick = [samples(8), samples(65536), msgspec.structs.replace(samples(1 << 20), rtt=(0.1,) * 5)]
    assert cold_sizes(quick) == [64, 1024, 8192, 65536]
    assert cold_sizes([samples(65536), samples(1 << 20)]) == [65536, 1 << 18, 1 << 19, 1 << 20]
    assert cold_sizes([]) == []


def test_every_state_has_a_reference_right_after_another_message():
    found = cold.states([64, 1024])
    assert [s for s in found if not s.computed] == [(64, 0.0, False), (1024, 0.0, False)]
    assert len(found) == 2 * (1 + 2 * len(cold.SECONDS))
    assert cold.states([]) == []


@pytest.mark.mpi(2)
def test_both_ranks_measure_all_states(comm, monkeypatch):
    monkeypatch.setattr(cold, "SECONDS", (1e-4, 1e-3))
    found = cold.measure_cold(comm, 0, 1, [64, 65536] if comm.rank == 0 else [], 3, "isend")
    if comm.rank:
        assert found == []
        return
    assert [(s.m, s.computed, s.swept) for s in found] == cold.states([64, 65536])
    assert all(len(s.rtt) == 3 * cold.TRIPS[s.computed > cold.SHORT] and min(s.rtt) > 0 for s in found)
