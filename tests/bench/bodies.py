"""A generator of bodies of several boxes that touch in a face, an edge or a node, or not at all."""

from dataclasses import dataclass

import numpy as np

from fembench.fem.parts import assembled
from fembench.mesh.box import box
from fembench.mesh.mesh import Mesh

E, NU = 1000.0, 0.3
COUNTS = (2, 1, 1)  # cells of a box, each a unit cube
SEEDS = 17  # random bodies
PROBLEM = f"""[material]
E = {E}
nu = {NU}
rho = 1.0
[[constraints]]
on = {{tag = "held"}}
[[constraints]]
on = {{tag = "rollers"}}
u = ["free", 0.0, "free"]
[body]
gravity = [0.3, -1.0, 0.2]
"""
WALL = [(0, y, z) for y in (0, 1) for z in (0, 1)]  # holds the first box


@dataclass(frozen=True)
class Body:
    """Boxes at these corners; nodes held, or held in y only; whether coinciding nodes are one."""

    at: list
    held: list
    rollers: tuple = ()
    merged: bool = True
    mirrored: bool = False  # the later boxes, so that diagonals of tetrahedra do not meet

    def mesh(self, element):
        boxes = [box(COUNTS, element, tuple(map(float, COUNTS)))] * len(self.at)
        x = np.concatenate([self._mirror(k, b.x) + at for k, (b, at) in enumerate(zip(boxes, self.at))])
        shift = boxes[0].n_nodes
        cells = np.concatenate([self._mirror_cells(k, b, element) + k * shift for k, b in enumerate(boxes)])
        if self.merged:
            x, where = np.unique(np.round(x, 9), axis=0, return_inverse=True)
            cells = where.ravel()[cells]
        tags = {"held": self._nodes(x, self.held), "rollers": self._nodes(x, self.rollers or self.held)}
        return Mesh.create(x, cells, element, "body", tags)

    def _mirror(self, k, x):
        return x * (1, 1, -1) + (0, 0, COUNTS[2]) if self.mirrored and k else x

    def _mirror_cells(self, k, b, element):
        order = [1, 0, 2, 3] if element == "tet4" else [4, 5, 6, 7, 0, 1, 2, 3]
        return b.cells[:, order] if self.mirrored and k else b.cells

    def _nodes(self, x, points):
        return [n for p in points for n in np.flatnonzero(np.abs(x - p).max(axis=1) < 1e-6)]


def two(at, *more, **options):
    """A box that the wall holds and another box, with further nodes held."""
    return Body([(0, 0, 0), at], WALL + list(more), **options)


BODIES = {
    "a face": two((2, 0, 0)),
    "a face, nodes not merged": two((2, 0, 0), merged=False),
    "a face, other diagonals": two((2, 0, 0), mirrored=True),
    "half a face": two((2, 0.5, 0)),
    "an edge": two((2, 1, 0)),
    "an edge, one node held": two((2, 1, 0), (4, 2, 1)),
    "an edge, one node of the hinge held": two((2, 1, 0), (2, 1, 1)),
    "an edge, one dof held": two((2, 1, 0), rollers=((4, 1, 0),)),
    "an edge, one dof held in the hinge's plane": two((2, 1, 0), rollers=((2, 2, 0),)),
    "a node": two((2, 1, 1)),
    "a node, one node held": two((2, 1, 1), (4, 1, 1)),
    "a node, two nodes held in line": two((2, 1, 1), (3, 1, 1), (4, 1, 1)),
    "a node, two nodes held": two((2, 1, 1), (4, 1, 1), (3, 2, 1)),
    "a floating box": two((5, 0, 0)),
    "one node held": two((5, 0, 0), (5, 0, 0)),
    "two nodes held": two((5, 0, 0), (5, 0, 0), (7, 1, 1)),
    "three nodes held in line": two((5, 0, 0), (5, 0, 0), (6, 0, 0), (7, 0, 0)),
    "three nodes held": two((5, 0, 0), (5, 0, 0), (7, 0, 0), (5, 1, 1)),
    "held at one node": Body([(0, 0, 0), (2, 0, 0)], [(0, 0, 0)]),
    "held at two nodes": Body([(0, 0, 0), (2, 0, 0)], [(0, 0, 0), (4, 1, 1)]),
    "a chain of hinges": Body([(0, 0, 0), (2, 1, 0), (0, 2, 0)], WALL),
    "hinges on both sides": Body([(0, 0, 0), (2, 1, 0), (0, 2, 0)], [*WALL, (0, 2, 0), (0, 3, 0), (0, 3, 1)]),
    "a ring of hinges": Body([(0, 0, 0), (2, 1, 0), (0, 2, 0), (-2, 1, 0)], WALL),
}


def random_body(seed):
    """Two to four boxes on a grid, neighbours of each other as it happens, with up to six nodes held."""
    rng = np.random.default_rng(seed)
    grid = [(2 * i, j, k) for i in range(3) for j in range(3) for k in range(2)]
    at = [grid[i] for i in rng.choice(len(grid), size=rng.integers(2, 5), replace=False)]
    x = Body(at, []).mesh("hex8").x
    held = [tuple(x[i]) for i in rng.choice(len(x), size=rng.integers(1, 7), replace=False)]
    rollers = [tuple(x[i]) for i in rng.choice(len(x), size=rng.integers(0, 4), replace=False)]
    wall = [tuple(p) for p in x if p[0] == at[0][0]] if seed % 3 else []
    return Body(at, wall + held, tuple(rollers), merged=bool(seed % 8))


BODIES |= {f"seed {seed}": random_body(seed) for seed in range(SEEDS)}


def direct(mesh):
    """u (n_nodes, 3) by a dense solve; None if the supports leave a motion, as the eigenvalues say."""
    free = np.ones((mesh.n_nodes, 3), dtype=bool)
    free[mesh.node_tags["held"]] = False
    free[mesh.node_tags["rollers"], 1] = False
    free = free.ravel()
    lam, mu = E * NU / ((1 + NU) * (1 - 2 * NU)), E / (2 + 2 * NU)
    A = assembled(mesh.x, mesh.cells, mesh.element, lam, mu).toarray()[np.ix_(free, free)]
    values = np.linalg.eigvalsh(A)
    relative = abs(values[0]) / values[-1]
    assert not 1e-13 < relative < 1e-6, relative  # no doubt which of the two it is
    if relative < 1e-13:
        return None
    u = np.zeros(free.size)
    u[free] = np.linalg.solve(A, load(mesh).ravel()[free])
    return u.reshape(-1, 3)


def load(mesh):
    """(n_nodes, 3) the weight: a cell's volume in equal parts, exact for boxes and tetrahedra."""
    corners = mesh.x[mesh.cells]
    if mesh.element == "hex8":
        volume = np.ones(mesh.n_cells)
    else:
        volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6
    f = np.zeros(mesh.x.shape)
    for corner in range(mesh.cells.shape[1]):
        np.add.at(f, mesh.cells[:, corner], np.outer(volume / mesh.cells.shape[1], (0.3, -1.0, 0.2)))
    return f
