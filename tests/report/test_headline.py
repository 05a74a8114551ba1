"""The headline on planted records."""

import re

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from planted_nodes import Planted, planted_nodes
from planted_records import lasting
from report_sample import HOST, campaign, environment, make_record, rows_of, verdict

from fembench.base.units import digits
from fembench.records import phases as ph
from fembench.records.record import LevelTimes
from fembench.records.verdict import Rule
from fembench.report import tables
from fembench.report.conclusions import conclusions
from fembench.report.results import results
from fembench.report.table import to_json

replace = msgspec.structs.replace


def head_of(records, **more):
    return {r["what"]: r for r in rows_of(records, "headline", **more)}


def test_the_headline_comes_first_and_begins_with_the_verdict():
    records = [*campaign((1, 2), ("m1",)), make_record("m2", status="PROVISIONAL")]
    first = tables.every_table(records)[0]
    assert first.name == "headline"
    assert tables.selected(tables.every_table(records)).startswith("Headline\n")
    verdict = to_json(first)[0]
    assert (verdict["what"], verdict["value"]) == ("verdict", "PROVISIONAL")
    unmet, unknown = "enough sets and warm-ups (D1)", "same energy as the reference (A4)"
    said = f"3 runs: 2 VALID, 1 PROVISIONAL; rules not met: {unmet}; rules not evaluated: {unknown}"
    assert verdict["remarks"] == said


def test_the_verdict_counts_runs_those_of_one_case_too():
    records = [make_record("m1", run=0), make_record("m1", run=1), make_record("m1", status="INVALID", run=2)]
    assert head_of(records)["verdict"]["remarks"].startswith("3 runs: 2 VALID, 1 INVALID; ")


def test_beside_real_hosts_the_headline_and_the_sentences_leave_out_emulated_ones():
    real = [make_record("m1", n, sets=30) for n in (1, 2)]
    slowed = [
        make_record("m3", n, environment=environment(n, synthetic="emulated"), sets=30) for n in (1, 2, 4)
    ]
    rows, alone = head_of([*real, *slowed]), head_of(real)
    apart = "3 cases SYNTHETIC, left out of the next lines"
    assert rows.pop("verdict")["remarks"] == f"5 runs: 5 VALID; {apart}"
    assert alone.pop("verdict")["remarks"] == "2 runs: 2 VALID"
    for row in rows.values():
        assert {**row, "remarks": row["remarks"].replace(" · kind A", "")} == alone[row["what"]]
    said, only = (conclusions(results(some)) for some in ([*real, *slowed], real))
    left_out = "SYNTHETIC cases are left out of these sentences, but not of the tables."
    assert [line for line in said if line != left_out] == only
    assert left_out in said
    assert "m3" in head_of(slowed)["figure of merit"]["remarks"]
    assert any("m3" in line for line in conclusions(results(slowed)))


def test_every_number_of_a_provisional_run_says_so():
    rows = head_of([make_record("m1", 2, status="PROVISIONAL")])
    for what in ("figure of merit", "waiting", "messages", "cache bandwidth used"):
        assert rows[what]["remarks"].endswith("PROVISIONAL"), what


def test_a_rule_that_some_run_does_not_meet_is_not_listed_as_not_evaluated_as_well():
    rows = head_of([others(make_record("m1", n), ok) for n, ok in ((1, False), (2, None))])
    assert rows["verdict"]["remarks"].split("; ")[1:] == [
        "rules not met: no other programs on the cores (D6)"
    ]


def test_the_figure_of_merit_is_that_of_the_largest_run_on_most_ranks():
    records = campaign((1, 4), ("m1", "m3"), noise=0.0)
    row = head_of(records)["figure of merit"]
    cg = max(seconds[ph.CG] for seconds in records[-1].sets[-1].seconds)
    assert row["value"] == pytest.approx(5460 * 428 / cg / 1e6)
    assert (row["unit"], row["remarks"]) == (
        "MDOF/s",
        "million equations x iterations / s: m3 · csr, ranks 4, VALID",
    )


def crowded(mesh, ranks):
    """A record of ranks that share cores."""
    made = make_record(mesh, ranks)
    return replace(made, environment=replace(made.environment, oversubscribed=True))


