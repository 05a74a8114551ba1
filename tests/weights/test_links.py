import pytest
from planted_machine import line, planted_machine, planted_network
from planted_profile import planted_profile

from fembench.base.errors import InputError
from fembench.records.hlogp import GivenLink
from fembench.records.network import PairClass
from fembench.weights.links import communication_seconds, parse_link, wire_of_links, wire_of_network

NEIGHBOURS, SIZES = ((1,), (0, 2), (1,)), ((1000,), (1000, 4000), (4000,))
HOSTS = ("a", "a", "b")


def test_only_messages_between_hosts_cost_the_link():
    C = communication_seconds(NEIGHBOURS, SIZES, HOSTS, wire_of_links({"": GivenLink(1e-3, 1e6)}), 10)
    assert C.tolist() == pytest.approx([0.0, 10 * (1e-3 + 4e-3), 10 * (1e-3 + 4e-3)])


def test_the_worse_of_two_links_counts():
    links = {"": GivenLink(1e-6, 1e9), "b": GivenLink(1e-3, 1e6)}
    C = communication_seconds(NEIGHBOURS, SIZES, HOSTS, wire_of_links(links), 1)
    assert C[1] == C[2] == pytest.approx(5e-3)


def test_packing_is_paid_for_every_byte():
    C = communication_seconds(
        NEIGHBOURS, SIZES, ("a",) * 3, wire_of_links({"": GivenLink(0, 1)}), 10, own=[1e-9] * 3
    )
    assert C.tolist() == pytest.approx([1e-5, 5e-5, 4e-5])


def test_a_host_without_a_link_is_refused():
    with pytest.raises(InputError, match="no link for host b"):
        communication_seconds(NEIGHBOURS, SIZES, HOSTS, wire_of_links({"a": GivenLink(0, 1)}), 1)


def test_links_are_read_with_and_without_a_host():
    assert parse_link("50e-6,125e6") == ("", GivenLink(50e-6, 125e6))
    assert parse_link("slow=1e-3,1e6") == ("slow", GivenLink(1e-3, 1e6))


@pytest.mark.parametrize("text", ["", "a=1", "1,2,3", "x,1", "-1,1", "0,0", "nan,1", "0,inf"])
def test_links_that_mean_nothing_are_refused(text):
    with pytest.raises(InputError, match="expected"):
        parse_link(text)


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
    with pytest.raises(InputError, match=r"m\.json: the profile has no network"):
        wire_of_network(planted_profile([1, 1]), "m.json")
