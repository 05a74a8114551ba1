"""Shares by each rule: from times, rates and costs known by hand, and from planted records."""

import json

import numpy as np
import pytest
from msgspec.structs import replace
from planted_records import CELLS, planted

from fembench.base.errors import InputError
from fembench.records.case import Case
from fembench.records.record import DeviceFacts
from fembench.records.verdict import Verdict
from fembench.records.weights import as_text, save_weights
from fembench.weights.make import (
    by_finish,
    by_tasks,
    by_time,
    comm_shares,
    equal_finish,
    line_shares,
    natural_tasks,
    notes_on_left_out,
    tasks_per_host,
    time_shares,
)
from fembench.workflows.cases import weighted

SPEEDS = (1.0, 1.0, 0.5, 0.25)
IDEAL = [s / sum(SPEEDS) for s in SPEEDS]


def shares(weights):
    return [r.share for r in weights.ranks]


@pytest.mark.parametrize("given", [None, (4, 3, 2, 1), (1, 1, 1, 5)])
def test_planted_speeds_are_recovered_from_equal_and_unequal_runs(given):
    weights = by_time([planted(SPEEDS, given)])
    assert shares(weights) == pytest.approx(IDEAL, rel=0.03)
    assert [r.cost for r in weights.ranks] == pytest.approx([30e-6 / s for s in SPEEDS], rel=0.01)


@pytest.mark.parametrize("runs", [(30,), (5, 5, 5), (5,) * 7], ids=["one run", "3 runs", "7 runs"])
def test_weights_by_time_hold_the_truth_in_nineteen_of_twenty_intervals(runs):
    hits = []
    for seed in range(0, 800, 8):
        given = [planted(SPEEDS, noise=0.01, sets=n, seed=seed + k) for k, n in enumerate(runs)]
        hits += [r.low <= ideal <= r.high for r, ideal in zip(by_time(given).ranks, IDEAL)]
    assert 0.93 <= sum(hits) / len(hits) <= 0.99


@pytest.mark.parametrize(
    "given", [[{"sets": 1}], [{"sets": 2}], [{}, {"seed": 1}]], ids=["1 set", "2 sets", "2 runs"]
)
def test_up_to_two_sets_or_two_runs_give_shares_without_intervals(given):
    found = by_time([planted(SPEEDS, **options) for options in given])
    assert [r.low for r in found.ranks] == [None] * 4
    assert shares(found) == pytest.approx(IDEAL, rel=0.02)


def test_weights_name_rule_sources_and_hosts():
    records = [planted([1, 1], hosts=("a", "b"), id=id) for id in ("run-7", "run-8")]
    weights = by_time(records)
    assert (weights.rule, weights.source, weights.synthetic) == ("time", ("run-7", "run-8"), "")
    assert [r.host for r in weights.ranks] == ["a", "b"]
    assert (weights.measured, weights.mesh_hash) == (records[0].created, records[0].mesh.hash)


def test_the_comm_rule_takes_cells_from_the_rank_that_talks_longest():
    talk = (0.0, 0.0, 0.0, 0.004)
    weights = by_finish([planted(SPEEDS)], lambda shares: talk)
    finish = [r.share * CELLS * r.cost + c for r, c in zip(weights.ranks, talk)]
    assert finish == pytest.approx([finish[0]] * 4, rel=0.01)
    assert shares(weights)[3] < IDEAL[3]
    hopeless = by_finish([planted([1, 1, 1])], lambda shares: (0.0, 0.0, 1.0))
    assert any("leave rank 2 out" in note for note in hopeless.notes)


@pytest.mark.parametrize(
    ("rule", "records", "message"),
    [
        (by_tasks, [planted([1, 1], hosts=("a", "b"))], "several hosts"),
        (by_tasks, [planted([1.0])], "records of one host"),
        (by_time, [], "no records"),
        (by_time, [planted([1, 1], storage="csr"), planted([1, 1], id="other")], "from planted in storage"),
        (by_time, [planted([1, 1]), planted([1, 1], hosts=("a", "b"))], "in host set"),
        (by_time, [planted([1, 1], verdict=Verdict("INVALID", ("A1 not met",), ()))], "INVALID: A1 not met"),
    ],
)
def test_records_that_make_no_weights_are_refused(rule, records, message):
    with pytest.raises(InputError, match=message):
        rule(records)


@pytest.mark.row("004:9.1.11a")
def test_time_shares_are_the_speeds_whatever_the_shares_of_the_run():
    cells = np.array([600, 300, 100])
    speeds = np.array([4.0, 2.0, 2.0])
    seconds = cells / speeds
    assert time_shares(seconds / cells).shares == pytest.approx((0.5, 0.25, 0.25))


