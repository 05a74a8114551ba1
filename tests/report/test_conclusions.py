"""Conclusions in plain words, on planted records: what was found, what limits it, what to do."""

import re

import numpy as np
import pytest
from msgspec.structs import replace
from planted_environment import on_hosts_with
from planted_nodes import Planted, planted_nodes
from planted_records import lasting, nested
from report_sample import HOST, environment, make_record

from fembench.records import phases as ph
from fembench.report import tables
from fembench.report.conclusions import conclusions
from fembench.report.results import results
from fembench.workflows.notebook import Runs

TWO_CORES = replace(HOST, cores=2, caches={})


def said(*records, **more):
    return conclusions(results(records), **more)


def large(record):
    """The same times of a mesh of 200 000 equations."""
    return replace(record, mesh=replace(record.mesh, n_equations=200_000))


def run_on(ranks, seconds, *, cores=2, mesh="m3", roof=1.0, waiting=0.0, sets=30, scatter=0.004, **changes):
    """A run that computes at `roof` of the bandwidth of its ranks, for `seconds` of CG but for the part
    that it waits, on a host whose caches hold nothing."""
    host = replace(TWO_CORES, cores=cores)
    made = make_record(mesh, ranks, sets=sets, environment=environment(ranks, hosts=(host,)), **changes)
    row = np.zeros((ranks, len(ph.NAMES)))
    row[:, ph.ASSEMBLY], row[:, ph.CG] = 0.1 * seconds, seconds
    row[:, ph.SPMV_INTERIOR], row[:, ph.WAIT] = (1 - waiting) * seconds, waiting * seconds
    rng = np.random.default_rng(ranks)
    timed = [
        replace(one, seconds=nested(row * factor), counts=nested((row > 0) * one.iterations, int))
        for one, factor in zip(made.sets, 1 + scatter * rng.standard_normal(len(made.sets)))
    ]
    made = replace(made, sets=tuple(timed))
    n_bytes = made.solve.bytes[0]
    rate = n_bytes * made.solve.iterations / seconds
    return replace(made, solve=replace(made.solve, bandwidth=(rate / roof,) * ranks))


def test_two_ranks_bound_by_memory_are_said_to_be_so_and_more_on_the_host_not_to_help():
    found = said(run_on(1, 1.9), run_on(2, 1.0))
    assert found[0].startswith("2 ranks are 1.90 times as fast as one rank on m3 (1.8")
    assert found[1] == "Use 2 ranks for m3."
    assert found[2].startswith("Memory bandwidth limits them: the ")
    assert "% of the " in found[2]
    assert found[3] == "Every core has a rank: more ranks on this host will not help."
    assert len(found) == 4


def test_a_gain_that_the_interval_does_not_show_is_not_called_one():
    found = " ".join(said(run_on(1, 1.0, scatter=0.2), run_on(2, 0.98, scatter=0.2)))
    assert found.startswith("Use one rank for m3: 2 ranks are 1.0")
    assert "which shows no gain" in found
    assert "times as fast as one rank" not in found


def test_more_ranks_that_are_slower_are_not_to_be_used():
    found = said(run_on(1, 1.0), run_on(2, 1.5))
    assert found[0].startswith("Use one rank for m3: 2 ranks are 0.67 times as fast (0.6")
    assert found[0].endswith("which is slower.")


def test_after_a_campaign_over_ranks_a_line_says_how_many_to_use():
    """Four ranks gain over two, eight do not."""
    records = [run_on(n, t, cores=8) for n, t in ((1, 8.0), (2, 4.2), (4, 2.0), (8, 1.997))]
    found = said(*records)
    assert found[0].startswith("4 ranks are 4.00 times as fast as one rank on m3 (3.9")
    assert found[1].startswith("Use 4 ranks for m3: 8 ranks are 1.00 times as fast (")
    assert found[1].endswith("which shows no gain.")
    fewer = said(*records[:3])
    assert fewer[1] == "Use 4 ranks for m3: fewer are shown to be slower."
    assert not any("core" in text for text in found)  # more ranks were run


def test_too_few_sets_for_an_interval_prove_no_number_of_ranks():
    found = said(run_on(1, 2.0, sets=3), run_on(2, 1.0, sets=3), run_on(4, 0.9, sets=3, cores=4))
    text = " ".join(found)
    assert "In these runs, 4 ranks were 2.2" in text
    assert "too few sets for an interval" in text
    assert "Of 1, 2, 4 ranks, 4 took the least time; repeat with 10 sets to be sure." in text
    assert "Use " not in text