def test_the_figure_of_merit_is_that_of_ranks_with_a_core_each_if_there_are_any():
    rows = head_of([make_record("m1", 2), crowded("m1", 3)])
    assert rows["figure of merit"]["remarks"].endswith("m1 · csr, ranks 2, VALID")
    assert rows["waiting"]["value"] == head_of([make_record("m1", 2)])["waiting"]["value"]
    only = head_of([crowded("m1", 3)])["figure of merit"]["remarks"]
    assert only.endswith("ranks 3, OVERSUBSCRIBED")


def test_a_speedup_over_a_base_on_two_ranks_says_what_they_count():
    times = (29.1e-3, 45.5e-3)
    slower = [
        lasting(made, t / max(row[ph.CG] for row in made.sets[-1].seconds))
        for made, t in zip((make_record("m1", 2, noise=0.0), crowded("m1", 3)), times)
    ]
    remarks = head_of(slower)["strong scaling efficiency"]["remarks"]
    assert "(the 2 ranks count as 2): cg on m1, from 2 to 3 ranks; slower than on 2 ranks" in remarks
    assert (
        "count as"
        not in head_of([make_record("m1"), crowded("m1", 3)])["strong scaling efficiency"]["remarks"]
    )


def test_the_conclusions_begin_with_the_foreign_work_that_took_the_most_time():
    loud = [on_hosts_with(make_record("m1", n), others_percent=p) for n, p in ((1, 33.0), (2, 77.0))]
    records = [*loud, others(make_record("m2"), True)]
    rows = head_of(records)
    assert rows["verdict"]["remarks"] == "3 runs: 3 VALID"
    first = conclusions(results(records))[0]
    who = "others used up to 77 % of the CPU time on node8 in 2 of 3 runs"
    assert first.startswith(f"DISTURBED: {who}: times may be far off")
    assert "m1 · csr, ranks 2, DISTURBED; without other work: " in rows["figure of merit"]["remarks"]
    quiet = head_of(campaign((1, 2), ("m1",))).values()
    assert not any("DISTURBED" in row["remarks"] for row in quiet)


def test_beside_a_disturbed_figure_of_merit_stands_that_of_the_largest_quiet_run():
    quiet = [others(one, True) for one in campaign((1, 2), ("m1",), noise=0.0)]
    (row, alone) = (head_of(made)["figure of merit"] for made in ([*quiet, loud()], quiet))
    also = f"{digits(alone['value'])} MDOF/s, m1 · csr, ranks 2, VALID"
    assert row["remarks"].endswith(f"m2 · csr, ranks 4, DISTURBED; without other work: {also}")
    assert "without other work" not in alone["remarks"]
    assert head_of([loud()])["figure of merit"]["remarks"].endswith("ranks 4, DISTURBED")


@pytest.mark.parametrize("known", [False, True])
def test_only_a_run_that_is_known_to_have_been_without_other_work_is_said_to_be(known):
    small, large = campaign((1, 2), ("m1",), noise=0.0)
    pair = [others(large, True), others(replace(large, id="again"), None)]
    remarks = head_of([others(small, True if known else None), *pair, loud()])["figure of merit"]["remarks"]
    assert ("without other work" in remarks) is known
    assert ("m1 · csr, ranks 1, VALID" in remarks) is known
    assert "ranks 2" not in remarks


def others(record, ok):
    """The record with rule D6 met, not met or (None) not evaluated."""
    rule = Rule(id="D6", ok=ok, value="node8: others used 1 % of the CPU time", threshold="<= 2 %")
    return replace(record, verdict=replace(record.verdict, rules=(*record.verdict.rules, rule)))


def loud():
    return on_hosts_with(make_record("m2", 4), others_percent=40.0)


def test_the_interval_of_the_figure_of_merit_is_that_of_the_time_turned_over():
    records = [make_record("m2", run=k, sets=10) for k in range(4)]
    row = head_of(records)["figure of merit"]
    assert row["low"] < row["value"] < row["high"]


def uncached(record):
    """The record of a matrix that no cache of its hosts holds."""
    return on_hosts_with(record, caches={})


