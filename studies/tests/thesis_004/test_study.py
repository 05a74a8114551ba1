"""The study thesis-004 on made-up records, whose tables follow from the plan by hand."""

import msgspec
import numpy as np
import pytest
from planted_records import lasting
from planted_study import TIMERS, PlantedStudy

from fembench.records.phases import ASSEMBLY, CG, WAIT
from fembench.report.plots.canvas import Plot
from fembench.report.table import to_json
from fembench_studies.attempts import Attempts
from fembench_studies.page import publish
from fembench_studies.study import StudyRequest
from fembench_studies.thesis_004 import measure, pairs_study, weighted
from fembench_studies.thesis_004.findings import findings
from fembench_studies.thesis_004.gates import Gates
from fembench_studies.thesis_004.machines import emulated, given
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.pairs_study import compose, outcome
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import CAMPAIGNS, FULL, QUICK, StudyPlan
from fembench_studies.thesis_004.thesis import MESHES, RUNS


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = PlantedStudy(tmp_path_factory.mktemp("study"), StudyPlan(emulated(2), QUICK), "fembench study")
    made.measure(made.plan.wants())
    for round_ in weighted.ROUNDS:
        made.measure(weighted.wants(made.plan, StudyRecords(made.records), round_))
    return made


@pytest.fixture(scope="module")
def found(study):
    return StudyRecords(study.records)


@pytest.fixture(scope="module")
def side(study, found):
    return found.side(study.plan)


@pytest.fixture(scope="module")
def tables(study, found, undrawn):
    return {t.name: to_json(t) for s in compose(study, found, TIMERS) for t in s.tables}


def test_one_task_is_1_over_the_speed_slower_on_the_slow_host(side):
    assert side.slowness(2, 1) == pytest.approx(1 / 0.13, rel=1e-6)


def told(plan, records, experiment):
    """The findings of an experiment: (experiment, statement, thesis, here)."""
    runs = weighted.results(plan, records)
    return findings(plan, records.side(plan), runs, "", [experiment]).tables[0].rows


def test_ratios_that_the_emulation_sets_are_named_next_to_the_measured_ones(study, found):
    said = "set by the emulation: 7.7, 15.4, 15.4, 15.4."
    assert [said in row[1] for row in told(study.plan, found, "E9")] == [True]
    real = StudyPlan(given(["a:2"], ["b:1"]), QUICK)
    assert ["emulation" in row[1] for row in told(real, StudyRecords({}), "E9")] == [False]


def test_a_run_of_few_iterations_counts_as_one_to_the_tolerance(study, found):
    want = study.plan.case("node8", 3, 1)
    assert want.case.stop.iterations == QUICK.iterations["m3"]
    assert found.phases(want).cg == pytest.approx(428 * study.plan.machines.dilate * 5460**2 * 1e-9, rel=1e-6)


def test_findings_of_what_was_not_measured_say_so(study, found):
    rows = told(study.plan, StudyRecords({}), "E10")
    assert len(rows) == 5
    assert all(set(row[3].split(", ")) == {"not measured"} for row in rows)
    some = {w: r for w, r in study.records.items() if w.case.question.mesh == "m1"}
    here = [row[3] for row in told(study.plan, StudyRecords(some), "E10")]
    assert here[0].startswith("run ")
    assert here[0].endswith(", not measured, not measured")
    assert all(text.endswith(" of 11 measured") for text in here[1:3])


@pytest.mark.parametrize(
    ("experiment", "row", "said"),
    [
        ("E9", 0, "7.7, 12.1, 11.7, 9.2"),
        ("E3", 0, "2.00, 2.03"),
        ("E10", 0, "run 2 (1:3), run 3 (1:7), run 3 (1:7)"),
        ("E10", 1, "7"),
        ("E10", 2, "32"),
        ("E10", 3, "2.14, 1.76, 2.04"),
        ("E14", 0, "3.19 (4.05)"),
    ],
)
def test_findings_of_the_thesis_are_its_own(study, found, experiment, row, said):
    assert told(study.plan, found, experiment)[row][2] == said


def test_the_reasons_of_invalid_records_are_told(study):
    want, (record, *_) = next(iter(study.records.items()))
    verdict = msgspec.structs.replace(record.verdict, status="INVALID", reasons=("B3: 1.06",), rules=())
    spoilt = PlantedStudy(study.path, study.plan, "fembench study")
    spoilt.records = {want: [msgspec.structs.replace(record, verdict=verdict)]}
    assert spoilt.invalid() == [f"{record.id}: INVALID: B3: 1.06"]