def test_where_more_ranks_reach_no_more_bandwidth_more_will_not_help_though_cores_are_free():
    records = [run_on(1, 1.2, cores=8, roof=0.5), run_on(2, 1.0, cores=8)]
    together = records[1].solve.bandwidth[0] * 2
    (one,) = records[0].solve.bandwidth
    assert together < 1.05 * one  # planted
    assert said(*records)[-1].startswith(
        "More ranks on this host will not help: 1 and 2 ranks together reach "
    )
    free = said(large(run_on(1, 1.9, cores=8)), large(run_on(2, 1.0, cores=8)))[-1]
    assert free == "6 cores of this host had no rank: the same with --ranks 4 shows what more ranks gain."


def test_one_rank_alone_has_a_rate_and_a_next_step():
    found = said(run_on(1, 1.0, noise=0.0))
    assert found[0].startswith("One rank solves m3 at 2.3")
    wide = said(run_on(1, 1.0, scatter=0.05))[0]
    low, high = (float(end) for end in re.search(r"\((.*)–(.*)\)", wide).groups())
    assert low < 2.34 < high
    assert " million equations x iterations per second (2.3" in found[0]
    assert found[1].startswith("Memory bandwidth limits it: ")
    assert len(found) == 2  # a second rank would have 2 730 equations
    free = said(large(run_on(1, 1.0)))[2]
    assert free == "1 core of this host had no rank: the same with --ranks 2 shows what more ranks gain."


def test_a_run_is_compared_with_those_on_other_ranks_beside_it():
    two, one = run_on(2, 1.0), run_on(1, 1.9)
    alone = Runs([two]).conclusions()
    assert alone[0].startswith("2 ranks solve m3 at ")
    beside = Runs([two], beside=[one]).conclusions()
    assert beside[0].startswith("2 ranks are 1.90 times as fast as one rank on m3")
    other = Runs([two], beside=[run_on(1, 1.9, precond="jacobi")]).conclusions()
    assert other == alone


@pytest.mark.parametrize(("facts", "cause"), [({"others_percent": 75.0}, "others used up to 75 %")])
def test_a_disturbance_comes_first_with_its_cause_and_a_command_and_nothing_is_concluded(facts, cause):
    loud = [on_hosts_with(run_on(n, t), **facts) for n, t in ((1, 1.9), (2, 1.0))]
    found = said(*loud)
    assert found[0].startswith(f"DISTURBED: {cause} of the CPU time on node8 in 2 of 2 runs")
    assert "stop the other work (`top` shows it)" in found[0]
    assert found[1:] == ["Nothing follows on the number of ranks to use: runs on 1, 2 ranks were DISTURBED."]
    one = said(loud[0], run_on(2, 1.0))
    assert not any("Every core" in text for text in one)
    assert one[0].startswith(f"DISTURBED: {cause}")
    assert one[1].startswith("2 ranks solve m3 at ")  # the run on one rank does not count
    assert one[-2] == "Nothing follows on the number of ranks to use: runs on one rank were DISTURBED."
    assert one[-1] == "DISTURBED cases are left out of these sentences, but not of the tables."
    many = [run_on(1, t) for t in (1.9, 1.91)]
    some = said(on_hosts_with(many[0], **facts), replace(many[1], id="quiet"), run_on(2, 1.0))
    words = "Nothing follows on the number of ranks to use: 1 of 2 runs on one rank was DISTURBED."
    assert some[-2] == words


def test_beside_real_hosts_the_sentences_count_no_emulated_runs():
    real = [
        on_hosts_with(run_on(n, t, status="PROVISIONAL"), others_percent=75.0) for n, t in ((1, 2), (2, 1))
    ]
    slowed = [replace(r, environment=replace(r.environment, synthetic="emulated")) for r in real]
    found = said(*real, *slowed)
    assert found[0].startswith("DISTURBED: others used up to 75 % of the CPU time on node8 in 2 of 2 runs: ")
    assert found[1].startswith("All 2 runs are PROVISIONAL ")
    assert found[-1] == "SYNTHETIC cases are left out of these sentences, but not of the tables."


def test_the_leading_sentence_of_emulated_runs_says_that_hosts_are_emulated():
    one, two = (run_on(n, t) for n, t in ((1, 1.9), (2, 1.0)))
    one, two = (replace(r, environment=replace(r.environment, synthetic="emulated")) for r in (one, two))
    slower = replace(run_on(2, 4.0), environment=two.environment)
    assert said(one)[0].startswith("On emulated hosts, one rank solves m3 at ")
    assert said(one, two)[0].startswith("On emulated hosts, 2 ranks are 1.90 times as fast as one rank ")
    assert said(one, slower)[0].startswith("On emulated hosts, use one rank for m3: 2 ranks are 0.4")


def test_waiting_for_a_rank_that_computes_longer_names_it_and_the_command_that_balances():
    text = said(late(run_on(2, 1.0, cores=4)))[1]
    assert text.startswith(
        "Waiting limits them, with 35 % of cg: rank 1 on node8 computes 1.54 times as long"
    )
    assert text.endswith("Find the shares that balance them: `fembench tune m3 --ranks 2 --storage csr`.")
    even = said(run_on(2, 1.0, waiting=0.4))[1]
    assert even.startswith("Waiting limits them, with 40 % of cg: all ranks compute about equally long.")
    assert "Each rank has 2 730 equations" in even


