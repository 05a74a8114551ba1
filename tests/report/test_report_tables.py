"""Tables of the report: names of results, contents, and the three ways of writing them."""

import csv
import io
import math
import re

import msgspec
import numpy as np
import pytest
from planted_environment import on_hosts_with
from planted_records import lasting, nested
from report_sample import HOST, campaign, environment, make_failure, make_record, named, peers_record, rows_of

from fembench.cli import check
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, CG
from fembench.records.record import LevelTimes
from fembench.records.verdict import Rule, Verdict
from fembench.records.verdict import named as rule
from fembench.report import tables
from fembench.report.page import brief
from fembench.report.results import results
from fembench.report.runs import case_name, summary_line
from fembench.report.table import Table, column, columns, declared, text, to_csv, to_json

replace = msgspec.structs.replace


def terminal(*campaign, **said):
    return tables.selected(tables.every_table(*campaign, **said))


def test_one_record_gives_tables_without_speedup():
    names = {t.name for t in tables.every_table([make_record()])}
    assert {"overview", "summary", "phases", "mean_phases", "rules", "software", "hosts", "meshes"} <= names
    assert not {"speedup_cg", "parts", "failures", "kinds", "reasons"} & names


def test_only_failures_give_only_the_table_of_failures():
    assert [t.name for t in tables.every_table([], [make_failure()])] == ["failures"]
    assert "killed by signal 9" in terminal([], [make_failure()])


def test_without_a_one_rank_run_speedup_is_a_dash_and_a_reason():
    (row,) = rows_of([make_record(ranks=2)], "speedup_cg")
    assert row["speedup"] is None
    assert row["base_id"] is None
    assert row["remarks"] == "no run on one rank"


def test_a_speedup_over_a_base_of_several_ranks_says_what_it_is_on_the_terminal():
    two, four = make_record(ranks=2), make_record(ranks=4)
    says = "(speedup = 2 T(2) / T(P): the base on 2 ranks counts as a speedup of 2)"
    assert says in terminal([make_record(), two, four], base=2)
    assert says in terminal([two, four])
    alone = terminal([make_record(), two, four])
    assert "Speedup and efficiency of cg\n" in alone
    assert "T(2)" not in alone


def test_the_base_of_speedups_is_explained_once_and_its_runs_have_a_column():
    found = [t for t in tables.every_table(campaign((1, 2), ("m1",))) if t.name.startswith("speedup_")]
    assert sum("Speedup is P0 T(P0) / T(P)" in table.note for table in found) == 1
    assert len(found) > 2
    heads = [cell.strip() for cell in text(found[0]).splitlines()[0].split("|")]
    assert {"base runs", "runs"} < set(heads)


def test_every_phase_has_a_speedup_over_the_same_phase_of_the_base():
    """Made-up records: assembly takes 1 / P of the time, the product of rank p 1 + 0.05 p times 1 / P."""
    records = [make_record("m2", p, noise=0) for p in (1, 4)]
    rows = {r["phase"]: r for r in rows_of(records, "speedup_phases")}
    assert list(rows) == ["assembly", "product", "vectors", "cg", "assembly + cg", "run"]
    assert rows["assembly"]["speedup"] == pytest.approx(4)
    assert rows["assembly"]["efficiency"] == pytest.approx(1)
    assert rows["vectors"]["speedup"] == pytest.approx(4)
    assert rows["product"]["speedup"] == pytest.approx(4 / (1.15 + 0.15))  # rank 3, and its interface rows
    assert rows["run"]["base_ranks"] == 1
    one, four = (sum(r.sets[-1].seconds[0][i] for i in (ASSEMBLY, CG)) for r in records)
    assert rows["assembly + cg"]["speedup"] == pytest.approx(one / four, rel=0.02)


def test_whole_runs_have_a_speedup_only_for_the_same_number_of_sets():
    one, two, four = (make_record("m2", ranks) for ranks in (1, 2, 4))
    rows = rows_of([one, replace(two, sets=two.sets[1:]), four], "speedup_phases")
    assert len([r for r in rows if r["ranks"] == 2]) == 5
    assert [r["ranks"] for r in rows if r["phase"] == "run"] == [4]


