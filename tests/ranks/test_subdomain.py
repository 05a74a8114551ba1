"""How the nodes of a rank are numbered."""

import numpy as np
import pytest

from fembench.mesh.presets import resolve
from fembench.ranks.piece import Piece, rows_in_space
from fembench.ranks.subdomain import Sharing, build_subdomain

BOX = resolve("box:4x3x5:hex8")


def rank_of(values):
    """0 for the least of the values, 1 for the next, …"""
    return np.unique(values.round(9), return_inverse=True)[1]


def built(reorder=rows_in_space):
    """A box of 4 x 3 x 5 cells whose upper side is shared and whose lower side is held."""
    x, cells = BOX.x.copy(), BOX.cells
    n, z = len(x), rank_of(x[:, 2])
    top = z == 5
    shared = np.flatnonzero(top).astype(np.int32)
    piece = Piece("hex8", x, cells.copy(), np.arange(n), np.arange(len(cells)), {}, {})
    sharing = Sharing((1,), (shared,), np.where(top, 2, 1).astype(np.int32), np.ones(n, bool))
    held = np.repeat(z[:, None] == 0, 3, axis=1)
    return build_subdomain(piece, sharing, held, reorder)


@pytest.mark.row("004:F4")
def test_nodes_are_interior_then_interface_then_restrained():
    sub, sharing = built()
    z = rank_of(sub.x[:, 2])
    assert set(z[: sub.n_interior]) == {1, 2, 3, 4}
    assert set(z[sub.n_interior : sub.n_active]) == {5}
    assert set(z[sub.n_active :]) == {0}
    assert sorted(sub.global_nodes) == list(range(sub.n_nodes))
    assert sorted(sharing.nodes[0]) == list(range(sub.n_interior, sub.n_active))
    assert (np.diff(sub.global_nodes[sharing.nodes[0]]) > 0).all()


def test_interior_nodes_beside_the_interface_are_the_last_of_the_interior():
    sub, _ = built()
    assert rank_of(sub.x[:, 2])[: sub.n_interior].tolist()[-20:] == [4] * 20
    assert sub.n_interior == 80


def test_cells_keep_their_corners():
    sub, _ = built()
    corners = {tuple(sorted(row)) for row in sub.global_nodes[sub.cells].tolist()}
    assert corners == {tuple(sorted(row)) for row in BOX.cells.tolist()}
    assert np.array_equal(sub.x, BOX.x[sub.global_nodes])