def test_what_limits_a_run_is_given_in_parts_of_cg_and_of_the_bandwidth():
    record = uncached(make_record("m2", 4, noise=0.0, skew=0.0))
    rows = head_of([record])
    seconds = record.sets[-1].seconds[0]
    cg = seconds[ph.CG]
    assert rows["waiting"]["value"] == pytest.approx(100 * (seconds[ph.WAIT] + seconds[ph.ALLREDUCE]) / cg)
    assert rows["messages"]["value"] == pytest.approx(100 * (seconds[ph.SEND] + seconds[ph.UNPACK]) / cg)
    roofs = {r["phase"]: r for r in rows_of([record], "roofline")}
    assert rows["memory bandwidth used"]["value"] == pytest.approx(100 * roofs["product"]["of_roof_fraction"])


def test_no_bandwidth_is_written_as_a_power_of_ten():
    made = uncached(make_record("m2"))
    fast = replace(made, solve=replace(made.solve, bandwidth=(3.98e12,)))
    for text in (head_of([fast])["memory bandwidth used"]["remarks"], " ".join(conclusions(results([fast])))):
        assert " 3980 GB/s" in text


@pytest.mark.parametrize(
    ("each", "third", "level", "what"),
    [
        (1000, 1000, "L2", "cache"),
        (999, 1000, "L3", "cache"),
        (999, 999, "", "cache and memory"),
        (999, 250, "", "cache and memory"),
        (999, 249, "", "memory"),
        (0, 0, "", "memory"),
    ],
)
def test_the_bandwidth_is_that_of_a_cache_if_one_holds_the_matrix_on_every_host(each, third, level, what):
    record = make_record("m2", 4)
    (host,) = record.environment.hosts
    hosts = (
        replace(host, name="n1", sockets=2, caches={"L2": 400, "L3": 600}),
        replace(host, name="n2", caches={"L2": each, "L3": third}),
    )
    placed = replace(record.environment, hosts=hosts, rank_host=(0, 0, 0, 1))
    solve = replace(record.solve, matrix_bytes=(400, 400, 400, 1000))
    rows = head_of([replace(record, environment=placed, solve=solve)])
    assert [name for name in rows if name.endswith("bandwidth used")] == [f"{what} bandwidth used"]
    if level:
        assert rows["cache bandwidth used"]["remarks"].startswith(f"cache ({level} holds the matrix): ")


def test_the_bandwidth_of_ranks_that_take_turns_is_withheld():
    """Six ranks on three hosts of one machine with two cores; each rank saw the whole bandwidth of a core."""
    hosts = tuple(replace(HOST, name=name, cores=2, caches={}, machine=0) for name in "abc")
    shared = environment(6, hosts=hosts, cores=((0,), (1,)) * 3)
    row = head_of([make_record("m2", 6, environment=shared)])["memory bandwidth used"]
    assert (row["value"], row["remarks"]) == (None, "withheld: 6 ranks take turns on 2 cores")
    crowded = replace(environment(2), oversubscribed=True)
    withheld = head_of([uncached(make_record("m2", 2, environment=crowded))])["memory bandwidth used"]
    assert (withheld["value"], withheld["remarks"]) == (None, "withheld: OVERSUBSCRIBED")


def test_without_a_usable_efficiency_strong_scaling_names_the_base_and_the_speedup():
    """The run on one rank is the base of the speedup; the efficiency alone is missing: unequal ranks."""
    odd = (HOST, replace(HOST, name="node9", cpu_model="Other"))
    unlike = make_record("m3", 2, environment=environment(2, hosts=odd, synthetic="emulated"))
    both = environment(2, hosts=(HOST, replace(HOST, name="node9")), synthetic="emulated")
    slow = make_record("m2", 2, environment=both)
    alone = replace(make_record("m2"), environment=environment(1, synthetic="emulated"))
    row = head_of([unlike, slow, alone])["strong scaling efficiency"]
    assert row["value"] is None
    assert "no run on one rank" not in row["remarks"]
    assert re.search(r"speedup \d\.\d\d: cg on m2, from 1 to 2 ranks", row["remarks"])


