"""What an iteration of each recurrence and preconditioner consists of, and what that costs."""

import dataclasses

import msgspec
import pytest
from planted_machine import planted_machine
from planted_runs import ITERATIONS, even_prices, planted_run, run_of, study_of

from fembench.base.errors import InputError
from fembench.methods.recipe import recipe
from fembench.model.cg import Correction, cg_graph, check_supported, prices
from fembench.model.collectives import BEGUN, expand, halves
from fembench.model.correct import learn
from fembench.model.engine import simulate
from fembench.model.graph import Collective, Compute, Receive, Send, Wait
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.model.workload import workload
from fembench.records.case import Case
from fembench.records.phases import ALLREDUCE, PRECOND


def test_the_cost_of_multigrid_and_of_petsc_options_is_not_known():
    with pytest.raises(InputError, match="precond gamg"):
        recipe(Case.of(solver="petsc", storage="baij", precond="gamg").method)
    work = workload(Case.of(mesh="m1", solver="petsc", storage="baij", petsc_options="-ksp_type cr"))
    with pytest.raises(InputError, match="-ksp_type"):
        check_supported(work, Correction(solver="petsc"))


def body(case, **changes):
    work = workload(case)
    return cg_graph(work, even_prices(case.placement.ranks, **changes), 5).programs[0][-1].body


def test_chebyshev_multiplies_and_exchanges_inside_the_preconditioner():
    plain = body(Case.of(mesh="m1", ranks=2))
    price = {"precond": 1e-4, "precond_product": 1e-3, "precond_products": 3}
    found = body(Case.of(mesh="m1", ranks=2, precond="chebyshev"), **price)
    sends = [sum(isinstance(e, Send) for e in events) for events in (plain, found)]
    assert sends[1] == (1 + 3) * sends[0]
    spent = sum(e.seconds for e in found if isinstance(e, Compute) and e.phase == PRECOND)
    assert spent == pytest.approx(1e-4 + 3 * 1e-3)


def test_two_levels_gather_six_numbers_of_every_rank():
    found = body(Case.of(mesh="m1", ranks=2, precond="two-level"), precond=1e-4)
    assert [e for e in found if isinstance(e, Collective)][1] == Collective("allgather", 48, ALLREDUCE)


