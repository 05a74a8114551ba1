"""The closed form from a machine profile, beside the simulation of the same run."""

import dataclasses

import msgspec
import pytest
from planted_environment import on_hosts_with
from planted_machine import planted_machine, planted_network
from planted_runs import study_of

from fembench.base.errors import InputError
from fembench.model.closed_form_prices import bounded
from fembench.records.case import Case
from fembench.records.network import ColdCost

HOSTS = ("a", "a", "b", "b")


def study(speeds, hosts, network=None, **options):
    return study_of(planted_machine(speeds, hosts, network=network, **{"noise": 0.02} | options))


def bounded_case(study, case, iterations):
    return bounded(study, study.workload(case), iterations)


def test_one_rank_takes_what_its_product_and_updates_take():
    alone = study([1.0], ("a",), noise=0.0)
    for storage in ("sym", "csr"):  # csr has its inner products in passes of their own
        case = Case.of(mesh="m1", storage=storage)
        found, simulated = bounded_case(alone, case, 100), alone.predict(case)
        assert found.expected.iteration == pytest.approx(simulated.iteration, rel=1e-6)
        assert found.expected.seconds == pytest.approx(
            simulated.assembly + 100 * simulated.iteration, rel=1e-6
        )


@pytest.mark.parametrize("recurrence", ["standard", "single-reduction"])
@pytest.mark.parametrize("precond", ["chebyshev", "two-level", "multigrid"])
def test_preconditioners_take_what_the_simulation_says(precond, recurrence):
    alone, two = study([1.0], ("a",), noise=0.0), study([1.0, 1.0], ("a", "b"), noise=0.0)
    for of, ranks, rel in ((alone, 1, 1e-6), (two, 2, 0.05)):
        case = Case.of(mesh="s", ranks=ranks, precond=precond, recurrence=recurrence)
        found, simulated = bounded_case(of, case, 10), of.predict(case)
        assert found.expected.iteration == pytest.approx(simulated.iteration, rel=rel)
        assert ("max[p](small_grids[p])" in found.expression) == (precond == "multigrid")


@pytest.mark.row("000:C2")
def test_four_ranks_of_unequal_hosts_agree_with_the_simulation():
    four = study([1, 1, 0.5, 0.5], HOSTS)
    case = Case.of(mesh="m3", ranks=4)
    found, simulated = bounded_case(four, case, 50), four.predict(case)
    assert found.expected.iteration == pytest.approx(simulated.iteration, rel=0.1)
    assert found.iteration.low < simulated.iteration * 1.05
    assert 0 < found.iteration.half_width < 0.1
    assert found.terms["T_0"].high >= found.terms["T_core_0"].low


def test_visits_that_others_disturbed_leave_the_expected_time_where_the_simulation_has_it():
    disturbed = study([1, 1], ("a", "a"), noise=0.0, common=[1, 1, 1, 1, 1, 0.4, 0.3, 0.5])
    case = Case.of(mesh="m3", ranks=2)
    found, simulated = bounded_case(disturbed, case, 50), disturbed.predict(case)
    assert found.expected.iteration == pytest.approx(simulated.iteration, rel=0.05)
    assert found.expected.seconds == pytest.approx(simulated.assembly + 50 * simulated.iteration, rel=0.05)
    assert found.iteration.low <= found.expected.iteration < 0.7 * found.iteration.high


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("part", ["send", "latency", "receive"])
def test_each_message_is_priced_by_what_was_computed_before_it_as_in_the_simulation(part, overlap):
    """Computing adds a multiple of its time to the next message, on two ranks with equal parts."""
    cold = {"send": 0.0, "latency": 0.0, "receive": 0.0} | {part: 1.0}
    one = planted_network(2)
    classes = tuple(
        msgspec.structs.replace(each, cold=(ColdCost(m=8, computed=1.0, swept=True, **cold),))
        for each in one.classes
    )
    case, added = Case.of(mesh="box:4x4x8", ranks=2, overlap=overlap), []
    for network in (one, msgspec.structs.replace(one, classes=classes)):
        two = study([1.0, 1.0], ("a", "b"), network, noise=0.0)
        closed = bounded_case(two, case, 50).expected.iteration
        added.append((closed, two.predict(case).iteration))
    closed, simulated = (after - before for before, after in zip(*added))
    assert simulated > 1e-6
    assert closed == pytest.approx(simulated, rel=0.03)


def test_messages_that_overlap_cost_less():
    four = study([1, 1, 1, 1], HOSTS)
    together = bounded_case(four, Case.of(mesh="m3", ranks=4), 10)
    after = bounded_case(four, Case.of(mesh="m3", ranks=4, overlap=False), 10)
    assert together.expected.iteration < after.expected.iteration
    assert "max[p](product[p], halo[p], latency[p])" in together.expression
    assert "max[p](product[p]) + max[p](halo[p], latency[p])" in after.expression


def on_two_cores(ranks):
    """A study of these ranks on one host of two cores."""
    return study_of(on_hosts_with(study([1.0] * ranks, ("a",) * ranks, noise=0.0).profile, cores=2))


@pytest.mark.row("000:7.3")
def test_twice_as_many_ranks_as_cores_take_the_sum_of_their_work_over_the_cores():
    """Four ranks on two cores, from a profile of two ranks. By hand: their work, at the speed that a rank has
    while both cores compute, over two; and the messages."""
    case = Case.of(mesh="s", ranks=4)
    shared = dataclasses.replace(on_two_cores(2), edits=("share:2",))
    work = shared.workload(case)
    each = [
        shared.rates.seconds(0, "product sym", units, 2) + shared.rates.seconds(0, "updates", dofs, 2)
        for units, dofs in zip(work.product_units(), work.parts.dofs)
    ]
    found = bounded(shared, work, 50).expected.iteration
    assert found == pytest.approx(sum(each) / 2, rel=0.1)
    assert max(each) < 0.6 * found  # as if each rank had its own core
    with pytest.raises(InputError, match="expected method = analytic"):
        shared.predict(case)


def test_ranks_that_the_profile_measured_together_are_not_slowed_again():
    """A profile of four ranks on two cores: its speeds include the sharing."""
    alone = study([1.0] * 4, ("a",) * 4, noise=0.0)  # on eight cores
    case = Case.of(mesh="m3", ranks=4)
    found, before = (bounded_case(s, case, 10).expected.iteration for s in (on_two_cores(4), alone))
    assert found == before
