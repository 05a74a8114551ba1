"""Make, describe and convert meshes.

A mesh is a preset (m1 m2 m3 s m l xl), box:13x9x13[:hex8], box:100000[:hex8] (the box whose number of
equations is closest), a file in any format that meshio reads, or a folder that `convert` wrote.

A name that ends with / is written as a folder of slices: the ranks of a run read, partition and distribute
it together, and none ever holds the mesh. Boxes are written to it without being held either.

Examples:
  fembench mesh info m3
  fembench mesh box 40x20x40 --element hex8 -o brick.vtu
  fembench mesh box 100000 --lengths 2 1 1 -o bar.msh
  fembench mesh convert wing.msh wing.vtu
  fembench mesh convert wing.msh wing.mesh/
  fembench mesh box 3000000 -o brick.mesh/
"""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fembench.mesh.box import Box
    from fembench.mesh.mesh import Mesh


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made = actions.add_parser("box", help="write a structured box, its faces tagged x0 x1 y0 y1 z0 z1")
    made.add_argument("size", metavar="SIZE", help="grid cells NXxNYxNZ, a number of equations, or a preset")
    made.add_argument("--element", choices=("tet4", "hex8"), default="tet4", help="type of the cells")
    made.add_argument(
        "--lengths",
        nargs=3,
        type=float,
        default=(1.0, 0.5, 1.0),
        metavar="METRES",
        help="lengths along x, y and z (default: 1 0.5 1)",
    )
    made.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="file to write; its suffix chooses the format: .vtu .msh .vtk …, or / for a folder of slices",
    )
    described = actions.add_parser("info", help="print counts, equations, hash, quality, volume and tags")
    described.add_argument("mesh", metavar="MESH", help="preset, box:…, file or folder of slices")
    described.add_argument("--json", action="store_true", help="print JSON instead of a table")
    converted = actions.add_parser("convert", help="write a mesh in another format, and check the copy")
    converted.add_argument("mesh", metavar="MESH", help="preset, box:…, file or folder of slices")
    converted.add_argument(
        "output", metavar="FILE", help="the suffix chooses the format; / a folder of slices"
    )


def run(options: argparse.Namespace) -> int:
    return {"box": _box, "info": _info, "convert": _convert}[options.action](options)


def _box(options: argparse.Namespace) -> int:
    from fembench.mesh.box import Box, box
    from fembench.mesh.io import write
    from fembench.mesh.presets import box_counts

    lengths = tuple(options.lengths)
    plan = Box(box_counts(options.size, lengths, options.element), options.element, lengths)
    if options.output.endswith("/"):
        _write_slices(plan, options.output)
        return 0
    mesh = box(plan.cells, options.element, lengths)
    write(mesh, options.output)
    _tell(options.output, mesh, mesh.hash)
    return 0


def _info(options: argparse.Namespace) -> int:
    import json

    from fembench.mesh.mesh import lines, summary
    from fembench.mesh.presets import resolve

    facts = summary(resolve(options.mesh))
    print(json.dumps(facts, indent=1) if options.json else "\n".join(lines(facts)))
    return 0


def _convert(options: argparse.Namespace) -> int:
    from fembench.base.errors import InputError
    from fembench.mesh.io import read, write
    from fembench.mesh.presets import box_named, resolve

    if options.output.endswith("/"):
        _write_slices(box_named(options.mesh) or resolve(options.mesh), options.output)
        return 0
    mesh = resolve(options.mesh)
    write(mesh, options.output)
    _tell(options.output, mesh, mesh.hash)
    try:
        lost = _difference(mesh, read(options.output))
    except InputError as error:
        raise InputError(f"{options.output} is written but cannot be read back: {error}") from error
    if lost:
        print(f"this format does not keep everything: {lost}")
    return 0


def _write_slices(mesh: "Mesh | Box", folder: str) -> None:
    from fembench.mesh.box import Box
    from fembench.mesh.slicing import source_of_box, source_of_mesh, write_sliced

    hash = write_sliced(source_of_box(mesh) if isinstance(mesh, Box) else source_of_mesh(mesh), folder)
    _tell(folder, mesh, hash)


def _tell(path: str, mesh: "Mesh | Box", hash: str) -> None:
    print(f"{path}: {mesh.n_nodes} nodes, {mesh.n_cells} {mesh.element}, hash {hash[:12]}")


def _difference(mesh: "Mesh", written: "Mesh") -> str:
    """Differences after writing and reading back; empty if there are none."""
    import numpy as np

    if written.hash == mesh.hash:
        return ""
    if mesh.x.shape != written.x.shape or not np.array_equal(mesh.cells, written.cells):
        return "nodes or cells are renumbered"
    found = [
        f"coordinates differ by up to {d:.1e} m" for d in [float(np.abs(mesh.x - written.x).max())] if d > 0
    ]
    before, after = {*mesh.node_tags, *mesh.facet_tags}, {*written.node_tags, *written.facet_tags}
    found += [f"tags {', '.join(sorted(before - after))} are lost"] if before - after else []
    return "; ".join(found) or "tags are changed"
