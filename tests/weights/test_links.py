import pytest
from planted_machine import line, planted_machine, planted_network
from planted_profile import planted_profile

from fembench.base.errors import InputError
from fembench.records.network import PairClass
from fembench.weights.from_profile import communication_seconds, wire_of_network

NEIGHBOURS, SIZES = ((1,), (0, 2), (1,)), ((1000,), (1000, 4000), (4000,))
HOSTS = ("a", "a", "b")


def wire(here, there, n_bytes):
    return 0.0 if here == there else 1e-3 + 1e-6 * n_bytes


def test_every_message_of_an_iteration_costs_its_wire():
    C = communication_seconds(NEIGHBOURS, SIZES, HOSTS, wire, 10)
    assert C.tolist() == pytest.approx([0.0, 10 * (1e-3 + 4e-3), 10 * (1e-3 + 4e-3)])


def test_packing_is_paid_for_every_byte():
    C = communication_seconds(NEIGHBOURS, SIZES, ("a",) * 3, wire, 10, own=[1e-9] * 3)
    assert C.tolist() == pytest.approx([1e-5, 5e-5, 4e-5])


def test_a_measured_network_is_priced_by_its_own_functions():
    near = PairClass("same host", send=line(9.0), latency=line(-1.0), receive=line(2.0))
    far = PairClass("a > b", send=line(9.0), latency=line(1e-3, 1e-6), receive=line(0.5e-3))
    network = planted_network(2, near=near, far=far)
    wire = wire_of_network(planted_machine([1, 1, 1], hosts=HOSTS, network=network), "m.json")
    assert wire("a", "a", 1000) == 2.0  # a latency below zero is overlap, not a gift
    assert wire("a", "b", 4000) == pytest.approx(1.5e-3 + 4e-3)


def test_a_profile_without_that_network_is_refused():
    alone = planted_machine([1, 1])
    with pytest.raises(InputError, match=r"m\.json: no host b; expected one of node8"):
        wire_of_network(alone, "m.json")("node8", "b", 1)
    with pytest.raises(
        InputError, match=r"m\.json: the profile has no network: not asked for, or interrupted "
    ):
        wire_of_network(planted_profile([1, 1]), "m.json")