@pytest.mark.row("004:9.1.12")
def test_a_run_slower_than_on_fewer_ranks_says_how_many_to_use():
    records = [on_hosts("a", 0.1), on_hosts("a", 0.08, ranks=2), on_hosts("a", 0.5, ranks=4)]
    speedups = {row["ranks"]: row["remarks"] for row in rows_of(records, "speedup_cg")}
    assert "use" not in speedups[2]
    assert speedups[4].startswith("slower than on 2 ranks: use 2 ranks")
    assert "slower than on 2 ranks: use 2 ranks" in head_of(records)["strong scaling efficiency"]["remarks"]


@pytest.mark.parametrize(("factor", "slower"), [(1.005, False), (1.5, True)])
def test_more_ranks_are_said_to_be_slower_only_beyond_the_interval(factor, slower):
    """Thirty sets that scatter by 2 %."""
    records = [make_record("m2", ranks, sets=30, noise=0.02) for ranks in (1, 2)]
    base, other = (np.median([max(row[ph.CG] for row in s.seconds) for s in r.sets]) for r in records)
    slow = lasting(records[1], factor * base / other)
    remarks = head_of([records[0], slow])["strong scaling efficiency"]["remarks"]
    assert ("slower than on one rank: use one rank" in remarks) is slower


@pytest.mark.parametrize("why", ["DISTURBED", "OVERSUBSCRIBED"])
def test_no_number_of_ranks_is_advised_by_runs_that_are_disturbed_or_share_cores(why):
    alone, slow = make_record("m2", noise=0.0), lasting(make_record("m2", 2, noise=0.0), 9.0)
    if why == "DISTURBED":
        slow = on_hosts_with(slow, others_percent=50.0)
    else:
        slow = replace(slow, environment=replace(slow.environment, oversubscribed=True))
    remarks = head_of([alone, slow])["strong scaling efficiency"]["remarks"]
    assert f"slower than on one rank, but {why}: no advice follows" in remarks
    assert "use one rank" not in remarks


def test_strong_scaling_is_that_of_the_most_ranks_with_a_base_if_full_scale_has_none():
    records = [*campaign((1, 2, 4), ("m1",)), make_record("m3", 4)]
    rows = head_of(records)
    assert "m3 · csr, ranks 4" in rows["figure of merit"]["remarks"]
    assert "cg on m1, from 1 to 4 ranks" in rows["strong scaling efficiency"]["remarks"]
    assert rows["strong scaling efficiency"]["value"] > 0


def test_efficiencies_are_those_of_the_tables_of_strong_and_weak_scaling():
    records = campaign((1, 4), ("m1", "m2"))
    rows, made = head_of(records), {t.name: to_json(t) for t in tables.every_table(records)}
    strong = next(r for r in made["speedup_cg"] if r["mesh"] == "m2")
    assert rows["strong scaling efficiency"]["value"] == pytest.approx(100 * strong["efficiency"])
    assert rows["weak scaling efficiency"]["value"] == pytest.approx(
        100 * made["weak"][-1]["iteration_efficiency"]
    )
    loud = head_of([on_hosts_with(record, others_percent=40.0) for record in records])
    for what in ("strong scaling efficiency", "weak scaling efficiency"):
        assert loud[what]["remarks"] == f"{rows[what]['remarks']}; DISTURBED"
    for what in ("cache bandwidth used", "waiting", "messages"):
        assert loud[what]["remarks"] == f"{rows[what]['remarks']}; DISTURBED"


def test_what_was_not_measured_is_said_to_be_missing():
    rows = head_of([make_record("m1"), make_record("m3")])
    for what in ("strong scaling efficiency", "weak scaling efficiency", "slowest host"):
        assert rows[what]["value"] is None
        assert rows[what]["remarks"].startswith("not available: ")


def halved(run):
    """Runs of three hosts, of which b has half the cells in the same time, give or take a few."""
    hosts = tuple(replace(HOST, name=name) for name in ("a", "b", "c"))
    record = make_record("m2", 3, noise=0.0, skew=0.0, environment=environment(3, hosts=hosts), run=run)
    return replace(record, partition=replace(record.partition, cells=(1320, 660 + 3 * run, 1320)))


