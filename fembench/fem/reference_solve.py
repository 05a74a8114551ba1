"""A direct solution on one rank with scipy: the reference for every parallel run."""

from typing import TYPE_CHECKING

import numpy as np

from fembench.base.arrays import F64, I32
from fembench.fem.boundary import fixed_dofs, prescribed, right_hand_side
from fembench.fem.elements import element_stiffness
from fembench.fem.materials import Modulus, lame
from fembench.fem.parts import check_whole, whole_mesh
from fembench.fem.problem import ProblemSpec
from fembench.mesh.mesh import Mesh

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def assembled(x: F64, cells: I32, element: str, lam: Modulus, mu: Modulus) -> "csr_matrix":
    """The stiffness matrix of the unconstrained body, 3 n_nodes square, N/m."""
    from scipy.sparse import csr_matrix

    ke = element_stiffness(x[cells], element, lam, mu)
    dofs = (3 * cells[:, :, None] + np.arange(3)).reshape(len(cells), -1)
    rows = np.broadcast_to(dofs[:, :, None], ke.shape)
    columns = np.broadcast_to(dofs[:, None, :], ke.shape)
    return csr_matrix((ke.ravel(), (rows.ravel(), columns.ravel())), shape=(x.size, x.size))


def solve(spec: ProblemSpec, mesh: Mesh) -> F64:
    """Displacements (n_nodes, 3) in m by sparse LU. Raises InputError if singular."""
    from scipy.sparse.linalg import splu

    geometry = whole_mesh(spec, mesh)
    check_whole(spec, geometry)
    u = prescribed(spec, geometry, geometry.extent)
    free = np.flatnonzero(~fixed_dofs(spec, geometry, geometry.extent))
    f = right_hand_side(spec, geometry, geometry.extent).ravel()
    A = assembled(mesh.x, mesh.cells, mesh.element, *lame(spec, geometry))
    flat = u.ravel()
    flat[free] = splu(A[free][:, free].tocsc()).solve(f[free])
    return u