@pytest.mark.parametrize(("mesh", "grids"), [("m1", 1), ("m", 2)])
def test_each_grid_of_multigrid_sends_messages_of_a_quarter_and_rank_0_sums_and_broadcasts(mesh, grids):
    """66 300 nodes of m: the first grid, a seventh of them, is on all ranks; the second on rank 0."""
    plain = body(Case.of(mesh=mesh, ranks=2))
    found = body(Case.of(mesh=mesh, ranks=2, precond="multigrid"), grids=((1e-4, 1e-5),) * (grids - 1))
    (size,) = {e.m for e in plain if isinstance(e, Send)}
    sent = [e.m for e in found if isinstance(e, Send)]
    assert sent == [size] * 4 + [size // 4] * 7 * (grids - 1) + [size] * 3
    kinds = [e.kind for e in found if isinstance(e, Collective)]
    assert sorted(kinds) == ["allreduce", "allreduce", "bcast", "reduce"]


def test_the_work_on_the_grids_of_multigrid_is_priced_and_the_others_wait_for_rank_0():
    """Two ranks that are equally fast at any size: rank 0 works on the second grid of m and below."""
    s = study_of(planted_machine([1.0, 1.0]))
    work = s.workload(Case.of(mesh="m", ranks=2, precond="multigrid"))
    slots, _, _ = s.place(2)
    first, second = prices(work, slots, s.rates)
    nodes = ((work.parts.dofs[0] / 3) ** (1 / 3) / 2 + 0.5) ** 3
    ((passes, product),) = first.grids
    assert product == pytest.approx(s.rates.seconds(0, "product sym", 27 * nodes, 2))
    vectors = s.rates.seconds(0, "updates", 3 * nodes, 2) / 9
    assert passes == pytest.approx(recipe(work.case.method).applied.vectors * vectors)
    assert (first.small > 0, second.small) == (True, 0)
    mesh = first.precond + 6 * first.precond_product
    assert first.preconditioning == pytest.approx(mesh + passes + 6 * product + first.small)
    spent = s.predict(work.case).outcome.busy[:, PRECOND] / 60
    assert spent == pytest.approx([one.preconditioning for one in (first, second)])


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_an_allgather_brings_every_rank_all_parts(ranks):
    event = Collective("allgather", 48, 0)
    programs = [list(expand(event, r, ranks)) for r in range(ranks)]
    for r, program in enumerate(programs):
        assert sum(e.m for e in program if isinstance(e, Receive)) == 48 * (ranks - 1)
        for k, e in enumerate(e for e in program if isinstance(e, Send)):
            theirs = [x for x in programs[e.to] if isinstance(x, Receive)][k]
            assert (theirs.source, theirs.m) == (r, e.m)


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
def test_a_begun_sum_is_the_same_messages_in_two_parts(ranks):
    event = Collective("allreduce", 24, 0)
    for r in range(ranks):
        begun, ended = halves(event, r, ranks)
        plain = tuple(msgspec.structs.replace(e, tag=BEGUN) for e in expand(event, r, ranks))
        assert (*begun, *ended) == plain  # but for the tag, by which nothing else waits for them
        assert not any(isinstance(e, Wait) for e in begun)


def iteration(recurrence, latency):
    """Seconds on two ranks without neighbours, all of whose time is product, updates and sums."""
    work = workload(Case.of(mesh="m1", ranks=2, recurrence=recurrence))
    nobody = msgspec.structs.replace(work.parts, neighbours=((), ()), message_bytes=((), ()))
    graph = cg_graph(dataclasses.replace(work, parts=nobody), even_prices(2), 50)
    machine = even_machine(2, latency=latency, per_byte=0.0, overhead=0.0)
    return simulate(make_plan(graph, machine)).makespan / 50


def test_each_recurrence_waits_for_as_many_sums_as_it_has():
    product, updates, latency = 1e-3, 2e-4, 5e-4
    assert iteration("standard", latency) == pytest.approx(product + updates + 2 * latency)
    assert iteration("single-reduction", latency) == pytest.approx(product + updates + latency)
    assert iteration("pipelined", latency) == pytest.approx(product + updates)  # travels meanwhile
    assert iteration("pipelined", 3e-3) == pytest.approx(3e-3 + updates)


@pytest.mark.parametrize("name", ["chebyshev", "two-level", "multigrid"])
@pytest.mark.parametrize("recurrence", ["standard", "single-reduction", "pipelined"])
def test_preconditioners_have_a_price_and_cost_more_than_none(name, recurrence):
    s = study_of(planted_machine([1.0, 1.0, 0.5]))
    plain, found = (
        s.predict(Case.of(mesh="m2", ranks=3, precond=p, recurrence=recurrence)) for p in ("none", name)
    )
    assert found.iteration > (3 if name == "chebyshev" else 1) * plain.iteration
    assert found.low <= found.iteration <= found.high
    assert found.phases["cg.precond"] > 0


@pytest.mark.parametrize(("dilate", "times"), [(48.0, 3.0), (16.0, 1.0), (1.0, 1.0)])
def test_a_case_dilated_otherwise_than_the_profile_takes_as_much_longer(dilate, times):
    profile = msgspec.structs.replace(planted_machine([1.0, 1.0]), dilate=16.0)
    s = study_of(profile)
    plain, found = (
        prices(workload(case), s.place(2)[0], s.rates)[0]
        for case in (Case.of(mesh="m2", ranks=2), Case.of(mesh="m2", ranks=2, dilate=dilate))
    )
    assert found.assembly == pytest.approx(times * plain.assembly)
    assert found.computing == pytest.approx(times * plain.computing)


@pytest.mark.parametrize(("mesh", "precond", "factor"), [("m2", "chebyshev", 1.5), ("m", "multigrid", 2.0)])
def test_runs_teach_what_a_preconditioner_costs(mesh, precond, factor):
    s = study_of(planted_machine([1.0, 1.0]))
    case = Case.of(mesh=mesh, ranks=2, precond=precond)
    record, result = run_of(s, case, dict.fromkeys(("precond", "precond_product", "grids", "small"), factor))
    found = learn([record], s.rates, s.place)
    assert found.product.value == pytest.approx(1.0, rel=1e-6)
    assert found.precond.value == pytest.approx(factor, rel=1e-6)
    corrected = dataclasses.replace(s, correction=found)
    assert corrected.predict(case).iteration == pytest.approx(result.makespan / ITERATIONS, rel=0.02)


def petsc_profile():
    """One whose bsr is fembench's, by which PETSc's baij is shaped."""
    profile = planted_machine([1.0, 1.0])
    more = [msgspec.structs.replace(s, storage="bsr") for s in profile.speeds if s.storage == "csr"]
    return msgspec.structs.replace(profile, speeds=(*profile.speeds, *more))


def test_petsc_is_predicted_from_its_own_runs_and_refused_without():
    s = study_of(petsc_profile())
    case = Case.of(mesh="m2", ranks=2, solver="petsc", storage="baij")
    with pytest.raises(InputError, match="expected learn = RECORDS of runs with solver petsc"):
        s.predict(case)
    _, machine, _ = s.place(2)
    own, result = planted_run(case, machine, even_prices(2, product=3e-3, dot=1e-4))
    taught = dataclasses.replace(s, correction=learn([own], s.rates, s.place))
    assert taught.predict(case).iteration == pytest.approx(result.makespan / 40, rel=0.02)
    fembench, _ = planted_run(Case.of(mesh="m2", ranks=2), machine, even_prices(2))
    with pytest.raises(InputError, match="own, petsc; expected one solver"):
        learn([own, fembench], s.rates, s.place)
    other = dataclasses.replace(s, correction=learn([fembench], s.rates, s.place))
    with pytest.raises(InputError, match="no speeds of PETSc"):
        other.predict(case)
