import msgspec
import pytest
from planted_records import FROZEN, PER_CELL, planted

from fembench.base.errors import InputError
from fembench.records.phases import NAMES
from fembench.records.store import load
from fembench.weights.observe import observe, pooled


def test_cost_is_the_planted_time_per_cell_whatever_the_shares():
    seen = observe(planted([1, 0.5], [3, 1], noise=0))
    assert seen.cost[0] == pytest.approx([sum(PER_CELL.values()), 2 * sum(PER_CELL.values())])


def test_warm_ups_do_not_count_and_sets_of_several_records_are_pooled():
    seen = observe(planted([1, 1], sets=3))
    assert seen.cost.shape == (3, 2)
    assert seen.total.max() < 0.05
    assert len(pooled([planted([1, 1], sets=3), planted([1, 1], [2, 1], sets=4)]).cost) == 7


def test_computing_messages_and_waiting_make_up_the_set():
    seen = observe(planted([1, 0.3]))
    assert (seen.compute + seen.messages + seen.waiting)[:, 0] == pytest.approx(seen.total)


def test_a_record_from_before_a_phase_was_added_is_still_observed():
    record = load(FROZEN)
    assert record.phases == NAMES[: len(record.phases)] != NAMES
    assert observe(record).compute.min() > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: {"phases": record.phases[::-1]}, "not those of this fembench"),
        (lambda record: {"phases": ("total",)}, "phases"),
        (lambda record: {"sets": record.sets[:1]}, "no timed sets"),
    ],
)
def test_a_record_of_other_phases_or_without_timed_sets_is_refused(change, message):
    record = planted([1, 1])
    with pytest.raises(InputError, match=message):
        observe(msgspec.structs.replace(record, **change(record)))
