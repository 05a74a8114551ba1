"""Small meshes, numbered at random and split at random, for holding compiled kernels against their twins."""

from dataclasses import dataclass

import numpy as np

from fembench.mesh.box import box

LAM, MU = 1.2, 0.8


@dataclass(frozen=True)
class Sample:
    """What a kernel needs to know of a subdomain."""

    x: np.ndarray
    cells: np.ndarray
    n_interior: int
    n_active: int
    fixed: np.ndarray


def grid(nx, ny, nz, element="hex8"):
    """Coordinates (n, 3) and cells of a unit grid."""
    mesh = box((nx, ny, nz), element, (nx, ny, nz))
    return np.array(mesh.x), np.array(mesh.cells)


def sample(shape, element, seed, *, interior=0.7, dropped=0.1, restrained=0.1):
    """A jittered grid, nodes in random order; fractions of interior, dropped nodes and restrained dofs."""
    rng = np.random.default_rng(seed)
    x, cells = grid(*shape, element)
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
