"""Fields: the solution of a run, as stored in its fields file."""

import dataclasses
import zipfile
import zlib
from pathlib import Path

import numpy as np

from fembench.base.arrays import F64, I32
from fembench.base.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Fields:
    """Mesh and solution of one run, gathered from all ranks."""

    x: F64  # (n_nodes, 3)
    cells: I32  # (n_cells, nodes of the element)
    element: str
    u: F64  # (n_nodes, 3) displacement, metre
    von_mises: F64  # (n_cells,) pascal
    part: I32  # (n_cells,)


def fields_path(folder: Path, record_id: str) -> Path:
    """The path of a run's fields file, whether or not it exists."""
    runs = folder / "runs" if (folder / "runs").is_dir() else folder
    return runs / f"{record_id}.fields.npz"


def read_fields(path: Path) -> Fields:
    """The fields in a file. Raises InputError for anything else."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {f.name: arrays[f.name] for f in dataclasses.fields(Fields)}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not a file of fields: {error}") from error
    return Fields(**{**found, "element": str(found["element"])})