def test_runs_that_differ_are_listed_with_their_own_intervals_and_remarked_on():
    records = [make_record(run=k, sets=10, noise=0.01) for k in range(3)]
    records[2] = lasting(records[2], 1.5)
    rows = [r for r in rows_of(records, "runs_apart") if r["phase"] == "cg"]
    assert [r["run"] for r in rows] == [r.id for r in records]
    assert rows[2]["run_low_s"] > max(r["run_high_s"] for r in rows[:2])
    medians = sorted(next(r["run_median_s"] for r in rows if r["run"] == one.id) for one in records)
    half = 50 * (medians[2] - medians[0]) / medians[1]
    assert rows_of(records, "overview")[0]["remarks"] == f"runs differ: ± {half:.2g} %"
    assert rows_of(records[:2], "overview")[0]["remarks"].startswith("runs within ± ")
    assert rows_of(records[:1], "overview")[0]["remarks"] == ""
    assert rows_of(records, "summary")[0]["runs"] == 3
    assert "runs_apart" not in {t.name for t in tables.every_table(records[:2])}


def over_peers(records, **changes):
    return rows_of(records, "speedup_cg", peers=peers_record(**changes))


def test_the_best_serial_peer_stands_beside_our_own_base():
    records = campaign((1, 2), ("m1",))
    cg = next(r["cg_s"] for r in rows_of(records, "overview") if r["ranks"] == 2)
    (row,) = over_peers(records)
    assert (row["peer"], row["peer_of"]) == ("petsc jacobi", "solve")
    assert row["peer_speedup"] == pytest.approx(0.2 / cg)
    looser = make_record().case.with_(tolerance=1e-3)
    (row,) = over_peers(records, case=looser)  # another tolerance: by the iteration, same preconditioner
    assert (row["peer"], row["peer_of"]) == ("scipy none", "iteration")
    assert row["peer_speedup"] == pytest.approx(4e-5 / (cg / 211))


def test_one_repetition_has_no_spread():
    rows = rows_of([], "peers", peers=peers_record())
    assert {r["iteration_spread_fraction"] for r in rows} == {None}


@pytest.mark.parametrize(
    "changes",
    [
        {"mesh": replace(make_record().mesh, hash="other")},
        {"case": make_record().case.with_(problem="patch")},
        {"environment": environment(1, hosts=(replace(HOST, cpu_model="Other"),))},
    ],
)
def test_peers_of_another_system_or_processor_are_no_base(changes):
    (row,) = over_peers(campaign((1, 2), ("m1",)), **changes)
    assert "peer_speedup" not in row


def test_results_are_named_by_what_differs_and_defaults_go_without_saying():
    records = [
        make_record(ranks=2, **c)
        for c in ({}, {"partitioner": "rcb"}, {"shares": "7:1"}, {"precond": "jacobi"})
    ]
    names = {(r.method, r.setting) for r in results(records)}
    assert names == {("csr", "2"), ("csr", "2 · rcb"), ("csr", "2 · 7:1"), ("csr · jacobi", "2")}


def test_a_lone_result_is_named_by_its_method_unless_that_is_the_default():
    own = {"precond": "multigrid", "recurrence": "pipelined", "tolerance_kind": "relative", "iterations": 7}
    assert [r.method for r in results([make_record(**own)])] == ["csr · multigrid · pipelined"]
    assert [r.method for r in results([make_record()])] == ["csr"]
    gpu = {"storage": "sym", "device": "gpu"}
    beside = [make_record(precond="jacobi", **gpu), make_record("m2", **gpu)]
    assert [r.method for r in results(beside)] == ["sym · jacobi · on gpu", "sym · on gpu"]


def test_the_kind_of_a_tolerance_reads_as_words():
    records = [make_record(tolerance_kind=kind) for kind in ("absolute", "relative")]
    assert {r.method for r in results(records)} == {"csr", "csr · relative tolerance"}


def test_results_of_different_kinds_carry_a_letter_that_a_table_explains():
    other = make_record(run=1)
    other = replace(other, clock=replace(other.clock, name="perf_counter_ns"))
    records = [make_record(), other]
    assert [r.method for r in results(records)] == ["csr · kind A", "csr · kind B"]
    assert [(r["kind"], r["differs_in"]) for r in rows_of(records, "kinds")] == [
        ("A", ""),
        ("B", "clock"),
    ]
    assert rows_of(records, "overview")[1]["remarks"] == "not pooled: clock differs"


def test_the_same_case_on_another_host_is_named_by_its_host():
    other = make_record(run=1, environment=environment(1, hosts=(replace(HOST, name="node9"),)))
    assert [r.setting for r in results([make_record(), other])] == ["1", "1 · on node9"]