def test_noise_that_hits_all_ranks_of_a_set_at_once_leaves_the_shares_sharp():
    common = np.random.default_rng(1).uniform(1, 3, (30, 1))
    found = time_shares(common * [1.0, 2.0])
    assert all(i.high - i.low < 1e-12 for i in found.intervals)


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        (comm_shares, ([1.0, 1.0], lambda s: [0.0], 10), "communication of 1 rank;"),
        (comm_shares, ([1.0, 1.0], lambda s: [0.0, 0.0], 1), "1 cell for 2 ranks"),
        *((time_shares, (cost,), "positive") for cost in ([], [[1.0, 0.0]], [[1.0, -1.0]], [[1.0, np.nan]])),
        (tasks_per_host, ((1.0, 2.0), 1), "1 task for 2 hosts"),
        *((natural_tasks, (times,), "positive seconds") for times in ((), (1, 0.0), (1, np.nan), (1, -2.0))),
    ],
)
def test_what_gives_no_shares_is_refused(rule, given, message):
    with pytest.raises(InputError, match=message):
        rule(*given)


def test_equal_finish_is_the_closed_form_and_gives_nothing_to_a_rank_that_only_talks():
    cost, C = np.array([1.0, 2.0, 4.0]), np.array([5.0, 0.0, 12.0])
    cells, T = equal_finish(cost, C, 100)
    assert cells.sum() == pytest.approx(100)
    assert cells * cost + C == pytest.approx([T] * 3)
    cells, T = equal_finish([1.0, 1.0, 1.0], [0.0, 0.0, 500.0], 100)
    assert (cells.tolist(), T) == ([50, 50, 0], 50)


def test_no_rank_gets_more_cells_than_it_has_room_for_and_the_others_take_the_rest():
    cost, C, most = [1.0, 2.0, 2.0], [0.0, 0.0, 10.0], [20.0, 40.0, np.inf]
    cells, T = equal_finish(cost, C, 100, most)
    assert cells == pytest.approx([20, 40, 40])
    assert pytest.approx(2 * 40 + 10) == T
    assert equal_finish(cost, C, 60, [20.0, 20.0, 20.0])[0] == pytest.approx([20, 20, 20])


def times_of_a_device(cells, noise=0.0, start=2.0, each=0.01):
    """(n_runs, n_sets, 2) cells and seconds: a device with 2 s to start, and a core a quarter as fast."""
    rng = np.random.default_rng(1)
    N = np.array([[[n, 1000 - n]] * 6 for n in cells], float)
    return N, (np.array([start, 0.0]) + N * [each, 0.04]) * (1 + noise * rng.standard_normal(N.shape))


def test_the_share_of_a_device_follows_from_its_times_on_parts_of_two_sizes():
    """2 + 0.01 N = 0.04 (1000 - N) at N = 760; at its speed on 500 cells it gets 741."""
    cells, seconds = times_of_a_device([500, 645], noise=0.002)
    assert line_shares(cells, seconds, [True, False], 1000).shares[0] == pytest.approx(0.76, rel=0.01)
    once = line_shares(cells[:1], seconds[:1], [True, False], 1000)
    assert once.shares[0] == pytest.approx(0.7407, rel=0.01)  # 0.014 and 0.04 s per cell
    assert once.intervals[0].low < once.shares[0] < once.intervals[0].high


def test_sizes_that_hardly_differ_say_nothing_of_a_line():
    cells, seconds = times_of_a_device([500, 510], noise=0.002)
    assert line_shares(cells, seconds, [True, False], 1000).shares[0] == pytest.approx(0.74, rel=0.01)


def test_a_device_that_starts_longer_than_the_others_compute_gets_one_cell_and_no_interval():
    """The core takes 40 s for all cells; a start of 39 s leaves some to the device."""
    gpu = [DeviceFacts("Some GPU"), DeviceFacts()]
    for start, left_out in ((50.0, (0,)), (39.0, ())):
        cells, seconds = times_of_a_device([500, 645], 1e-4, start, 0.02)
        found = line_shares(cells, seconds, [True, False], 1000)
        assert found.left_out == left_out
        assert (found.shares[0] < 1.5 / 1000, found.intervals[0] is None) == (bool(left_out),) * 2
        assert found.intervals[1] is not None
        assert len(notes_on_left_out(found, gpu)) == len(left_out)


def with_devices(record, memory):
    devices = (DeviceFacts("Some GPU", memory, "driver", "compiler"), DeviceFacts())
    return replace(record, environment=replace(record.environment, devices=devices))


def test_the_memory_of_a_device_is_an_upper_bound_of_its_share():
    """A part of 500 cells has a matrix of 10 kB and 100 dofs of 96 bytes: 39.2 bytes per cell."""
    record = planted((4, 1))
    record = replace(record, solve=replace(record.solve, matrix_bytes=(10_000, 10_000)))
    found = by_time([with_devices(record, 1 << 20)])
    assert shares(found) == pytest.approx([0.8, 0.2], rel=0.01)
    found = by_time([with_devices(record, 600 * 39.2 / 0.9)])
    assert shares(found) == pytest.approx([0.6, 0.4], rel=1e-3)
    assert "rank 0: Some GPU has memory for 600 cells; the others take the rest" in found.notes
    devices = tuple(DeviceFacts("Some GPU", 10_000) for _ in range(2))
    full = replace(record, environment=replace(record.environment, devices=devices))
    with pytest.raises(InputError, match="has 1000 cells; the devices have memory for 459: use more devices"):
        by_time([full])


