"""Small meshes, numbered at random and split at random, for holding compiled kernels against their twins."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np

LAM, MU = 1.2, 0.8


@dataclass(frozen=True)
class Sample:
    """What a kernel needs to know of a subdomain."""

    x: np.ndarray
    cells: np.ndarray
    n_interior: int
    n_active: int
    fixed: np.ndarray


def grid(nx, ny, nz):
    """Coordinates (n, 3) and hexahedra of a unit grid, VTK order."""
    k, j, i = np.meshgrid(range(nz + 1), range(ny + 1), range(nx + 1), indexing="ij")
    x = np.stack([i, j, k], axis=-1).reshape(-1, 3).astype(float)
    number = np.arange(len(x)).reshape(k.shape)
    corner = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0)]
    hexes = np.stack([number[c : c + nz, b : b + ny, a : a + nx].ravel() for c, b, a in corner], axis=1)
    return x, hexes.astype(np.int32)


def tetrahedra(x, hexes):
    """Six Kuhn tetrahedra a hexahedron, positively oriented."""
    at = {
        (0, 0, 0): 0,
        (1, 0, 0): 1,
        (1, 1, 0): 2,
        (0, 1, 0): 3,
        (0, 0, 1): 4,
        (1, 0, 1): 5,
        (1, 1, 1): 6,
        (0, 1, 1): 7,
    }
    tets = []
    for order in permutations(range(3)):
        path, here = [0], [0, 0, 0]
        for axis in order:
            here[axis] = 1
            path.append(at[tuple(here)])
        tets.append(hexes[:, path])
    tets = np.concatenate(tets)
    a = x[tets]
    flip = np.linalg.det(a[:, 1:] - a[:, :1]) < 0
    tets[flip] = tets[flip][:, [0, 2, 1, 3]]
    return np.ascontiguousarray(tets)


def sample(shape, element, seed, *, interior=0.7, dropped=0.1, restrained=0.1):
    """A jittered grid, nodes in random order; fractions of interior, dropped nodes and restrained dofs."""
    rng = np.random.default_rng(seed)
    x, cells = grid(*shape)
    if element == "tet4":
        cells = tetrahedra(x, cells)
    x = x + rng.uniform(-0.15, 0.15, x.shape)
    number = rng.permutation(len(x))
    moved = np.empty_like(x)
    moved[number] = x
    n_active = len(x) - round(dropped * len(x))
    return Sample(
        x=moved,
        cells=np.ascontiguousarray(number[cells][rng.permutation(len(cells))], np.int32),
        n_interior=round(interior * n_active),
        n_active=n_active,
        fixed=rng.random(3 * n_active) < restrained,
    )


SAMPLES = {
    "tets": sample((4, 3, 5), "tet4", 1),
    "bricks": sample((3, 4, 3), "hex8", 2),
    "one tet": sample((1, 1, 1), "tet4", 3, interior=0.5, dropped=0.0, restrained=0.0),
    "no interface": sample((3, 3, 4), "tet4", 4, interior=1.0),
    "no interior": sample((3, 2, 4), "tet4", 5, interior=0.0),
    "nothing dropped": sample((2, 5, 3), "hex8", 6, dropped=0.0, restrained=0.0),
    "nothing left": sample((2, 2, 2), "tet4", 7, dropped=1.0),
    "many windows": sample((9, 8, 7), "tet4", 8, dropped=0.02, restrained=0.05),
    "one node": sample((1, 1, 1), "hex8", 9, dropped=0.875, interior=1.0, restrained=0.0),
}
