"""Efficiency factors on planted records: their identities, and values computed by hand."""

import msgspec
import numpy as np
import pytest
from planted_records import set_of
from report_sample import HOST, campaign, computing, environment, make_record, named, rows_of

from fembench.model.from_record import on_ideal_network
from fembench.records import phases as ph
from fembench.records.record import Event
from fembench.report import tables
from fembench.report.factors import every_factor, useful
from fembench.report.measures import SOLVE
from fembench.report.results import results
from fembench.report.speedup import speedup
from fembench.report.unequal import unequal_results

replace = msgspec.structs.replace
ITERATIONS = 100
SENDING = ((ph.SEND, 0.25e-3), (ph.WAIT, 0.0), (ph.UNPACK, 0.25e-3))
# one iteration, milliseconds: rank 1 waits for the product of rank 0, then rank 0 for the sum of rank 1
LATE_BY_TURNS = (
    ((ph.SPMV_INTERIOR, 2e-3), *SENDING, (ph.DOT, 1e-3), (ph.ALLREDUCE, 1e-3)),
    ((ph.SPMV_INTERIOR, 1e-3), (ph.SEND, 0.25e-3), (ph.WAIT, 1e-3), (ph.UNPACK, 0.25e-3), (ph.DOT, 2e-3))
    + ((ph.ALLREDUCE, 0.0),),
)


def traced(rows, **changes):
    """A record whose ranks pass through these (phase, seconds) in each iteration, in this order."""
    seconds = np.zeros((len(rows), len(ph.NAMES)))
    events = []
    for rank, row in enumerate(rows):
        length = sum(t for _, t in row)
        for iteration in range(3):
            now = iteration * length
            for phase, t in row:
                events.append(Event(rank, phase, iteration, now, now + t))
                now += t
        for phase, t in row:
            seconds[rank, phase] += ITERATIONS * t
    seconds[:, ph.CG] = seconds.sum(axis=1)
    base = make_record(ranks=len(rows), **changes)
    return replace(
        base,
        sets=(set_of(seconds, ITERATIONS, seconds[:, ph.CG]),) * 3,
        events=tuple(events),
        partition=replace(base.partition, message_bytes=((80,) * min(len(rows) - 1, 2),) * len(rows)),
        solve=replace(base.solve, iterations=ITERATIONS),
    )


def factors_of(records, base=0):
    found = results(records)
    return every_factor(found, unequal_results(found), base)


def test_ranks_that_are_late_by_turns_lose_to_serialization_and_messages_to_transfer():
    """Both ranks compute 3 ms of 4.5 ms. Without messages, 2 ms and 2 ms are waited for: 4 ms."""
    (f,) = factors_of([traced(LATE_BY_TURNS)])
    assert (f.load_balance, f.communication) == pytest.approx((1.0, 3 / 4.5))
    assert (f.serialization, f.transfer) == pytest.approx((3 / 4, 4 / 4.5))
    assert f.parallel == pytest.approx(3 / 4.5)


def test_an_ideal_network_keeps_work_and_takes_away_messages():
    run = on_ideal_network(traced(LATE_BY_TURNS))
    assert (run.recorded, run.ideal) == pytest.approx((0.45, 0.40))


def test_a_rank_with_less_to_do_lowers_the_load_balance_alone():
    row = (*SENDING, (ph.ALLREDUCE, 0.0))
    busy, idle = ((ph.DOT, 2e-3), *row), ((ph.DOT, 1e-3), (ph.SEND, 0.25e-3), (ph.WAIT, 1e-3), *row[2:])
    (f,) = factors_of([traced((busy, idle))])
    assert f.load_balance == pytest.approx(0.75)
    assert f.serialization == pytest.approx(1.0)
    assert f.transfer == pytest.approx(f.communication) == pytest.approx(2 / 2.5)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_factors_multiply_to_the_global_efficiency(noise):
    records = [*campaign((1, 2, 4), ("m1", "m3"), noise=noise), traced(LATE_BY_TURNS, noise=noise, run=1)]
    for f in factors_of(records):
        assert f.parallel == pytest.approx(f.load_balance * f.communication)
        if np.isfinite(f.transfer):
            assert f.communication == pytest.approx(f.serialization * f.transfer)
        assert f.overall == pytest.approx(f.parallel * f.scaling, nan_ok=True)
        assert 0 < f.parallel <= min(f.load_balance, f.communication) <= 1


def test_global_efficiency_is_the_speedup_over_one_rank_without_messages_by_the_ranks():
    found = results(campaign((1, 2, 4), ("m2",), noise=0.03))
    for f in every_factor(found):
        if f.result.ranks > 1:
            assert f.overall == pytest.approx(speedup(f.result, found, SOLVE).efficiency)


def test_a_base_of_several_ranks_is_what_scaling_is_relative_to():
    found = results(campaign((1, 2, 4), ("m2",)))
    one, two, four = every_factor(found, base=2)
    assert (one.base.ranks, two.scaling, four.base.ranks) == (2, 1.0, 2)
    by_one = every_factor(found)
    assert four.scaling == pytest.approx(by_one[2].scaling / by_one[1].scaling)


def test_without_a_run_on_one_rank_the_fewest_ranks_are_the_base():
    two, four = every_factor(results(campaign((2, 4), ("m2",))))
    assert (two.base.ranks, two.scaling, four.base.ranks) == (2, 1.0, 2)
    (alone,) = factors_of([make_record(ranks=2)])
    assert alone.base is None
    assert alone.notes[-1] == "computation scaling not available: no run on one rank"


