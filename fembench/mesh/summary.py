"""Facts about a mesh, as plain numbers and as lines of text."""

from typing import Any

import numpy as np

from fembench.base.units import plural
from fembench.mesh.mesh import Mesh
from fembench.mesh.quality import quality, volumes

LEVEL = 1e-9  # of the mesh's extent: nodes this close to a plane lie in it


def summary(mesh: Mesh) -> dict[str, Any]:
    """Counts, hash, volume, bounding box, quality and tags; lengths in metres.

    Equations are counted with the face of lowest x clamped, as an example.
    """
    low, high = mesh.x.min(axis=0), mesh.x.max(axis=0)
    clamped = int(np.count_nonzero(mesh.x[:, 0] <= low[0] + LEVEL * float((high - low).max())))
    shape = quality(mesh.x, mesh.cells, mesh.element)
    return {
        "name": mesh.name,
        "element": mesh.element,
        "nodes": mesh.n_nodes,
        "cells": mesh.n_cells,
        "clamped_nodes": clamped,
        "equations": 3 * (mesh.n_nodes - clamped),
        "hash": mesh.hash,
        "volume": float(volumes(mesh.x, mesh.cells, mesh.element).sum()),
        "lower": low.tolist(),
        "upper": high.tolist(),
        "quality_min": float(shape.min()),
        "quality_mean": float(shape.mean()),
        "node_tags": {tag: len(nodes) for tag, nodes in sorted(mesh.node_tags.items())},
        "facet_tags": {tag: len(facets) for tag, facets in sorted(mesh.facet_tags.items())},
    }


def lines(facts: dict[str, Any]) -> list[str]:
    """The same as text, one fact per line."""
    tags = [f"{tag} ({count} facets)" for tag, count in facts["facet_tags"].items()]
    tags += [f"{tag} ({plural(count, 'node')})" for tag, count in facts["node_tags"].items()]
    corner = " to ".join("(" + ", ".join(f"{a:g}" for a in facts[key]) + ")" for key in ("lower", "upper"))
    return [
        f"mesh        {facts['name']}",
        f"hash        {facts['hash']}",
        f"nodes       {facts['nodes']}",
        f"cells       {facts['cells']} {facts['element']}",
        f"equations   {facts['equations']} with the {facts['clamped_nodes']} nodes of lowest x clamped",
        f"volume      {facts['volume']:.9g} m³ in {corner} m",
        f"quality     {facts['quality_min']:.3f} worst, {facts['quality_mean']:.3f} mean (1 is regular)",
        f"tags        {', '.join(tags) if tags else 'none'}",
    ]
