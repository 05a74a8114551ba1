"""Numbers of the report against hand arithmetic."""

import math

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from planted_records import set_of
from report_sample import HOST, environment, make_record

from fembench.base.errors import InputError
from fembench.records import phases as ph
from fembench.records.times import Times
from fembench.report import measures
from fembench.report.results import results
from fembench.report.speedup import all_speedups, speedup, superlinear

replace = msgspec.structs.replace


def with_sets(record, cg_by_rank, communication=None, warmups=0):
    """The record with one set for each row of CG seconds by rank, half of it communication unless given."""
    sets = []
    for k, row in enumerate(cg_by_rank):
        seconds = np.zeros((len(row), len(ph.NAMES)))
        seconds[:, ph.CG] = row
        half = communication[k] if communication else np.array(row) / 2
        seconds[:, ph.WAIT] = seconds[:, ph.ALLREDUCE] = np.array(half) / 2
        sets.append(set_of(seconds, 10, row, k < warmups))
    return replace(record, sets=tuple(sets))


def only(record):
    (result,) = results([record])
    return result


def test_a_phase_is_the_median_over_sets_of_the_slowest_rank_which_is_named():
    hosts = (HOST, replace(HOST, name="node9"))
    record = make_record(ranks=2, environment=environment(2, hosts=hosts))
    cg = only(with_sets(record, [[1.0, 3.0], [2.0, 5.0], [7.0, 4.0]])).times["cg"]
    assert cg.median == 5.0  # of 3, 5, 7
    assert cg.minimum == 2.0  # of 1, 2, 4
    assert cg.mean == 3.5  # of 2, 3.5, 5.5
    assert (cg.rank, cg.host, cg.n) == (1, "node9", 3)  # medians 2 and 4


def test_warm_ups_do_not_count():
    assert only(with_sets(make_record(), [[100.0], [1.0], [2.0], [3.0]], warmups=1)).times["cg"].median == 2.0


def runs_of(cg_by_run, ranks=1):
    """Results of repeated runs of one case; each row holds the CG seconds of the sets of one run."""
    records = [
        with_sets(make_record(ranks=ranks, run=k), [[t] * ranks for t in row])
        for k, row in enumerate(cg_by_run)
    ]
    return results(records)


def around(seconds):
    """Ten sets of one run: 1 % above and below."""
    return [seconds * (1 + 0.01 * (k % 3 - 1)) for k in range(10)]


def test_the_interval_of_repeated_runs_is_over_runs_and_not_over_their_pooled_sets():
    """Student on logarithms of three runs: 4.3027 standard errors, at two degrees of freedom."""
    ((result,), medians) = runs_of([around(t) for t in (0.010, 0.020, 0.030)]), (0.010, 0.020, 0.030)
    cg = result.times["cg"]
    logs = np.log(medians)
    half = 4.302653 * logs.std(ddof=1) / math.sqrt(3)
    assert (cg.median, cg.runs, cg.n) == (pytest.approx(0.020), 3, 30)
    assert (cg.low, cg.high) == pytest.approx(
        tuple(np.exp([logs.mean() - half, logs.mean() + half])), rel=1e-5
    )


def test_two_runs_have_no_interval_and_are_said_to_differ_where_their_own_intervals_are_disjoint():
    """Two runs as they were once measured: 34 and 19.5 ms, each within a few per cent."""
    (result,) = runs_of([around(0.0339), around(0.0195)])
    cg = result.times["cg"]
    assert cg.median == pytest.approx((0.0339 + 0.0195) / 2)
    assert math.isnan(cg.low)
    assert math.isnan(cg.high)
    assert cg.apart
    assert not runs_of([around(0.0339), around(0.0340)])[0].times["cg"].apart


def test_intervals_cover_where_runs_differ_more_than_sets():
    """Five runs of ten sets; runs scatter by 5 %, sets of a run by 2 %: 300 campaigns."""
    rng, covered = np.random.default_rng(4), 0
    for _ in range(300):
        runs = np.exp(0.05 * rng.standard_normal((5, 1)) + 0.02 * rng.standard_normal((5, 10)))
        time = measures.summarise([run[:, None] for run in runs], make_record())
        covered += time.low <= 1.0 <= time.high
    assert covered / 300 > 0.91  # pooled sets: 0.55