def late(made):
    """The run with a second rank that computes longer, for which the first waits."""
    rows = np.array(made.sets[0].seconds)
    rows[0, [ph.SPMV_INTERIOR, ph.WAIT]] = 0.3, 0.7
    return replace(made, sets=tuple(replace(one, seconds=nested(rows)) for one in made.sets))


def test_the_command_that_balances_asks_for_the_same_devices_method_and_partition_but_no_shares():
    asked = {"device": "gpu,cpu", "overlap": False, "partitioner": "rcb", "per_node": 1, "storage": "sym"}
    found = said(late(run_on(2, 1.0, cores=4, shares="2:1", emulate="1,0.5", dilate=2.0, **asked)))[1]
    options = "--device gpu,cpu --no-overlap --per-node 1 --partitioner rcb --emulate 1,0.5 --dilate 2"
    assert found.endswith(f"`fembench tune m3 --ranks 2 {options}`.")


@pytest.mark.parametrize(("seconds", "faster"), [(0.5, True), (1.5, False)])
def test_other_devices_that_are_shown_to_be_faster_are_named_whoever_built_the_mesh(seconds, faster):
    both = run_on(2, 1.0, device="gpu,cpu", storage="sym")
    alone = run_on(1, seconds, device="gpu", partitioner="blocks", storage="sym")
    alone = replace(alone, mesh=replace(alone.mesh, hash="box-1"))
    found = [text for text in said(both, alone) if text.startswith("With --device")]
    assert len(found) == faster
    assert all(f.startswith("With --device gpu, one rank (blocks) is 2.00 times as fast (1.9") for f in found)
    other = replace(alone, mesh=replace(alone.mesh, n_cells=1))
    assert not any("--device" in text for text in said(both, other))


def test_rates_of_a_cache_are_not_taken_for_those_of_memory():
    made = run_on(2, 1.0)
    cached = on_hosts_with(made, caches={"L3": 32 << 20})
    assert said(cached)[1].startswith("L3 holds the matrix: these are rates of a cache")


def test_a_bandwidth_that_is_not_used_is_no_limit():
    assert said(run_on(2, 1.0, roof=0.4))[1].startswith("No single limit stands out: the ")


def test_ranks_that_compute_longer_in_all_than_one_are_said_to_if_nothing_else_limits():
    one, two = run_on(1, 1.0, roof=0.4), run_on(2, 0.7, roof=0.4)
    found = said(one, two)
    k = next(i for i, text in enumerate(found) if text.startswith("No single limit stands out: "))
    assert found[k + 1].startswith("2 ranks compute 1.4")
    assert "times as long in all as one rank (computation scaling 0.7" in found[k + 1]
    assert not any("computation scaling" in text for text in said(one, run_on(2, 0.5, roof=0.4)))


def test_a_quick_look_is_called_one_and_says_what_is_too_few():
    look = said(run_on(2, 1.0, sets=3, status="PROVISIONAL", warmups=2))
    assert look[0] == "A quick look, PROVISIONAL: 3 sets instead of 10; by default, a run takes enough."
    enough = said(run_on(2, 1.0, sets=20, status="PROVISIONAL", warmups=1))
    assert enough[0].startswith("A quick look, PROVISIONAL: 1 warm-up instead of 2; by default")
    both = said(run_on(2, 1.0, sets=3, status="PROVISIONAL", warmups=1))
    assert both[0].startswith("A quick look, PROVISIONAL: 1 warm-up instead of 2 and 3 sets instead of 10; ")
    loud = on_hosts_with(run_on(2, 1.0, sets=3, status="PROVISIONAL"), others_percent=75.0)
    assert [text.partition(":")[0] for text in said(loud)] == ["DISTURBED", "A quick look, PROVISIONAL"]
    many = run_on(2, 1.0, status="PROVISIONAL", warmups=2)
    assert said(many)[0] == f"The run is PROVISIONAL. {' '.join(many.verdict.sentences())}"
    wrong = run_on(2, 1.0, status="INVALID")
    why = " ".join(wrong.verdict.sentences())
    assert said(wrong) == [f"The run is INVALID: its times do not count. {why}"]


def test_cases_that_are_not_valid_are_counted_and_failed_runs_too():
    records = [run_on(1, 1.9, status="INVALID"), run_on(2, 1.0, status="PROVISIONAL"), run_on(4, 1.0)]
    found = said(*records, failed=2)
    assert found[0] == "2 runs failed: no number includes them."
    assert found[1].startswith("Of 3 runs, 1 INVALID and 1 PROVISIONAL")
    assert said(*records[1:2], run_on(4, 1.0, status="PROVISIONAL"))[0].startswith(
        "All 2 runs are PROVISIONAL (2 with fewer than"
    )
    assert said() == []


