"""Studies and their experiments by name, listed and explained."""

import subprocess
import sys

import pytest
from planted_study import TIMERS, PlantedStudy

from fembench.base.errors import AllocationLostError, InputError
from fembench.cli.main import main
from fembench.report.table import to_csv
from fembench_studies.attempts import Attempts
from fembench_studies.bsp.bsp_job import ProgramTimes
from fembench_studies.catalogue import STUDIES, owner_of, study_named
from fembench_studies.study import StudyRequest, report_name, wanted
from fembench_studies.thesis_000 import farm_study
from fembench_studies.thesis_000.farm_live import PROGRAMS
from fembench_studies.thesis_000.farm_printed import KINDS
from fembench_studies.thesis_002 import bsp_study
from fembench_studies.thesis_002.bsp_plan import QUICK as BSP_QUICK
from fembench_studies.thesis_002.bsp_plan import scenarios
from fembench_studies.thesis_004 import weighted
from fembench_studies.thesis_004.machines import emulated
from fembench_studies.thesis_004.pairs_study import compose
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import EXPERIMENTS, QUICK, StudyPlan

PAIRS = study_named("thesis-004")


def sections(folder, only):
    """title -> CSV of every table, from the cases of these experiments only."""
    study = PlantedStudy(folder, StudyPlan(emulated(2), QUICK), "fembench study")
    study.measure(study.plan.wants(only))
    for round_ in weighted.ROUNDS if wanted("E13", only) else ():
        study.measure(weighted.wants(study.plan, StudyRecords(study.records), round_))
    found = compose(study, StudyRecords(study.records), TIMERS, only)
    return {s.title.split()[0]: [to_csv(t) for t in s.tables] for s in found}


@pytest.mark.row("004:9.2")
@pytest.mark.slow
def test_an_experiment_alone_has_the_numbers_that_it_has_in_the_whole_study(tmp_path, undrawn):
    whole = sections(tmp_path, ())
    for name in PAIRS.names:
        if name not in ("E0", "E5"):  # E0 lists the hosts of all runs, E5 needs events
            alone = sections(tmp_path, (name,))
            assert alone[name] == whole[name], name
            assert set(alone) == {"Findings", name}


def test_names_come_in_the_order_of_the_study_and_unknown_ones_are_refused():
    assert PAIRS.chosen("") == ()
    assert PAIRS.chosen("E10, E7,") == ("E7", "E10")
    assert report_name(PAIRS.chosen("E7")) == "report-E7"
    for text in ("E99", ",", "e7"):
        with pytest.raises(InputError, match=r"thesis-004: unknown experiment .*expected some of E0, E1"):
            PAIRS.chosen(text)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_experiments_are_listed_and_a_wrong_name_is_one_line(study, capsys, output):
    listed = output("study", study.name, "--list").splitlines()
    assert [line.split()[0] for line in listed] == list(study.names)
    assert main(["study", study.name, "nothing"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_study_is_listed_without_importing_what_measures_it_or_mpi():
    code = (
        "import sys; from fembench.cli.main import main; main(['study', 'thesis-004', '--list']); "
        "print([n for n in sys.modules if n.startswith(('mpi4py', 'fembench_studies.thesis'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_declared_experiments_are_those_that_the_studies_measure():
    assert list(study_named("thesis-002").names) == [s.key for s in scenarios()]
    assert [*EXPERIMENTS, "E1"] == sorted(PAIRS.names, key=[*EXPERIMENTS, "E1"].index)
    assert set(study_named("thesis-000").names) == {*KINDS, *(f"mpi-{name}" for name in PROGRAMS)}
    assert all(callable(study.measure) for study in STUDIES)


def test_without_a_word_every_study_and_tool_has_its_sentence(output):
    told = output("study")
    for study in STUDIES:
        assert f"  {study.name}  {study.sentence}\n" in told
    assert all(f"\n  {tool} " in told for tool in ("app NAME", "pasl FILE", "schedule GRAPH"))


def test_an_explanation_says_on_one_screen_what_was_done_what_is_done_how_long_it_takes(output):
    told = output("study", "explain", "thesis-004")
    assert [
        told.index(text) for text in ("What the source did:", "What is measured again", "How long it takes")
    ]
    assert "Ferreira" in told
    assert told.count("\n") <= 24


def test_an_experiment_is_explained_by_its_name_alone(output):
    for words in (("explain", "E7"), ("explain", "thesis-004", "E7")):
        told = output("study", *words)
        assert "E7: communication inside CG" in told
        assert "fembench study thesis-004 E7" in told
        assert "What the source did" not in told


def test_every_experiment_has_one_study_and_a_typo_gets_the_nearest_name(capsys):
    for study in STUDIES:
        assert all(owner_of(name) is study for name in study.names)
    assert main(["study", "rings"]) == 2
    told = capsys.readouterr().err
    assert told == "fembench: unknown study or experiment 'rings'; did you mean 'ring'?\n"


def test_a_scenario_that_the_quick_study_leaves_out_can_be_asked_for(tmp_path, monkeypatch):
    started = []

    def instead(job, folder):
        started.append(job)
        return ProgramTimes(job=job, cells=())

    monkeypatch.setattr(bsp_study, "launch_program", instead)
    monkeypatch.setattr(bsp_study, "summary", lambda scenario, kept: "")
    request = StudyRequest(tmp_path, quick=True, cores=2, only=("13-i",))
    todo = bsp_study.chosen(BSP_QUICK, request.only)
    found = bsp_study.times_of(request, todo, BSP_QUICK, Attempts(lambda text: None))
    assert [s.key for s in found] == ["13-i"]
    assert len(started) == 1


def test_one_application_of_the_virtual_park_is_computed_alone():
    assert set(farm_study.virtual(("mat",))) == {"mat", "mat by phase"}
    assert not farm_study.virtual(("mpi-pi",))


def test_a_study_stops_if_the_batch_system_takes_its_hosts_away():
    def lose():
        raise AllocationLostError("Slurm job 7 has ended")

    attempts = Attempts(lambda text: None)
    with pytest.raises(AllocationLostError):
        attempts.each([("a", lose), ("b", lambda: pytest.fail("it was made"))], str)


def test_a_failed_measurement_is_told_and_the_others_are_made():
    def fail():
        raise InputError("no such host")

    told = []
    attempts = Attempts(told.append)
    assert attempts.each([("a", lambda: 1), ("b", fail), ("c", lambda: 3), ("d", lambda: None)], str) == [
        1,
        3,
    ]
    assert told == ["[1/4] 1", "[2/4] FAILED: b: no such host", "[3/4] 3"]
    assert attempts.failed == ["b: no such host"]


def test_an_option_of_one_study_names_it(capsys):
    assert main(["study", "--fast"]) == 2
    assert capsys.readouterr().err == "fembench: --fast goes with thesis-004; see fembench study --help\n"
