"""The recurrences of conjugate gradients: standard iterates, fewer all-reduces, any number of ranks."""

import itertools
from math import inf, nan

import numpy as np
import pytest
from systems import System

from fembench.base.errors import BreakdownError
from fembench.bench.iteration_work import Roofs, solve_facts
from fembench.bench.measure import measure
from fembench.bench.prepare import prepare
from fembench.methods.lookup import Combination, names, recurrences
from fembench.methods.recipe import recipe
from fembench.methods.steps import NO_WORK
from fembench.ranks import interface as interface_module
from fembench.records import phases
from fembench.records.case import FIELDS, Case
from fembench.solve.from_names import build_solver
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.pipelined import REPLACE
from fembench.solve.precond import Diagonal
from fembench.solve.recurrences import Lengths
from fembench.timing.tracer import make_tracer

mpi = pytest.mark.mpi
LEANER = ("single-reduction", "pipelined")
FOLDED = ("none", "jacobi", "block-jacobi", "chebyshev", "unfolded")
leaner = pytest.mark.parametrize("recurrence", LEANER)
every_m = pytest.mark.parametrize("precond", [*FOLDED, "two-level"])


class Unfolded:
    """Jacobi as a preconditioner that must be applied."""

    identity = False
    inverse = None
    extra = NO_WORK

    def __init__(self, diagonal):
        self._diagonal = diagonal

    def apply(self, r, z):
        self._diagonal.apply(r, z)


def system_of(comm, mesh, storage="sym", precond="none"):
    if precond != "unfolded":
        return System(comm, mesh, storage, precond)
    system = System(comm, mesh, storage, "jacobi")
    system.M = Unfolded(system.M)
    return system


@pytest.mark.mpi(1, 2, 3)
@leaner
@every_m
@pytest.mark.parametrize(
    ("mesh", "storage"), [("m1", "sym"), ("box:8x5x8:hex8", "csr"), ("box:5x6x4", "ebe")]
)
def test_thirty_iterates_are_those_of_the_standard_recurrence(comm, mesh, storage, precond, recurrence):
    system = system_of(comm, mesh, storage, precond)
    standard, _ = system.solve("standard", StoppingCriterion(fixed=30))
    other, _ = system.solve(recurrence, StoppingCriterion(fixed=30))
    np.testing.assert_allclose(other.residuals, standard.residuals, rtol=1e-8)
    assert system.norm(other.x - standard.x) <= 1e-9 * system.norm(standard.x)


@pytest.mark.mpi(1, 3)
@leaner
@every_m
def test_the_solution_is_that_of_the_standard_recurrence(comm, precond, recurrence):
    system, control = system_of(comm, "m1", "sym", precond), StoppingCriterion(tolerance=1e-8, relative=True)
    standard, _ = system.solve("standard", control)
    other, _ = system.solve(recurrence, control)
    assert other.converged
    assert abs(other.iterations - standard.iterations) <= 2
    assert system.norm(other.x - standard.x) <= 1e-6 * system.norm(standard.x)
    assert system.true_residual(other.x) <= 1.01 * other.target


@pytest.mark.mpi(1, 2)
@leaner
@pytest.mark.parametrize("precond", FOLDED)
@pytest.mark.parametrize("storage", ["csr", "sym"])
def test_an_iteration_has_one_allreduce(comm, storage, precond, recurrence):
    system = system_of(comm, "m1", storage, precond)
    result, counts = system.solve(recurrence, StoppingCriterion(fixed=2 * REPLACE + 7))
    inside = counts - result.outside
    n = result.iterations
    assert n == 2 * REPLACE + 7
    assert counts[phases.ALLREDUCE] == n + 1
    assert inside[phases.ALLREDUCE] == n
    assert inside[[phases.SPMV_INTERFACE, phases.SPMV_INTERIOR]].tolist() == [n, n]
    updates = n * (4 if precond == "chebyshev" else 1)
    assert inside[[phases.WAIT, phases.UNPACK]].tolist() == [updates, updates]
    assert inside[phases.SEND] == updates + (n if recurrence == "pipelined" else 0)
    assert result.outside[phases.SPMV_INTERIOR] == {"single-reduction": 1, "pipelined": 2 + 2 * 4}[recurrence]


@pytest.mark.mpi(1, 3)
@leaner
@pytest.mark.parametrize("storage", ["csr", "sym"])
@every_m
def test_overlap_on_and_off_are_bit_identical_and_so_are_shared_values(comm, storage, precond, recurrence):
    system = system_of(comm, "m1", storage, precond)
    on, off = (
        system.solve(recurrence, StoppingCriterion(fixed=REPLACE + 20), overlap=overlap)[0]
        for overlap in (True, False)
    )
    assert on.residuals == off.residuals
    assert on.x.tobytes() == off.x.tobytes()
    for mine, theirs in system.interface.copies(on.x):
        assert mine.tobytes() == theirs.tobytes()


