"""Nodes and facets of a problem's selections: counted per rank, merged, checked.

Every rank surveys its own nodes, the surveys are merged in a tree, and each rank checks
the merged one: all raise the same InputError, or none.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from fembench.base.arrays import F64, I64
from fembench.base.errors import InputError, closest
from fembench.fem.boundary import Geometry, fixed_dofs
from fembench.fem.checks import text
from fembench.fem.extent import Extent, gram, restrained_motions, rigid_modes
from fembench.fem.materials import unclear
from fembench.fem.problem import ProblemSpec, selections
from fembench.fem.selection import Selection, distances, selected, selected_facets


class Survey(Struct, frozen=True):
    """One row for each constraint, force and traction of the problem, in this order."""

    counts: I64  # (n_items,) owned nodes, or facets of a traction
    distance: F64  # (n_items,) of the nearest node, m; inf for tags
    nearest: F64  # (n_items, 3) that node's coordinates
    restrained_gram: F64  # (6, 6) rigid motions over the prescribed dofs of owned nodes
    n_free: int  # dofs of owned nodes that are not prescribed
    node_tags: frozenset[str]
    facet_tags: frozenset[str]
    cell_tags: frozenset[str]
    unclear: frozenset[str]  # why cells have no material, or two


def survey(spec: ProblemSpec, geometry: Geometry, extent: Extent) -> Survey:
    """The survey of this rank's nodes and facets."""
    items = _items(spec)
    near = [_nearest(on, geometry.x, extent) for on, _ in items]
    fixed = fixed_dofs(spec, geometry, extent)
    own = fixed & geometry.owned_nodes[:, None]
    held = np.flatnonzero(own.any(axis=1))  # few: modes take 144 bytes a node
    return Survey(
        counts=np.array([_count(on, on_facets, geometry, extent) for on, on_facets in items], dtype=np.int64),
        distance=np.array([distance for distance, _ in near], dtype=np.float64),
        nearest=np.array([x for _, x in near], dtype=np.float64).reshape(-1, 3),
        restrained_gram=gram(rigid_modes(geometry.x[held], extent.centre, extent.diagonal), own[held]),
        n_free=int(np.count_nonzero(~fixed[geometry.owned_nodes])),
        node_tags=frozenset(geometry.node_tags),
        facet_tags=frozenset(geometry.facet_tags),
        cell_tags=frozenset(geometry.cell_tags),
        unclear=unclear(spec, geometry.cell_tags),
    )


def merge(surveys: Sequence[Survey]) -> Survey:
    """The survey of all ranks together."""
    distance = np.array([s.distance for s in surveys])
    who = distance.argmin(axis=0) if distance.size else np.zeros(0, dtype=int)
    return Survey(
        counts=np.sum([s.counts for s in surveys], axis=0),
        distance=distance[who, np.arange(len(who))],
        nearest=np.array([s.nearest for s in surveys])[who, np.arange(len(who))],
        restrained_gram=np.sum([s.restrained_gram for s in surveys], axis=0),
        n_free=sum(s.n_free for s in surveys),
        node_tags=frozenset().union(*(s.node_tags for s in surveys)),
        facet_tags=frozenset().union(*(s.facet_tags for s in surveys)),
        cell_tags=frozenset().union(*(s.cell_tags for s in surveys)),
        unclear=frozenset().union(*(s.unclear for s in surveys)),
    )


def check(spec: ProblemSpec, found: Survey) -> None:
    """Raise InputError for an empty or ambiguous selection, or a body free or fixed whole."""
    for row, (on, on_facets) in enumerate(_items(spec)):
        where = f"problem '{spec.name}': {on}"
        if on.tag is not None:
            known = found.facet_tags if on_facets else found.node_tags
            _check_tag(spec, on.tag, known, "facet tag" if on_facets else "tag")
        if found.counts[row] == 0:
            kind = "facet of the boundary" if on_facets else "node"
            raise InputError(f"{where} selects no {kind}{_hint(found, row)}")
        if on.point is not None and found.counts[row] > 1:
            raise InputError(
                f"{where} selects {found.counts[row]} nodes, expected one; merge them in the mesh"
            )
    for tag in spec.materials:
        _check_tag(spec, tag, found.cell_tags, "cell tag")
    if found.unclear:
        raise InputError(f"problem '{spec.name}': {min(found.unclear)}; expected one in [materials]")
    held = restrained_motions(found.restrained_gram)
    if held < 6:
        raise InputError(
            f"problem '{spec.name}': the body can still move: {held} of 6 rigid motions are restrained;"
            " expected all of them"
        )
    if found.n_free == 0:
        raise InputError(
            f"problem '{spec.name}': every dof of the mesh is prescribed, so nothing is left to solve;"
            " expected a finer mesh or fewer constraints"
        )


def _items(spec: ProblemSpec) -> list[tuple[Selection, bool]]:
    """(selection, whether it is of facets) of every constraint, force and traction."""
    on_nodes, on_facets = selections(spec)
    return [(on, False) for on in on_nodes] + [(on, True) for on in on_facets]


def _count(on: Selection, on_facets: bool, geometry: Geometry, extent: Extent) -> int:
    if on_facets:
        return len(selected_facets(on, geometry.x, geometry.facet_tags, extent))
    nodes = selected(on, geometry.x, geometry.node_tags, extent)
    return int(np.count_nonzero(nodes & geometry.owned_nodes))


def _nearest(on: Selection, x: F64, extent: Extent) -> tuple[float, F64]:
    far = distances(on, x, extent)
    if far is None or not len(far):
        return np.inf, np.zeros(3)
    i = int(far.argmin())
    return float(far[i]), x[i]


def _hint(found: Survey, row: int) -> str:
    if not np.isfinite(found.distance[row]):
        return ""
    return f"; the nearest node is {text(found.nearest[row])}, {found.distance[row]:.3g} m away"


def _check_tag(spec: ProblemSpec, tag: str, known: Iterable[str], kind: str) -> None:
    names = sorted(known)
    if tag in names:
        return
    near = closest(tag, names)
    hint = f"the nearest tag is '{near}'" if near else f"the mesh has no {kind}s"
    raise InputError(f"problem '{spec.name}': unknown {kind} '{tag}'; {hint}")