def test_the_range_of_a_speedup_of_repeated_runs_is_welchs_on_logarithms():
    from scipy.stats import ttest_ind

    alone, mine = (0.80, 0.90, 0.85, 0.82), (0.42, 0.45, 0.50, 0.41)
    found = runs_of([around(t) for t in alone]) + runs_of([around(t) for t in mine], ranks=2)
    s = speedup(found[-1], found)
    expected = ttest_ind(np.log(alone), np.log(mine), equal_var=False).confidence_interval(0.95)
    assert (s.low, s.high) == pytest.approx(tuple(np.exp(expected)))


def test_fewer_than_six_samples_bound_no_median_and_six_do():
    few = only(with_sets(make_record(), [[1.0]])).times["cg"]
    assert few.n == 1
    assert math.isnan(few.low)
    assert math.isnan(few.high)
    six = only(with_sets(make_record(), [[float(k)] for k in range(1, 7)])).times["cg"]
    assert (six.low, six.median, six.high) == (1.0, 3.5, 6.0)


def test_the_loop_is_what_the_modules_of_cg_leave_over():
    times = only(with_sets(make_record(), [[8.0]])).times
    assert times[measures.LOOP].median == 4.0


@pytest.mark.row("004:F14")
def test_communication_share_is_that_of_the_means_over_ranks():
    found = measures.communication([Times(with_sets(make_record(ranks=2), [[1.0, 3.0]]))])
    assert found.share == 0.5
    assert found.by_rank.tolist() == [0.5, 0.5]


def test_means_over_ranks_add_up_to_the_mean_of_the_sum():
    means = measures.mean_times([Times(make_record("m3", 4))])
    parts = sum(v for k, v in means.items() if k.startswith("cg."))
    assert parts == pytest.approx(means["cg"], rel=1e-3)


def test_a_record_without_sets_has_set_up_and_run_times_only():
    times = only(replace(make_record(), sets=())).times
    assert "cg" not in times
    assert times["partition"].median == 0.004
    assert times[measures.RUN].n == 1


def pair(base_sets, run_sets, **changes):
    ones, many = with_sets(make_record(), base_sets), with_sets(make_record(ranks=2), run_sets)
    found = results([ones, replace(many, **changes)])
    return speedup(found[-1], found)


@pytest.mark.row("004:F14")
def test_speedup_and_efficiency_by_hand():
    s = pair([[8.0], [8.0], [9.0]], [[5.0, 4.0], [5.0, 2.0], [1.0, 1.0]])
    assert s.ratio == 8.0 / 5.0
    assert s.efficiency == 0.8
    assert math.isnan(s.low)
    assert s.notes == ()


def test_the_range_of_a_speedup_comes_from_the_ends_of_both_intervals():
    s = pair([[float(k)] for k in range(8, 14)], [[float(k), 1.0] for k in range(2, 8)])
    assert s.low == 8.0 / 7.0
    assert s.high == 13.0 / 2.0


def test_super_linear_speedup_is_flagged_with_bytes_and_cache():
    s = pair([[8.0]], [[2.0, 2.0]])
    assert s.efficiency == 2.0
    assert "super-linear" in s.notes[0]
    assert "32 MiB" in s.notes[0]
    assert "KiB" in s.notes[0]
    assert "work" not in s.notes[0]


@pytest.mark.parametrize(
    ("mine", "alone", "words"),
    [
        (391, 685, "caches do not explain it: none holds only the former (L1d 48 KiB, L2 2 MiB, L3 32 MiB)"),
        (1500, 3000, "the former fits in L2 (2 MiB per cache), the latter does not"),
        (20000, 40000, "the former fits in L3 (32 MiB per cache), the latter does not"),
        (40000, 80000, "caches do not explain it"),
    ],
)
def test_a_cache_explains_what_is_super_linear_only_if_it_holds_a_part_and_not_the_whole(mine, alone, words):
    many, one = make_record(ranks=2), make_record()
    many = replace(many, solve=replace(many.solve, bytes=(mine * 1024.0,) * 2))
    one = replace(one, solve=replace(one.solve, bytes=(alone * 1024.0,)))
    one, many = results([one, many])
    assert words in superlinear(many, one)