def test_a_mesh_file_that_changed_is_two_meshes():
    other = make_record(run=1)
    other = replace(other, mesh=replace(other.mesh, hash="abcdef123"))
    assert {r.mesh for r in results([make_record(), other])} == {"m1 #hash o", "m1 #abcdef"}


def test_a_box_of_so_many_equations_has_the_name_that_was_asked_for_and_says_what_it_became():
    made = make_record()
    box = replace(made, case=made.case.with_(mesh="box:600"), mesh=replace(made.mesh, name="box:5x6x4"))
    assert [row["mesh"] for row in rows_of([box], "meshes")] == ["box:600 = box:5x6x4"]
    for asked, name in (("box:5x6x4", "box:5x6x4"), ("meshes/part.msh", "part")):
        same = replace(box, case=made.case.with_(mesh=asked), mesh=replace(made.mesh, name=name))
        (row,) = rows_of([same], "meshes")
        assert row["mesh"] == results([same])[0].mesh


def test_synthetic_runs_are_labelled_in_every_table_of_results():
    records = [make_record(ranks=2, environment=environment(2, synthetic="rank 1 slowed twice"))]
    for table in tables.every_table(records):
        if "method" in table.names:
            assert all("SYNTHETIC" in row["method"] for row in to_json(table)), table.name
    assert "SYNTHETIC" in summary_line(records[0])


def test_phases_name_the_slowest_rank_and_host():
    rows = rows_of([make_record("m2", 4)], "phases")
    interior = next(r for r in rows if r["phase"] == "cg.spmv_interior")
    assert (interior["slowest_rank"], interior["slowest_host"]) == (3, "node8")
    assert interior["min_rank_s"] < interior["mean_rank_s"] < interior["median_s"]


@pytest.mark.row("004:9.1.9")
def test_the_table_of_means_over_ranks_is_in_milliseconds_and_its_total_is_the_sum():
    (row,) = rows_of([make_record("m1", 2, noise=0)], "mean_phases")
    assert row["partition_ms"] == pytest.approx(8.0)
    assert row["total_ms"] == pytest.approx(row["partition_ms"] + row["assembly_ms"] + row["cg_ms"])


@pytest.mark.row("004:F9")
def test_receive_is_wait_plus_unpack_over_send():
    (row,) = rows_of([make_record("m2", 2)], "send_receive")
    assert row["receive_over_send"] == pytest.approx((row["wait_s"] + row["unpack_s"]) / row["send_s"])
    assert row["messages_per_iteration"] == 2


def test_the_parts_of_communication_say_without_unfolding_that_they_need_not_add_up():
    records = [make_record("m2", 2)]
    shown, _ = brief(named(records, "send_receive").note)
    assert "they need not add up to 'communication, mean'." in shown
    assert "communication, mean" in [c.head for c in named(records, "communication").columns]


def test_partitions_are_listed_once_whatever_the_storage():
    records = [make_record("m1", 2), make_record("m1", 2, storage="dense")]
    assert len(named(records, "partitions").rows) == 1
    parts = rows_of(records, "parts")
    assert [p["cells"] for p in parts] == [432, 432]
    assert [p["cpus"] for p in parts] == ["0", "1"]


def test_imbalance_is_the_largest_part_over_its_fair_share():
    record = make_record("m1", 2)
    record = replace(record, partition=replace(record.partition, cells=(700, 164), targets=(0.75, 0.25)))
    (row,) = rows_of([record], "partitions")
    assert row["imbalance_cells"] == pytest.approx(700 / 648)
    assert row["miss_fraction"] == pytest.approx(1 - 164 / 216)


def test_iterations_of_all_ranks_stand_in_one_row_with_their_range():
    records = campaign((1, 2), ("m1",))
    records[1] = replace(records[1], solve=replace(records[1].solve, iterations=212))
    (row,) = rows_of(records, "iterations")
    assert (row["iterations_min"], row["iterations_max"], row["ranks"]) == (211, 212, "1 2")
    assert "211–212" in text(named(records, "iterations"))


def test_reasons_come_once_each_with_what_makes_invalid_first():
    records = [make_record(status="INVALID"), *(make_record("m2", p, status="PROVISIONAL") for p in (1, 2))]
    rows = rows_of(records, "reasons")
    assert [(r["makes"], r["rule"], r["cases"]) for r in rows] == [
        ("INVALID", rule("A1"), 1), ("PROVISIONAL", rule("A4"), 2), ("PROVISIONAL", rule("D1"), 2),
    ]  # fmt: skip