@pytest.mark.parametrize(("times", "sets"), [((1.9, 1.0), 30), ((1.9, 1.0), 3), ((1.9,), 30)])
def test_a_sentence_on_times_of_provisional_runs_says_so_once(times, sets):
    def of(status):
        runs = [run_on(n, t, sets=sets, status=status) for n, t in enumerate(times, 1)]
        return said(*runs, run_on(1, 9.0, mesh="m1", status="INVALID"))[1:]

    for sure, doubted in zip(of("VALID"), of("PROVISIONAL"), strict=True):
        if "has a rank" in sure or "had no rank" in sure:
            assert doubted == sure  # no time says it
        else:
            assert doubted.count("PROVISIONAL") == 1
            assert ") (" not in doubted
            assert re.sub(" \\(PROVISIONAL\\)|; PROVISIONAL", "", doubted) == sure


def test_a_slow_host_is_named_with_what_to_do():
    nodes = planted_nodes(10, {2: Planted(cores=0.5, clock=0.5)}, noise=1e-4, spread=0.0)
    found = conclusions(results([make_record("m2", 2)], nodes))
    assert found[-1].startswith("Slow hosts: keep n3, with shares by speed (expected from fembench nodes")
    hosts = tuple(replace(HOST, name=name) for name in "abc")
    slow = [
        replace(made, partition=replace(made.partition, cells=(1320, 660 + 3 * run, 1320)))
        for run in range(3)
        for made in [
            make_record("m2", 3, noise=0.0, skew=0.0, environment=environment(3, hosts=hosts), run=run)
        ]
    ]
    assert said(*slow)[-1].startswith("b is slow: 50 % of the typical host (")


CROWD = environment(4, hosts=(replace(HOST, cores=2),), cores=((0,), (1,)) * 2, oversubscribed=True)


def test_no_advice_follows_from_ranks_that_share_cores_and_the_reason_is_given():
    crowd = make_record("m3", 4, environment=CROWD, sets=30)
    text = " ".join(said(run_on(1, 1.9), run_on(2, 1.0), crowd))
    assert "4 ranks" not in text
    why = "more ranks than cores share this host, so their times are no basis for advice; use up to 2 ranks."
    assert text.endswith(f"OVERSUBSCRIBED in 1 of 3 cases: {why}")
    assert said(crowd) == [f"OVERSUBSCRIBED: {why}"]
    loud = said(on_hosts_with(crowd, others_percent=75.0))
    assert [text.partition(":")[0] for text in loud] == ["DISTURBED", "OVERSUBSCRIBED"]
    assert loud[1] == f"OVERSUBSCRIBED: {why}"  # idle hosts alone would not help


def test_the_terminal_shows_the_tables_that_support_the_conclusions_and_all_on_request():
    one, two = run_on(1, 1.9), run_on(2, 1.0)
    alone, both = tables.every_table([two]), tables.every_table([one, two])
    assert "\nCommunication inside CG\n" in tables.selected(alone)
    assert "Speedup" not in tables.selected(alone)
    assert "Speedup and efficiency of cg\n" in tables.selected(both)
    assert "Communication" not in tables.selected(both)
    for made in (alone, both):
        few, every = tables.selected(made), tables.selected(made, everything=True)
        assert all(f"{t.title}\n" in every for t in made if t.name in tables.TERMINAL)
        assert len(few) < len(every)
        assert ("Cases\n" in few, "Cases\n" in every) == (False, True)


def test_times_that_change_by_a_factor_change_the_sentence():
    records = [run_on(1, 1.0), run_on(2, 1.0)]
    assert said(records[0], lasting(records[1], 0.25))[0].startswith("2 ranks are 4.")


def test_ranks_that_are_shown_to_be_neither_slower_than_the_best_nor_faster_than_the_fewest_are_not_chosen():
    found = said(*(run_on(n, t, cores=4, scatter=0.05) for n, t in ((1, 1.0), (2, 0.97), (4, 0.94))))
    assert found[0].startswith("4 ranks are 1.0")
    assert found[1] == "Use 4 ranks for m3."  # not: fewer are shown to be slower


def test_a_core_that_a_thread_of_a_rank_uses_is_not_called_free():
    both = said(run_on(1, 1.0, threads=2))[-1]
    assert both == "Every core has a thread: more ranks on this host will not help."
    some = said(large(run_on(1, 1.0, threads=2, cores=5)))[-1]
    assert some == "3 cores of this host had no rank: the same with --ranks 2 shows what more ranks gain."
    assert "--ranks" not in " ".join(said(run_on(1, 1.0, threads=2, cores=3)))  # one core for two threads
