"""The reference that a run makes for itself: the same system, solved again with another storage."""

import numpy as np
import pytest

from fembench.bench.case_run import shipped
from fembench.bench.measure import measure
from fembench.bench.prepare import prepare
from fembench.bench.verify import Solved, other_method, solved_again, verify
from fembench.fem.parts import solve
from fembench.fem.problem import load_problem
from fembench.fem.residual import internal_force
from fembench.mesh.presets import resolve
from fembench.records.answer import fingerprint_difference
from fembench.records.case import Case
from fembench.timing.tracer import NullTracer, make_tracer

BOX = {"mesh": "box:5x4x5", "partitioner": "rcb"}


def prepared(comm, **fields):
    case = Case.of(**{**BOX, "ranks": comm.size, "sets": 1, "warmups": 0, **fields})
    return case, prepare(comm, case, NullTracer())


def verified(comm, case, p):
    """The verification of a run of the case."""
    done = measure(comm, case, p, make_tracer("perf_counter_ns", 8))
    return verify(Solved(p, done.operator, done.result.x)), done.result


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"iterations": 30},
        {"storage": "csr", "precond": "jacobi", "iterations": 20},
        {"storage": "ebe", "recurrence": "pipelined"},
        {"precond": "two-level", "recurrence": "single-reduction"},
        {"precond": "multigrid", "storage": "ebe"},
        {"exchange": "blocking", "overlap": False, "iterations": 10},
        {"emulate": "", "dilate": 2.0},
    ],
)
def test_it_is_the_result_of_the_run_within_the_rules(comm, fields):
    case, p = prepared(comm, **fields)
    v, result = verified(comm, case, p)
    found = solved_again(case, p)
    asked = result.target / v.rhs_norm
    assert found.energy == pytest.approx(v.energy, rel=max(1e-8, asked))
    difference = fingerprint_difference(v.fingerprint, found.fingerprint, found.solution_norm)
    assert difference <= max(1e-9, 100 * asked)
    assert abs(found.iterations - result.iterations) <= 2
    assert found.same_parts
    assert found == comm.bcast(found)  # alike on all ranks


@pytest.fixture
def on_one_rank():
    """A function: (case, what is prepared) on one rank. Import mpi4py as late as here."""
    from fembench.ranks.comm import alone

    return lambda **fields: prepared(alone(), **fields)


def test_solved_to_a_small_tolerance_it_is_the_direct_solution(on_one_rank):
    case, p = on_one_rank(tolerance=1e-13, tolerance_kind="relative")
    mesh, spec = resolve(case.question.mesh), load_problem("corner-load")
    lam, mu = spec.material.lam, spec.material.mu
    u = solve(spec, mesh)
    exact = 0.5 * np.vdot(u, internal_force(mesh.x, mesh.cells, mesh.element, lam, mu, u))
    assert solved_again(case, p).energy == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"max_iterations": 3}, False),
        ({"mesh": "m2", "iterations": 40}, True),
        ({"mesh": "m2", "iterations": 100}, False),
    ],
)
def test_a_solve_that_does_not_converge_or_that_rounding_decides_is_no_reference(on_one_rank, fields, kept):
    """After 100 iterations on m2, csr and bsr differ by 2e-4 of the solution, after 50 by 4e-14."""
    assert (solved_again(*on_one_rank(**fields)) is not None) is kept


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, ("ebe", "none", "standard")),
        ({"storage": "dense", "precond": "jacobi"}, ("ebe", "jacobi", "standard")),
        ({"storage": "ebe", "recurrence": "pipelined"}, ("sym", "none", "pipelined")),
        ({"solver": "petsc", "storage": "aij", "precond": "jacobi"}, ("ebe", "jacobi", "standard")),
        ({"solver": "petsc", "storage": "baij", "precond": "gamg"}, None),
        ({"solver": "petsc", "storage": "baij", "petsc_options": "-ksp_type pipecg"}, None),
    ],
)
def test_the_other_storage_is_none_at_all_or_the_default(fields, found):
    method = other_method(Case.of(**fields).method)
    assert (method and (method.storage, method.precond, method.recurrence)) == found
    assert method is None or method.solver == "own"


@pytest.mark.parametrize(("mesh", "iterations"), [("m", 100), ("l", 50), ("s", 50)])
def test_fixed_work_of_the_default_campaign_and_of_the_guides_has_a_shipped_reference(mesh, iterations):
    spec, digest = load_problem("corner-load"), resolve(mesh).hash
    case = Case.of(mesh=mesh, iterations=iterations)
    found = shipped(case, digest, spec)
    assert found.source == f"shipped: {mesh}, corner-load, {iterations} iterations"
    assert found.iterations == iterations
    assert shipped(case.with_(precond="jacobi"), digest, spec) is None  # another result
    assert shipped(case.with_(iterations=iterations + 1), digest, spec) is None
    assert shipped(case.with_(iterations=0), digest, spec).energy > found.energy  # the solution
    assert shipped(case.with_(iterations=0, precond="jacobi"), digest, spec)  # the same for all