def test_an_invalid_run_is_told_with_its_reason_and_that_it_will_be_repeated(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(pairs_study, "StudyFolder", PlantedStudy)
    monkeypatch.setattr(PlantedStudy, "invalid", lambda self: ["m1-r1: INVALID: B3: 1.06"])
    pairs_study.measure(StudyRequest(tmp_path, quick=True, cores=2, only=("E9",)), Attempts(told.append))
    assert "m1-r1: INVALID: B3: 1.06; the next start repeats this run" in told


def test_invalid_runs_are_measured_again(study, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(measure, "execute", lambda *_, **options: asked.append(options["again"]) or [])
    StudyFolder(tmp_path, study.plan, "fembench study").measure(study.plan.wants(("E9",)), asked.append)
    assert asked
    assert all(asked)


@pytest.mark.row("004:E10")
def test_run_3_is_the_best_of_the_thesis_runs_without_communication(side, tables):
    for k in (1, 2, 3):
        times = {run: side.total("run", k, run) for run in RUNS}
        assert min(times, key=times.get) == 3
        assert len(times) == 11
    row = next(r for r in tables["run_speedups"] if (r["mesh"], r["run"]) == (3, 3))
    assert (row["tasks_on_node00"], row["tasks_on_node8"]) == (1, 7)
    assert row["thesis_efficiency_vs_node8"] == pytest.approx(139.417691645 / 49.8016146 / 8)
    assert row["thesis_model_s"] == pytest.approx(316.657647988 / 8)  # Table 5.26: node00 ends last


@pytest.mark.row("004:E3")
def test_every_phase_has_its_speedup_and_efficiency_beside_those_of_the_thesis(tables):
    first = {"platform": "cluster1", "mesh": 1}
    two = next(r for r in tables["speedups_hosts"] if r | first | {"tasks": 2} == r)
    assert two["thesis_speedup_cg"] == pytest.approx(822.512801 / 515.197944)  # Table 5.6
    assert two["thesis_efficiency_assembly"] == pytest.approx(81.089356 / 24.000125 / 2)
    times = {r["tasks"]: r for r in tables["phases_hosts"] if r | first == r}
    for phase in ("assembly", "cg", "total"):
        ratio = times[1][f"{phase}_ms"] / times[2][f"{phase}_ms"]
        assert two[f"speedup_{phase}"] == pytest.approx(ratio)
        assert two[f"efficiency_{phase}"] == pytest.approx(ratio / 2)


@pytest.mark.row("004:E4", "004:7.6")
def test_a_second_processor_halves_the_time_of_two_tasks_and_not_of_one(tables):
    rows = {(r["mesh"], r["tasks"]): r for r in tables["second_processor"]}
    assert len(rows) == 12
    assert rows[2, 1]["cg_speedup"] == pytest.approx(1)
    assert [rows[2, tasks]["cg_speedup"] for tasks in (2, 4, 8)] == pytest.approx([2] * 3, rel=1e-5)
    assert rows[3, 8]["thesis_total_speedup"] == pytest.approx(1.8951, abs=5e-5)  # Tables 5.16, 5.17


@pytest.mark.row("004:E9")
def test_repetitions_of_the_slowness_are_compared(study):
    plan = study.plan
    again = {w: list(records[:1]) for w, records in study.records.items()}
    slow = plan.case("node00", 2, 4)
    for want in (slow, plan.case("node8", 2, 4)):
        again[want] *= 2
    apart = Gates(plan, slower(again, [slow], 1.1, slice(1, 2))).apart
    assert apart(2, 4).found == pytest.approx(10, rel=1e-6)
    assert np.isnan(apart(1, 4).found)


@pytest.mark.parametrize(("spread", "verdict"), [(1e-4, "NO"), (0.02, "INVALID: too noisy, between ")])
def test_slowness_that_differs_no_more_than_the_sets_of_its_runs_is_not_judged(study, spread, verdict):
    plan = study.plan
    slow, fast = (plan.case(host, 1, 2) for host in ("node00", "node8"))
    records = dict(waiting(study.records, slow, 0.06)._records)
    for want in (slow, fast):
        records[want] = [scattered(r, spread) for r in records[want]]
    (claim,) = (c for c in Gates(plan, StudyRecords(records)).claims() if c.what.startswith("E9, 2 + 2"))
    assert claim.verdict.startswith(verdict)


@pytest.mark.parametrize(
    ("hosts", "verdict"), [(["node00"], "INVALID: this machine"), (["node00", "node8"], "yes")]
)
def test_slowness_is_not_judged_where_the_machine_that_emulates_the_hosts_had_another_speed(
    study, hosts, verdict
):
    plan = study.plan
    wants = [plan.case(host, 1, 2) for host in hosts]
    found = slower(study.records, wants, 1.06, slice(1))  # both hosts alike: their ratio is as before
    claims = [c for c in Gates(plan, found).claims() if c.what.startswith("E9, ")]
    (two,) = (c for c in claims if c.what.startswith("E9, 2 + 2"))
    assert two.verdict.startswith(verdict)
    assert two.reason.endswith(", which makes a difference of 6 %") or verdict == "yes"
    assert {c.verdict for c in claims if c is not two} == {"yes"}


def waiting(records, want, more):
    """The records; the first of `want` waits for messages, for a part `more` of its time."""
    records = {w: list(each) for w, each in records.items()}
    record, sets = records[want][0], []
    for one in record.sets:
        times = np.array(one.seconds)
        waits = more * times[:, [ASSEMBLY, CG]].sum(axis=1)
        times[:, WAIT] += waits
        times[:, CG] += waits
        sets.append(msgspec.structs.replace(one, seconds=times.tolist()))
    records[want][0] = msgspec.structs.replace(record, sets=tuple(sets))
    return StudyRecords(records)


def scattered(record, spread):
    """A record of three sets, the last repeated this far apart."""
    thrice = msgspec.structs.replace(record, sets=record.sets[-1:] * 3)
    return lasting(thrice, 1, 1 + spread, 1 - spread)


def changed(study, wants, **changes):
    """The study's records, those of `wants` changed."""
    records = {w: list(each) for w, each in study.records.items()}
    for want in wants:
        records[want] = [msgspec.structs.replace(r, **changes) for r in records[want]]
    return StudyRecords(records)


def slower(records, wants, factor, only=slice(None)):
    """The records, the chosen repetitions of `wants` slower."""
    records = {w: list(each) for w, each in records.items()}
    for want in wants:
        records[want][only] = [lasting(r, factor) for r in records[want][only]]
    return StudyRecords(records)


def missed(study, found):
    return [c.what for c in Gates(study.plan, found).claims() if c.verdict == "NO"]


@pytest.mark.row(
    "004:C5", "004:C6", "004:C7", "004:C8", "004:C9", "004:B3", "004:B4", "004:B2", "004:E6", "004:E13"
)
def test_each_claim_of_the_study_has_its_limit_and_can_be_missed(study, found):
    plan = study.plan
    made = {c.what: c for c in Gates(plan, found).claims()}
    assert {what[:3].strip(",") for what in made} == {"E6", "E9", "E10", "E13", "E14"}
    limits = {(c.limit, c.least) for c in made.values()}
    assert limits == {(2, False), (1e-4, False), (1e-5, False), (5, False), (15, False), (0.7, True),
                      (1.1, False), (1.25, False), (1, False)}  # fmt: skip
    assert missed(study, found) == []
    check = study.records[plan.sparse("m2")][0].verification
    for name, bad, what in (
        ("load_displacement", (0.0, -1.9455e-07, 0.0), "E6, m2: displacement of the loaded node"),
        ("reactions", (0.0, 499.0, 0.0), "E6, m2: reactions against the load"),
    ):
        wrong = msgspec.structs.replace(check, **{name: bad})
        assert missed(study, changed(study, [plan.sparse("m2")], verification=wrong)) == [what]
    more = msgspec.structs.replace(study.records[plan.sparse("m2")][0].solve, iterations=1000)
    assert missed(study, changed(study, [plan.sparse("m2")], solve=more)) == [
        "E6, m2: iterations beyond those expected"
    ]
    late = [w for r in weighted.ROUNDS for w in weighted.wants(plan, found, r)]
    m3 = [w for w in late if w.case.question.mesh == "m3" and w.case.method.storage == "dense"]
    assert any(what.startswith("E13, m3, dense") for what in missed(study, slower(study.records, m3, 1.5)))
    apart = waiting(study.records, plan.case("node00", 1, 2), 0.06)
    assert missed(study, apart) == ["E9, 2 + 2 tasks: slowness repeated, largest difference"]
    runs = [plan.case("run", 3, run) for run in RUNS]
    late_runs = missed(study, slower(study.records, runs, 1.3))
    assert "E10, m3: bottleneck model, mean error of 11 runs" in late_runs
    dense, csr = (plan.case(f"single_cpu{form}", 3, 4) for form in ("", " csr"))
    assert missed(study, slower(study.records, [dense], 1.5)) == [
        "E14, m3, 4 tasks on one core: dense gain over that of its work"
    ]
    assert missed(study, slower(study.records, [csr], 0.8)) == ["E14, m3, 4 tasks on one core: csr gain"]


def test_a_claim_that_was_not_measured_is_invalid_and_decides_the_exit_status(study):
    found = outcome(study, TIMERS, ("E9",))
    assert [c.verdict for c in found.claims] == ["yes"] * 4
    assert found.good
    once = PlantedStudy(study.path, study.plan, "fembench study")
    once.records = {w: records[:1] for w, records in study.records.items()}
    found = outcome(once, TIMERS, ("E9",))
    assert {c.verdict for c in found.claims} == {"INVALID: not measured"}
    assert not found.good


@pytest.mark.parametrize(("apart", "verdict"), [(0.001, "NO"), (0.1, "INVALID: too noisy, between ")])
def test_a_gain_on_one_core_has_an_interval_also_in_a_quick_study(study, apart, verdict):
    plan, records = study.plan, dict(study.records)
    dense = plan.case("single_cpu", 3, 8)
    records[dense] = [
        lasting(r, f / 0.69) for r, f in zip(records[dense], (1 - apart, 1.0, 1 + apart), strict=True)
    ]
    (claim,) = (
        c
        for c in Gates(plan, StudyRecords(records)).claims()
        if c.what.startswith("E14, m3, 8 tasks on one core: dense")
    )
    assert claim.found == pytest.approx(0.69, rel=0.01)
    assert claim.verdict.startswith(verdict)


def test_each_host_alone_is_measured_as_often_as_its_ratios_are_compared(study):
    plan = study.plan
    alone, both = plan.case("node00", 1, 2), plan.case("run", 1, 1)
    assert (plan.repetitions(alone), plan.repetitions(both)) == (2, 1)
    assert [plan.repetitions(plan.case("single_cpu csr", 3, tasks)) for tasks in (1, 8)] == [3, 3]
    full = StudyPlan(plan.machines, FULL)
    assert {full.repetitions(w) for w in full.wants() if w.where != "sparse"} == {5}


@pytest.mark.row("004:7.6")
def test_two_tasks_on_one_host_stand_beside_two_hosts(tables):
    rows = tables["one_or_two_hosts"]
    assert [r["one_over_two"] for r in rows] == pytest.approx([1.0] * 3)  # two processors of speed 1 each
    assert rows[2]["thesis_one_host_s"] == pytest.approx(55.553, abs=1e-3)
    assert rows[2]["thesis_two_hosts_s"] == pytest.approx(54.287, abs=1e-3)


def test_parts_and_pairs_and_messages_stand_beside_those_of_the_thesis(tables):
    assert [r["thesis_shared_dofs"] for r in tables["parts_sums"]] == [1188, 2478, 4383]
    assert [round(r["thesis_largest"], 4) for r in tables["parts_sums"]] == [1.0007, 1.0296, 1.0493]
    assert tables["parts"][2]["thesis_elements"] == 2243  # the first of four
    assert tables["pairs"][0]["thesis_cluster_2_total_s"] == 5.72  # as printed: a slip
    assert tables["point_to_point"][0]["thesis_receive_over_send"] == pytest.approx(333.93871 / 17.77912)
    shares = {
        (r["platform"], r["mesh"], r["tasks"]): r["thesis_communication_percent"]
        for r in tables["communication"]
    }
    assert len(shares) == 24
    assert shares["cluster2", 3, 4] == pytest.approx(23.36, abs=5e-3)
    weights = {(r["mesh"], r["tasks"]): r["thesis_share_of_node00_percent"] for r in tables["weights"]}
    assert weights[3, 8] == pytest.approx(7.16, abs=5e-3)


@pytest.mark.row("004:E13")
def test_weighted_parts_beat_run_3_and_the_second_round_reaches_equal_work(study, found):
    runs = {(w.mesh, w.kind.storage, w.round): w for w in weighted.results(study.plan, found)}
    assert len(runs) == 12
    for mesh in MESHES:
        assert runs[mesh, "dense", 1].seconds < runs[mesh, "dense", 1].best_seconds
        slow, fast = np.sqrt(0.13), np.sqrt(2 / 7)  # equal time if work is the square of a part
        assert runs[mesh, "dense", 2].share == pytest.approx(slow / (slow + 7 * fast), rel=0.02)
        assert runs[mesh, "csr", 1].share == pytest.approx(0.13 / 2.13, rel=0.02)
        assert runs[mesh, "csr", 1].seconds == pytest.approx(runs[mesh, "csr", 1].ideal, rel=0.02)
        assert "saves" in runs[mesh, "csr", 1].verdict


@pytest.mark.row("004:E14")
def test_dense_parts_gain_on_one_core_what_their_work_predicts_and_csr_nothing(side, tables):
    assert side.gain("single_cpu", 8) == pytest.approx(1 / side.work(8).total, rel=0.01)
    assert side.gain("single_cpu", 8) == pytest.approx(8, rel=0.01)
    assert side.gain("single_cpu csr", 8) == pytest.approx(1, rel=0.01)
    assert side.gain("cluster1 csr", 8) == pytest.approx(8, rel=0.01)
    row = tables["storage"][3]
    assert row["predicted_gain_one_core"] == pytest.approx(8, rel=0.01)
    assert row["thesis_dense_gain_one_core"] == pytest.approx(3.188, abs=1e-3)


@pytest.mark.row("004:F17", "004:E0", "004:E2", "004:E5", "004:E7", "004:E8", "004:E11", "004:9.3")
@pytest.mark.slow
def test_the_page_has_every_experiment_every_table_and_every_plot(study, unrendered):
    html = publish(study.path, "study", outcome(study, TIMERS)).read_text()
    for number in (*range(5), *range(6, 15)):  # E5 needs events
        assert f">E{number} " in html
    tables = {p.stem for p in (study.path / "report" / "tables").iterdir()}
    assert {
        "runs",
        "weighted",
        "storage",
        "totals",
        "slowness",
        "pairs",
        "parts",
        "timers",
        "meshes",
    } <= tables
    assert len(list((study.path / "report" / "plots").glob("*.svg"))) == 16  # without bodies and time lines
    assert html.count('<p class="finding">') == html.count("<figure>") == 16
    assert html.count("SYNTHETIC") >= 2
    header = (study.path / "report" / "tables" / "runs.csv").read_text().splitlines()[0].split(",")
    assert header[:5] == [
        "run",
        "tasks_on_node00",
        "tasks_on_node8",
        "mesh_1_total_s",
        "thesis_mesh_1_total_s",
    ]


def test_time_lines_say_on_how_many_processors_two_tasks_ran(study, found, monkeypatch):
    drawn = Plot("events", "any", "Events of each rank.", "")
    monkeypatch.setattr(pairs_study.gantt, "time_lines", lambda results: [drawn])
    (section,) = (s for s in compose(study, found, {}, ("E5",)) if s.plots)
    assert [(plot.name, plot.title) for plot in section.plots] == [
        ("time_line-smp", "Two tasks on two processors, Mesh 1 (Fig. 5.20)"),
        ("time_line-single_cpu", "Two tasks on one processor, Mesh 1 (Fig. 5.21)"),
    ]
    assert all(plot.caption.endswith(". Events of each rank.") for plot in section.plots)


@pytest.mark.slow
def test_a_page_of_nothing_says_so_without_failing(tmp_path, not_laid_out):
    empty = PlantedStudy(tmp_path, StudyPlan(emulated(2), QUICK), "fembench study")
    assert publish(tmp_path, "study", outcome(empty, {})).is_file()


def test_no_two_cases_of_one_campaign_are_one_run(study):
    for effort in (QUICK, FULL):
        plan = StudyPlan(emulated(2), effort)
        wants = plan.wants()
        for where in CAMPAIGNS:
            cases = [w.case for w in wants if w.where == where]
            assert len(set(cases)) == len(cases) > 0
