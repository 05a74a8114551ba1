"""A fingerprint knows a solution again, however it was cut, and tells how far another one is."""

import numpy as np
import pytest

from fembench.bench.verify import fingerprint, weights

pytestmark = pytest.mark.mpi


def shared_out(comm, n):
    """Nodes of this rank and everybody's displacement, the same on every rank."""
    u = np.random.default_rng(3).standard_normal((n, 3))
    nodes = np.flatnonzero(np.arange(n) % comm.size == comm.rank).astype(np.int64)
    return nodes, u


def test_it_does_not_depend_on_the_partition(comm):
    nodes, u = shared_out(comm, 500)
    together = fingerprint(comm, nodes, u[nodes])
    everything = np.arange(500)
    w = [weights(np.arange(1500), k) @ u[everything].ravel() for k in range(16)]
    np.testing.assert_allclose(together, w, rtol=1e-12, atol=1e-12)


def test_differences_estimate_the_distance(comm):
    nodes, u = shared_out(comm, 2000)
    change = 1e-6 * np.random.default_rng(4).standard_normal(u.shape)
    a, b = (np.array(fingerprint(comm, nodes, v[nodes])) for v in (u, u + change))
    estimate = np.sqrt(np.mean((a - b) ** 2))
    assert 0.4 < estimate / np.linalg.norm(change) < 1.8


def test_weights_of_large_numbers_do_not_overflow(comm):
    w = weights(np.array([9_000_000_000, 9_000_000_001], np.int64), 15)
    assert np.isfinite(w).all()
    assert w[0] != w[1]
