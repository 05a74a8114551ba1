"""PETSc as the twin of the own solver: the same system, the same iterates; any number of ranks."""

import os

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.bench.prepare import prepare
from fembench.methods.lookup import names, storages
from fembench.records import phases
from fembench.records.case import Case
from fembench.solve.cg import ConjugateGradients, StoppingCriterion
from fembench.solve.iterate import exhausted
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import make_tracer

pytest.importorskip(
    "petsc4py", reason="petsc4py is not installed; FEMBENCH_WITH_PETSC=1 tests/run.sh installs it"
)
petsc = pytest.importorskip("fembench.solve.petsc")
pytestmark = pytest.mark.mpi
FIXED = StoppingCriterion(fixed=30)


class System:
    """A prepared case, and both solvers on it."""

    def __init__(self, comm, **case):
        self.tracer = make_tracer("perf_counter_ns")
        self.prepared = prepare(comm, Case.of(ranks=comm.size, **case), self.tracer)
        self.parts = self.prepared.sub, self.prepared.interface
        self.lame = self.prepared.lame
        self.norm = lambda v: np.sqrt(self.prepared.interface.dot(v, v))

    def own(self, control, storage="sym", precond="none"):
        operator = build_operator(storage, self.parts[0], *self.lame)
        M = make_preconditioner(precond, operator, self.parts[1], self.parts[0])
        return ConjugateGradients(operator, self.parts[1], M, self.tracer).solve(self.prepared.rhs, control)

    def petsc(self, storage="baij", **choices):
        return petsc.PetscSolver(*self.parts, self.prepared.lame, self.tracer, storage=storage, **choices)


@pytest.fixture
def system(comm):
    return System(comm, mesh="m1")


@pytest.mark.row("004:9.1.4a")
@pytest.mark.parametrize("precond", ["none", "jacobi"])
@pytest.mark.parametrize("storage", names(storages("petsc")))
@pytest.mark.parametrize("mesh", ["m1", "box:8x5x8:hex8"])
def test_thirty_iterates_are_those_of_the_own_solver(comm, mesh, storage, precond):
    system = System(comm, mesh=mesh)
    own = system.own(FIXED, precond=precond)
    theirs = system.petsc(storage, precond=precond).solve(system.prepared.rhs, FIXED)
    assert theirs.iterations == own.iterations == 30
    np.testing.assert_allclose(theirs.residuals, own.residuals, rtol=1e-10)
    assert system.norm(theirs.x - own.x) <= 1e-10 * system.norm(own.x)


@pytest.mark.parametrize("storage", names(storages("petsc")))
def test_the_matrix_is_that_of_the_own_operator(system, storage):
    operator = build_operator("bsr", system.parts[0], *system.lame)
    theirs, interface = system.petsc(storage).operator, system.parts[1]
    x = interface.update(np.random.default_rng(1).standard_normal(interface.n_dofs))
    x[system.parts[0].fixed] = 0.0
    expected, found = (interface.update(A.apply(x)) for A in (operator, theirs))
    assert system.norm(found - expected) <= 1e-14 * system.norm(expected)
    np.testing.assert_allclose(theirs.diagonal(), operator.diagonal(), rtol=1e-12)


@pytest.mark.parametrize("storage", ["aij", "baij", "sbaij"])
def test_preallocation_is_enough_and_nothing_is_left_over_on_one_rank(system, storage):
    info = system.petsc(storage).A.getInfo()
    assert info["mallocs"] == 0
    if system.parts[1].comm.size == 1:
        assert info["nz_unneeded"] == 0


def test_copies_of_the_solution_are_bit_identical_on_sharers(system):
    x = system.petsc().solve(system.prepared.rhs, FIXED).x
    for mine, theirs in system.parts[1].copies(x):
        assert mine.tobytes() == theirs.tobytes()


def test_the_tolerance_stops_where_the_own_solver_stops(system):
    for control in (
        StoppingCriterion(tolerance=1e-6, max_iterations=6000),
        StoppingCriterion(1e-8, relative=True, max_iterations=6000),
    ):
        own, theirs = system.own(control), system.petsc().solve(system.prepared.rhs, control)
        assert theirs.converged
        assert theirs.residuals[-1] <= theirs.target < theirs.residuals[-2]
        assert theirs.target == pytest.approx(own.target, rel=1e-12)
        assert abs(theirs.iterations - own.iterations) <= 2
        assert system.norm(theirs.x - own.x) <= 1e-6 * system.norm(own.x)


def test_fixed_work_does_not_stop_at_a_relative_tolerance_either(system):
    result = system.petsc().solve(system.prepared.rhs, StoppingCriterion(0.5, relative=True, fixed=30))
    assert (result.iterations, result.target) == (30, 0.0)


def test_too_few_iterations_are_a_result_and_not_an_error(system):
    result = system.petsc().solve(system.prepared.rhs, StoppingCriterion(tolerance=1e-6, max_iterations=5))
    assert (result.iterations, result.converged) == (5, False)


@pytest.mark.parametrize("precond", ["none", "jacobi"])
def test_fixed_work_past_the_solution_ends_early_and_is_no_error(comm, precond):
    system = System(comm, mesh="box:1x1x1", problem="cantilever")
    result = system.petsc(precond=precond).solve(system.prepared.rhs, StoppingCriterion(fixed=20_000))
    assert result.iterations < 20_000
    assert exhausted(result.residuals)