def test_a_run_without_a_trace_has_communication_but_neither_of_its_factors():
    (f,) = factors_of([make_record(ranks=2, events=False)])
    assert np.isfinite(f.communication)
    assert np.isnan([f.transfer, f.serialization]).all()
    assert "transfer not available" in f.notes[0]
    assert "--trace-iterations 3" in f.notes[0]


def test_the_interval_of_the_parallel_efficiency_needs_three_runs_and_holds_its_value():
    runs = [make_record(ranks=2, run=k, skew=0.05 * (k + 1)) for k in range(4)]
    (two,), (four,) = factors_of(runs[:2]), factors_of(runs)
    assert np.isnan(two.low)
    assert four.low < four.parallel < four.high


def test_unequal_ranks_have_a_weighted_balance_and_no_scaling():
    records = [
        make_record(),
        make_record(ranks=2, environment=environment(2, synthetic="rank 1 at half speed")),
    ]
    records += [
        make_record(ranks=2, shares="2:1", environment=environment(2, synthetic="rank 1 at half speed"))
    ]
    found = [f for f in factors_of(records) if f.result.ranks == 2]
    assert len(found) == 2
    for f in found:
        assert np.isnan(f.scaling)
        assert "computation scaling not available: SYNTHETIC" in f.notes[-1]
        assert f.weighted_balance * f.communication == pytest.approx(f.e_het)


def slow_by_quota(**changes):
    """A run on two hosts, the second with a quota of half a CPU, on which it computes for twice as long."""
    slow = replace(HOST, name="n3", cores=1, cpu_quota=0.5, throttled_percent=50.0, quota_group="slurm/job")
    made = make_record(ranks=2, skew=1.0, environment=environment(2, hosts=(HOST, slow)), **changes)
    return replace(made, partition=replace(made.partition, message_bytes=((80,), (80,))))


def test_a_quota_makes_ranks_unequal_and_leaves_no_factor_blank():
    runs = [slow_by_quota(run=k, sets=8) for k in range(3)]
    (base, two) = factors_of([make_record(sets=8), *runs])
    first = useful(two.result.runs)[0]
    assert two.scaling == pytest.approx(useful(base.result.runs).sum() / 2 / first)  # of the rank on its host
    assert two.overall == pytest.approx(two.e_het * two.scaling)
    assert np.isfinite([two.parallel, two.serialization, two.transfer, two.weighted_balance]).all()
    (u,) = unequal_results(results([make_record(sets=8), *runs]))
    low, high = u.e_het_ends
    assert low <= u.e_het <= high
    assert 0 < high - low < 0.2
    head = {row["what"]: row for row in rows_of([make_record(sets=8), *runs], "headline")}
    row = head["efficiency of unequal ranks"]
    assert row["value"] == pytest.approx(100 * u.e_het)
    assert row["low"] <= row["value"] <= row["high"]
    assert "unequal ranks (n3: 1 rank, a quota of 0.5 CPUs)" in head["strong scaling efficiency"]["remarks"]


def test_a_run_whose_ranks_are_all_on_other_hosts_than_the_base_has_no_scaling():
    other = [replace(HOST, name=name, cpu_model="Old CPU") for name in ("n4", "n5")]
    runs = [make_record(), make_record(ranks=2, environment=environment(2, hosts=other))]
    odd = replace(other[1], cpu_model="Older CPU")
    runs[1] = replace(runs[1], environment=environment(2, hosts=(other[0], odd)))
    two = factors_of(runs)[-1]
    assert np.isnan(two.scaling)
    assert "computation scaling not available" in two.notes[-1]


def test_a_mesh_that_grows_with_the_ranks_has_the_scaling_of_the_same_work():
    one, four = computing(make_record("m1"), 1e-3, 100), computing(make_record("m2", 4), 1.25e-3, 200)
    found = {f.result.ranks: f for f in factors_of([one, four])}
    cells, equations = (four.mesh.n_cells / one.mesh.n_cells, four.mesh.n_equations / one.mesh.n_equations)
    needed = cells * 0.01 + equations * 2 * 0.1
    assert found[4].base is found[1].result
    assert found[4].scaling == pytest.approx(needed / (4 * (0.01 + 0.25)))
    assert found[4].overall == pytest.approx(found[4].parallel * found[4].scaling)


def test_ranks_that_share_cores_have_no_factor():
    crowded = make_record(ranks=2, environment=environment(2, oversubscribed=True))
    (row,) = rows_of([crowded], "speedup_factors")
    assert row["parallel_efficiency"] is None
    assert row["remarks"].startswith("not available: ranks share cores")


def test_the_table_appears_with_several_ranks_only_and_has_e_het_where_ranks_are_unequal():
    assert not [t for t in tables.every_table([make_record()]) if t.name == "speedup_factors"]
    assert "e_het" not in named(campaign((1, 2), ("m1",)), "speedup_factors").names
    odd = (HOST, replace(HOST, name="node9", cpu_model="Other CPU"))
    two = [make_record(ranks=2, environment=environment(2, hosts=odd), **c) for c in ({}, {"shares": "2:1"})]
    assert "e_het" in named(two, "speedup_factors").names


def test_the_factors_on_a_terminal_say_of_which_time_they_are():
    text = tables.selected(tables.every_table(campaign((1, 2), ("m1",))), everything=True)
    assert "\nEfficiency factors of assembly + cg\n" in text
