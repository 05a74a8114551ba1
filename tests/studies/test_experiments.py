"""Single experiments of a study, by name."""

import pytest
from planted_study import PlantedStudy
from test_study import TIMERS

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.report.plots.canvas import Plot
from fembench.studies import charts, experiments, page
from fembench.studies.bsp.bsp_job import ProgramTimes
from fembench.studies.experiments import EXPERIMENTS, chosen, report_name
from fembench.studies.thesis_000 import farm_study
from fembench.studies.thesis_002 import bsp_study
from fembench.studies.thesis_002.bsp_plan import QUICK as BSP_QUICK
from fembench.studies.thesis_004 import weighted
from fembench.studies.thesis_004.machines import emulated
from fembench.studies.thesis_004.phase_means import StudyRecords
from fembench.studies.thesis_004.plan import QUICK, StudyPlan


def sections(folder, only):
    """title -> CSV of every table, from the cases of these experiments alone."""
    study = PlantedStudy(folder, StudyPlan(emulated(2), QUICK), "fembench reproduce")
    study.measure(study.plan.wants(only))
    for round_ in weighted.ROUNDS if experiments.wanted("E13", only) else ():
        study.measure(weighted.wants(study.plan, StudyRecords(study.records), round_))
    found = page.compose(study, StudyRecords(study.records), TIMERS, only)
    return {s.title.split()[0]: [page.table.to_csv(t) for t in s.tables] for s in found}


@pytest.mark.slow
def test_an_experiment_alone_has_the_numbers_that_it_has_in_the_whole_study(tmp_path, monkeypatch):
    for kind in ("grouped", "curves", "stacked"):  # drawing takes ten times as long as all the rest
        monkeypatch.setattr(
            charts, kind, lambda name, title, caption, *_, **__: Plot(name, title, caption, "")
        )
    whole = sections(tmp_path, ())
    for name in EXPERIMENTS["thesis-004"]:
        if name not in ("E0", "E5"):  # E0 lists the hosts of all runs, E5 needs events
            alone = sections(tmp_path, (name,))
            assert alone[name] == whole[name], name
            assert set(alone) == {"Findings", name, "Every"}


def test_names_come_in_the_order_of_the_study_and_unknown_ones_are_refused():
    assert chosen("thesis-004", "") == ()
    assert chosen("thesis-004", "E10, E7,") == ("E7", "E10")
    assert report_name(chosen("thesis-004", "E7")) == "report-E7"
    for text in ("E99", ",", "e7"):
        with pytest.raises(InputError, match="thesis-004 has E0, E1"):
            chosen("thesis-004", text)


@pytest.mark.parametrize("study", EXPERIMENTS)
def test_experiments_are_listed_and_a_wrong_name_is_one_line(study, capsys):
    assert main(["reproduce", study, "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(EXPERIMENTS[study])
    assert main(["reproduce", study, "--only", "nothing"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_scenario_that_the_quick_study_leaves_out_can_be_asked_for(tmp_path, monkeypatch):
    started = []

    def instead(job, folder):
        started.append(job)
        return ProgramTimes(job=job, cells=())

    monkeypatch.setattr(bsp_study, "launch_program", instead)
    monkeypatch.setattr(bsp_study, "summary", lambda scenario, kept: "")
    found = bsp_study.measure(tmp_path, BSP_QUICK, 2, lambda text: None, only=("13-i",))
    assert [(s.table, s.name) for s in found] == [("13", "i")]
    assert len(started) == 1


def test_one_application_of_the_virtual_park_is_computed_alone():
    assert set(farm_study.virtual(("mat",))) == {"mat", "mat by phase"}
    assert not farm_study.virtual(("mpi-pi",))
