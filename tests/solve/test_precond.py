"""Preconditioners: symmetric, positive definite, alike on all sharers, and worth their cost."""

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.bench.prepare import prepare
from fembench.bench.verify import Solved, verify
from fembench.records.case import Case
from fembench.solve.from_names import variant_class
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import build_operator
from fembench.solve.precond import inverse_diagonal, make_preconditioner
from fembench.solve.spectrum import chebyshev_coefficients, hashed, largest_eigenvalue
from fembench.timing.tracer import make_tracer

mpi = pytest.mark.mpi
NAMES = ("none", "jacobi", "block-jacobi", "chebyshev", "two-level", "multigrid")
every_one = pytest.mark.parametrize("name", NAMES)


class System:
    """One rank's share of a small cantilever, its restrained dofs not all of one face."""

    def __init__(self, comm, mesh="box:6x3x4", storage="sym"):
        self.prepared = prepare(comm, Case.of(ranks=comm.size, mesh=mesh), make_tracer("counter"))
        self.sub, self.interface = self.prepared.sub, self.prepared.interface
        self.A = build_operator(storage, self.sub, *self.prepared.lame)

    def make(self, name):
        return make_preconditioner(name, self.A, self.interface, self.sub)

    def vector(self, seed):
        """Random, alike on all sharers, zero on restrained dofs."""
        draw = np.random.default_rng(seed + 100 * self.interface.comm.rank)
        v = draw.standard_normal(self.interface.n_dofs)
        self.interface.update(v)
        v[self.sub.fixed] = 0
        return v

    def apply(self, M, r):
        z = np.full_like(r, np.nan)
        M.apply(r, z)
        return z

    def times_A(self, v):
        """A v, summed."""
        return self.interface.update(self.A.apply(v))

    def norm(self, v):
        return np.sqrt(self.interface.dot(v, v))

    def iterations(self, name):
        solver = variant_class("standard")(self.A, self.interface, self.make(name), make_tracer("counter"))
        return solver.solve(self.prepared.rhs, StoppingCriterion(tolerance=1e-8, relative=True)).iterations


@mpi
@every_one
def test_a_preconditioner_is_symmetric_and_positive(comm, name):
    s = System(comm)
    M, r, t = s.make(name), s.vector(1), s.vector(2)
    Mr, Mt = s.apply(M, r), s.apply(M, t)
    scale = s.norm(Mr) * s.norm(t) + s.norm(r) * s.norm(Mt)
    assert abs(s.interface.dot(Mr, t) - s.interface.dot(r, Mt)) <= 1e-12 * scale
    assert s.interface.dot(r, Mr) > 0
    assert s.interface.dot(t, Mt) > 0


@mpi
@every_one
def test_sharers_hold_the_same_bits_and_restrained_dofs_stay_zero(comm, name):
    s = System(comm)
    z = s.apply(s.make(name), s.vector(3))
    assert np.isfinite(z).all()
    assert not z[s.sub.fixed].any()
    for own, theirs in s.interface.copies(z):
        np.testing.assert_array_equal(own, theirs)


@mpi
@every_one
def test_applying_to_other_vectors_gives_the_same(comm, name):
    s = System(comm)
    M, r = s.make(name), s.vector(4)
    first = s.apply(M, r)
    np.testing.assert_array_equal(s.apply(M, r.copy()), first)


@mpi
@every_one
@pytest.mark.parametrize("storage", ["dense", "csr", "bsr", "sym", "ebe"])
def test_solving_and_verifying_leave_matrix_load_and_solution_as_they_were(comm, name, storage):
    s = System(comm, "box:3x2x2", storage)
    p, A = s.prepared, s.A
    given = [*A.arrays, A.block_diagonal(), p.rhs, p.load, s.sub.x]
    copies = [a.copy() for a in given]
    solver = variant_class("standard")(A, s.interface, s.make(name), make_tracer("counter"))
    x = solver.solve(p.rhs, StoppingCriterion(tolerance=1e-8, relative=True)).x
    found = x.copy()
    facts = verify(Solved(p, A, x))
    fresh = build_operator(storage, s.sub, A.lam, A.mu)
    assert facts == verify(Solved(p, fresh, x))
    for now, before in zip([*given, A.block_diagonal(), x], [*copies, copies[len(A.arrays)], found]):
        np.testing.assert_array_equal(now, before)


