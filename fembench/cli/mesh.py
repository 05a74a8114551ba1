"""Make, describe and convert meshes.

A mesh is a preset (m1 m2 m3 s m l xl), box:13x9x13[:hex8], box:100000[:hex8] (the box
whose number of equations is closest), a file in any format that meshio reads, or a
folder that `convert` wrote.

A name that ends with a slash is written as a folder of slices: the ranks of a run read,
partition and distribute it together, and none ever holds the whole mesh. Boxes are
written slice by slice, too.

Examples:
  fembench mesh info m3
  fembench mesh box 40x20x40 --element hex8 -o brick.vtu
  fembench mesh box 100000 --lengths 2 1 1 -o bar.msh
  fembench mesh convert wing.msh wing.vtu
  fembench mesh convert wing.msh wing.slices/
  fembench mesh box 3000000 -o brick.slices/
"""

import argparse
import json

from fembench.base.progress import working
from fembench.cli.options import call, declare_actions
from fembench.cli.parser import children

ACTIONS = """
box: write a structured box, its faces tagged x0 x1 y0 y1 z0 z1
size SIZE: grid cells NXxNYxNZ, a number of equations, or a preset
--element tet4|hex8 = tet4: type of the cells
-o, --output FILE!: file to write; its suffix chooses the format: .vtu .msh .vtk …, or /
    for a folder of slices

info: print counts, equations, hash, quality, volume and tags
mesh MESH: preset, box:…, file or folder of slices
--json: print JSON instead of a table

convert: write a mesh in another format, and check the copy
mesh MESH: preset, box:…, file or folder of slices
output FILE: the suffix chooses the format; / a folder of slices
"""
LENGTHS = (1.0, 0.5, 1.0)


def arguments(parser: argparse.ArgumentParser) -> None:
    declare_actions(parser, ACTIONS)
    text = "lengths along x, y and z (default: 1 0.5 1)"
    children(parser)["box"].add_argument(
        "--lengths", nargs=3, type=float, default=LENGTHS, metavar="METRES", help=text
    )


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import mesh

    if options.action == "box":
        with working(f"mesh: writing {options.output}"):
            line = call(mesh.write_box, options)
        print(line)
    elif options.action == "info":
        with working(f"mesh: reading {options.mesh}"):
            facts = mesh.describe(options.mesh)
        print(json.dumps(facts, indent=1) if options.json else "\n".join(mesh.lines(facts)))
    else:
        with working(f"mesh: converting {options.mesh}"):
            found = list(call(mesh.convert, options))
        print("\n".join(found))
    return 0