def test_the_slowest_host_is_named_with_its_speed_and_interval_if_three_runs_show_it():
    row = head_of([halved(run) for run in range(3)])["slowest host"]
    assert row["value"] == pytest.approx(50.0, abs=0.5)
    assert row["low"] < row["value"] < row["high"]
    assert row["remarks"].startswith("b: ")
    one = head_of([halved(0)])["slowest host"]
    assert one["value"] is None
    assert one["remarks"].startswith("not available: 1 run on these hosts, and an interval needs 3")


def test_the_row_of_the_slowest_host_says_what_a_quota_withheld_though_it_names_nobody():
    hosts = (HOST, replace(HOST, name="n3", cpu_quota=0.5, throttled_percent=18.0, quota_group="slurm/job"))
    row = head_of([make_record("m2", 2, environment=environment(2, hosts=hosts))])["slowest host"]
    assert row["value"] is None
    assert row["remarks"].endswith("; n3: a quota of 0.5 CPUs withheld 18 % of its CPU time")


def test_the_row_of_a_disturbed_measurement_says_so_and_names_nobody():
    changes = {k: Planted(host={"others_percent": 40.0}, cores=0.8 if k == 0 else 1.0) for k in range(3)}
    rows = head_of([halved(run) for run in range(3)], nodes=planted_nodes(3, changes, noise=1e-3))
    assert rows["slowest host"]["value"] is None
    assert rows["slowest host"]["remarks"].startswith(
        "DISTURBED: others used up to 40 % of the CPU time on n1"
    )
    assert "slow hosts" not in rows


def test_the_gain_of_weights_is_the_time_with_equal_shares_over_the_time_with_them():
    odd = environment(2, hosts=(HOST, replace(HOST, name="node9", cpu_model="Other")))
    equal = make_record("m2", 2, environment=odd, noise=0.0, skew=1.0)
    weighted = make_record("m2", 2, environment=odd, noise=0.0, skew=0.2, shares="2:1")
    row = head_of([equal, weighted])["gain of weighted shares"]
    cg = [sum(max(s[k] for s in r.sets[-1].seconds) for k in (ph.ASSEMBLY, ph.CG)) for r in (equal, weighted)]
    assert row["value"] == pytest.approx(cg[0] / cg[1], rel=1e-6)
    assert row["remarks"].endswith("on m2")
    others = head_of(
        [replace(equal, verdict=verdict("PROVISIONAL")), on_hosts_with(weighted, steal_percent=9.0)]
    )
    assert others["efficiency of unequal ranks"]["remarks"].endswith("on m2, 2 ranks; DISTURBED")
    assert others["gain of weighted shares"]["remarks"].endswith("; PROVISIONAL; DISTURBED")
    assert "gain of weighted shares" in head_of([equal])
    assert head_of([equal])["gain of weighted shares"]["value"] is None
    assert "with weighted shares in this folder" in head_of([equal])["gain of weighted shares"]["remarks"]
    assert "gain of weighted shares" not in head_of(campaign((1, 2), ("m1",)))


@pytest.mark.parametrize(("skew", "end"), [(0.0, "m2"), (0.2, "m2; no gain shown"), (1.0, "m2; a loss")])
def test_a_gain_of_weights_below_one_is_called_a_loss_and_one_that_may_be_chance_no_gain(skew, end):
    odd = environment(2, hosts=(HOST, replace(HOST, name="node9", cpu_model="Other")))
    facts = {"environment": odd, "sets": 12, "noise": 0.001}
    equal = make_record("m2", 2, skew=0.2, **facts)
    weighted = make_record("m2", 2, skew=skew, shares="2:1", **facts)
    remark = head_of([equal, weighted])["gain of weighted shares"]["remarks"]
    assert remark.endswith(f"assembly + cg on {end}")


