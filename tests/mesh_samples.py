"""Meshes that the tests of `mesh` and `partition` share."""

import numpy as np

from fembench.mesh.box import box
from fembench.mesh.mesh import Mesh

ELEMENTS = ("tet4", "hex8")


def shuffled(element, cells=(4, 3, 5), seed=0):
    """A box with jiggled coordinates and no order left in nodes or cells; untagged."""
    mesh = box(cells, element)
    rng = np.random.default_rng(seed)
    new_number = rng.permutation(mesh.n_nodes)
    x = np.empty_like(mesh.x)
    x[new_number] = mesh.x + 0.02 * rng.uniform(-1, 1, mesh.x.shape) / max(cells)
    return Mesh.create(x, new_number[mesh.cells][rng.permutation(mesh.n_cells)], element)


def tagged(element, cells=(3, 2, 2)):
    """A jiggled box with facet tags, one of them inside the body, and node tags."""
    bare = shuffled(element, cells)
    plain = box(cells, element)
    facets = shuffled_facets(bare)
    inside = shared_facets(bare)
    return Mesh.create(
        bare.x,
        bare.cells,
        element,
        "sample",
        node_tags={"tip": [5, 2, 2], "corner": [0]},
        facet_tags={
            "skin": facets,
            "some": facets[:5],
            "within": inside[:3],
            "z9": facets[-len(plain.x) // 9 :],
        },
    )


def shuffled_facets(mesh):
    """The boundary facets with nodes and rows in no order, by brute force."""
    rng = np.random.default_rng(1)
    return np.array([rng.permutation(f) for f in rng.permutation(facets_by_count(mesh, 1))])


def shared_facets(mesh):
    """Facets between two cells, by brute force."""
    return facets_by_count(mesh, 2)


def facets_by_count(mesh, count):
    """(n, 3 | 4): sorted nodes of the facets that `count` cells have."""
    from fembench.mesh.elements import ELEMENTS as TABLES

    seen = {}
    for cell in mesh.cells.tolist():
        for facet in TABLES[mesh.element].facets.tolist():
            key = tuple(sorted(cell[i] for i in facet))
            seen[key] = seen.get(key, 0) + 1
    return np.array([key for key, times in seen.items() if times == count])
