"""Preconditioners: symmetric, positive definite, alike on all sharers, and worth their cost."""

from unittest.mock import Mock

import numpy as np
import pytest
from systems import PRECONDITIONERS, STORAGES, System

from fembench.base.errors import InputError
from fembench.bench.verify import Solved, verify
from fembench.kernels.backend import kernels
from fembench.solve.operators import build_operator
from fembench.solve.precond import chebyshev_coefficients, hashed, inverse_diagonal, largest_eigenvalue

mpi = pytest.mark.mpi
every_one = pytest.mark.parametrize("name", PRECONDITIONERS)


def applied(M, r):
    z = np.full_like(r, np.nan)
    M.apply(r, z)
    return z


BOX = "box:6x3x4"  # its restrained dofs are not all of one face


@mpi
@every_one
def test_a_preconditioner_is_symmetric_and_positive(comm, name):
    s = System(comm, BOX)
    M, r, t = s.make(name), s.vector(1), s.vector(2)
    Mr, Mt = applied(M, r), applied(M, t)
    scale = s.norm(Mr) * s.norm(t) + s.norm(r) * s.norm(Mt)
    assert abs(s.interface.dot(Mr, t) - s.interface.dot(r, Mt)) <= 1e-12 * scale
    assert s.interface.dot(r, Mr) > 0
    assert s.interface.dot(t, Mt) > 0


@mpi
@every_one
def test_sharers_hold_the_same_bits_and_restrained_dofs_stay_zero(comm, name):
    s = System(comm, BOX)
    M, r = s.make(name), s.vector(3)
    z = applied(M, r)
    assert np.isfinite(z).all()
    assert not z[s.sub.fixed].any()
    for own, theirs in s.interface.copies(z):
        np.testing.assert_array_equal(own, theirs)
    np.testing.assert_array_equal(applied(M, r.copy()), z)  # other vectors give the same


@pytest.mark.mpi(2)
@every_one
@pytest.mark.parametrize("storage", STORAGES)
def test_solving_and_verifying_leave_matrix_right_hand_side_and_solution_as_they_were(comm, name, storage):
    s = System(comm, "box:3x2x2", storage, name)
    p, A = s.prepared, s.A
    given = [*A.arrays, A.block_diagonal(), p.rhs, s.sub.x]
    copies = [a.copy() for a in given]
    x = s.solve()[0].x
    found = x.copy()
    facts = verify(Solved(p, A, x))
    fresh = build_operator(storage, s.sub, A.lam, A.mu)
    assert facts == verify(Solved(p, fresh, x))
    for now, before in zip([*given, A.block_diagonal(), x], [*copies, copies[len(A.arrays)], found]):
        np.testing.assert_array_equal(now, before)


@mpi
def test_jacobi_divides_by_the_diagonal_of_the_assembled_matrix(comm):
    s = System(comm, BOX)
    diagonal, r = s.interface.update(s.A.diagonal()), s.vector(5)
    np.testing.assert_allclose(applied(s.make("jacobi"), r), r / diagonal, rtol=1e-15)


@mpi
def test_block_jacobi_inverts_the_assembled_diagonal_blocks(comm):
    s = System(comm, BOX)
    z = applied(s.make("block-jacobi"), s.vector(6)).reshape(-1, 3)
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
    correction = applied(s.make("two-level"), r) - applied(s.make("jacobi"), r)
    assert s.norm(correction - v) <= 1e-9 * s.norm(v)


@mpi
def test_coarse_modes_and_polynomials_save_iterations(comm):
    names = ("none", "jacobi", "two-level", "chebyshev")
    systems = (System(comm, "box:12x6x12", precond=name) for name in names)
    plain, jacobi, two_level, chebyshev = (s.solve()[0].iterations for s in systems)
    assert jacobi <= plain
    assert two_level <= 0.75 * jacobi
    assert chebyshev <= 0.5 * jacobi


@mpi
def test_the_largest_eigenvalue_is_found_from_below(comm):
    s = System(comm, "box:4x3x2")
    inverse = inverse_diagonal(s.A, s.interface)
    x, r, d, q = (kernels.zeros(s.interface.n_dofs) for _ in range(4))
    r[:] = hashed(s.sub.global_nodes[: s.sub.n_active])
    found = largest_eigenvalue(s.A.bind(d, q), s.interface, inverse, x, r, d, q, steps=25)
    v = s.vector(7)
    for _ in range(400):  # power iteration
        v = inverse * s.times_A(v)
        v /= s.norm(v)
    w = inverse * s.times_A(v)
    assert found == pytest.approx(s.interface.dot(v, w), rel=2e-3)


@mpi
def test_a_matrix_without_energy_has_no_eigenvalue_to_find(comm):
    s = System(comm, "box:2x2x2")
    for inverse in (np.ones(s.interface.n_dofs), np.zeros(s.interface.n_dofs)):
        x, r, d, q = (kernels.zeros(s.interface.n_dofs) for _ in range(4))
        r[:] = s.vector(3)
        assert largest_eigenvalue(Mock(), s.interface, inverse, x, r, d, q) == 1.0  # q stays zero


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
        System(comm, BOX).make("ilu")
