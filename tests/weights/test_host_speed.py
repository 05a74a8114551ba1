"""The one statement of the speed of a host, on planted measurements of nodes and planted runs."""

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from planted_nodes import Planted, planted_nodes
from planted_records import planted

from fembench.records.verdict import Verdict
from fembench.report.node_tables import headline
from fembench.report.slow_hosts import host_advice
from fembench.weights.host_speed import host_speeds
from fembench.weights.slow_nodes import slow_nodes

replace = msgspec.structs.replace
LOADED = {"others_percent": 40.0}
QUOTA = {"throttled_percent": 60.0, "cpu_quota": 0.5}
VALID = Verdict(status="VALID", reasons=(), rules=())


def runs(speeds, n=4, *, scatter=0.01, **facts):
    """Runs of one rank on each host, whose speeds scatter from run to run; `facts` of the last host."""
    rng, names = np.random.default_rng(1), [f"n{k + 1}" for k in range(len(speeds))]
    made = []
    for k in range(n):
        here = np.array(speeds) * np.exp(scatter * rng.standard_normal(len(speeds)))
        record = planted(here, hosts=names, seed=k, id=f"r{k}", verdict=VALID)
        made.append(on_hosts_with(record, names[-1], **facts))
    return made


def named(speeds):
    return {host.name: host.cause for host in speeds.slow}


@pytest.mark.parametrize("seed", range(10))
def test_a_host_is_named_only_if_its_interval_excludes_the_typical_speed(seed):
    """Scattering by 20 % from round to round, eight equal nodes are not told apart."""
    speeds = host_speeds(planted_nodes(3, noise=0.2, seed=seed))
    assert named(speeds) == {}
    assert speeds.planned == {}
    assert all(host.high >= 0.95 for host in speeds.hosts)


def test_a_quota_of_its_own_is_the_cause_of_a_slow_host():
    speeds = host_speeds(planted_nodes(3, {2: Planted(load=0.75, host=QUOTA)}, ranks=2))
    assert named(speeds) == {"n3": "all cores slow: a quota of 0.5 CPUs withheld 75 % of the time"}
    assert speeds.planned == pytest.approx({"n1": 1.0, "n2": 1.0, "n3": 0.25}, rel=0.05)
    assert speeds.quotas == ("n3: a quota of 0.5 CPUs withheld 60 % of its CPU time",)


def test_beside_foreign_work_on_all_hosts_no_host_is_named_for_it_and_nothing_is_planned():
    """n1 lacks 20 %, and others used 40 % everywhere: that may be all that it lacks."""
    changes = {k: Planted(host=LOADED) for k in range(3)} | {0: Planted(cores=0.8, host=LOADED)}
    record = planted_nodes(3, changes, noise=1e-3)
    speeds = host_speeds(record)
    assert (named(speeds), speeds.planned) == ({}, {})
    assert speeds.disturbed == "others used up to 40 % of the CPU time on n1, n2, n3"
    assert {node.verdict for node in slow_nodes(record).nodes} == {"disturbed"}
    assert headline(slow_nodes(record)).startswith("DISTURBED: others used up to 40 %")


def test_a_quota_is_named_beside_foreign_work_but_nothing_is_planned_from_it():
    changes = {k: Planted(host=LOADED) for k in range(2)} | {2: Planted(load=0.75, host=LOADED | QUOTA)}
    speeds = host_speeds(planted_nodes(3, changes, ranks=2))
    assert list(named(speeds)) == ["n3"]
    assert (speeds.planned, bool(speeds.disturbed)) == ({}, True)


def test_foreign_work_on_one_of_many_hosts_is_its_cause_and_no_reason_to_plan_without_it():
    busy, slow = Planted(load=0.3, host={"others_percent": 30.0}), Planted(cores=0.5)
    speeds = host_speeds(planted_nodes(8, {1: busy, 5: slow}))
    assert named(speeds)["n2"].startswith("another load")
    assert {name: round(speed, 1) for name, speed in speeds.planned.items() if speed < 1} == {"n6": 0.5}


def test_of_two_hosts_the_slower_one_is_named_with_its_interval():
    speeds = host_speeds(planted_nodes(2, {1: Planted(load=0.75, host=QUOTA)}, ranks=2))
    (slow,) = speeds.slow
    assert slow.name == "n2"
    assert slow.low < slow.speed < slow.high < 0.3
    assert "a quota of 0.5 CPUs" in slow.cause
    assert host_speeds(planted_nodes(2)).slow == []


