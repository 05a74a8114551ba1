"""Whether ranks are equally fast, from planted triads: bytes per second of every rank in every run."""

import math
import re
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
from planted_nodes import Planted, planted_nodes
from report_sample import HOST, environment, make_record, rows_of

from fembench.report import tables
from fembench.report.equality import _judge, equality, unequal_ranks, why_unequal
from fembench.report.results import results
from fembench.report.speedup import speedup
from fembench.report.table import to_json

replace = msgspec.structs.replace


def with_triads(rows, run=0, **changes):
    """A record whose rank p has measured rows[p]."""
    record = make_record(ranks=len(rows), run=run, **changes)
    return replace(record, solve=replace(record.solve, triads=tuple(map(tuple, rows))))


def runs_of(speeds_by_run, **changes):
    """One record a run, each with eight equal triads a rank."""
    return [with_triads([[s] * 8 for s in row], run, **changes) for run, row in enumerate(speeds_by_run)]


def judged(records):
    found = results(records)
    return equality(records[-1], found)


def test_one_short_triad_of_an_old_record_withholds_no_efficiency():
    many = make_record(ranks=2)
    many = replace(many, solve=replace(many.solve, bandwidth=(8e9, 4e9)))
    found = results([make_record(), many])
    s = speedup(found[-1], found)
    assert s.efficiency == s.ratio / 2
    assert s.equal == "ranks not yet shown to be equal: triads not repeated"
    assert not any(t.name.startswith("speedup_unequal") for t in tables.every_table([make_record(), many]))


@pytest.mark.slow
def test_cores_that_are_slow_for_a_whole_run_now_and_then_are_not_unequal():
    """Each core runs at 1 or 1 / 1.5 of its speed in each of eight runs, as a coin says: 60 campaigns."""
    rng = np.random.default_rng(16)
    for _ in range(60):
        speeds = 8e9 / rng.choice([1.0, 1.5], size=(8, 2))
        assert judged(runs_of(speeds)).judged != "unequal"


def test_a_report_compares_the_ranks_of_the_same_cores_once(monkeypatch):
    judge = Mock(side_effect=_judge)
    monkeypatch.setattr("fembench.report.equality._judge", judge)
    meshes = [run for mesh in ("m1", "m2") for run in runs_of([(8e9, 4e9)] * 6, mesh=mesh)]
    assert rows_of(meshes, "rank_speeds")[0]["source"] == "12 runs"
    assert judge.call_count == 1


def test_a_rank_of_half_speed_is_found_in_six_runs_and_five_are_too_few():
    speeds = [(8e9, 4e9)] * 6
    six, five = judged(runs_of(speeds)), judged(runs_of(speeds[:5]))
    assert (six.judged, six.fastest, six.slowest, six.ratio) == ("unequal", "rank 0", "rank 1", 2.0)
    assert "triad differs by 100 % in 6 runs" in unequal_ranks(make_record(ranks=2), results(runs_of(speeds)))
    assert (five.judged, five.remark) == (
        "not known",
        "ranks not yet shown to be equal: 5 of the 6 runs needed",
    )


def test_a_run_on_a_machine_that_is_slow_as_a_whole_counts_as_much_as_any_other():
    found = judged(runs_of([(8e9, 4e9), (3e9, 2e9), (2e9, 8e9)]))  # the first rank leads in two of three
    assert (found.fastest, found.slowest, found.ratio) == ("rank 0", "rank 1", 1.5)


def test_ranks_within_a_quarter_of_each_other_in_every_run_are_equal():
    found = judged(runs_of([(8e9, 8e9 / 1.2)] * 3 + [(8e9 / 1.2, 8e9)] * 3))
    assert (found.judged, found.remark) == ("equal", "")


@pytest.mark.parametrize(("ratio", "judgement"), [(1.25, "equal"), (1.3, "unequal")])
def test_a_ratio_of_one_and_a_quarter_is_the_largest_of_equal_ranks(ratio, judgement):
    assert judged(runs_of([(8e9 * ratio, 8e9)] * 6)).judged == judgement


def test_enough_runs_that_disagree_are_said_to_disagree_and_not_to_be_too_few():
    found = judged(runs_of([(8e9, 4e9)] * 3 + [(4e9, 8e9)] * 3))
    assert found.remark == "ranks not shown to be equal: triads differ by a factor of 0.50 to 2.00"


def test_two_kinds_of_processor_and_narrow_quotas_are_known_to_be_unequal():
    kinds = (HOST, replace(HOST, name="n2", cpu_model="Other CPU"))
    assert "(2 CPU models)" in why_unequal(make_record(ranks=2, environment=environment(2, hosts=kinds)))
    narrow = [replace(HOST, name=f"n{k}", cpu_quota=0.5, quota_group="job") for k in range(5)]
    why = why_unequal(make_record(ranks=5, environment=environment(5, hosts=narrow)))
    assert why.count("a quota of 0.5 CPUs") == 3
    assert why.endswith(" and 2 more): no efficiency")


