"""Two hundred small meshes at random through all kernels of assembly and product, also under sanitizers.

Boxes of one to a few cells, twisted and sheared, nodes and cells in random order, any split into interior,
interface and dropped nodes. One in four has flat, folded or repeated cells: its numbers mean nothing,
but no kernel may leave its memory.
"""

from dataclasses import replace

import numpy as np
import pytest
import reference
from kernel_samples import LAM, MU, sample
from test_products import STORAGES, dense_stiffness, vectors

from fembench.kernels.backend import kernels
from fembench.solve.operators import build_operator

GROUPS, EACH = 20, 10


def random_sample(rng):
    """A jittered box, twisted about z and sheared."""
    fraction = rng.choice([0.0, 0.2, 0.5, 1.0], 3)
    s = sample(
        rng.integers(1, 4, 3),
        rng.choice(["tet4", "hex8"]),
        int(rng.integers(2**31)),
        interior=fraction[0],
        dropped=fraction[1] if rng.random() < 0.5 else 0.0,
        restrained=0.2 * fraction[2],
    )
    angle = rng.uniform(-0.2, 0.2) * s.x[:, 2]
    cos, sin = np.cos(angle), np.sin(angle)
    x = np.column_stack((cos * s.x[:, 0] - sin * s.x[:, 1], sin * s.x[:, 0] + cos * s.x[:, 1], s.x[:, 2]))
    return replace(s, x=np.ascontiguousarray(x + x[:, [1, 2, 0]] * rng.uniform(-0.2, 0.2)))


def spoilt(s, rng):
    """The same with cells that no mesh may have."""
    x, cells = s.x.copy(), s.cells.copy()
    what = rng.integers(5)
    if what == 0:
        x[:, rng.integers(3)] = 0.0  # flat
    elif what == 1:
        x *= rng.choice([1e-200, 1e200, np.nan])
    elif what == 2:
        cells[rng.integers(len(cells)), 1:] = cells[0, 0]  # a cell of few nodes
    elif what == 3:
        cells = np.concatenate((cells, cells[: len(cells) // 2 + 1]))  # cells twice
    else:
        cells = cells[: rng.integers(len(cells) + 1)]  # nodes in no cell, perhaps no cell
    return replace(s, x=x, cells=np.ascontiguousarray(cells))


def sorted_cells(cells):
    """By lowest node, equal ones in this order."""
    cells = cells.copy()
    kernels.sort_cells(cells, np.arange(len(cells)))
    return cells


def orders_and_patterns(s):
    """Of the symbolic kernels: each result with that of its twin."""
    yield sorted_cells(s.cells), s.cells[reference.cell_order(s.cells, np.arange(len(s.cells)))]
    position = kernels.reorder(s.cells, s.n_interior, s.n_active)
    yield sorted(position[: s.n_interior]), range(s.n_interior)
    yield sorted(position), range(s.n_active)
    where = kernels.Incidence(s.cells, len(s.x))
    for upper in (False, True):
        ours = kernels.pattern(s.cells, s.n_interior, s.n_active, upper, where)
        yield from zip(ours, reference.pattern(s.cells, s.n_interior, s.n_active, upper))


def products(s):
    """q of every storage, stacked."""
    found = []
    for storage in STORAGES:
        d, q = vectors(s)
        d[s.fixed] = 0
        product = build_operator(storage, s, LAM, MU).bind(d, q)
        product.interface()
        product.interior()
        found.append(q)
    return np.array(found)


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_storage_multiplies_as_plain_assembly_does(group):
    for k in range(EACH):
        rng = np.random.default_rng([group, k])
        s = random_sample(rng)
        if k % 4 == 3:
            with np.errstate(all="ignore"):
                s = spoilt(s, rng)
                list(orders_and_patterns(s))
                products(s)
        else:
            for ours, twin in orders_and_patterns(s):
                np.testing.assert_array_equal(ours, twin)
            A, (d, _) = dense_stiffness(s), vectors(s)
            d[s.fixed] = 0
            scale = 30 * max(np.abs(A).max(initial=0), 1)
            np.testing.assert_allclose(products(s), np.tile(A @ d, (5, 1)), rtol=0, atol=1e-13 * scale)