SMALL = {"cpu_model": "Small"}


def test_hosts_of_a_slower_kind_are_slow_but_only_a_fault_of_its_own_is_a_reason_to_leave_one_out():
    half = {k: Planted(cores=0.5, host=SMALL) for k in range(4)}
    record = planted_nodes(8, {**half, 6: Planted(cores=0.8)}, noise=1e-4, spread=0.0)
    speeds = host_speeds(record)
    assert list(speeds.planned.values()) == pytest.approx([0.5] * 4 + [1, 1, 0.8, 1], abs=0.01)
    small = dict.fromkeys(("n1", "n2", "n3", "n4"), "another processor: Small")
    assert {name: cause for name, cause in named(speeds).items() if name != "n7"} == small
    assert [host.name for host in speeds.slow][4:] == ["n7"]  # the slowest first
    assert [host.name for host in speeds.faulty] == ["n7"]
    advice = host_advice([], speeds)
    assert (advice.do, advice.hosts) == ("keep n7, with shares by speed", ["n7"])
    assert "equal shares lose 0 %, shares by speed 3 %, leaving out 12 %" in advice.why
    assert host_advice([], host_speeds(planted_nodes(8, half))) is None


def test_hosts_of_a_slower_kind_are_over_the_normal_ones_of_the_fastest_though_half_of_these_are_slow():
    half = dict.fromkeys(range(3), Planted(cores=0.5, memory=0.5, host=SMALL))
    record = planted_nodes(
        7, half | dict.fromkeys((5, 6), Planted(cores=0.8, memory=0.8)), noise=1e-4, spread=0
    )
    speeds = [host.speed for host in host_speeds(record).hosts]
    assert speeds == pytest.approx([0.5] * 3 + [1, 1, 0.8, 0.8], abs=0.01)


def test_no_advice_follows_from_a_host_that_only_another_load_keeps_busy():
    busy, half = Planted(load=0.3, host={"others_percent": 30.0}), Planted(cores=0.5, host=SMALL)
    speeds = host_speeds(planted_nodes(8, {6: busy} | dict.fromkeys(range(3), half)))
    assert [host.name for host in speeds.faulty] == ["n7"]
    assert host_advice([], speeds) is None


def test_a_quota_on_all_hosts_of_a_kind_is_a_fault_of_each():
    """They are equal among themselves: only the other kind shows it."""
    held = Planted(load=0.75, host=QUOTA | SMALL)
    found = slow_nodes(planted_nodes(6, dict.fromkeys(range(3), held), ranks=2))
    assert [node.verdict for node in found.nodes] == ["slow"] * 3 + ["normal"] * 3


def test_a_quota_does_not_make_a_slower_kind_the_reference():
    """Of three, n1 is fastest; n2 is of its kind, with a quota; the other kind has 0.7 of its speed."""
    kinds = {1: Planted(load=0.75, host=QUOTA), 2: Planted(cores=0.7, memory=0.7, host=SMALL)}
    speeds = host_speeds(planted_nodes(3, kinds, ranks=2))
    assert [speeds.of(name).speed for name in ("n1", "n2", "n3")] == pytest.approx([1, 0.25, 0.7], rel=0.05)
    assert [host.name for host in speeds.faulty] == ["n2"]
    of_runs = host_speeds(None, runs([1, 0.25, 0.7], **SMALL))
    assert of_runs.of("n1").speed == 1.0


def test_of_two_hosts_the_one_that_is_slow_for_no_known_reason_is_not_called_faulty():
    """Nobody knows which one is normal. All that is slow is part of the cause."""
    (slow,) = host_speeds(planted_nodes(2, {0: Planted(cores=0.5, memory=0.4)})).slow
    assert (slow.name, slow.faulty) == ("n1", False)
    assert slow.cause.startswith("all cores slow (at the usual clock rate")