def test_a_second_solve_starts_from_zero_again(system):
    solver = system.petsc()
    first, second = (solver.solve(system.prepared.rhs, FIXED) for _ in range(2))
    assert first.residuals == second.residuals


@pytest.mark.parametrize("storage", names(storages("petsc")))
def test_multigrid_with_rigid_modes_needs_far_fewer_iterations(comm, storage):
    system = System(comm, mesh="m2")
    control = StoppingCriterion(1e-8, relative=True, max_iterations=2000)
    jacobi = system.petsc("aij", precond="jacobi").solve(system.prepared.rhs, control)
    gamg = system.petsc(storage, precond="gamg").solve(system.prepared.rhs, control)
    assert gamg.converged
    assert gamg.iterations < jacobi.iterations / 4
    assert system.norm(gamg.x - jacobi.x) <= 1e-5 * system.norm(jacobi.x)


def test_the_near_null_space_is_that_of_the_rigid_motions(system):
    solver = system.petsc()
    sub, interface = system.parts
    modes = [solver._numbering.spread(v.array_r) for v in solver.A.getNearNullSpace().getVecs()]
    gram = np.array([[interface.dot(a, b) for b in modes] for a in modes])
    np.testing.assert_allclose(gram, np.eye(6), atol=1e-12)
    near = np.zeros((sub.n_nodes, 3))
    near[sub.cells[sub.restrained[sub.cells].any(axis=(1, 2))]] = 1.0
    far = interface.update(near[: sub.n_active].ravel()) == 0.0
    scale = np.abs(interface.update(solver.operator.diagonal())).max()
    for mode in modes:
        assert (mode[sub.fixed] == 0.0).all()
        assert np.abs(solver.multiply(mode)[far]).max(initial=0.0) <= 1e-12 * scale


@pytest.mark.parametrize("storage", names(storages("petsc")))
def test_useful_flops_and_bytes_are_those_of_the_blocks_that_a_rank_holds(system, storage):
    theirs, interface = system.petsc(storage).operator, system.parts[1]
    ours = {name: build_operator(name, system.parts[0], *system.lame) for name in ("csr", "bsr", "sym")}
    if interface.comm.size == 1 or storage == "is":
        twin = ours[{"aij": "csr", "sbaij": "sym"}.get(storage, "bsr")]
        assert theirs.flops == twin.flops
        assert theirs.matrix_bytes == pytest.approx(twin.matrix_bytes, rel=0.05)  # pointers to rows
    else:  # rows are summed over sharers and held once
        assert 0 < interface.total(theirs.flops) < interface.total(ours["bsr"].flops)


def test_time_in_scatters_is_not_counted_as_product_too(system, monkeypatch):
    solver = system.petsc()
    seconds = dict.fromkeys(solver._times(), 0.0) | {
        "MatMult": 5.0,
        "VecScatterBegin": 1.0,
        "VecScatterEnd": 2.0,
    }
    monkeypatch.setattr(solver, "_times", lambda: {name: (t, 2) for name, t in seconds.items()})
    system.tracer.reset()
    solver._trace(dict.fromkeys(seconds, (0.0, 0)))
    times = system.tracer.seconds()[[phases.SPMV_INTERIOR, phases.SEND, phases.WAIT]]
    np.testing.assert_allclose(times, [2.0, 1.0, 2.0], rtol=1e-8)


@pytest.mark.parametrize("storage", names(storages("petsc")))
def test_every_iteration_is_in_the_trace(system, storage):
    solver = system.petsc(storage, precond="jacobi")
    system.tracer.reset()
    solver.solve(system.prepared.rhs, FIXED)
    counts = system.tracer.counts()
    assert counts[phases.CG] == 1
    assert counts[phases.SPMV_INTERIOR] in (30, 31)
    assert counts[phases.PRECOND] in (30, 31)
    assert counts[phases.DOT] >= 90
    parts = system.tracer.seconds()[list(phases.CG_PARTS)].sum()
    assert 0 < parts <= 1.05 * system.tracer.seconds()[phases.CG]


def test_destroying_frees_the_matrix(comm):
    system = System(comm, mesh="box:12x12x12")
    system.petsc().destroy()
    before = own_memory()
    for _ in range(5):
        system.petsc(precond="gamg").destroy()
    matrix = build_operator("bsr", system.parts[0], *system.lame).matrix_bytes
    assert own_memory() - before < 3 * matrix  # of five matrices and their multigrids


def own_memory():
    """Resident bytes of this process."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_options_reach_petsc_and_do_not_stay(system):
    solver = system.petsc(options=("-ksp_type", "pipecg", "-pc_type", "jacobi"))
    assert (solver.ksp.getType(), solver.ksp.getPC().getType()) == ("pipecg", "jacobi")
    assert system.petsc().ksp.getType() == "cg"


def test_an_option_that_petsc_does_not_read_is_refused_on_every_rank(system):
    with pytest.raises(InputError, match="-ksp_tpye"):
        system.petsc(options=("-ksp_tpye", "cg"))


def test_a_value_that_petsc_does_not_know_is_refused_on_every_rank(system):
    with pytest.raises(InputError, match="nonsense"):
        system.petsc(options=("-pc_type", "nonsense"))


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"storage": "csr"}, "storage 'csr': expected one of aij"),
        ({"precond": "ilu"}, "preconditioner 'ilu': expected one of none"),
    ],
)
def test_what_petsc_is_not_offered_for_is_refused(system, choices, words):
    with pytest.raises(InputError, match=words):
        system.petsc(**choices)