def test_oversubscribed_runs_say_so_in_every_row_and_in_the_line_of_progress():
    record = make_record(ranks=2, environment=environment(2, oversubscribed=True))
    (row,) = to_json(named([record], "overview"))
    assert row["remarks"] == "OVERSUBSCRIBED: functional only"
    for name in ("overview", "summary", "phases"):
        assert all(row["method"] == "csr · OVERSUBSCRIBED" for row in to_json(named([record], name)))
    assert "VALID       OVERSUBSCRIBED m1" in summary_line(record)


def test_times_of_an_invalid_case_are_marked_in_every_table_that_shows_them():
    records = [make_record(ranks=2, status="INVALID"), make_record("m2", 2)]
    made = {t.name: t for t in tables.every_table(records)}
    for name in ("overview", "summary", "phases", "mean_phases", "communication", "send_receive", "rates"):
        assert set(made[name]["method"]) == {"csr · INVALID", "csr"}, name


def test_disturbed_runs_and_what_is_compared_with_them_are_marked_in_every_table_that_shows_them():
    records = [on_hosts_with(make_record(), others_percent=40.0), make_record(ranks=2)]
    made = {t.name: t for t in tables.every_table(records)}
    for name in ("overview", "summary", "phases", "communication", "rates", "speedup_factors"):
        assert set(made[name]["method"]) == {"csr · DISTURBED", "csr"}, name
    (row,) = rows_of(records, "speedup_cg")
    assert (row["method"], row["remarks"].split("; ")[0]) == ("csr", "DISTURBED")


def test_csv_holds_raw_values_and_nothing_where_there_is_none():
    (row,) = csv.DictReader(io.StringIO(to_csv(named([make_record(sets=1, noise=0)], "summary"))))
    assert float(row["cg_s"]) == pytest.approx(211 * (1.2 * 630 * 25e-9 + 1.5e-6))
    assert row["cg_low_s"] == ""
    assert row["ranks"] == "1"


def test_intervals_share_a_unit_where_they_can():
    show = column("low_s high_s: interval").show
    assert show((4.1e-3, 4.3e-3)) == "4.1–4.3 ms"
    assert show((9.5e-4, 1.05e-3)) == "950 µs – 1.05 ms"


@pytest.mark.parametrize(
    ("said", "value", "shown", "number"),
    [
        ("cg_s", 0.0123, "12.3 ms", True),
        ("of_roof_fraction", 0.415, "41.5 %", True),
        ("of_roof_fraction", 0.00031, "0.031 %", True),
        ("share_min share_max: over ranks | fraction", (0.058, 0.476), "5.8–47.6 %", True),
        ("matrix_bytes: matrix", 2048, "2 KiB", True),
        ("equations", 12345, "12 345", True),
        ("iterations_min iterations_max: iterations", (211, 211), "211", True),
        ("e_het | .3f", 0.6666, "0.667", True),
        ("e_het | .3f", 0.00042, "0.00042", True),
        ("imbalance", 0.0042, "0.0042", True),
        ("imbalance", 0.0, "0.00", True),
        ("speed speed_low speed_high: speed", (0.85, 0.8, 0.9), "0.85 (0.80–0.90)", True),
        ("ranks setting: ranks | {1}", (4, "4 · rcb"), "4 · rcb", False),
        ("base_s base_ranks: base | {0:s} on {1:on_ranks}", (0.5, 1), "500 ms on one rank", False),
        ("low high | >{0:digits}–{1:digits}", (1234.5, 2000.1), "1234–2000", True),
        ("speedup", math.nan, "–", True),
    ],
)
def test_the_text_of_a_column_says_how_its_values_are_shown_and_aligned(said, value, shown, number):
    one = column(said)
    assert (one.show(value).replace("\u202f", " ").replace("\u2009", " "), one.number([value])) == (
        shown,
        number,
    )


def test_a_column_that_may_be_missing_is_left_out_if_no_row_has_a_value():
    @declared("t", "T", "", "a; ?b; c")
    def made(values):
        return [(1, value, 3) for value in values]

    assert made([None, math.nan]).names == ("a", "c")
    assert made([None, math.nan]).rows == ((1, 3), (1, 3))
    assert made([None, 0]).rows == ((1, None, 3), (1, 0, 3))


