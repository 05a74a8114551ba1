"""The study thesis-003: the errors that its tables imply, and a page from planted runs, without MPI."""

import csv
import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest
from planted_calibration import planted_calibration

from fembench.model.measures import makespan_error, process_error
from fembench_studies.attempts import Attempts
from fembench_studies.page import publish
from fembench_studies.programs import kept
from fembench_studies.programs.cases import case_of
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.thesis_003 import slaves_live, slaves_study

TESTS = Path(__file__).parents[3] / "tests"
COST = {"integral": ("trapezoid", 1e-7), "product": ("row_400", 5e-3)}
MEASURES = (
    "error_of_printed_mean_percent",
    "makespan_error_percent",
    "per_process_mean_absolute_error_percent",
)


def calibration(program):
    name, cost = COST[program]
    case = case_of(slaves_live.settings_of(program, 8, 2, slaves_live.QUICK), None)
    messages = {"8": ((), *[(1e-4,)] * 7), "524288": ((), *[(1e-3,)] * 7)}
    return planted_calibration(case, {name: ((cost,),) * 8}, messages)


def ran(program, processes, slower=1.0):
    record = calibration(program)
    case = case_of(slaves_live.settings_of(program, processes, 2, slaves_live.QUICK), record)
    each = slower * slaves_live.SIZE[program] / (processes - 1) * COST[program][1]
    busy = ((0.0,) * 5, *[(each,) * 5] * (processes - 1))
    done = ((0,) * 5, *[(1,) * 5] * (processes - 1))
    made = msgspec.structs.replace(
        record, case=case, samples={}, messages={}, seconds=(each + 0.02,) * 5, busy=busy, done=done
    )
    return slaves_live.live_of(made, record)


@pytest.fixture(scope="module")
def found():
    return [ran("integral", 8), *(ran("product", p) for p in (2, 4, 8))]


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    return publish(tmp_path_factory.mktemp("study"), "study", slaves_study.outcome(found))


