"""Which nodes are slow and why, from planted samples."""

import time

import pytest
from msgspec.structs import replace
from planted_nodes import MEMORY, Planted, planted_nodes

from fembench.records.quiet import QUOTA
from fembench.report.node_tables import RATIOS, as_text, conclusions, headline
from fembench.weights.host_speed import host_speeds
from fembench.weights.node_causes import NodeLosses, cause_of
from fembench.weights.node_verdicts import NodeRatio, differing, kinds_of
from fembench.weights.slow_nodes import slow_nodes

OTHERS = {"others_percent": 30.0}
THREE = {  # a slow clock, slow memory, another load
    1: Planted(cores=0.85, clock=0.85),
    4: Planted(memory=0.7),
    6: Planted(load=0.3, host=OTHERS),
}
CAUSES = {
    1: "all cores slow: clock 2.2",
    4: "memory slow, cores normal",
    6: "another load: others used 30 % of the CPU time",
}
SEEDS = range(10)


def slow(record):
    """{index: cause} of the slow nodes."""
    found = slow_nodes(record)
    return {k: node.cause for k, node in enumerate(found.nodes) if node.verdict == "slow"}


def held(percent, quota):
    """Facts of a host from which a quota withheld this part of the time, also while ranks slept."""
    return {"throttled_percent": percent, "cpu_quota": quota, "cores": max(1, int(quota))}


def has_causes(found, causes):
    return set(found) == set(causes) and all(found[k].startswith(cause) for k, cause in causes.items())


def test_each_slow_node_of_eight_has_its_cause_and_no_other_is_named():
    found = [slow(planted_nodes(8, THREE, seed=seed)) for seed in SEEDS]
    assert sum(has_causes(one, CAUSES) for one in found) >= 9, found


def test_of_eight_equal_nodes_none_is_slow():
    assert sum(slow(planted_nodes(8, seed=seed)) == {} for seed in SEEDS) >= 9


def test_500_nodes_have_the_same_verdicts_in_seconds():
    record = planted_nodes(500, {60 * k: change for k, change in THREE.items()}, ranks=16)
    begin = time.perf_counter()
    found = slow(record)
    assert time.perf_counter() - begin < 10
    assert has_causes(found, {60 * k: cause for k, cause in CAUSES.items()})
    assert slow(planted_nodes(500, ranks=16)) == {}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (Planted(core={2: 0.6}), "core 2 slow"),
        (Planted(core={0: 0.5, 3: 0.6}), "core 0, core 3 slow"),
        (Planted(cores=0.8), "all cores slow (at the usual clock rate, 2.6"),
        (Planted(cores=0.8, throttled=7), "throttled: 7 thermal events; all cores slow"),
        (Planted(load=0.75, host=held(100.0, 2.0)), "all cores slow: a quota of 2 CPUs withheld 75 %"),
        (Planted(load=0.33, host=held(10.0, 0.5)), "all cores slow: a quota of 0.5 CPUs withheld 33 %"),
        (Planted(load=0.33, host=held(10.0, 9.0)), "another load: no processor for 33 %"),  # it is enough
        (Planted(load=0.2, host={"steal_percent": 20.0}), "another load: the hypervisor took 20 %"),
        (Planted(load=0.25), "another load: no processor for 25 % of the time"),
        (Planted(cores=0.8, host={"others_percent": 45.0}), "another load: others used 45 %"),
        (Planted(cores=0.7, host={"others_percent": 5.0}), "all cores slow"),  # too little to explain it
    ],
)
def test_the_cause_is_what_explains_half_of_what_a_node_lacks(change, cause):
    assert has_causes(slow(planted_nodes(8, {5: change})), {5: cause})


def test_a_quota_is_the_cause_although_it_withheld_the_time_of_one_core_only():
    """A quota of half a CPU for two ranks: core 0 ran while it lasted."""
    kind = kinds_of(planted_nodes(3, ranks=2).first)[0]
    node = planted_nodes(3, ranks=2).first.nodes[2]
    both, one = (NodeRatio(ratio, ratio, ratio, True, 1.0, ratio) for ratio in (0.3, 0.4))
    losses = NodeLosses({QUOTA: 20.0}, quota=0.5)
    assert cause_of(kind, node, {"all cores": both}, {1: one}, losses) == (
        "all cores slow: a quota of 0.5 CPUs withheld 70 % of the time"
    )
    others = NodeLosses({"others": 60.0}, quota=0.0)
    assert cause_of(kind, node, {"all cores": both}, {1: one}, others).startswith("another load on core 1")


def test_what_all_nodes_lose_is_not_the_cause_of_one():
    """Virtual hosts of one machine, on which others used 30 %; the sixth has a quota, too."""
    slowed = Planted(load=0.66, host=OTHERS | held(15.0, 0.5))
    changes = {k: Planted(host=OTHERS) for k in range(8)} | {5: slowed}
    found = slow(planted_nodes(8, changes))
    assert has_causes(found, {5: "all cores slow: a quota of 0.5 CPUs withheld 66 %"})


def test_where_verdicts_do_not_suffer_from_foreign_work_nothing_calls_them_doubtful():
    """Emulated nodes of one host, on which others used 30 %, go by their own processor time."""
    for emulated in (True, False):
        record = planted_nodes(8, {k: Planted(host=OTHERS) for k in range(8)})
        if emulated:
            nodes = tuple(replace(node, host=0) for node in record.first.nodes)
            record = replace(record, first=replace(record.first, nodes=nodes))
        said = " ".join(conclusions(record, slow_nodes(record)))
        assert ("DISTURBED" in said) is not emulated