@mpi
@leaner
def test_a_second_solve_starts_from_nothing(comm, recurrence):
    system = System(comm, "m1", "sym", "chebyshev")
    solver = system.solver(recurrence)
    first, again = (solver.solve(system.rhs, StoppingCriterion(fixed=REPLACE + 20)) for _ in range(2))
    assert first.residuals == again.residuals
    assert first.outside.tolist() == again.outside.tolist()


@mpi
def test_without_mpi_4_the_pipelined_recurrence_gives_the_same_solution(comm, monkeypatch):
    system = System(comm, "m1")
    persistent, _ = system.solve("pipelined", StoppingCriterion(fixed=30))
    monkeypatch.setattr(interface_module, "persistent_allreduce", lambda *arguments: None)
    anew, _ = system.solve("pipelined", StoppingCriterion(fixed=30))
    np.testing.assert_allclose(anew.residuals, persistent.residuals, rtol=1e-9)


@mpi
@pytest.mark.parametrize("precond", ["none", "jacobi", "block-jacobi", "unfolded"])
def test_residual_replacement_ends_the_drift_of_the_pipelined_recurrence(comm, precond):
    """To 1e-12 |f|: r by recurrences alone ends far from f - A x, r made anew now and then does not."""
    system = system_of(comm, "m1", "sym", precond)
    control = StoppingCriterion(tolerance=1e-12, relative=True, max_iterations=400)
    standard, _ = system.solve("standard", control)
    drifting, _ = system.solve("pipelined", control, replace=0)
    replaced, _ = system.solve("pipelined", control)
    assert system.true_residual(drifting.x) > 20 * control.tolerance * drifting.residuals[0]
    assert replaced.converged
    assert replaced.iterations <= 1.1 * standard.iterations
    assert system.true_residual(replaced.x) <= 1.1 * replaced.target


@mpi
def test_single_reduction_does_not_drift(comm):
    system = System(comm, "m1")
    result, _ = system.solve("single-reduction", StoppingCriterion(tolerance=1e-12, relative=True))
    assert system.true_residual(result.x) <= 1.1 * result.target


@mpi
@pytest.mark.parametrize("recurrence", names(recurrences("own")))
def test_an_indefinite_operator_or_preconditioner_is_refused_on_every_rank(comm, recurrence):
    with pytest.raises(BreakdownError, match=r"<[du], A [du]> = -"):
        System(comm, "m1", stiffness=-1.0).solve(recurrence, StoppingCriterion())
    system = System(comm, "m1", "sym", "jacobi")
    system.M = Diagonal(-system.M.inverse)
    with pytest.raises(BreakdownError, match="<r, M r> = -"):
        system.solve(recurrence, StoppingCriterion())


@mpi
@pytest.mark.parametrize("recurrence", names(recurrences("own")))
def test_a_case_chooses_its_recurrence_and_its_work_is_counted(comm, recurrence):
    assert FIELDS["recurrence"].choices == names(recurrences("own"))
    case = Case.of(
        mesh="m1", recurrence=recurrence, ranks=comm.size, storage="sym", iterations=40, sets=1, warmups=0
    )
    tracer = make_tracer("perf_counter_ns")
    prepared = prepare(comm, case, tracer)
    measured = measure(comm, case, prepared, tracer)
    facts = solve_facts(comm, prepared, measured, tracer, Roofs(0, 0.0, ()))
    assert facts.iterations == 40
    assert (facts.allreduces, facts.updates) == (2 if recurrence == "standard" else 1, 1)
    n, A = prepared.interface.n_dofs, measured.operator
    products, vectors = {"standard": (40, 9), "single-reduction": (41, 9), "pipelined": (42, 13)}[recurrence]
    expected = products / 40 * A.bytes_per_product + 8 * n * vectors
    assert facts.bytes[comm.rank] == pytest.approx(expected, rel=1e-12)
    for storage, precond in itertools.product(("sym", "csr"), ("none", "jacobi", "block-jacobi")):
        method = Case.of(storage=storage, precond=precond, recurrence=recurrence).method
        solver = build_solver(method, prepared.sub, prepared.interface, prepared.lame, tracer)
        work = recipe(Combination(storage=storage, precond=precond, recurrence=recurrence))  # by hand there
        assert solver.work.bytes == 8 * n * (work.updates.vectors + work.dots.vectors)


def test_lengths_follow_the_recurrences_of_both_papers():
    lengths = Lengths()
    assert lengths.next(8.0, 4.0, 1) == (2.0, 0.0)
    alpha, beta = lengths.next(2.0, 3.0, 2)
    assert beta == 0.25
    assert alpha == 2.0 / (3.0 - 0.25 * 2.0 / 2.0)
    lost = Lengths()
    lost.next(1.0, 1.0, 1)
    assert lost.next(2.0, 4.0, 2) == (0.5, 0.0)  # 4 - 2 * 2 / 1 = 0: steepest descent again


@pytest.mark.parametrize("delta", [0.0, -1.0, nan, inf])
def test_an_operator_that_is_not_positive_breaks_down(delta):
    with pytest.raises(BreakdownError, match="at iteration 7"):
        Lengths().next(1.0, delta, 7)
