"""A whole mesh with its tags prepared for selections, for distribution over ranks and for serial use."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fembench.base.errors import InputError
from fembench.fem.extent import Extent, extent_of
from fembench.fem.parts import check_parts
from fembench.fem.problem import ProblemSpec, needs_boundary
from fembench.fem.selection import BOUNDARY, Mask
from fembench.fem.survey import check, survey
from fembench.mesh.adjacency import facet_parts
from fembench.mesh.facets import boundary_facets, nodes_of_tags
from fembench.mesh.mesh import Mesh


@dataclass(frozen=True, slots=True)
class WholeMesh:
    """A `boundary.Geometry` that owns every node."""

    element: str
    x: NDArray[np.float64]  # (n_nodes, 3)
    cells: NDArray[np.int32]  # (n_cells, npc)
    node_tags: dict[str, Mask]  # (n_nodes,) each; one for every facet tag too
    facet_tags: dict[str, NDArray[np.int32]]  # (k, 3|4) each; "boundary" where the problem needs it
    owned_nodes: Mask  # (n_nodes,), all True
    behind: NDArray[np.int32]  # (n_cells, n_facets) of `facet_neighbours`

    @property
    def extent(self) -> Extent:
        """The bounding box."""
        return extent_of(self.x)


def whole_mesh(spec: ProblemSpec, mesh: Mesh) -> WholeMesh:
    """The mesh with the tags that a problem's selections need."""
    facet_tags = dict(mesh.facet_tags)
    if needs_boundary(spec):
        if BOUNDARY in facet_tags or BOUNDARY in mesh.node_tags:
            raise InputError(
                f"mesh '{mesh.name}' has its own tag '{BOUNDARY}', which problem '{spec.name}' needs"
                " for the mesh's whole boundary; rename it"
            )
        facet_tags[BOUNDARY] = boundary_facets(mesh.cells, mesh.element, mesh.behind)[0]
    tagged = nodes_of_tags(mesh.node_tags, facet_tags)
    node_tags = {name: _mask(nodes, mesh.n_nodes) for name, nodes in tagged.items()}
    owned = np.ones(mesh.n_nodes, dtype=bool)
    return WholeMesh(mesh.element, mesh.x, mesh.cells, node_tags, facet_tags, owned, mesh.behind)


def check_whole(spec: ProblemSpec, geometry: WholeMesh) -> None:
    """Raise InputError if the problem does not fit the mesh or leaves it, or a part of it, free to move."""
    check(spec, survey(spec, geometry, geometry.extent))
    check_parts(spec, geometry, geometry.extent, facet_parts(geometry.behind))


def _mask(nodes: NDArray[np.int32], n_nodes: int) -> Mask:
    mask = np.zeros(n_nodes, dtype=bool)
    mask[nodes] = True
    return mask