def rows(page, name):
    with open(page.parent / "tables" / f"{name}.csv", newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_plot_of_the_page_has_a_sentence_on_what_it_shows(page):
    html = page.read_text(encoding="utf-8")
    assert html.count('<p class="finding">') == html.count("<figure>") > 0


def test_the_thesis_tables_give_the_errors_that_follow_from_them(found):
    with open(TESTS / "data" / "seed003_derived_errors.csv", newline="") as stream:
        theirs = list(csv.DictReader(stream))
    for live, row in zip(found, theirs, strict=True):
        simulated, real = slaves_study.thesis_times(live)
        mine = slaves_study.errors(real, simulated)
        for got, name in zip(mine, MEASURES):
            assert got == pytest.approx(float(row[name]), abs=0.4), name
        assert makespan_error(real, simulated) == mine[1]


def test_the_graph_knows_what_each_process_does(found):
    for live in found:
        assert process_error(live.real[1:], live.graph[1:]) < 1e-6
        assert live.graph[0] == pytest.approx(live.real[0], rel=0.1)


@pytest.mark.row("003:5sim")
def test_drawn_loops_are_exact_for_one_slave_and_scatter_for_seven(found):
    two, eight = found[1], found[3]
    assert np.allclose(two.drawn, two.graph, rtol=1e-9)
    assert eight.drawn[:, 1:].std() > 0.2 * eight.graph[1]
    assert eight.turns[0] == 0
    assert eight.turns.max() <= 1


@pytest.mark.row("003:Fig4.1-4.6")
def test_messages_are_those_of_the_thesis(page):
    for row, (p, n) in zip(rows(page, "messages"), ((2, 2), (4, 6), (8, 14)), strict=True):
        assert int(float(row["processes"])) == p
        names = ("run", "graph", "executable_sends", "executable_receives", "thesis_sends", "thesis_receives")
        assert [float(row[name]) for name in names] == [n] * 6


@pytest.mark.row("003:T4.1-4.5")
def test_the_page_has_tables_with_both_numbers(page):
    errors = {r["platform"]: r for r in rows(page, "errors")}
    assert float(
        errors["product, 2 processes: drawn loops"]["thesis_makespan_error_percent"]
    ) == pytest.approx(51.5, abs=0.1)
    assert abs(float(errors["product, 8 processes: graph"]["process_error_percent"])) < 3
    assert float(rows(page, "times_integral_8")[0]["thesis_real_s"]) == 3.11
    speedups = {int(float(r["processes"])): r for r in rows(page, "speedups")}
    assert float(speedups[8]["thesis_real_makespan"]) == pytest.approx(4.85, abs=0.01)
    assert float(speedups[4]["real_makespan"]) == pytest.approx(3, rel=0.1)
    assert {p.stem for p in (page.parent / "plots").iterdir()} == {"times", "loops"}
    assert "SYNTHETIC" in page.with_name("report.md").read_text()


@pytest.mark.row("003:A14")
def test_claims_are_printed_with_their_limits_and_decide_whether_the_study_is_valid(found):
    outcome = slaves_study.outcome(found)
    assert outcome.good
    (made,) = outcome.judged
    assert made.name == "claims"
    assert set(made["most"]) >= {5.0, 10.0, 15.0}
    assert set(made["kept"]) == {"yes"}
    late = slaves_study.outcome([*found[:3], ran("product", 8, slower=1.25)])
    assert not late.good
    assert "product, 8 processes: makespan" in {claim.what for claim in late.claims if claim.verdict == "NO"}


@pytest.mark.parametrize(
    ("faster", "judged"), [(1.04, {5, 10, 15}), (1.07, {10, 15}), (1.12, {15}), (1.17, set())]
)
def test_each_claim_is_judged_only_if_the_machine_changed_by_less_than_its_limit(found, faster, judged):
    live = found[3]
    cost = COST["product"][1]
    then = msgspec.structs.replace(live.calibration, learned={"row_400": ((cost, 0.5 * cost, 2 * cost),) * 8})
    now = msgspec.structs.replace(live.record, learned={"row_400": ((cost / faster,) * 6,) * 8})
    claims = slaves_study.claims([dataclasses.replace(live, record=now, calibration=then)])
    assert {c.limit for c in claims[:3] if c.verdict == "yes"} == judged
    assert {c.limit for c in claims[:3] if c.verdict.startswith("INVALID: this machine did a")} == {
        5,
        10,
        15,
    } - judged
    assert claims[3].reason == claims[2].reason


def test_a_wrong_value_judges_no_claim(found):
    wrong = dataclasses.replace(found[0], record=msgspec.structs.replace(found[0].record, error=2.0))
    assert {c.verdict for c in slaves_study.claims([wrong])} == {"INVALID: the program found a wrong value"}


def test_every_run_is_predicted_from_a_calibration_of_as_many_processes(tmp_path, monkeypatch):
    launched = []

    def launch(case, *, id, scratch, predicted=None, calibrate=0):
        launched.append((case.program, case.ranks, bool(calibrate)))
        (name, cost), others = COST[case.program], case.ranks - 1
        messages = {"8": ((), *[(1e-4,)] * others), "524288": ((), *[(1e-3,)] * others)}
        made = planted_calibration(case, {name: ((cost,),) * case.ranks} if calibrate else {}, messages)
        times = ((0.0,) * 5, *[(1.0,) * 5] * others)
        return msgspec.structs.replace(
            made, id=id, predicted=predicted, seconds=(1.0,) * 5, busy=times, done=times
        )

    monkeypatch.setattr(kept, "launch", launch)
    found = slaves_live.measure(ProgramRuns(tmp_path), slaves_live.QUICK, 2, Attempts(lambda line: None))
    runs = [("integral", 8), ("product", 2), ("product", 4), ("product", 8)]
    assert [(live.record.case.program, live.calibration.case.ranks) for live in found] == runs
    assert launched == [(*run, calibrating) for run in runs for calibrating in (True, False)]
