import pytest
from planted_records import CELLS, planted

from fembench.base.errors import InputError
from fembench.records.record import Verdict
from fembench.weights.make import by_finish, by_rate, by_tasks, by_time

SPEEDS = (1.0, 1.0, 0.5, 0.25)
IDEAL = [s / sum(SPEEDS) for s in SPEEDS]


def shares(weights):
    return [r.share for r in weights.ranks]


@pytest.mark.parametrize("rule", [by_time, by_rate])
@pytest.mark.parametrize("given", [None, (4, 3, 2, 1), (1, 1, 1, 5)])
def test_planted_speeds_are_recovered_from_equal_and_unequal_runs(rule, given):
    assert shares(rule([planted(SPEEDS, given)])) == pytest.approx(IDEAL, rel=0.03)


def test_time_and_rate_know_the_seconds_per_cell():
    time, rate = by_time([planted(SPEEDS)]), by_rate([planted(SPEEDS)])
    assert time.ranks[3].cost == pytest.approx(4 * 30e-6, rel=0.01)
    assert [r.cost for r in rate.ranks] == pytest.approx([r.cost for r in time.ranks], rel=0.01)


@pytest.mark.parametrize("runs", [(30,), (5, 5, 5), (5,) * 7], ids=["one run", "3 runs", "7 runs"])
def test_weights_by_time_hold_the_truth_in_nineteen_of_twenty_intervals(runs):
    hits = []
    for seed in range(0, 800, 8):
        given = [planted(SPEEDS, noise=0.01, sets=n, seed=seed + k) for k, n in enumerate(runs)]
        hits += [r.low <= ideal <= r.high for r, ideal in zip(by_time(given).ranks, IDEAL)]
    assert 0.93 <= sum(hits) / len(hits) <= 0.99


@pytest.mark.parametrize("given", [[{"sets": 2}], [{}, {"seed": 1}]], ids=["2 sets", "2 runs"])
def test_two_sets_or_two_runs_give_shares_without_intervals(given):
    found = by_time([planted(SPEEDS, **options) for options in given])
    assert [r.low for r in found.ranks] == [None] * 4
    assert shares(found) == pytest.approx(IDEAL, rel=0.02)


def test_weights_name_rule_source_hosts_and_emulation():
    record = planted([1, 1], hosts=("a", "b"), id="run-7")
    weights = by_time([record])
    assert (weights.rule, weights.source, weights.measured) == ("time", ("run-7",), record.created)
    assert [r.host for r in weights.ranks] == ["a", "b"]
    assert weights.mesh_hash == record.mesh.hash
    assert weights.synthetic == ""


def test_several_runs_give_one_set_of_weights():
    weights = by_time([planted(SPEEDS, seed=1, id="a"), planted(SPEEDS, (4, 3, 2, 1), seed=2, id="b")])
    assert shares(weights) == pytest.approx(IDEAL, rel=0.02)
    assert weights.source == ("a", "b")


def test_the_comm_rule_takes_cells_from_the_rank_that_talks_longest():
    talk = (0.0, 0.0, 0.0, 0.004)
    weights = by_finish([planted(SPEEDS)], lambda shares: talk)
    finish = [r.share * CELLS * r.cost + c for r, c in zip(weights.ranks, talk)]
    assert finish == pytest.approx([finish[0]] * 4, rel=0.01)
    assert shares(weights)[3] < IDEAL[3]


def test_a_hopeless_rank_is_noted():
    weights = by_finish([planted([1, 1, 1])], lambda shares: (0.0, 0.0, 1.0))
    assert any("leave rank 2 out" in note for note in weights.notes)


def test_the_rule_tasks_gives_equal_tasks_by_slowness():
    alone = [planted([1.0], hosts=("node8",)), planted([1 / 7.7], hosts=("node00",))]
    weights = by_tasks(alone, 8)
    assert dict(weights.tasks) == {"node8": 7, "node00": 1}
    assert shares(weights) == [1 / 8] * 8
    assert [r.host for r in weights.ranks] == ["node8"] * 7 + ["node00"]
    assert dict(by_tasks(alone).tasks) == {"node8": 7, "node00": 1}


def test_the_rule_tasks_needs_each_host_alone():
    with pytest.raises(InputError, match="several hosts"):
        by_tasks([planted([1, 1], hosts=("a", "b"))])
    with pytest.raises(InputError, match="records of one host"):
        by_tasks([planted([1.0])])


def test_records_that_differ_are_not_pooled_and_the_field_is_named():
    with pytest.raises(InputError, match="differs from planted in storage"):
        by_time([planted([1, 1], storage="csr"), planted([1, 1], storage="sym", id="other")])
    with pytest.raises(InputError, match="in host set"):
        by_time([planted([1, 1]), planted([1, 1], hosts=("a", "b"))])


def test_an_invalid_run_gives_no_weights():
    broken = Verdict(status="INVALID", reasons=("A1 fails",), rules=())
    with pytest.raises(InputError, match="INVALID: A1 fails"):
        by_time([planted([1, 1], verdict=broken)])


def test_no_records_are_an_error():
    with pytest.raises(InputError, match="no records"):
        by_time([])