@mpi
def test_jacobi_divides_by_the_diagonal_of_the_assembled_matrix(comm):
    s = System(comm)
    diagonal, r = s.interface.update(s.A.diagonal()), s.vector(5)
    np.testing.assert_allclose(s.apply(s.make("jacobi"), r), r / diagonal, rtol=1e-15)


@mpi
def test_block_jacobi_inverts_the_assembled_diagonal_blocks(comm):
    s = System(comm)
    z = s.apply(s.make("block-jacobi"), s.vector(6)).reshape(-1, 3)
    blocks = s.A.block_diagonal()
    for c in range(3):
        blocks[:, :, c] = s.interface.update(np.ascontiguousarray(blocks[:, :, c]).reshape(-1)).reshape(-1, 3)
    back = np.einsum("nij,nj->ni", blocks, z).reshape(-1)
    np.testing.assert_allclose(back, s.vector(6), atol=1e-12 * s.norm(s.vector(6)))


@mpi
def test_the_coarse_correction_is_exact_for_rigid_motions_of_the_parts(comm):
    s = System(comm, "box:8x4x4")
    motion = np.random.default_rng(comm.rank).standard_normal(6)
    x = s.sub.x[: s.sub.n_active]
    v = (motion[:3] + np.cross(motion[3:], x)).reshape(-1)
    v = s.interface.update(s.interface.weighted(v))  # each part's motion, weighted and summed
    v[s.sub.fixed] = 0
    r = s.times_A(v)
    correction = s.apply(s.make("two-level"), r) - s.apply(s.make("jacobi"), r)
    assert s.norm(correction - v) <= 1e-9 * s.norm(v)


@mpi
def test_coarse_modes_and_polynomials_save_iterations(comm):
    s = System(comm, "box:12x6x12")
    plain, jacobi = s.iterations("none"), s.iterations("jacobi")
    assert jacobi <= plain
    assert s.iterations("two-level") <= 0.75 * jacobi
    assert s.iterations("chebyshev") <= 0.5 * jacobi


@mpi
def test_the_largest_eigenvalue_is_found_from_below(comm):
    s = System(comm, "box:4x3x2")
    inverse = inverse_diagonal(s.A, s.interface)
    start = hashed(s.sub.global_nodes[: s.sub.n_active])
    found = largest_eigenvalue(s.times_A, lambda r: inverse * r, s.interface, start, steps=25)
    v = s.vector(7)
    for _ in range(400):  # power iteration
        v = inverse * s.times_A(v)
        v /= s.norm(v)
    w = inverse * s.times_A(v)
    assert found == pytest.approx(s.interface.dot(v, w), rel=2e-3)


@mpi
def test_a_matrix_without_energy_has_no_eigenvalue_to_find(comm):
    s = System(comm, "box:2x2x2")
    start = s.vector(3)
    assert largest_eigenvalue(np.zeros_like, np.copy, s.interface, start) == 1.0
    assert largest_eigenvalue(np.zeros_like, np.zeros_like, s.interface, start) == 1.0


def test_chebyshev_steps_sum_to_a_polynomial_that_nearly_inverts():
    """On one eigenvalue t the steps give z with 1 - t z = T(theta - t) / T(theta), Saad (12.9)."""
    smallest, largest, degree = 0.1, 2.0, 5
    theta, delta = (largest + smallest) / 2, (largest - smallest) / 2
    for t in np.linspace(smallest, largest, 7):
        (_, gain), *steps = chebyshev_coefficients(smallest, largest, degree)
        r, d = 1.0, gain
        z = d
        for keep, gain in steps:
            r -= t * d
            d = keep * d + gain * r
            z += d
        T = np.polynomial.chebyshev.Chebyshev.basis(degree)
        assert 1 - t * z == pytest.approx(T((theta - t) / delta) / T(theta / delta), abs=1e-13)


@mpi
def test_an_unknown_preconditioner_is_refused_by_name(comm):
    with pytest.raises(InputError, match="preconditioner 'ilu': expected one of none, jacobi"):
        System(comm).make("ilu")