def test_no_cache_is_to_explain_a_super_linear_speedup_of_disturbed_runs():
    one, many = with_sets(make_record(), [[8.0]]), with_sets(make_record(ranks=2), [[2.0, 2.0]])
    found = results([on_hosts_with(one, others_percent=75.0), many])
    assert speedup(found[-1], found).notes == ("super-linear", "DISTURBED")


def test_super_linear_speedup_says_where_splitting_saved_work():
    solve = replace(make_record(ranks=2).solve, flops=(10.0, 10.0))
    assert "work is" in pair([[8.0]], [[2.0, 2.0]], solve=solve).notes[0]


def test_no_efficiency_where_ranks_share_cores():
    s = pair([[8.0]], [[4.0, 4.0]], environment=environment(2, oversubscribed=True))
    assert s.ratio == 2.0
    assert math.isnan(s.efficiency)
    assert "OVERSUBSCRIBED" in s.notes[0]


def test_no_speedup_over_a_base_of_another_kind():
    s = pair([[8.0]], [[4.0, 4.0]], environment=environment(2, synthetic="rank 1 slowed"))
    assert math.isnan(s.ratio)
    assert s.notes == ("base differs in emulated slowness",)


def test_a_speedup_with_other_iterations_says_so():
    solve = make_record(ranks=2).solve
    assert pair([[8.0]], [[5.0, 5.0]], solve=replace(solve, iterations=213)).notes == ()
    assert pair([[8.0]], [[5.0, 5.0]], solve=replace(solve, iterations=150)).notes == (
        "iterations differ: 211 on one rank, 150 here",
    )


def test_invalid_runs_are_not_compared():
    found = results([make_record(), make_record(ranks=2, status="INVALID")])
    assert speedup(found[-1], found).notes == ("INVALID: not compared",)


def test_the_fastest_of_several_bases_is_taken():
    hosts = (HOST, replace(HOST, name="node9"))
    slow = with_sets(make_record(), [[9.0]])
    fast = with_sets(make_record(environment=environment(1, hosts=hosts[1:])), [[6.0]])
    run = with_sets(make_record(ranks=2, environment=environment(2, hosts=hosts)), [[3.0, 3.0]])
    found = results([slow, fast, run])
    assert speedup(found[-1], found).ratio == 2.0


def series(seconds, **changes):
    """Results of P ranks whose CG takes these seconds."""
    return results([with_sets(make_record(ranks=p, **changes), [[t] * p]) for p, t in seconds.items()])


def test_without_a_run_on_one_rank_the_fewest_ranks_are_the_base():
    found = series({2: 6.0, 4: 4.0, 8: 3.0})
    two, four, eight = (speedup(r, found) for r in found)
    assert two.notes == ("no run on one rank",)
    assert (four.ratio, eight.ratio) == (2 * 6.0 / 4.0, 2 * 6.0 / 3.0)
    assert (four.efficiency, eight.efficiency) == (0.75, 0.5)
    assert eight.base is found[0]


@pytest.mark.row("004:4a")
def test_a_base_may_be_asked_for():
    found = series({1: 9.0, 2: 6.0, 4: 4.0})
    (s,) = all_speedups(found, base=2)
    assert (s.result.ranks, s.ratio) == (4, 2 * 6.0 / 4.0)
    with pytest.raises(InputError, match=r"--base 3: no run on 3 ranks; runs are on \[1, 2, 4\] ranks"):
        all_speedups(found, base=3)


def test_the_share_of_communication_is_the_ratio_of_the_times_beside_it_and_within_its_range():
    sets = [([4.0, 4.0], [1.0, 1.0]), ([10.0, 4.0], [9.0, 1.0]), ([20.0, 4.0], [2.0, 3.0])]
    runs = [Times(with_sets(make_record(ranks=2), [cg], [wait])) for cg, wait in sets]
    found = measures.communication(runs)
    assert (found.cg.tolist(), found.spent.tolist()) == ([10.0, 4.0], [2.0, 1.0])  # medians of the runs
    assert found.share == 3 / 14
    assert found.by_rank.tolist() == [0.2, 0.25]
    assert 0.2 <= found.share <= 0.25