def test_without_communication_the_comm_rule_is_the_time_rule():
    found = comm_shares([1.0, 2.0, 4.0], lambda shares: np.zeros(3), 1000)
    assert found.shares == pytest.approx(time_shares([1.0, 2.0, 4.0]).shares)
    assert (found.settled, found.left_out) == (True, ())


def test_the_comm_rule_finds_equal_finish_with_communication_that_depends_on_the_shares():
    cost, cells = np.array([1.0, 1.0, 3.0]), 3000

    def communication(shares):  # a surface on a slow link for the last rank
        return np.array([1.0, 1.0, 8.0]) * (np.array(shares) * cells) ** (2 / 3)

    found = comm_shares(cost, communication, cells)
    finish = np.array(found.shares) * cells * cost + communication(found.shares)
    assert found.settled
    assert finish.max() / finish.min() - 1 < 0.01
    by_time = np.array(time_shares(cost).shares)
    assert found.seconds < 0.95 * float((by_time * cells * cost + communication(by_time)).max())


def test_interfaces_that_jump_end_at_the_best_round_seen():
    calls = []

    def jumping(shares):
        calls.append(shares)
        return np.array([0.0, 300.0 if len(calls) % 2 else 0.0])

    found = comm_shares([1.0, 1.0], jumping, 1000, rounds=7)
    assert len(calls) == found.rounds <= 7
    assert found.seconds <= 650


def test_a_rank_behind_a_hopeless_link_is_left_out_with_one_cell():
    found = comm_shares([1.0, 1.0, 1.0], lambda s: np.array([0.0, 0.0, 900.0]), 1000)
    assert found.left_out == (2,)
    assert found.shares[2] == pytest.approx(1 / 1000, rel=0.01)
    assert sum(found.shares) == pytest.approx(1)


def test_costs_say_the_same_of_two_ranks_as_their_shares():
    cost = [[4.0, 5.0], [6.0, 5.0], [5.0, 4.9]]  # medians 5 and 5, but shares of sets: 5/9, 5/11, 49/99
    found = time_shares(cost)
    assert found.shares == pytest.approx((49 / 99, 50 / 99))
    assert found.cost[1] / found.cost[0] == pytest.approx(found.shares[0] / found.shares[1])
    assert found.cost[0] * found.cost[1] == pytest.approx(5.0 * 5.0)


@pytest.mark.row("004:F15")
@pytest.mark.parametrize(
    ("times", "total", "tasks"),
    [
        ((7.7, 1.0), 8, (1, 7)),
        ((316.657648, 24.417126), 14, (1, 13)),  # Ferreira (2006), like for like
        ((1.0, 1000.0), 2, (1, 1)),  # each host has one
        ((3.0, 3.0), 5, (3, 2)),
    ],
)
def test_tasks_go_by_the_ratio_of_times(times, total, tasks):
    assert tasks_per_host(times, total) == tasks


def test_the_natural_number_of_tasks_gives_one_to_the_slowest_and_whole_ratios_are_not_rounded_down():
    assert 0.3 / 0.1 < 3
    assert [natural_tasks(times) for times in ((7.7, 1.0), (0.3, 0.1))] == [8, 4]


def test_tasks_minimise_the_time_of_the_slowest_host():
    times = (1.0, 1.4, 3.0)
    for total in range(3, 20):
        some = ((a, b, total - a - b) for a in range(1, total) for b in range(1, total - a))
        best = min(max(k * t for k, t in zip(one, times)) for one in some)
        found = tasks_per_host(times, total)
        assert sum(found) == total
        assert max(k * t for k, t in zip(found, times)) == pytest.approx(best)


def test_weights_keep_what_each_rank_computed_on_and_fit_no_other_list_of_devices(tmp_path):
    weights = by_time([with_devices(planted((4, 1), device="opencl,cpu"), 1 << 40)])
    assert [rank.device for rank in weights.ranks] == ["opencl", "cpu"]
    file = tmp_path / "w.json"
    save_weights(weights, file)
    cores = Case.of(mesh="m1", ranks=2)
    mixed = cores.with_(device="opencl,cpu")
    assert weighted(mixed, file).placement.shares == as_text(weights)
    said = "rank 0 computes on cpu, the weights have opencl in its place: expected device = 'opencl,cpu'"
    with pytest.raises(InputError, match=said):
        weighted(cores, file)
    tree = json.loads(file.read_text())
    for rank in tree["ranks"]:
        del rank["device"]  # as older files have it
    file.write_text(json.dumps(tree))
    assert weighted(cores, file).placement.shares == as_text(weights)


def test_of_several_differences_that_of_the_mesh_is_named_first_then_that_of_the_ranks():
    both, alone = planted([1.0, 1.0]), planted([1.0], id="alone")
    alone = replace(alone, case=alone.case.with_(iterations=7))
    with pytest.raises(InputError, match=r"^alone ran on one rank, planted on 2: choose one number of ranks"):
        by_time([both, alone])
    other = replace(alone, mesh=replace(alone.mesh, name="s", hash="other"))
    with pytest.raises(InputError, match=r"^records of several meshes \(m1, s\): choose one mesh"):
        by_time([both, alone, other])
