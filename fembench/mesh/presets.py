"""Meshes by name: presets, `box:…` specifications and files.

m1 m2 m3                 the sizes of the three meshes of R. R. Ferreira (2006)
s m l xl                 about 30 k, 200 k, 700 k and 3 M equations
box:13x9x13[:hex8]       grid cells along x, y, z
box:100000[:hex8]        the box closest to this number of equations
any other text           the path of a file, or of a folder that `mesh convert` wrote
"""

import os
import re
from pathlib import Path

from fembench.base.errors import InputError, closest, shown
from fembench.mesh.box import LENGTHS, Box, Counts, box, box_cells_for_equations
from fembench.mesh.elements import ELEMENTS
from fembench.mesh.mesh import Mesh
from fembench.mesh.sliced import Sliced, is_sliced

PRESETS: dict[str, Counts] = {
    "m1": (6, 4, 6),
    "m2": (12, 5, 11),
    "m3": (13, 9, 13),
    "s": (26, 13, 26),
    "m": (50, 25, 50),
    "l": (76, 38, 76),
    "xl": (126, 63, 126),
}
GRAMMAR = "expected box:NXxNYxNZ or box:EQUATIONS, optionally followed by :tet4 or :hex8"


def resolve(spec: str) -> Mesh:
    """The mesh that `spec` names. Raises InputError."""
    plan = box_named(spec)
    if plan is not None:
        return box(plan.cells, plan.element, plan.lengths, plan.name)
    check_known(spec)
    if is_sliced(spec):
        return Sliced(spec).whole()
    from fembench.mesh.io import read

    return read(spec)


def hash_of(spec: str) -> str:
    """The hash of the mesh that `spec` names. Raises InputError."""
    return Sliced(spec).manifest.hash if is_sliced(spec) else resolve(spec).hash


def box_named(spec: str) -> Box | None:
    """The box that `spec` names; None if it names a file. Raises InputError."""
    head, *rest = spec.split(":")
    if head in PRESETS and len(rest) <= 1:
        return Box(PRESETS[head], _element(rest, spec), name=spec)
    if head != "box":
        return None
    if not 1 <= len(rest) <= 2:
        raise InputError(f"mesh '{shown(spec)}': {GRAMMAR}")
    element = _element(rest[1:], spec)
    return Box(box_counts(rest[0], element=element), element)


def box_counts(size: str, lengths: tuple[float, float, float] = LENGTHS, element: str = "tet4") -> Counts:
    """Grid cells of "13x9x13", "100000" (equations) or a
    preset's name. Raises InputError."""
    if size in PRESETS:
        return PRESETS[size]
    if re.fullmatch(r"[0-9]{1,40}", size):
        return box_cells_for_equations(int(size), lengths, element)
    if re.fullmatch(r"[0-9]{1,40}x[0-9]{1,40}x[0-9]{1,40}", size):
        nx, ny, nz = (int(n) for n in size.split("x"))
        return nx, ny, nz
    raise InputError(
        f"box of size '{shown(size)}'; expected NXxNYxNZ grid cells, a number of equations or a preset"
    )


def _element(words: list[str], spec: str) -> str:
    """The element at the end of a specification; tet4 by default."""
    if words and words[0] not in ELEMENTS:
        raise InputError(
            f"mesh '{shown(spec)}': unknown element '{shown(words[0])}'; expected {' or '.join(ELEMENTS)}"
        )
    return words[0] if words else "tet4"


def check_known(spec: str) -> None:
    """Raises InputError if `spec` names neither a box nor a file that is there."""
    if box_named(spec) is not None or os.path.exists(spec):
        return
    if Path(spec).suffix:
        raise InputError(f"cannot read mesh {spec}: no such file")
    near = closest(spec, PRESETS, alike=0.4)
    names = " ".join(PRESETS) + (f"; nearest '{near}'" if near else "")
    raise InputError(f"mesh '{shown(spec)}': no such file, no preset ({names}); else {GRAMMAR}")
