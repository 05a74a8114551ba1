"""The whole solution of a run, for pictures and ParaView; only on request, as it grows with the mesh."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fembench.base.files import atomic_path
from fembench.bench.prepare import Prepared
from fembench.fem.stress import cell_stress, von_mises
from fembench.ranks.agree import on_root
from fembench.ranks.comm import Comm

F64 = NDArray[np.float64]


def write_fields(comm: Comm, path: str, prepared: Prepared, u: F64) -> None:
    """Write x, cells, element, u, von_mises, part to `path` (.npz); nothing if it is "". Collective."""
    if not path:
        return
    sub, material = prepared.sub, prepared.spec.material
    stress = von_mises(cell_stress(sub.x, sub.cells, sub.element, material.lam, material.mu, u))
    pieces = comm.gather((sub.global_nodes, sub.x, u, sub.global_cells, sub.global_nodes[sub.cells], stress))
    on_root(comm, lambda: _join(Path(path), sub.element, pieces or []))


def _join(path: Path, element: str, pieces: list[tuple]) -> None:
    n_nodes = 1 + max(int(p[0].max()) for p in pieces)
    n_cells = sum(len(p[3]) for p in pieces)
    x, u = np.zeros((n_nodes, 3)), np.zeros((n_nodes, 3))
    cells = np.zeros((n_cells, pieces[0][4].shape[1]), np.int32)
    stress, part = np.zeros(n_cells), np.zeros(n_cells, np.int32)
    for rank, (nodes, where, displacement, numbers, connectivity, values) in enumerate(pieces):
        x[nodes], u[nodes] = where, displacement
        cells[numbers], stress[numbers], part[numbers] = connectivity, values, rank
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, x=x, cells=cells, element=element, u=u, von_mises=stress, part=part)
