"""Partitions as files for other programs, each format declared once; the command line follows.

The core is the file that gpmetis writes: line i is the part of cell i, both from 0, in
the order of the mesh file. Programs that read no such file get a few lines of code
beside it, which do. They refuse another number of cells or ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple

from fembench.base.errors import InputError
from fembench.base.files import write_atomic

if TYPE_CHECKING:  # the command line lists the formats
    import numpy as np

    from fembench.mesh.mesh import Mesh
    from fembench.partition.partition import Partition

MARK = "Written by fembench"  # in every file that may stand where somebody else's does
WHOLE = 1_000_000  # the sum of shares as whole numbers


class MapFormat(NamedTuple):
    """One format."""

    help: str  # which program takes it
    use: str  # what to do with the files
    write: Callable[[Mesh, Partition, Path], list[Path]]  # into a folder; the files


def metis(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """Line i: the part of cell i. Source: METIS 5, gpmetis GRAPH P."""
    return [_save(folder / map_name(mesh, partition), _lines(partition))]


def map_name(mesh: Mesh, partition: Partition) -> str:
    """'wing.part.2', as gpmetis names it."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', mesh.name)}.part.{partition.n_parts}"


def vtu(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """The map, and the mesh with the part of each cell."""
    from fembench.mesh.io import write

    found = metis(mesh, partition, folder)
    path = found[0].with_name(f"{found[0].name}.vtu")
    write(mesh, path, cell_data={"part": partition.part_of_cell})
    return [*found, path]


def openfoam(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """Both files are where decomposePar looks for them in a case. Source: OpenFOAM v1912."""
    head = _foam_head("labelList", "constant", "cellDecomposition")
    cells = f"{head}\n{mesh.n_cells}\n(\n{_lines(partition)})\n"
    return [
        _save(folder / "system" / "decomposeParDict", decompose_dict(partition.targets, "manual")),
        _save(folder / "constant" / "cellDecomposition", cells),
    ]


def decompose_dict(shares: Sequence[float], method: str) -> str:
    """The system/decomposeParDict of OpenFOAM: the parts of a map, or cut by shares."""
    weights = f"{{ processorWeights ({' '.join(map(str, whole_shares(shares)))}); }}"
    return (
        f"{_foam_head('dictionary', 'system', 'decomposeParDict')}"
        f"numberOfSubdomains {len(shares)};\n"
        f"method {method};  // manual: by the map; scotch, metis: by weights\n"
        'manualCoeffs { dataFile "cellDecomposition"; }\n'
        f"scotchCoeffs {weights}\nmetisCoeffs {weights}\n"
    )


def whole_shares(shares: Sequence[float]) -> list[int]:
    """Shares as Scotch takes them: whole numbers of at least 1, in proportion."""
    return [max(round(WHOLE * share), 1) for share in shares]


def _foam_head(kind: str, place: str, name: str) -> str:
    entries = f"class {kind}; location {place}; object {name};"
    return f"// {MARK}\nFoamFile {{ version 2.0; format ascii;\n  {entries} }}\n"


def dolfinx(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """The map, the ghosts, and a cell partitioner for `create_mesh` and `model_to_mesh`."""
    pairs = ghosts(mesh, partition).tolist()
    text = "".join(f"{cell} {part}\n" for cell, part in pairs)
    found = _with_code(mesh, partition, folder / "map_partitioner.py", DOLFINX)
    return [*found, _save(found[-1].with_name(f"{found[-1].name}.ghosts"), text)]


def ghosts(mesh: Mesh, partition: Partition) -> np.ndarray:
    """(n, 2) int64, ascending: each cell with each other part behind one of its facets."""
    import numpy as np

    part = partition.part_of_cell
    cell, facet = np.nonzero((mesh.behind >= 0) & (part[mesh.behind] != part[:, None]))
    return np.unique(np.stack([cell, part[mesh.behind[cell, facet]]], axis=1), axis=0)


def petsc(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """The map, and a shell partitioner for a DMPlex."""
    return _with_code(mesh, partition, folder / "map_distribute.py", PETSC)


def mfem(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """The map, and a function that reads it for the constructor of a ParMesh."""
    return _with_code(mesh, partition, folder / "map_partitioning.hpp", MFEM)


def dealii(mesh: Mesh, partition: Partition, folder: Path) -> list[Path]:
    """The map, and a function that makes it the subdomains of a triangulation."""
    return _with_code(mesh, partition, folder / "map_subdomains.h", DEALII)


def _with_code(mesh: Mesh, partition: Partition, path: Path, code: str) -> list[Path]:
    name = map_name(mesh, partition)
    text = Template(code).substitute(
        mark=MARK, map=name, ranks=partition.n_parts, cells=mesh.n_cells, corners=mesh.cells.shape[1]
    )
    return [_save(path, text), *metis(mesh, partition, path.parent)]


def _save(path: Path, text: str) -> Path:
    """Raises InputError rather than replace a file that somebody else has written."""
    if MARK in text and path.is_file() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
        raise InputError(f"{path} exists, and fembench has not written it; move it, or use another folder")
    write_atomic(path, text)
    return path


def _lines(partition: Partition) -> str:
    names = [f"{part}\n" for part in range(partition.n_parts)]
    return "".join([names[part] for part in partition.part_of_cell.tolist()])


DOLFINX = '''"""DOLFINx: each cell goes to the rank that $map names. $mark.

    from map_partitioner import partitioner  # or with_ghosts
    mesh = dolfinx.mesh.create_mesh(..., partitioner=partitioner)

The map follows the order of the mesh file, and so must the cells that ranks read.
"""

from pathlib import Path

import numpy as np
from dolfinx.cpp.graph import AdjacencyList_int32
from dolfinx.mesh import GhostMode

MAP = Path(__file__).with_name("$map")


def partitioner(comm, n_ranks, *given):
    """The rank of each cell that this rank has read. Collective.

    With ghosts behind facets where DOLFINx asks for them, as 0.5 does.
    """
    asked = [one for one in given if isinstance(one, GhostMode)]
    return _destinations(comm, n_ranks, given, bool(asked) and asked[0] != GhostMode.none)


def with_ghosts(comm, n_ranks, *given):
    """The same, always with ghosts: integrals over interior facets need them."""
    return _destinations(comm, n_ranks, given, True)


def _destinations(comm, n_ranks, given, ghosts):
    cells = next((one for one in given if hasattr(one, "num_nodes")), given[-1])
    n = cells.num_nodes if hasattr(cells, "num_nodes") else sum(map(len, cells)) // $corners
    found = comm.allgather(n)
    if (sum(found), n_ranks) != ($cells, $ranks):
        said = f"not {sum(found)} cells and {n_ranks} ranks"
        raise ValueError(f"{MAP.name} is for $cells cells and $ranks ranks, {said}")
    first = sum(found[: comm.rank])
    part = np.fromfile(MAP, np.int32, sep=" ")[first : first + n]
    cell, rank = np.fromfile(f"{MAP}.ghosts", np.int32, sep=" ").reshape(-1, 2).T
    mine = ghosts & (cell >= first) & (cell < first + n)
    at = cell[mine] - first
    ends = np.arange(n + 1) + np.searchsorted(at, np.arange(n + 1))
    return AdjacencyList_int32(np.insert(part, at + 1, rank[mine]), ends.astype(np.int32))
'''

PETSC = '''"""PETSc and Firedrake: each cell goes to the rank that $map names. $mark.

    from map_distribute import distribute, sizes_and_points
    distribute(plex)  # in place of plex.distribute()
    Mesh(..., distribution_parameters={"partition": sizes_and_points(comm)})  # Firedrake

The map follows the order of the mesh file, which rank 0 has read.
"""

from pathlib import Path

import numpy as np

MAP = Path(__file__).with_name("$map")


def distribute(plex, overlap=0):
    """Distribute a DMPlex in place. Collective."""
    first, last = plex.getHeightStratum(0)
    found = plex.comm.tompi4py().allgather(last - first)
    if found != [$cells, *[0] * ($ranks - 1)]:
        raise ValueError(f"{MAP.name} is for $cells cells on rank 0 of $ranks, not {found}")
    shell = plex.getPartitioner()
    shell.setType("shell")
    shell.setShellPartition(plex.comm.size, *sizes_and_points(plex.comm))
    return plex.distribute(overlap=overlap)


def sizes_and_points(comm):
    """Cells of each rank; all cells, rank by rank. On other ranks than 0: none."""
    part = np.fromfile(MAP, np.int32, sep=" ")[: 0 if comm.rank else None]
    sizes = np.bincount(part, minlength=comm.size)
    return sizes.astype(np.int32), np.argsort(part, kind="stable").astype(np.int32)
'''

MFEM = """// MFEM: each element goes to the rank that $map names. $mark.
//     mfem::Array<int> part = map_partitioning(mesh, "$map");  // before any refinement
//     mfem::ParMesh parallel(MPI_COMM_WORLD, mesh, part.GetData());
#pragma once
#include <fstream>
#include "mfem.hpp"

inline mfem::Array<int> map_partitioning(const mfem::Mesh &mesh, const char *path)
{
    std::ifstream map(path);
    mfem::Array<int> part;
    for (int rank; map >> rank;) part.Append(rank);
    MFEM_VERIFY(part.Size() == mesh.GetNE(), path << ": " << part.Size() << " elements");
    MFEM_VERIFY(mfem::Mpi::WorldSize() == $ranks, path << " is for $ranks ranks");
    return part;
}
"""

DEALII = """// deal.II: each cell goes to the rank that $map names. $mark.
//     map_subdomains(serial, "$map");  // a Triangulation, before any refinement
//     parallel.create_triangulation(  // a parallel::fullydistributed::Triangulation
//         TriangulationDescription::Utilities::create_description_from_triangulation(serial, comm));
#pragma once
#include <deal.II/grid/tria.h>
#include <fstream>

template <int dim, int spacedim>
void map_subdomains(dealii::Triangulation<dim, spacedim> &tria, const std::string &path)
{
    std::ifstream map(path);
    dealii::types::subdomain_id part;
    AssertThrow(tria.n_active_cells() == $cells, dealii::ExcMessage(path + ": for $cells cells"));
    for (const auto &cell : tria.active_cell_iterators())
    {
        AssertThrow(map >> part, dealii::ExcMessage(path + ": truncated"));
        cell->set_subdomain_id(part);
    }
}
"""


def write_map(to: str, mesh: Mesh, partition: Partition, folder: Path) -> tuple[list[Path], list[Path]]:
    """(files of a format, removed files of an older map with the same name)."""
    path = folder / map_name(mesh, partition)
    before = path.read_bytes() if path.is_file() else b""
    files = MAPS[to].write(mesh, partition, folder)
    if not path.is_file() or path.read_bytes() == before:
        return files, []
    stale = [one for one in _companions(path) if one not in files]
    for one in stale:
        one.unlink()
    return files, stale


def _companions(path: Path) -> Iterator[Path]:
    """What fembench has written beside a map, for it."""
    yield from (one for suffix in (".ghosts", ".vtu") if (one := Path(f"{path}{suffix}")).is_file())
    for one in sorted(path.parent.glob("map_*")):
        text = one.read_text(encoding="utf-8", errors="replace") if one.is_file() else ""
        if MARK in text and f'"{path.name}"' in text:
            yield one


MAPS = {
    "metis": MapFormat("the file of gpmetis", "line i is the part of cell i, both from 0", metis),
    "dolfinx": MapFormat(
        "DOLFINx", "create_mesh(…, partitioner=partitioner), from map_partitioner.py", dolfinx
    ),
    "petsc": MapFormat("DMPlex of PETSc, Firedrake", "distribute(plex), from map_distribute.py", petsc),
    "openfoam": MapFormat("OpenFOAM", "in the folder of a case: decomposePar", openfoam),
    "mfem": MapFormat(
        "MFEM", "map_partitioning(mesh, …) of map_partitioning.hpp gives ParMesh its parts", mfem
    ),
    "dealii": MapFormat("deal.II", "map_subdomains(triangulation, …) of map_subdomains.h", dealii),
    "vtu": MapFormat("ParaView, to look at the parts", "colour the cells by 'part'", vtu),
}
