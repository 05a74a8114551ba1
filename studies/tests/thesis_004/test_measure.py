"""Real measurements of small cases, each in its place; cases with a record are not run again."""

import os

import pytest

from fembench.base.errors import InputError
from fembench_studies.thesis_004.machines import emulated, given
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import FULL, QUICK, StudyPlan

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plan():
    return StudyPlan(emulated(2), QUICK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def wants(plan):
    return [plan.sparse("m1"), plan.case("single_cpu", 1, 2), plan.case("node00", 1, 1)]


@pytest.fixture(scope="module")
def study(plan, folder, wants):
    made, before = StudyFolder(folder, plan, "fembench study"), dict(os.environ)
    made.measure(wants, lambda done: None)
    assert dict(os.environ) == before
    return made


def test_every_case_leaves_a_record_in_the_folder_of_its_campaign(study, wants, folder):
    assert not study.failed
    assert [len(study.records[w]) for w in wants] == [1, 1, QUICK.again]
    for where in ("sparse", "one-core", "hosts"):
        assert (folder / where / "campaign.toml").exists()
        assert list((folder / where / "runs").glob("*.json"))


@pytest.mark.row("004:F12")
def test_both_tasks_of_one_core_may_run_on_that_core_alone(study, wants):
    affinity = study.records[wants[1]][0].environment.affinity
    assert affinity[0] == affinity[1]
    assert len(affinity[0]) == 1


def test_only_emulated_runs_are_synthetic(study, wants):
    synthetic = [study.records[w][0].environment.synthetic for w in wants]
    assert synthetic[:2] == ["", ""]
    assert "0.13" in synthetic[2]


def test_times_are_scaled_to_the_iterations_that_the_tolerance_needs(study, wants):
    found = StudyRecords(study.records)
    assert found.iterations["m1"] == pytest.approx(211, abs=2)
    record, phases = study.records[wants[2]][0], found.phases(wants[2])
    assert record.solve.iterations == QUICK.iterations["m1"]
    assert phases.cg == pytest.approx(phases.iteration * found.iterations["m1"])


def test_a_second_start_runs_nothing_again(study, plan, folder, wants):
    again = StudyFolder(folder, plan, "fembench study")
    assert again.missing(wants) == 0
    started = []
    again.measure(wants, lambda done: started.append(done.outcome))
    assert started == [None] * (2 + QUICK.again)
    assert again.records == study.records


def test_a_folder_of_another_plan_is_refused(study, folder):
    with pytest.raises(InputError, match="another campaign"):
        StudyFolder(folder, StudyPlan(emulated(2), FULL), "fembench study").folder("hosts")


def test_on_given_hosts_tasks_run_on_the_cores_that_the_experiment_is_about(tmp_path):
    plan = StudyPlan(given(["localhost:2"], ["127.0.0.1"]), QUICK)
    wants = [plan.case(where, 1, 2) for where in ("smp", "single_cpu")]
    made = StudyFolder(tmp_path, plan, "fembench study")
    made.measure(wants, lambda done: None)
    assert not made.failed
    two, one = (made.records[w][0].environment for w in wants)
    assert [len(cpus) for cpus in (*two.affinity, *one.affinity)] == [1, 1, 1, 1]
    assert two.affinity[0] != two.affinity[1]
    assert one.affinity[0] == one.affinity[1]
    assert one.oversubscribed
    assert not two.oversubscribed