def test_a_summary_line_says_verdict_case_and_time():
    line = summary_line(make_record("m2", 2, sets=1))
    assert line.startswith("VALID       m2 · csr · 2 ranks: 2 592 equations, 328 iterations, cg ")
    assert "(1 set)" in line
    assert "communication" in line


def test_a_summary_line_says_beside_the_verdict_that_the_run_was_disturbed():
    loud = on_hosts_with(make_record(status="PROVISIONAL"), others_percent=44.0)
    assert summary_line(loud).startswith("PROVISIONAL, DISTURBED m1 · csr · 1 rank")


def test_a_summary_line_of_a_bad_run_says_what_is_wrong():
    bad = make_record(status="INVALID")
    bad = replace(bad, sets=(), solve=replace(bad.solve, converged=False))
    line = summary_line(bad)
    assert "INVALID" in line
    assert "without convergence" in line
    assert "(A1): |f - A u|" in line


def test_hosts_show_what_others_used_in_the_run_where_it_was_most():
    def used(run, percent):
        return make_record(
            run=run, environment=environment(1, hosts=(replace(HOST, others_percent=percent),))
        )

    (row,) = rows_of([used(1, 0.5), used(2, 12.5), used(3, -1.0)], "hosts")
    assert row["others_fraction"] == 0.125
    (row,) = rows_of([make_record()], "hosts")
    assert row["others_fraction"] is None  # not measured


def test_every_column_of_the_rates_is_the_quantity_that_its_name_says():
    one = make_record("m1", 2, noise=0.0)
    equations, iterations = 630, 211
    work = 211 * 630 * 25e-9 / 2  # seconds of the interior product on rank 0, of `set_seconds`
    row = next(iter(csv.DictReader(io.StringIO(to_csv(named([one], "rates"))))))
    iteration = max(s[CG] for s in one.sets[-1].seconds) / iterations
    rank_rates = [126000 / 2 * iterations / (work * (slow + 0.15)) for slow in (1.0, 1.05)]
    assert {k: float(v) for k, v in list(row.items())[4:]} == pytest.approx(
        {
            "iteration_s": iteration,
            "million_equations_per_s": equations / iteration / 1e6,
            "gflop_per_s": 90 * equations / iteration / 1e9,
            "product_gb_per_s": sum(rank_rates) / 1e9,
            "of_roof_fraction": max(rank_rates) / 8e9,
            "matrix_bytes": 200 * equations // 2,
            "touched_bytes": 500 * equations / 2,
            "peak_memory_bytes": 80 * 2**20,
        }
    )


def test_the_rates_say_without_unfolding_how_their_roof_differs_from_that_of_the_headline():
    made = named([make_record("m1", 2)], "rates")
    assert "of its core's roof" in [one.head for one in made.columns]
    assert re.search(
        "'Of its core's roof' .*rank closest.* headline and roofline .*all ranks together",
        brief(made.note)[0],
    )


def test_a_row_with_a_value_too_many_or_too_few_is_refused_rather_than_shifted():
    for values in [(1, 2, 3), (1,)]:
        table = Table("t", "T", "", columns("a; b"), (values,))
        for show in (text, to_csv, to_json):
            with pytest.raises(ValueError, match="zip"):
                show(table)


@pytest.mark.parametrize("changes", [{}, {"status": "PROVISIONAL"}, {"sets": 1}])
def test_every_row_of_every_table_has_a_value_for_every_head(changes):
    records = campaign(**changes)
    for table in tables.every_table(records, [make_failure()], peers_record()):
        assert all(len(row) == len(table.columns) for row in table.rows), table.name
        names = [name for column in table.columns for name in column.key.split()]
        assert len(set(names)) == len(names), table.name
        assert all(list(row) == names for row in to_json(table)), table.name


def judged(run, *rules, **changes):
    return make_record("m1", run=run, verdict=Verdict("PROVISIONAL", (), rules), **changes)


def broken(id, value, each, threshold, note=""):
    """A rule that is not met in several runs, with these numbers in its value."""
    made = ((value.format(v), threshold.format(v)) for v in each)
    return [Rule(id=id, ok=False, value=said, threshold=most, note=note) for said, most in made]