def test_of_two_hosts_one_whose_load_has_passed_when_it_is_measured_alone_is_not_slow():
    busy = Planted(load=0.3, host={"others_percent": 1.0, "steal_percent": 30.0}, passing=True)
    lasting = Planted(load=0.3, host=busy.host)
    for planted_load, slow in ((busy, []), (lasting, ["n2"])):
        record = planted_nodes(2, {1: planted_load})
        assert list(named(host_speeds(record))) == slow
        assert [node.name for node in slow_nodes(record).named("slow")] == slow


def test_the_load_of_a_machine_is_not_the_cause_of_one_of_its_emulated_hosts():
    record = planted_nodes(2, {0: Planted(host=LOADED), 1: Planted(cores=0.5)})
    nodes = tuple(replace(node, host=0) for node in record.first.nodes)
    (slow,) = host_speeds(replace(record, first=replace(record.first, nodes=nodes))).slow
    assert (slow.name, slow.faulty) == ("n2", False)
    assert "load" not in slow.cause


def test_a_slow_host_of_a_slower_kind_has_the_product_of_both_ratios():
    half = {k: Planted(cores=0.5, memory=0.5, host=SMALL) for k in range(4)}
    speeds = host_speeds(planted_nodes(9, half | {1: Planted(cores=0.4, memory=0.5, host=SMALL)}))
    slow = speeds.of("n2")
    assert slow.speed == pytest.approx(0.4, abs=0.01)
    assert 0.37 < slow.low < slow.speed < slow.high < 0.43


def test_hosts_with_more_ranks_are_compared_by_the_rank():
    """Of six hosts, three have two ranks on half of the memory bandwidth, and three have four."""
    wide, narrow = planted_nodes(6), planted_nodes(6, dict.fromkeys(range(6), Planted(memory=0.5)), ranks=2)
    nodes = (*wide.first.nodes[:3], *narrow.first.nodes[3:])
    speeds = host_speeds(replace(wide, first=replace(wide.first, nodes=nodes)))
    assert [host.speed for host in speeds.hosts] == pytest.approx([1] * 6, abs=0.03)
    assert speeds.slow == []


def test_one_run_names_no_host_but_says_what_a_quota_withheld():
    """A host at 99.7 % in a run in which its quota withheld 18 % of its time."""
    (run,) = runs([1, 1, 0.997], 1, throttled_percent=18.0, cpu_quota=0.5)
    speeds = host_speeds(None, [run])
    assert speeds.hosts == ()
    assert speeds.unknown.startswith("1 run on these hosts, and an interval needs 3")
    assert speeds.quotas == ("n3: a quota of 0.5 CPUs withheld 18 % of its CPU time",)


def test_too_few_quiet_runs_say_how_many_were_disturbed_and_name_nodes_only_where_it_compares_some():
    for speeds, nodes in ([1, 0.5], ""), ([1, 1, 0.5], ", or type fembench nodes"):
        loud = [on_hosts_with(run, "n1", **LOADED) for run in runs(speeds, 2)]
        said = "2 runs on these hosts (2 more DISTURBED), and an interval needs 3; repeat the runs"
        assert host_speeds(None, [*runs(speeds, 2), *loud]).unknown == said + nodes


def test_three_runs_name_a_host_that_is_slow_in_all_of_them():
    speeds = host_speeds(None, runs([1, 0.97, 0.5, 1.02]))
    assert list(named(speeds)) == ["n3"]
    assert speeds.of("n3").low < 0.5 < speeds.of("n3").high
    assert speeds.of("n3").faulty
    other = host_speeds(None, runs([1, 0.97, 1.02, 0.5], cpu_model="Small"))
    assert named(other) == {"n4": "another processor: Small"}
    assert other.faulty == []
    assert named(host_speeds(None, runs([0.8, 0.95, 1.0], scatter=0.15))) == {}


def test_runs_beside_foreign_work_or_whose_ranks_take_turns_say_nothing_about_hosts():
    loaded = host_speeds(None, runs([1, 1, 0.5], others_percent=30.0))
    assert (loaded.hosts, loaded.disturbed) == ((), "others used up to 30 % of the CPU time on n3")
    shared = [on_hosts_with(run, machine=0) for run in runs([1, 1, 0.5])]
    cores = ((0,), (1,), (0,))
    shared = [replace(run, environment=replace(run.environment, cores=cores)) for run in shared]
    assert host_speeds(None, shared).unknown.startswith("3 ranks take turns on 2 cores")
