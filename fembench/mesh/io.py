"""The only importer of meshio: reads and writes mesh files of any format that it knows.

meshio prints, warns and even exits if a file is bad; here all of
that becomes one InputError.
"""

import contextlib
import io
import os
import re
import struct
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fembench.base.errors import InputError, shown
from fembench.base.files import atomic_path
from fembench.base.progress import progress
from fembench.mesh.elements import element_named
from fembench.mesh.foreign import bits_of_tags, mesh_from, physical_groups
from fembench.mesh.mesh import Mesh

BITS = (".vtu", ".vtk")  # formats that carry tags as data arrays
REFUSED = (
    *(".ele", ".node", ".xdmf", ".xmf"),  # meshio spreads these over two files
    *(".obj", ".off", ".ply", ".stl", ".svg", ".wkt"),  # surfaces: cells would be left out
    *(".cgns", ".h5m", ".ugrid"),  # meshio cannot read again what it writes
)
NASTRAN = (".bdf", ".fem", ".nas")  # meshio writes unreadable coordinates
PATIENCE = 100  # reads past the end of a file
# exceptions that parsers have been seen to raise on bad files
FOREIGN_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    StopIteration,
    SyntaxError,  # XML
    TypeError,
    ValueError,
    Warning,
    struct.error,
    zlib.error,
    SystemExit,
)


def load_meshio() -> None:
    """Import the library, before a clock runs."""
    import meshio  # noqa: F401


def read(path: Path | str) -> Mesh:
    """The mesh in a file, checked, with its boundary tags; named after the file.

    Raises InputError: no such file, not readable, truncated, not a mesh, 2-D, mixed or
    higher-order cells, and all that `Mesh.create` refuses.
    """
    import meshio

    source = Path(path)
    if not os.path.isfile(source):
        raise InputError(
            f"cannot read mesh {path}: {'not a file' if os.path.exists(source) else 'no such file'}"
        )
    with _quiet() as said:
        try:
            with open(source, "rb"):  # the system's own reason, before meshio hides it
                pass
            with _ending_files():
                foreign = meshio.read(source)
        except OSError as error:
            raise InputError(f"cannot read mesh {path}: {error.strerror or error}") from error
        except (*FOREIGN_ERRORS, meshio.ReadError, meshio._exceptions.CorruptionError) as error:
            reason = _reason(error, said) or f"not a mesh of this format ({type(error).__name__})"
            raise InputError(f"cannot read mesh {path}: {shown(reason, 200)}") from error
    if "not closed by" in said.getvalue():
        raise InputError(f"cannot read mesh {path}: truncated ({_first_line(said.getvalue())})")
    mesh, left_out = mesh_from(foreign, source.stem)
    if left_out:
        progress(f"note: {left_out}")
    return mesh


