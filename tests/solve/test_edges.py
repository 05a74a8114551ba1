"""Problems at the edge: no load, one cell, one free node, ranks without free dofs, work past the solution."""

from itertools import cycle, product

import msgspec
import numpy as np
import pytest
from systems import PRECONDITIONERS, STORAGES

from fembench.bench.prepare import prepare_parts
from fembench.bench.verify import Solved, verify
from fembench.fem.materials import Material
from fembench.fem.problem import BAR, CANTILEVER, PATCH, STEEL, Constraint, ProblemSpec, Traction
from fembench.fem.selection import Selection
from fembench.mesh.box import box
from fembench.methods.lookup import names, recurrences
from fembench.partition.partition import Partition
from fembench.records.case import Case
from fembench.solve.from_names import recurrence_class
from fembench.solve.iterate import StoppingCriterion, exhausted
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import NullTracer

pytestmark = pytest.mark.mpi
NO_LOAD = ProblemSpec(name="no load", material=STEEL, constraints=(Constraint(Selection(plane="x=min")),))
EDGES = {
    "no load": (NO_LOAD, "tet4", (3, 1, 1)),
    "four bricks": (CANTILEVER, "hex8", (1, 1, 4)),
    "six tetrahedra": (CANTILEVER, "tet4", (1, 1, 1)),
    "one free node": (PATCH, "hex8", (2, 2, 2)),
    "a rank without a free dof": (PATCH, "tet4", (3, 2, 2)),
}


def prepared(comm, spec, element, cells):
    """Rank 0 has the mesh; each other rank has one cell, one of those with the most restrained nodes."""
    mesh = box(cells, element)
    outside = (mesh.x == mesh.x.min(axis=0)) | (mesh.x == mesh.x.max(axis=0))
    held = outside.any(axis=1) if spec is PATCH else outside[:, 0] & (mesh.x[:, 0] == 0)
    part = (-held[mesh.cells].sum(axis=1)).argsort(kind="stable").argsort() + 1
    part[part >= comm.size] = 0
    parts = Partition(part.astype("i4"), (1 / comm.size,) * comm.size, "by hand", 0)
    return prepare_parts(comm, Case.of(ranks=comm.size), spec, mesh, parts, NullTracer())


def solved(p, storage, precond, recurrence, control):
    A = build_operator(storage, p.sub, *p.lame)
    M = make_preconditioner(precond, A, p.interface, p.sub)
    result = recurrence_class(recurrence)(A, p.interface, M, NullTracer()).solve(p.rhs, control)
    return result, Solved(p, A, result.x)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("edge", EDGES)
def test_every_storage_preconditioner_and_recurrence_solves_a_problem_at_the_edge(comm, edge):
    p = prepared(comm, *EDGES[edge])
    if edge == "a rank without a free dof" and comm.rank > 0:
        assert p.sub.n_active == 0
    control = StoppingCriterion(tolerance=1e-10, relative=True)
    pairs = product(STORAGES, PRECONDITIONERS)
    for (storage, precond), recurrence in zip(pairs, cycle(names(recurrences("own")))):  # every pair
        result, answer = solved(p, storage, precond, recurrence, control)
        facts = verify(answer)
        assert result.converged, (storage, precond, recurrence)
        assert facts.true_residual <= 1e-9 * facts.rhs_norm
        assert facts.rigid_body <= 1e-12
        assert facts.positive > 0
        assert (facts.energy > 0) == (edge != "no load")


@pytest.mark.parametrize(("E", "traction"), [(1e-30, 1e30), (1e30, 1e-30), (1e30, 1e30), (1e-30, 1e-30)])
def test_material_and_load_at_the_ends_of_their_ranges_are_solved_as_any_other(comm, E, traction):
    pull = Traction(Selection(plane="x=max"), (traction, 0.0, 0.0))
    spec = msgspec.structs.replace(BAR, material=Material(E=E), tractions=(pull,))
    p = prepared(comm, spec, "hex8", (3, 2, 1))
    result, answer = solved(p, "sym", "jacobi", "standard", StoppingCriterion(tolerance=1e-12, relative=True))
    facts = verify(answer)
    assert result.converged
    assert facts.true_residual <= 1e-10 * facts.rhs_norm
    right = traction / E * p.sub.x[:, 0]
    np.testing.assert_allclose(answer.u[:, 0], right, rtol=1e-8, atol=1e-8 * traction / E)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("recurrence", names(recurrences("own")))
@pytest.mark.parametrize("precond", PRECONDITIONERS)
def test_fixed_work_past_the_solution_ends_early_and_is_no_error(comm, precond, recurrence):
    for edge in ("no load", "six tetrahedra"):
        p = prepared(comm, *EDGES[edge])
        result, _ = solved(p, "sym", precond, recurrence, StoppingCriterion(fixed=300))
        assert result.iterations == len(result.residuals) - 1
        assert result.iterations == 300 or exhausted(result.residuals)


def test_a_solve_is_exhausted_once_its_residual_was_down_to_rounding():
    assert exhausted((500.0, 1e-10, 3.0))
    assert exhausted((0.0,))
    assert not exhausted((500.0, 1e-9))
    assert not exhausted(())