def test_two_runs_on_several_hosts_show_a_gain_before_six_show_that_they_are_unequal():
    two = environment(2, hosts=(HOST, replace(HOST, name="node9")))
    equal = make_record("m2", 2, environment=two, noise=0.0, skew=1.0)
    weighted = make_record("m2", 2, environment=two, noise=0.0, skew=0.2, shares="2:1")
    assert head_of([equal, weighted])["gain of weighted shares"]["value"] > 1.1
    assert "gain of weighted shares" not in head_of([equal])
    one = replace(weighted, environment=environment(2)), replace(equal, environment=environment(2))
    assert "gain of weighted shares" not in head_of(one)


def on_hosts(names, seconds, *, ranks=None, cells=None, **changes):
    """A record on hosts of these names whose sets take `seconds`; `cells`: of each rank, in the same time."""
    hosts = tuple(replace(HOST, name=name) for name in names)
    n = ranks or len(names)
    made = make_record("m2", n, noise=0.0, skew=0.0, environment=environment(n, hosts=hosts), **changes)
    took = max(row[ph.ASSEMBLY] + row[ph.CG] for row in made.sets[-1].seconds)
    made = lasting(made, seconds / took)
    return replace(made, partition=replace(made.partition, cells=cells)) if cells else made


UNEVEN = {"cells": (1320, 1320, 330)}  # in the same time: the third host has a quarter of the speed


def thrice(seconds):
    """Three runs of hosts of which the third has a quarter of the speed, give or take a few cells."""
    return [on_hosts("abc", seconds, run=k, cells=(1320, 1320, 330 + 3 * (k - 1))) for k in range(3)]


def test_a_slow_host_is_left_out_if_the_others_are_faster_alone():
    weighted = on_hosts("abc", 0.22, shares="4,4,1", **UNEVEN)
    without = on_hosts("ab", 0.2)
    row = head_of([*thrice(0.4), weighted, without])["slow hosts"]
    assert row["value"] == "leave c out"
    assert row["remarks"] == (
        "m2 takes 200 ms; equal shares: 100 % more time; shares by speed: 10 % more time; "
        "of the typical speed: c 25 %"
    )


def test_the_measurement_of_nodes_is_a_table_of_the_report():
    nodes = planted_nodes(10, {2: Planted(cores=0.5, clock=0.5)}, noise=1e-4, spread=0.0)
    made = {t.name: t for t in tables.every_table([make_record("m2", 2)], nodes=nodes)}
    rows = to_json(made["nodes"])
    assert [row["node"] for row in rows if row["verdict"] == "slow"] == ["n3"]
    assert rows[2]["cores_ratio"] == pytest.approx(0.5, rel=0.01)
    assert rows[2]["cores_low"] <= rows[2]["cores_ratio"] <= rows[2]["cores_high"]
    assert "clock" in rows[2]["cause"]
    assert "nodes" not in {t.name for t in tables.every_table([make_record("m2", 2)])}


def test_advice_on_slow_hosts_says_if_fewer_ranks_are_faster():
    equal, without = thrice(0.4), on_hosts("ab", 0.2)
    row = head_of([*equal, without, on_hosts("a", 0.1)])["slow hosts"]
    assert row["value"] == "leave c out"
    assert row["remarks"].endswith("; faster on fewer ranks: 100 ms on 1 rank")
    slower = head_of([*equal, without, on_hosts("a", 0.3)])["slow hosts"]
    assert "fewer ranks" not in slower["remarks"]
    loud = [on_hosts_with(r, others_percent=75.0) for r in (*equal, without)]
    assert "slow hosts" not in head_of(loud)
    crowd = replace(without, environment=replace(without.environment, oversubscribed=True))
    assert "slow hosts" not in head_of([*equal, crowd])


def test_a_slow_host_is_kept_if_shares_by_speed_are_faster():
    equal, weighted = thrice(0.4), on_hosts("abc", 0.2, shares="4,4,1", **UNEVEN)
    row = head_of([*equal, weighted, on_hosts("ab", 0.22)])["slow hosts"]
    assert row["value"] == "keep c, with shares by speed"
    assert "without c: 10 % more time" in row["remarks"]


def test_a_run_on_some_of_the_fast_ranks_says_nothing_about_a_slow_host():
    assert "slow hosts" not in head_of([*thrice(0.4), on_hosts("a", 0.1)])
    assert "slow hosts" not in head_of([on_hosts("abc", 0.4), on_hosts("ab", 0.2)])  # none is slow


