"""The operator in its five storages, on any number of ranks."""

from math import pi
from types import SimpleNamespace

import numpy as np
import pytest
from systems import STORAGES, System

from fembench.base.errors import InputError
from fembench.kernels.backend import kernels
from fembench.methods.lookup import storage_of
from fembench.solve.operators import build_operator

mpi = pytest.mark.mpi
every_storage = pytest.mark.parametrize("storage", STORAGES)
every_mesh = pytest.mark.parametrize("mesh", ["box:5x4x3", "box:4x3x5:hex8"])


def storages_of(comm, mesh):
    """A prepared case, and a function: its operator in a storage."""
    p = System(comm, mesh).prepared
    return p, lambda storage: build_operator(storage, p.sub, *p.lame)


def consistent(p):
    """A smooth vector, alike on all sharers, zero on restrained dofs."""
    v = np.sin(pi * p.sub.x[: p.sub.n_active] * [1.0, 2.0, 3.0] + 0.3).reshape(-1)
    v[p.sub.fixed] = 0
    return v


@pytest.mark.row("004:9.1.4a")
@mpi
@every_mesh
@every_storage
def test_all_storages_are_one_matrix(comm, mesh, storage):
    p, operator = storages_of(comm, mesh)
    v = consistent(p)
    expected = p.interface.update(operator("ebe").apply(v))
    found = p.interface.update(operator(storage).apply(v))
    scale = np.sqrt(p.interface.dot(expected, expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale)


@mpi
@every_mesh
@every_storage
def test_fused_parts_add_up_to_the_global_inner_product(comm, mesh, storage):
    p, operator = storages_of(comm, mesh)
    A, n = operator(storage), p.interface.n_dofs
    d, q = kernels.empty(n), kernels.empty(n)
    d[:] = consistent(p)
    product = A.bind(d, q)
    parts = product.interface(), product.interior()
    assert storage_of(storage).fused == (None not in parts)
    if storage_of(storage).fused:
        whole = p.interface.total(parts[0] + parts[1])
        assert whole == pytest.approx(p.interface.dot(d, p.interface.update(q)), rel=1e-13)


@mpi
@every_storage
def test_bytes_are_those_of_the_arrays(comm, storage):
    p, operator = storages_of(comm, "box:5x4x3")
    A, n, cells = operator(storage), p.sub.n_active, p.sub.n_cells
    blocks = kernels.count_blocks(p.sub.cells, n)
    half = (blocks + n) // 2
    expected = {
        "dense": 8 * (3 * n) ** 2,
        "csr": 9 * blocks * 12 + 8 * (3 * n + 1),
        "bsr": blocks * 76 + 8 * (n + 1),
        "sym": half * 76 + 2 * n,
        "ebe": 16 * cells + 32 * p.sub.n_nodes,
    }[storage]
    assert A.matrix_bytes == pytest.approx(expected, abs=12 * n + 16)
    assert A.bytes_per_product == A.matrix_bytes + 72 * n
    if storage in ("csr", "bsr", "sym"):
        assert A.flops == 18 * blocks


@mpi
def test_an_unknown_storage_is_refused_by_name(comm):
    with pytest.raises(InputError, match="storage 'coo': expected one of sym, bsr"):
        System(comm, "box:2x2x2", "coo")


def test_a_dense_matrix_that_no_memory_holds_is_refused():
    with pytest.raises(InputError, match=r"48000 dofs on one rank need 17 GiB"):
        build_operator("dense", SimpleNamespace(n_active=16_000), 1.0, 1.0)
