"""What a measured network says of one message: interpolated between sizes, and by the class of its hosts."""

import msgspec
import pytest
from planted_machine import flat_class, planted_network

from fembench.base.errors import InputError
from fembench.records.network import (
    Beside,
    ColdCost,
    apart,
    beside_at,
    both_ways_at,
    check_network,
    class_number,
    cold_at,
)

replace = msgspec.structs.replace


def test_the_slowdown_of_messages_both_ways_is_interpolated_over_the_logarithm_of_the_size():
    measured = replace(flat_class("here"), both_ways=((1, 1.2), (4, 1.6)))
    found = [both_ways_at(measured, m) for m in (0, 1, 2, 4, 100)]
    assert found == pytest.approx([1.2, 1.2, 1.4, 1.6, 1.6])
    assert both_ways_at(flat_class("here"), 1) == 1.0


def test_messages_beside_computing_are_linear_between_sizes_and_proportional_beyond():
    measured = replace(flat_class("here"), beside=(Beside(100, 1.0, 4.0), Beside(300, 3.0, 8.0)))
    assert beside_at(measured, 50) == (1.0, 4.0)
    assert beside_at(measured, 200) == (2.0, 6.0)
    assert beside_at(measured, 600) == (6.0, 16.0)
    assert beside_at(flat_class("here"), 100) == (0.0, 0.0)


def test_computing_before_a_message_adds_to_its_parts_by_size_and_by_the_time_computed():
    """Sizes 1, 4 and 16: 2, 6 and 12 after 1 s of computing, a half of that after half of the time."""
    costs = ((1, 2.0), (4, 6.0), (16, 12.0))
    cold = tuple(ColdCost(m, 1.0, True, cost, 2 * cost, 3 * cost) for m, cost in costs)
    measured = replace(flat_class("here"), cold=(*cold, ColdCost(1, 1.0, False, 1.0, 0.0, 0.0)))
    after = [(0, 1, 2), (1, 1, 2), (2, 1, 4), (4, 0.5, 3), (8, 9, 9), (16, 1, 12), (32, 1, 24)]
    for m, computed, cost in after:
        assert cold_at(measured, m, computed, True) == pytest.approx((cost, 2 * cost, 3 * cost))
    assert cold_at(measured, 1, 1.0, False) == (1.0, 0.0, 0.0)
    assert cold_at(measured, 1, 0.0, True) == (0.0, 0.0, 0.0)
    assert cold_at(flat_class("here"), 1, 1.0, True) == (0.0, 0.0, 0.0)


def test_only_ranks_whose_numa_nodes_are_known_and_differ_are_apart():
    numa = (0, 0, 1, -1)
    assert [apart(numa, 0, q) for q in range(4)] == [False, False, True, False]
    assert not apart(numa, 3, 0)
    assert not apart((), 0, 1)


def test_messages_between_the_numa_nodes_of_a_host_have_the_class_of_that_host_whatever_its_number():
    network = replace(planted_network(2), across=(0, -1), pair_class=((1, 0), (0, 1)))
    assert class_number(network, 0, 0, apart=True) == 0
    assert class_number(network, 1, 1, apart=True) == 1  # not measured there
    assert class_number(network, 0, 0) == 1
    assert class_number(network, 0, 1, apart=True) == 0
    assert class_number(replace(network, across=()), 0, 0, apart=True) == 1


@pytest.mark.parametrize(
    "changes", [{"sites": ("here",)}, {"pair_class": ((0, 1),)}, {"pair_class": ((0, 1), (1,))}]
)
def test_a_network_of_more_or_fewer_hosts_than_its_profile_is_refused(changes):
    check_network(planted_network(2), 2, 2, "machine.json")
    with pytest.raises(InputError, match="expected 2, and a class for each pair"):
        check_network(planted_network(2, **changes), 2, 2, "machine.json")