LOUD = "host-1: others used {} % of the CPU time, ± 0.5 %"
SHORT, FAST = "shortest phase cg.dot lasts {} x", "bytes / s over the roof = {}"
LOST = "parts of cg leave {0} of it: {0} ms per iteration"
OWN = ("<= 0.02, or {} µs per iteration for the loop", "the rank was interrupted, or shares its core")


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        (broken("D6", LOUD, (48.8, 66.7, 9), "<= 2 %"), f"{LOUD.format(66.7)} and 2 more"),
        (broken("C3", SHORT, ("400", "1.2e+02", "900"), ">= 1000"), f"{SHORT.format('1.2e+02')} and 2 more"),
        (broken("B3", FAST, ("1.2", "nan", "1.3"), "<= 1.05"), f"{FAST.format('nan')} and 2 more"),
        (broken("D4", LOST, ("0.1", "0.3"), *OWN), ", ".join(map(LOST.format, ("0.3", "0.1")))),
    ],
    ids=["most", "least", "nan", "threshold of each run"],
)
def test_a_broken_rule_is_shown_at_its_worst_with_the_note_that_explains_it(rules, shown):
    (row,) = rows_of([judged(k, rule) for k, rule in enumerate(rules)], "reasons")
    assert row["value"] == shown
    assert row["note"] == rules[0].note


def test_one_rule_has_a_row_for_each_remedy_also_if_its_thresholds_and_numbers_differ():
    count = Rule(id="D1", ok=False, value="1 warm-up, 3 timed sets", threshold=">= 2 warm-ups, >= 10 sets")
    none = Rule(id="D1", ok=False, value="no interval: 3 sets", threshold="95 % interval", note="use 10 sets")
    wide = broken("D1", "median known to ± {} %", (9, 12), "95 % interval", "stop it")
    near = [replace(rule, note=f"about {n} sets would do") for n, rule in zip((300, 400), wide)]
    runs = [judged(k, *rules) for k, rules in enumerate(((count, none), *zip(wide), *zip(near)))]
    more, stop, use = rows_of(runs, "reasons")
    assert [row["note"] for row in (more, stop, use)] == ["about 400 sets would do", "stop it", "use 10 sets"]
    assert more["value"] == stop["value"] == "median known to ± 12 %, median known to ± 9 %"
    assert use["threshold"] == ">= 2 warm-ups, >= 10 sets; 95 % interval"
    assert all(rule.value in use["value"] for rule in (count, none))


def test_one_remedy_has_one_row_also_if_the_reference_differs():
    far = broken("A4", "relative difference = {}", (0.1, 0.2), "<= 1e-08")
    notes = [f"reference: {mesh}-p1; try fewer; if it still differs, report it" for mesh in ("m1", "m2")]
    runs = [judged(k, replace(rule, note=note)) for k, (rule, note) in enumerate(zip(far, notes))]
    (row,) = rows_of(runs, "reasons")
    assert row["note"] == notes[1]


def test_rules_of_a_run_stand_in_the_order_of_their_names_and_in_the_words_of_check(capsys):
    rules = [
        Rule(id=i, ok=ok, value="", threshold="") for i, ok in (("D3", None), ("A5", True), ("A4", False))
    ]
    rows = rows_of([judged(0, *rules)], "rules")
    assert [(r["rule"], r["result"]) for r in rows] == [
        (rule("A4"), "not met"), (rule("A5"), "met"), (rule("D3"), "not evaluated")
    ]  # fmt: skip
    check._show_all(judged(0, *rules), Verdict("PROVISIONAL", (), tuple(rules)))
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines()[3:6]]
    assert [line[2].strip() for line in lines] == ["not met", "met", "not evaluated"]


def test_runs_that_chose_the_same_clock_for_the_same_reason_share_a_row():
    one = make_record()
    clocks = [replace(one.clock, reason=f"ticks/s agree; cheapest of tsc {ns} ns") for ns in (12.9, 13.4)]
    rows = rows_of([replace(make_record(run=k), clock=c) for k, c in enumerate(clocks)], "software")
    found = [(r["value"], r["runs"]) for r in rows if r["what"].startswith("clock")]
    worst = "drift 2.0e-07, reading 11 ns, quantum 0.4 ns, span 120 ns"
    assert found == [("certified: ticks/s agree", 2), (worst, 2)]


@pytest.mark.parametrize(("base", "told"), [(0, False), (1, False), (2, True)])
def test_a_base_with_the_most_ranks_says_why_there_is_no_speedup(base, told):
    out = terminal(campaign((1, 2), ("m1",)), base=base)
    assert ("no run has more ranks than the base" in out) == told
    assert ("Speedup and efficiency" in out) != told