def write(
    mesh: Mesh,
    path: Path | str,
    point_data: Mapping[str, np.ndarray] | None = None,
    cell_data: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a mesh with tags and data, (n_nodes, …), (n_cells,
    …), by the suffix's format.

    .vtu, .vtk and .msh keep coordinates and tags exactly; other formats drop tags and
    may round. A .msh file takes no cell data. Raises InputError.
    """
    import meshio

    target = Path(path)
    if target.suffix.lower() in REFUSED or not target.suffix:
        raise InputError(f"cannot write mesh {path}: suffix '{target.suffix}'; expected .vtu, .msh, .vtk, …")
    if not target.parent.exists():
        raise InputError(f"cannot write mesh {path}: no folder {target.parent}")
    suffix = target.suffix.lower()
    foreign = _to_foreign(mesh, suffix, dict(point_data or {}), dict(cell_data or {}))
    version = "gmsh22" if suffix == ".msh" else None  # newer ones lose physical groups
    with atomic_path(target) as temporary, _quiet() as said:
        try:
            meshio.write(temporary, foreign, file_format=version)
        except OSError:
            raise  # atomic_path names path and reason
        except (*FOREIGN_ERRORS, meshio.WriteError, meshio.ReadError) as error:
            reason = _reason(error, said) or f"meshio's writer fails ({type(error).__name__})"
            reason = reason.replace(str(temporary), str(path))
            raise InputError(f"cannot write mesh {path}: {reason}") from error
        if suffix in NASTRAN:
            _read_again(temporary, path)


def _read_again(temporary: Path, path: Path | str) -> None:
    """Raises InputError if meshio wrote numbers that cannot be read."""
    try:
        read(temporary)
    except InputError as error:
        reason = "the columns of this format cannot hold its coordinates; expected .vtu, .msh, .vtk, …"
        raise InputError(f"cannot write mesh {path}: {reason}") from error


def _to_foreign(
    mesh: Mesh, suffix: str, point_data: dict[str, np.ndarray], cell_data: dict[str, np.ndarray]
) -> Any:
    """The meshio object that a format of this suffix takes."""
    import meshio

    if suffix == ".msh":
        if cell_data:  # meshio writes it, but cannot read such a file again
            raise InputError(f"cannot write cell data ({', '.join(cell_data)}) to a .msh file; expected .vtu")
        blocks, marks, names = physical_groups(mesh)
        data = {"gmsh:physical": marks, "gmsh:geometrical": [np.maximum(numbers, 1) for numbers in marks]}
        return meshio.Mesh(mesh.x, blocks, point_data, data, names)
    if suffix in BITS:
        of_nodes, of_cells = bits_of_tags(mesh)
        point_data = point_data | of_nodes
        cell_data = cell_data | of_cells
    cells = [(element_named(mesh.element).meshio, mesh.cells)]
    return meshio.Mesh(mesh.x, cells, point_data, {key: [a] for key, a in cell_data.items()})


class _EndingBytes(io.BufferedReader):
    """A file that raises at its end: some parsers wait for another line forever."""

    behind = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.behind = _at_end(self.behind, line)
        return line


class _EndingText(io.TextIOWrapper):
    """The same of text."""

    behind = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        self.behind = _at_end(self.behind, line)
        return line


def _at_end(behind: int, line: str | bytes) -> int:
    """Counts consecutive empty reads. Raises EOFError if there are too many."""
    if behind > PATIENCE:
        raise EOFError("truncated")
    return 0 if line else behind + 1


@contextlib.contextmanager
def _ending_files() -> Iterator[None]:
    """Within this context meshio opens files by `_open` and prints by `_Plain`."""
    import meshio

    rich = meshio._common.Console
    meshio._files.open = _open
    meshio._common.Console = _Plain
    try:
        yield
    finally:
        del meshio._files.open
        meshio._common.Console = rich


class _Plain:
    """A plain console for meshio: colouring a message that quotes a file takes minutes."""

    def __init__(self, **_: object) -> None:
        pass

    def print(self, text: str, **_: object) -> None:
        print(re.sub(r"\[/?(?:bold|red|yellow)\]", "", text[:1000]), file=sys.stderr)


def _open(path: Any, mode: str = "r", **options: Any) -> Any:
    """`open` for meshio: files to be read have an end."""
    if "r" not in mode or "+" in mode:
        return open(path, mode, **options)
    stream = _EndingBytes(io.FileIO(path, "rb"))
    return stream if "b" in mode else _EndingText(stream, **options)


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """Catch what is printed; numpy's warning that text ended early becomes the error
    that it is in newer ones; other warnings are dropped.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="string or file could not be read")
        yield said


def _reason(error: BaseException, said: io.StringIO) -> str:
    """One line: the exception that meshio raised, or its output; may be empty."""
    silent = isinstance(error, (SystemExit, UnicodeDecodeError))
    own = "" if silent else _first_line(str(error))
    return own or _first_line(said.getvalue()).removeprefix("Error: ")


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
