"""Selections: which nodes or facets of the mesh a constraint or load acts on.

A node lies on a plane or point when it is within `Extent.tolerance`. Whether a node
lies on a tagged facet or on the boundary depends on the whole mesh: a rank may hold the
node without the facet. So the whole mesh is prepared first (`selection_tags`): every
facet tag then has a node tag of the same name, and the reserved tag "boundary" holds
the facets that belong to one cell only.
"""

import math
import re
from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from fembench.base.arrays import F64, I32, Mask
from fembench.fem.checks import SpecError
from fembench.fem.extent import Extent

BOUNDARY = "boundary"  # the reserved tag
FAR = 1e100  # m; squares of such distances do not overflow
Bound = float | Literal["min", "max"]


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of `plane` ("x=0", "y=max"), `tag`, `point` ([1, 0, "max"]), `boundary = true`.

    "min" and "max" are the sides of the mesh's bounding box.
    """

    plane: str | None = None
    tag: str | None = None
    point: tuple[Bound, Bound, Bound] | None = None
    boundary: bool = False

    def __post_init__(self) -> None:
        given = [self.plane is not None, self.tag is not None, self.point is not None, self.boundary]
        if sum(given) != 1:
            raise SpecError("a selection needs exactly one of plane, tag, point, boundary = true")
        if self.plane is not None:
            _parsed(self.plane)
        if self.point is not None and any(isinstance(c, float) and not abs(c) < FAR for c in self.point):
            raise SpecError(f"point must be finite and below {FAR:g} m, got {self}")

    def __str__(self) -> str:
        if self.point is not None:
            return "point (" + ", ".join(c if isinstance(c, str) else f"{c:g}" for c in self.point) + ")"
        if self.plane is not None:
            return f"plane '{self.plane}'"
        return f"tag '{self.tag}'" if self.tag is not None else "the boundary"


def plane_of(selection: Selection, extent: Extent) -> tuple[int, float]:
    """(axis, coordinate in m) of a plane selection."""
    axis, bound = _parsed(selection.plane or "")
    return axis, _resolved(bound, axis, extent)


def point_of(selection: Selection, extent: Extent) -> F64:
    """(3,) m of a point selection."""
    return np.array([_resolved(c, axis, extent) for axis, c in enumerate(selection.point or ())])


def distances(selection: Selection, x: F64, extent: Extent) -> F64 | None:
    """(n_nodes,) m from the plane or point; None for tags."""
    if selection.plane is not None:
        axis, value = plane_of(selection, extent)
        return np.abs(x[:, axis] - value)
    if selection.point is not None:
        return np.linalg.norm(x - point_of(selection, extent), axis=1)
    return None


def selected(selection: Selection, x: F64, node_tags: Mapping[str, Mask], extent: Extent) -> Mask:
    """(n_nodes,) mask of the selected nodes. A tag that no node has selects none."""
    far = distances(selection, x, extent)
    if far is not None:
        return far <= extent.tolerance
    return node_tags.get(selection.tag or BOUNDARY, np.zeros(len(x), dtype=bool))


def selected_facets(selection: Selection, x: F64, facet_tags: Mapping[str, I32], extent: Extent) -> I32:
    """(k, 3|4) the selected facets: those of a tag, or those of the boundary in a plane."""
    facets = facet_tags.get(selection.tag or BOUNDARY, np.zeros((0, 3), dtype=np.int32))
    if selection.plane is None:
        return facets
    axis, value = plane_of(selection, extent)
    on_plane = np.abs(x[facets, axis] - value) <= extent.tolerance
    return facets[on_plane.all(axis=1)]


def _parsed(plane: str) -> tuple[int, Bound]:
    match = re.fullmatch(r"\s*([xyz])\s*=\s*(\S+)\s*", plane)
    if match:
        axis = "xyz".index(match[1])
        if match[2] in ("min", "max"):
            return axis, match[2]  # type: ignore[return-value]
        try:
            value = float(match[2])
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return axis, value
    raise SpecError(f"plane '{plane}' is not understood; expected a plane such as 'x=0', 'y=max' or 'z=0.25'")


def _resolved(bound: Bound, axis: int, extent: Extent) -> float:
    if isinstance(bound, str):
        return float((extent.lo if bound == "min" else extent.hi)[axis])
    return bound