@pytest.mark.parametrize(
    ("shares", "settings"),
    [
        (["0.682944866,0.317055134", "7:1"], ["2 · 0.683,0.317", "2 · 7:1"]),
        (["0.682944866,0.317055134", "0.683100000,0.316900000"], None),  # equal with three digits
        (["4:3:2:1:1:1:1:1", "4:3:1:1:1:1:1:2"], ["8 · 4:3:…:1", "8 · 4:3:…:2"]),
        (["4:3:2:1:1:1:1:1", "4:3:1:2:1:1:1:1"], ["8 · 4:3:2:1:1:1:1:1", "8 · 4:3:1:2:1:1:1:1"]),
    ],
)
def test_shares_are_as_short_as_tells_results_apart(shares, settings):
    ranks = len(re.split("[,:]", shares[0]))
    found = results([make_record(ranks=ranks, shares=text) for text in shares])
    assert sorted(r.setting for r in found) == sorted(settings or [f"2 · {text}" for text in shares])


def test_a_failed_case_is_listed_with_short_shares():
    case = Case.of(mesh="m1", ranks=2, shares="0.682944866,0.317055134")
    assert case_name(case).endswith("2 ranks · 0.683,0.317")


def test_the_levels_of_multigrid_are_shown_with_their_part_of_cg():
    record = make_record(ranks=2)
    assert "levels" not in {t.name for t in tables.every_table([record])}
    each = [
        LevelTimes(nodes=nodes, computing=(share, 3 * share), messages=(share, share), waiting=(0.0, 0.0))
        for nodes, share in ((1000, 4e-6), (80, 1e-6))
    ]
    solve = replace(record.solve, levels=tuple(each))
    table = named([replace(record, solve=solve)], "levels")
    assert [row[-6:-1] for row in table.rows] == [
        ("mesh", 1000, 12e-6, 4e-6, 0.0),
        ("rank 0", 80, pytest.approx(3e-6), 1e-6, 0.0),
    ]
    cg = results([record])[0].times["cg"].mean / record.solve.iterations
    assert table["of_cg_fraction"].tolist() == pytest.approx([12e-6 / cg, 3e-6 / cg])


def test_a_note_says_if_assembly_and_cg_do_not_add_up_to_the_whole_and_only_then():
    quiet = make_record("m2", ranks=2, warmups=0)
    rows = np.array([one.seconds for one in quiet.sets])
    rows[:2, :, ASSEMBLY] *= 9
    rows[2:4, :, CG] *= 9
    loud = replace(quiet, sets=tuple(replace(s, seconds=nested(row)) for s, row in zip(quiet.sets, rows)))
    begin = "Assembly and cg add up to the whole only within "
    assert [named([one], "phases").note.startswith(begin) for one in (quiet, loud)] == [False, True]


def test_layouts_of_the_same_cores_are_compared_with_the_fastest():
    many = make_record("m2", ranks=4, noise=0.0)
    few, one = (make_record("m2", ranks=4 // n, threads=n, noise=0.0) for n in (2, 4))
    alone = make_record("m3", ranks=2, threads=2)  # no other layout of four cores
    records = [many, few, one, alone]
    table = named(records, "layouts")
    assert table["ranks"].tolist() == [4, 2, 1]
    assert table["threads"].tolist() == [1, 2, 4]
    assert set(table["cores"].tolist()) == {4}
    assert set(table["method"].tolist()) == {"csr"}
    times = table["solve_s"]
    assert table["over_fastest_fraction"].tolist() == pytest.approx(times / times.min() - 1)
    assert "Ranks and threads" in terminal(records)
    loud = named([on_hosts_with(many, others_percent=40.0), few, one], "layouts")
    assert loud["method"].tolist() == ["csr · DISTURBED", "csr", "csr"]
    assert "layouts" not in {t.name for t in tables.every_table([many, alone])}


def test_threads_are_shown_on_the_rank_where_they_share_its_work_least_evenly():
    record = make_record(ranks=2, threads=2)
    assert "threads" not in {t.name for t in tables.every_table([record])}
    spent = ((2.0, 2.0), (3.0, 1.0))
    table = named([replace(record, solve=replace(record.solve, thread_seconds=spent))], "threads")
    assert [row[-5:] for row in table.rows] == [(2, 1, 3.0, 2.0, 0.5)]