def test_without_such_runs_the_rates_of_nodes_say_what_to_do():
    nodes = planted_nodes(10, {2: Planted(cores=0.5, clock=0.5)}, noise=1e-4, spread=0.0)
    row = head_of([make_record("m2", 2)], nodes=nodes)["slow hosts"]
    assert row["value"] == "keep n3, with shares by speed"
    lost = "equal shares lose 50 %, shares by speed 5 %, leaving out 10 %"
    assert row["remarks"].endswith(f"no run has shown it: of the speed that all would have, {lost}")


def test_an_interval_says_whether_a_way_is_slower():
    fast, slow = 0.2 * (1 + 0.01 * np.arange(-2, 3)), 0.24 * (1 + 0.01 * np.arange(-2, 3))
    equal = thrice(0.4)
    weighted = [on_hosts("abc", t, run=k, shares="4,4,1", **UNEVEN) for k, t in enumerate(slow)]
    without = [on_hosts("ab", t, run=k) for k, t in enumerate(fast)]
    remarks = head_of([*equal, *weighted, *without])["slow hosts"]["remarks"]
    assert re.search(r"shares by speed: 20 % more time \(1\d–2\d %\)", remarks)
    alike = [on_hosts("abc", t * 1.001, run=k, shares="4,4,1", **UNEVEN) for k, t in enumerate(fast)]
    remarks = head_of([*equal, *alike, *without])["slow hosts"]["remarks"]
    assert "shares by speed: 0 % more time, which is not significant" in remarks


def test_a_slow_node_is_the_slowest_host_with_its_cause_and_interval():
    nodes = planted_nodes(8, {2: Planted(cores=0.85, clock=0.85), 5: Planted(memory=0.7)})
    row = head_of([make_record("m2", 2)], nodes=nodes)["slowest host"]
    assert row["value"] == pytest.approx(70, abs=2)
    assert row["low"] < row["value"] < row["high"]
    assert row["remarks"] == (
        "n6: memory slow, cores normal; over the typical host (fembench nodes); 1 more slow"
    )


def test_unequal_hosts_that_were_not_measured_alone_are_listed_with_the_run_that_is_missing():
    odd = environment(2, hosts=(HOST, replace(HOST, name="node9", cpu_model="Other")))
    rows = rows_of([make_record("m2", 2, environment=odd)], "unavailable")
    missing = {r["what"]: r["remedy"] for r in rows}
    assert missing["speedup over node9 alone"] == "run the same case on one rank of node9"


def test_a_campaign_of_invalid_runs_has_a_verdict_and_no_number():
    assert list(head_of([make_record(status="INVALID")])) == ["verdict"]


def solved_by_multigrid(mesh, ranks):
    record = make_record(mesh, ranks, noise=0.0)
    level = LevelTimes(nodes=9, computing=(1e-6,) * ranks, messages=(0.0,) * ranks, waiting=(0.0,) * ranks)
    return replace(record, solve=replace(record.solve, levels=(level,)))


def test_solutions_by_multigrid_are_rated_by_equations_solved_per_second_with_their_set_up():
    records = [solved_by_multigrid("m1", 1), solved_by_multigrid("m1", 4)]
    took = [max(s[ph.ASSEMBLY] + s[ph.CG] for s in r.sets[-1].seconds) for r in records]
    rows, made = head_of(records), {t.name: t for t in tables.every_table(records)}
    n = records[0].mesh.n_equations
    assert rows["figure of merit"]["value"] == pytest.approx(n / took[1] / 1e6)
    assert rows["figure of merit"]["remarks"].startswith("million equations solved / s, set-up included: m1")
    assert rows["strong scaling efficiency"]["value"] == pytest.approx(100 * took[0] / took[1] / 4)
    assert rows["strong scaling efficiency"]["remarks"].startswith("assembly + cg on m1")
    assert made["solutions"]["whole_s"].tolist() == pytest.approx(took)
    assert "solutions" not in {t.name for t in tables.every_table([make_record("m1")])}
