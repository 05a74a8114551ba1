"""The study thesis-000: tables with both numbers, plots, and a page, without MPI."""

import csv

import pytest

from fembench.studies.page import publish
from fembench.studies.pamela.park import experiment
from fembench.studies.programs.cases import case_of
from fembench.studies.thesis_000 import farm_printed, farm_study
from fembench.studies.thesis_000.farm_live import QUICK, settings_of


@pytest.fixture(scope="module")
def results():
    pi = experiment("pi")
    return dict.fromkeys([*farm_printed.KINDS, *farm_printed.BEYOND], pi)


@pytest.fixture(scope="module")
def page(results, tmp_path_factory, unrendered):
    return publish(tmp_path_factory.mktemp("study"), "study", farm_study.outcome(results, []))


def rows(page, name):
    with open(page.parent / "tables" / f"{name}.csv", newline="") as stream:
        return list(csv.DictReader(stream))


def test_means_stand_beside_those_of_the_thesis(page):
    found = {r["platform"]: r for r in rows(page, "means")}
    assert len(found) == 28
    assert float(found["pi_A"]["thesis_mean_error_percent"]) == pytest.approx(2.24, abs=0.01)
    assert float(found["primQ_D"]["thesis_mean_error_percent"]) == pytest.approx(6.02, abs=0.01)
    assert float(found["mat_A"]["thesis_hits"]) == 10
    assert 0 <= float(found["pi_A"]["mean_error_percent"]) < 5
    assert found["mat by phase_A"]["thesis_hits"] == ""


@pytest.mark.row("000:R1..R5")
def test_every_run_of_the_thesis_is_in_a_table(page):
    found = rows(page, "runs_mat")
    assert len(found) == 20
    last = found[-1]
    assert [float(last[f"thesis_run_{k}_s"]) for k in range(1, 5)] == [404, 387, 372, 390]
    assert float(last["t_min_s"]) < float(last["t_max_s"])


@pytest.mark.row("000:R1..R5")
def test_the_page_has_its_plots_and_labels(page):
    text = page.with_name("report.md").read_text()
    assert "SYNTHETIC" in text
    assert {p.stem for p in (page.parent / "plots").iterdir()} == {
        f"{what}_{name}" for what in ("times", "hits") for name in farm_printed.KINDS
    }
    assert "Findings" in page.read_text()


def test_live_machines_fit_on_the_cores():
    case = case_of(settings_of("pi", 4, 2, QUICK), None)
    speeds = [float(s) for s in case.emulate.split(",")]
    assert len(speeds) == 5
    assert sum(speeds[1:]) / case.dilate < 2
