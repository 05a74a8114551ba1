"""Meshes, made and converted."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fembench.base.errors import InputError
from fembench.mesh.box import LENGTHS, Box, box
from fembench.mesh.io import read, write
from fembench.mesh.mesh import Mesh, lines, summary
from fembench.mesh.presets import box_counts, box_named, resolve
from fembench.mesh.slicing import source_of_box, source_of_mesh, write_sliced

__all__ = ["convert", "describe", "lines", "write_box"]


def write_box(
    size: str, output: str, *, element: str = "tet4", lengths: tuple[float, float, float] = LENGTHS
) -> str:
    """Write a structured box; a line on the file. Raises InputError.

    size: grid cells NXxNYxNZ, a number of equations, or a preset
    output: the suffix chooses the format; / at its end: a folder of slices
    lengths: metres along x, y and z
    """
    lengths = (lengths[0], lengths[1], lengths[2])
    plan = Box(box_counts(size, lengths, element), element, lengths)
    return _written(plan if output.endswith("/") else box(plan.cells, element, lengths), output)


def describe(mesh: str) -> dict[str, Any]:
    """Counts, hash, quality, volume and tags of a preset, box or file. Raises InputError."""
    return summary(resolve(mesh))


def convert(mesh: str, output: str) -> Iterator[str]:
    """Write a mesh in another format: a line on the file, one on what is not kept.

    Raises InputError, also for a file that cannot be read back.
    """
    if output.endswith("/"):
        yield _written(box_named(mesh) or resolve(mesh), output)
        return
    found = resolve(mesh)
    yield _written(found, output)
    try:
        lost = difference(found, read(output))
    except InputError as error:
        raise InputError(f"{output} is written but cannot be read back: {error}") from error
    if lost:
        yield f"this format does not keep everything: {lost}"


def _written(mesh: Mesh | Box, path: str) -> str:
    if path.endswith("/"):
        hash = write_sliced(source_of_box(mesh) if isinstance(mesh, Box) else source_of_mesh(mesh), path)
    else:
        assert isinstance(mesh, Mesh)
        write(mesh, path)
        hash = mesh.hash
    medit = f"; a Medit file: for a folder of slices, end its name with a slash ({path}/)"
    counts = f"{path}: {mesh.n_nodes} nodes, {mesh.n_cells} {mesh.element}, hash {hash[:12]}"
    return counts + medit * path.endswith(".mesh")


def difference(mesh: Mesh, written: Mesh) -> str:
    """Differences after writing and reading back; empty if there are none."""
    if written.hash == mesh.hash:
        return ""
    if mesh.x.shape != written.x.shape or not np.array_equal(mesh.cells, written.cells):
        return "nodes or cells are renumbered"
    moved = float(np.abs(mesh.x - written.x).max())
    before, after = {*mesh.node_tags, *mesh.facet_tags}, {*written.node_tags, *written.facet_tags}
    found = [f"coordinates differ by up to {moved:.1e} m"] if moved > 0 else []
    found += [f"tags {', '.join(sorted(before - after))} are lost"] if before - after else []
    return "; ".join(found) or "tags are changed"
