"""Hosts, real or emulated, and the cores and speeds of their tasks."""

import pytest

from fembench.base.errors import InputError
from fembench.records.case import Case
from fembench_studies.thesis_004.machines import confinement, emulated, given, host_file, speeds
from fembench_studies.thesis_004.plan import CORES, QUICK, StudyPlan


def test_tasks_on_one_host_share_its_processors():
    machines = emulated(2)
    assert speeds(machines.mixed(1, 7)) == pytest.approx((0.13, *[2 / 7] * 7))
    assert speeds(machines.mixed(2, 1)) == pytest.approx((0.065, 0.065, 1.0))


def test_emulated_ranks_never_need_more_than_the_cores_that_are_here():
    for cores in (1, 2, 4, 16, 64):
        machines = emulated(cores)
        assert 8 / machines.dilate <= cores
        assert machines.dilate >= 1
    assert emulated(64).dilate == 1


def test_an_emulated_case_names_its_placement_and_carries_its_speeds():
    machines = emulated(2)
    case = machines.place(Case.of(mesh="m1"), machines.mixed(1, 2))
    assert (case.placement.ranks, case.output.label, case.synthetic.emulate) == (
        3,
        "node00*1 node8*2",
        "0.13,1,1",
    )
    assert case.synthetic.dilate > machines.dilate  # a core of today is too fast for the smallest mesh
    assert machines.place(Case.of(mesh="m"), machines.mixed(1, 2)).synthetic.dilate == machines.dilate


@pytest.mark.row("004:F13")
def test_a_case_on_given_hosts_is_not_emulated_and_fills_them_in_order():
    machines = given(["a:4", "b"], ["c"])
    case = machines.place(Case.of(mesh="m1"), machines.mixed(2, 3))
    assert (case.synthetic.emulate, case.synthetic.dilate, case.placement.ranks) == ("", 1.0, 5)
    assert host_file(machines.mixed(2, 3)) == "c slots=2\na slots=3\n"
    assert machines.one_each(machines.fast, 3) is None
    assert machines.one_each(machines.fast, 2) is not None


@pytest.mark.row("004:2.8")
def test_tasks_have_a_core_each_or_share_those_that_their_host_gives():
    machines = given(["a:2"], ["c"])
    assert confinement(machines.mixed(1, 2)) == ((0,), (0,), (1,))
    assert confinement(machines.mixed(2, 3)) == ((0,), (0,), (0, 1), (0, 1), (0, 1))


def test_with_hosts_given_no_run_is_elsewhere_and_one_host_experiments_are_on_the_first_fast_one():
    plan = StudyPlan(given(["a:4", "b"], ["c", "d"]), QUICK)
    for want in plan.wants():
        assert sum(tasks for _, tasks in want.placement) == want.case.placement.ranks
        if want.where != "hosts":
            ((host, _),) = want.placement
            assert (host.name, host.cores) == ("a", CORES.get(want.where, 4))
    assert all(not w.placement for w in StudyPlan(emulated(2), QUICK).wants() if w.where != "hosts")


def test_runs_on_other_hosts_or_on_another_number_of_cores_are_not_the_same_case():
    plans = [StudyPlan(given([fast], ["c"]), QUICK) for fast in ("a:2", "a:4", "b:2")]
    for make in (
        lambda plan: plan.on_hosts("m1", plan.machines.mixed(1, 2)),
        lambda plan: plan.sparse("m1"),
    ):
        assert len({make(plan).case for plan in plans}) == 3
    assert len({plan.case("single_cpu", 1, 2).case for plan in plans}) == 2


@pytest.mark.parametrize(
    ("fast", "slow"),
    [([], ["c"]), (["a"], []), (["a"], ["a"]), (["a:x"], ["b"]), ([":2"], ["b"]), (["a:1"], ["b"])],
)
def test_hosts_that_make_no_pair_are_refused(fast, slow):
    with pytest.raises(InputError):
        given(fast, slow)