def test_the_tables_say_that_ratios_are_those_of_rounds_and_rates_are_not():
    for n, compared in ((8, True), (2, False)):
        record = planted_nodes(n)
        assert (RATIOS in as_text(record, slow_nodes(record))) is compared


def test_a_node_that_is_normal_alone_was_disturbed_and_is_no_outlier():
    found = slow_nodes(planted_nodes(8, {5: Planted(cores=0.8, passing=True), 2: Planted(cores=0.8)}))
    assert [node.name for node in found.named("disturbed")] == ["n6"]
    assert [node.name for node in found.named("slow")] == ["n3"]
    assert found.nodes[5].ratios["all cores"].alone == pytest.approx(1.0, abs=0.03)
    assert found.nodes[2].ratios["all cores"].alone == pytest.approx(0.8, abs=0.03)


def test_the_cores_of_a_single_node_are_compared_with_each_other():
    found = slow_nodes(planted_nodes(1, {0: Planted(core={3: 0.7})}, ranks=8))
    assert (found.nodes[0].verdict, found.nodes[0].cause) == ("slow", "core 3 slow")
    assert found.nodes[0].cores[3].ratio == pytest.approx(0.7, abs=0.03)
    two = slow_nodes(planted_nodes(2, {0: Planted(cores=0.5)})).nodes
    assert [(node.verdict, node.ratios) for node in two] == [("not compared", {})] * 2


HALF = {k: Planted(cores=0.5, host={"cpu_model": "Small"}) for k in range(4)}


@pytest.mark.parametrize(
    ("changes", "equal", "weighted", "left_out"),
    [
        ({3: Planted(cores=0.8)}, 0.2, 0.2 / 8, 1 / 8),  # all wait for it; a fifth of an eighth; an eighth
        ({3: Planted(core={1: 0.6})}, 0.4, 0.4 / 32, 1 / 8),  # one core of four
        (HALF | {6: Planted(cores=0.8)}, 0.0, 0.2 / 6, 1 / 8),  # of the faster kind: not the slowest
    ],
)
def test_costs_are_those_of_waiting_of_weights_and_of_fewer_nodes(changes, equal, weighted, left_out):
    found = slow_nodes(planted_nodes(8, changes, noise=1e-4, spread=0.0))
    assert [node.name for node in found.named("slow")] == [f"n{max(changes) + 1}"]
    assert found.costs.equal == pytest.approx(equal, abs=1e-3)
    assert found.costs.weighted == pytest.approx(weighted, abs=1e-3)
    assert found.costs.left_out == pytest.approx(left_out)
    assert [kind.nodes for kind in found.kinds][-1][-4:] == (4, 5, 6, 7)  # compared with their kind


def test_with_half_of_the_nodes_slow_speeds_and_costs_are_over_the_normal_ones():
    changes = {2: Planted(cores=0.8, memory=0.8), 3: Planted(memory=0.7)}
    record = planted_nodes(4, changes, noise=1e-4, spread=0.0)
    found = slow_nodes(record)
    memory = [node.ratios["memory"] for node in found.nodes]
    assert [one.ratio for one in memory] == pytest.approx([1, 1, 0.8, 0.7], abs=3e-3)
    assert [one.alone for one in memory[2:]] == pytest.approx([0.8, 0.7], abs=3e-3)
    assert found.kinds[0].typical["memory"] == pytest.approx(MEMORY, rel=0.02)
    assert [one.speed for one in found.speeds] == pytest.approx([1, 1, 0.8, 0.7], abs=3e-3)
    assert (found.costs.equal, found.costs.weighted) == pytest.approx((0.3, 0.5 / 4), abs=3e-3)
    assert "all nodes run at 70" in headline(found)
    loaded = slow(planted_nodes(4, dict.fromkeys((2, 3), Planted(load=0.3)), noise=1e-4))
    assert has_causes(loaded, dict.fromkeys((2, 3), "another load: no processor for 30 %"))


@pytest.mark.parametrize(("n", "slow"), [(8, 4), (8, 5), (3, 2)])
def test_nodes_of_which_half_are_slow_are_not_called_equal(n, slow):
    found = slow_nodes(planted_nodes(n, {k: Planted(cores=0.7) for k in range(slow)}))
    assert found.named("slow") == []
    assert "stands out as slow" in headline(found)
    assert "not equal: more than 5 % off the typical speed" in headline(found)
    assert headline(slow_nodes(planted_nodes(n))).startswith(f"no slow node among {n}: none lacks 5 %")


def test_where_one_node_stands_out_the_others_count_as_typical_although_one_is_faster():
    """Else a run whose ranks share cores would say which hosts are slow."""
    record = planted_nodes(3, {0: Planted(cores=1.2), 2: Planted(cores=0.3)}, noise=1e-3)
    assert [node.name for node in differing(slow_nodes(record))] == ["n1"]
    assert list(host_speeds(record).planned.values()) == pytest.approx([1, 1, 0.3], abs=0.02)


def test_nodes_measured_too_roughly_to_exclude_a_slow_one_are_not_said_to_be_fast():
    line = headline(slow_nodes(planted_nodes(3, noise=0.2)))
    assert line.startswith("no slow node among 3: none is shown to lack 5 %")


def test_a_node_whose_quota_is_too_small_for_its_ranks_is_named_whatever_was_measured():
    record = planted_nodes(3, {2: Planted(host={"cpu_quota": 0.5, "cores": 1})}, ranks=2)
    lacks = "less than a CPU per rank: n3: 2 ranks, a quota of 0.5 CPUs"
    assert lacks in conclusions(record, slow_nodes(record))
    quiet = planted_nodes(3)
    assert conclusions(quiet, slow_nodes(quiet)) == [headline(slow_nodes(quiet))]
