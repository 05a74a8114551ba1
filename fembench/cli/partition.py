"""Cut a mesh by shares, for another program to run on the parts.

Part p is for rank p, and holds its share of the cells. The map says the part of every
cell, in the order of the mesh file: give fembench the file that the other program
reads. What the program needs to take the map is written beside it.

OpenFOAM, METIS and Scotch also cut a mesh by shares themselves, in whatever format it
is: fembench weights --export writes what they read.

Examples:
  fembench partition wing.msh --weights weights.json --to dolfinx
  fembench partition wing.msh --shares 2:1 --to petsc -o parts
  fembench partition wing.msh --shares 8*1 --to metis     # eight equal parts
  fembench partition cavity.vtk --weights weights.json --to openfoam -o cavity
  fembench partition wing.msh --shares 2:1 --to vtu       # look at the parts
"""

import argparse

from fembench.base.config import json_text
from fembench.base.progress import progress, working
from fembench.cli.options import call, listed
from fembench.cli.shared import say
from fembench.workflows.command import MAPS

OPTIONS = f"""
mesh MESH: preset, box:…, file or folder of slices
| --weights FILE: shares of the ranks, from fembench weights or tune
| --shares SHARES: shares of the ranks, as in 2:1 or 8*1
--to FORMAT = metis: {listed(MAPS)}
-o, --output FOLDER = parts: folder for the files
--partitioner metis|rcb = metis: graph or coordinates
--json: print JSON, with all parts, instead of a table
"""
KINDS = {"to": tuple(MAPS)}


def run(options: argparse.Namespace) -> int:
    from fembench.workflows.mesh import parts

    with working(f"partition: cutting {options.mesh}"):
        found = call(parts, options, tell=progress)
    if options.json:
        cut = found.partition
        tree: dict[str, object] = {"targets": cut.targets, "hosts": found.hosts}
        tree |= {"cells": cut.sizes.tolist(), "use": found.use}
        tree |= {name: [str(path) for path in getattr(found, name)] for name in ("files", "removed")}
        print(json_text(tree))
    else:
        say([found.sentence])
        print(found.text)
    return 0
