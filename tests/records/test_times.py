"""Times of a record against the nested tuples that they come from."""

import msgspec
import numpy as np
import pytest
from planted_records import FROZEN

from fembench.base.errors import InputError
from fembench.records import phases
from fembench.records.phases import ASSEMBLY, CG, CG_PARTS, NAMES, SEND, TOP_LEVEL, WAIT
from fembench.records.store import load
from fembench.records.times import Times, times_of
from fembench.records.validity import judge

RECORD = load(FROZEN)
TIMED = [s for s in RECORD.sets if not s.warmup]
replace = msgspec.structs.replace


def with_sets(*sets):
    return Times(replace(RECORD, sets=sets))


def test_each_number_of_a_phase_is_that_of_its_name():
    spelled = {"start-up": "START_UP", "between sets": "BETWEEN"}
    words = [spelled.get(name, name.removeprefix("cg.").upper()) for name in NAMES]
    assert [getattr(phases, word) for word in words] == list(range(len(NAMES)))


def test_timed_sets_are_all_but_the_warm_ups():
    times = Times(RECORD)
    assert len(times.all_sets) == len(RECORD.sets) > len(times.timed) == len(TIMED) > 0
    assert times.timed.shape == (len(TIMED), 2, len(NAMES))
    assert not times.timed[:, :, len(RECORD.phases) :].any()  # phases that the record does not know
    assert times.warmups.tolist() == [s.warmup for s in RECORD.sets]
    assert times.walls.tolist() == [list(s.total) for s in TIMED]


def test_seconds_of_several_phases_are_their_sum():
    expected = [[row[SEND] + row[WAIT] for row in s.seconds] for s in TIMED]
    assert Times(RECORD).seconds(SEND, WAIT).tolist() == expected
    assert Times(RECORD).slowest(SEND, WAIT).tolist() == [max(row) for row in expected]


def test_parts_of_cg_and_the_loop_make_up_cg():
    times = Times(RECORD)
    assert times.seconds(*CG_PARTS) + times.loop == pytest.approx(times.seconds(CG))


def test_unattributed_time_is_what_no_top_level_phase_holds():
    known = [
        sum(RECORD.setup[p][k] + sum(s.seconds[p][k] for s in RECORD.sets) for k in TOP_LEVEL[:-1])
        for p in range(2)
    ]
    times = Times(RECORD)
    assert times.unattributed == pytest.approx(np.array(RECORD.total) - known)
    assert times.unattributed_share == pytest.approx(1 - np.array(known) / RECORD.total)


def test_an_iteration_takes_its_part_of_cg_and_assembly_counts_once_a_set():
    times = Times(RECORD)
    assert times.each_iteration[0, 0, CG] == TIMED[0].seconds[0][CG] / TIMED[0].iterations
    assert times.each_iteration[0, 0, ASSEMBLY] == TIMED[0].seconds[0][ASSEMBLY]
    spans = sum(TIMED[0].counts[0][k] for k in CG_PARTS)
    assert times.spans[0, 0] == pytest.approx(spans / TIMED[0].iterations)


def test_a_set_without_iterations_has_no_time_of_an_iteration():
    times = with_sets(TIMED[0], replace(TIMED[0], iterations=0))
    assert (len(times.timed), len(times.each_iteration), len(times.spans)) == (2, 1, 1)


def test_the_middle_set_is_the_median_by_the_end_of_its_last_rank():
    ends = [(5.0, 9.0), (8.0, 1.0), (7.0, 7.0)]
    sets = [replace(TIMED[0], total=end, iterations=k + 1) for k, end in enumerate(ends)]
    assert with_sets(*sets).middle[0, CG] == TIMED[0].seconds[0][CG] / 2
    with pytest.raises(InputError, match="has no timed iterations"):
        _ = with_sets(RECORD.sets[0]).middle


def test_arrays_are_read_only():
    times = Times(RECORD)
    for array in (times.all_sets, times.timed, times.seconds(CG), times.seconds(SEND, WAIT), times.once):
        assert not array.flags.writeable


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"phases": RECORD.phases[::-1]}, "phases are not those of this fembench"),
        ({"setup": RECORD.setup[:1]}, "incomplete; expected 2 ranks and 19 phases"),
        ({"total": RECORD.total[:1]}, "incomplete; expected 1 rank and"),
    ],
)
def test_a_record_of_other_phases_or_ranks_is_refused_in_one_line(change, expected):
    with pytest.raises(InputError, match=expected) as caught:
        _ = Times(replace(RECORD, **change)).unattributed
    assert "\n" not in str(caught.value)


def test_a_set_that_lacks_a_rank_is_refused():
    for lacking in ({"seconds": TIMED[0].seconds[:1]}, {"total": (1.0,)}, {"counts": ((1,), (1, 2))}):
        times = with_sets(TIMED[0], replace(TIMED[0], **lacking))
        with pytest.raises(InputError, match="incomplete"):
            _ = times.all_sets, times.all_walls, times.all_counts


def test_times_are_read_once_for_a_new_verdict_and_anew_for_other_sets():
    judged = replace(RECORD, verdict=replace(RECORD.verdict, status="INVALID"))
    assert times_of(judged) is times_of(RECORD)
    shorter = replace(RECORD, sets=RECORD.sets[1:])
    assert len(times_of(shorter).all_sets) == len(RECORD.sets) - 1


@pytest.mark.parametrize(("name", "absurd"), [("seconds", -1), ("counts", -1), ("counts", 10**400)])
def test_a_record_with_a_time_or_a_count_below_0_or_beyond_all_numbers_is_invalid(name, absurd):
    rows = np.array(getattr(TIMED[0], name), object)
    rows[..., -1] = absurd
    broken = replace(RECORD, sets=(*RECORD.sets, replace(TIMED[0], **{name: rows.tolist()})))
    verdict = judge(broken)
    assert (verdict.status, [rule.id for rule in verdict.rules]) == ("INVALID", ["C1"])
    assert "not within 0 to 1e+15" in verdict.reason