def test_two_hosts_are_compared_by_their_stated_speed_on_whatever_cores_and_one_rank_with_none():
    hosts = tuple(replace(HOST, name=name) for name in ("n1", "n2"))
    here = environment(2, hosts=hosts)
    records = runs_of([(8e9, 8e9)], environment=here)
    records += runs_of([(8e9, 8e9)], environment=replace(here, affinity=((4,), (5,))), storage="sym")
    (row,) = to_json(tables.equality.rank_speeds(results([*records, *runs_of([(8e9,)])])))
    assert (row["ranks"], row["judged"], row["hosts"]) == (None, "not known", "n1, n2")
    assert row["source"].startswith("2 runs on these hosts, and an interval")


def test_a_run_is_one_sample_however_many_triads_it_holds():
    assert judged([with_triads([[8e9] * 100, [4e9] * 100])]).runs == 1


@pytest.mark.parametrize("speed", [0.3, 1.0])
def test_hosts_are_compared_by_the_speed_that_other_tables_state_whatever_their_triads(speed):
    hosts = tuple(replace(HOST, name=name) for name in ("n1", "n2", "n3"))
    triads = [(8e9, 8e9, 8e9) if speed < 1 else (8e9, 8e9, 4e9)] * 6
    records = [make_record(), *runs_of(triads, environment=environment(3, hosts=hosts))]
    nodes = planted_nodes(3, {2: Planted(cores=speed)} if speed < 1 else {}, noise=1e-3, spread=1e-3)
    made = {t.name: to_json(t) for t in tables.every_table(records, nodes=nodes)}
    (row,) = made["rank_speeds"]
    stated = {row["node"]: (row["speed"], row["speed_low"], row["speed_high"]) for row in made["nodes"]}
    fast, slow = stated[row["fastest"]], stated[row["slowest"]]
    assert row["triad"] == pytest.approx(fast[0] / slow[0])
    assert (row["triad_low"], row["triad_high"]) == pytest.approx((fast[1] / slow[2], fast[2] / slow[1]))
    assert (row["source"], row["judged"]) == ("fembench nodes", "unequal" if speed < 1 else "equal")
    (slowest,) = [row for row in made["headline"] if row["what"] == "slowest host"]
    why = unequal_ranks(records[-1], results(records, nodes))
    if speed < 1:
        assert (row["slowest"], slowest["value"]) == ("n3", pytest.approx(100 * slow[0]))
        assert re.match(r"unequal ranks \(speed differs by 23\d % in fembench nodes\): no efficiency", why)
    else:
        assert why == ""


def test_hosts_whose_speed_is_not_stated_are_not_shown_to_be_equal():
    hosts = tuple(replace(HOST, name=name) for name in ("n1", "n2", "n3"))
    found = judged(runs_of([(8e9, 8e9, 8e9)] * 2, environment=environment(3, hosts=hosts)))
    assert found.remark.startswith("ranks not yet shown to be equal: 2 runs on these hosts, and an interval")
    (row,) = to_json(
        tables.equality.rank_speeds(results(runs_of([(8e9,) * 3], environment=environment(3, hosts=hosts))))
    )
    assert (row["judged"], row["triad"]) == ("not known", None)
    loud = tuple(replace(host, others_percent=40.0) for host in hosts)
    found = judged(runs_of([(8e9, 8e9, 8e9)] * 6, environment=environment(3, hosts=loud)))
    assert found.remark.startswith("ranks not yet shown to be equal: others used up to 40 %")


def test_runs_on_the_same_cores_count_together_and_runs_on_others_do_not():
    elsewhere = replace(environment(2), affinity=((4,), (5,)))
    records = [*runs_of([(8e9, 4e9)] * 4), *runs_of([(8e9, 4e9)] * 2, precond="jacobi")]
    others = runs_of([(4e9, 8e9)] * 3, environment=elsewhere, storage="sym")
    found = results(records + others)
    assert equality(records[0], found).judged == "unequal"
    assert equality(others[0], found).runs == 3


@pytest.mark.parametrize(("ranks", "needed"), [(2, 6), (3, 7), (64, 17)])
def test_the_more_pairs_of_ranks_the_more_runs_it_takes(ranks, needed):
    """Smallest n with 2 / 2^n <= 0.05 / pairs: the extremes of n runs miss the median so often."""
    pairs = ranks * (ranks - 1) // 2
    assert needed == math.ceil(1 + math.log2(pairs / 0.05))
    assert judged(runs_of([(8e9,) * ranks])).needed == needed


def test_runs_that_are_invalid_or_share_cores_say_nothing_on_speeds():
    crowded = replace(environment(2), oversubscribed=True)
    records = runs_of([(8e9, 4e9)], status="INVALID") + runs_of([(8e9, 4e9)], environment=crowded)
    assert judged(records).runs == 0


def test_a_table_shows_what_was_measured():
    (row,) = rows_of(runs_of([(8e9, 4e9)] * 6), "rank_speeds")
    assert (row["ranks"], row["source"], row["triad"], row["judged"]) == (2, "6 runs", 2.0, "unequal")
    assert (row["triad_low"], row["triad_high"]) == (2.0, 2.0)
