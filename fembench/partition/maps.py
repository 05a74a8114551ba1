"""Partitions as files for other programs, each format declared once; the command line follows.

The core is the file that gpmetis writes: line i is the part of cell i, both from 0, in
the order of the mesh file. Programs that read no such file get a few lines of code
beside it, which do. They refuse another number of cells or ranks.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple

from fembench.base.errors import InputError
from fembench.base.files import atomic_path

if TYPE_CHECKING:  # the command line lists the formats
    import numpy as np

    from fembench.mesh.mesh import Mesh
    from fembench.partition.partition import Partition

MARK = "Written by fembench"  # in every file that may stand where somebody else's does
WHOLE = 1_000_000  # the sum of shares as whole numbers
Files = dict[str, str | Callable[[Path], None]]  # name in a folder -> its text, or what writes it


class MapFormat(NamedTuple):
    """One format."""

    help: str  # which program takes it
    use: str  # what to do with the files
    files: Callable[[Mesh, Partition], Files]


def metis(mesh: Mesh, partition: Partition) -> Files:
    """Line i: the part of cell i. Source: METIS 5, gpmetis GRAPH P."""
    return {map_name(mesh, partition): _lines(partition)}


def map_name(mesh: Mesh, partition: Partition) -> str:
    """'wing.part.2', as gpmetis names it."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', mesh.name)}.part.{partition.n_parts}"


def vtu(mesh: Mesh, partition: Partition) -> Files:
    """The map, and the mesh with the part of each cell."""
    from fembench.mesh.io import write

    cells = {"part": partition.part_of_cell}
    name = f"{map_name(mesh, partition)}.vtu"
    return metis(mesh, partition) | {name: lambda path: write(mesh, path, cell_data=cells)}


def openfoam(mesh: Mesh, partition: Partition) -> Files:
    """Both files are where decomposePar looks for them in a case. Source: OpenFOAM v1912."""
    head = _foam_head("labelList", "constant", "cellDecomposition")
    return {
        "system/decomposeParDict": decompose_dict(partition.targets, "manual"),
        "constant/cellDecomposition": f"{head}\n{mesh.n_cells}\n(\n{_lines(partition)})\n",
    }


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


def dolfinx(mesh: Mesh, partition: Partition) -> Files:
    """The map, and a cell partitioner for `create_mesh`."""
    return with_code("map_partitioner.py", DOLFINX, mesh, partition, ghosts=len(ghosts(mesh, partition)))


def ghosts(mesh: Mesh, partition: Partition) -> np.ndarray:
    """(n, 2) int64, ascending: each cell with each other part behind one of its facets."""
    import numpy as np

    part = partition.part_of_cell
    cell, facet = np.nonzero((mesh.behind >= 0) & (part[mesh.behind] != part[:, None]))
    return np.unique(np.stack([cell, part[mesh.behind[cell, facet]]], axis=1), axis=0)


def with_code(name: str, code: str, mesh: Mesh, partition: Partition, **more: int) -> Files:
    """The map, and a file with code that reads it in the other program."""
    text = Template(code + (IN_PYTHON if name.endswith(".py") else "")).substitute(
        mark=MARK,
        map=map_name(mesh, partition),
        ranks=partition.n_parts,
        cells=mesh.n_cells,
        corners=mesh.cells.shape[1],
        **more,
    )
    return {name: text} | metis(mesh, partition)


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
TETRAHEDRON = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
HEXAHEDRON = [[0, 1, 2, 3], [0, 1, 4, 5], [0, 2, 4, 6], [1, 3, 5, 7], [2, 3, 6, 7], [4, 5, 6, 7]]
FACETS = {4: TETRAHEDRON, 8: HEXAHEDRON}[$corners]


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
    cells = next((one for one in given if hasattr(one, "array")), given[-1])
    flat = cells.array if hasattr(cells, "array") else np.concatenate(cells)
    cells = np.reshape(flat, (-1, $corners))
    n = len(cells)
    found = comm.allgather(n)
    if (sum(found), n_ranks) != ($cells, $ranks):
        said = f"not {sum(found)} cells and {n_ranks} ranks"
        raise ValueError(f"{MAP.name} is for $cells cells and $ranks ranks, {said}")
    first = sum(found[: comm.rank])
    part = _parts(comm)[first : first + n]
    at, rank = _behind(comm, cells, part)
    if sum(comm.allgather(len(at))) != $ghosts:
        said = "another mesh or order, or vertices of hexahedra in another order"
        raise ValueError(f"{MAP.name}: these are not the cells of the mesh file in its order: {said}")
    if not ghosts:
        at, rank = at[:0], rank[:0]
    ends = np.arange(n + 1) + np.searchsorted(at, np.arange(n + 1))
    return AdjacencyList_int32(np.insert(part, at + 1, rank), ends.astype(np.int32))


def _behind(comm, cells, part):
    """Each cell here with each other part behind one of its facets, in order. Collective."""
    facets = np.sort(cells[:, FACETS], axis=2).reshape(-1, len(FACETS[0]))
    parts = np.repeat(part, len(FACETS))
    lonely = np.ones(len(facets), bool)  # on the surface, or the other cell is elsewhere
    lonely[_pairs(facets)] = False
    found = comm.allgather((facets[lonely], parts[lonely]))
    far = [one for rank, one in enumerate(found) if rank != comm.rank]
    everywhere = np.concatenate([facets, *(one for one, _ in far)])
    other = np.concatenate([parts, *(one for _, one in far)])
    a, b = _pairs(everywhere).reshape(2, -1)
    a, b = np.append(a, b), np.append(b, a)
    chosen = (a < len(facets)) & (other[a] != other[b])
    pairs = np.stack([a[chosen] // len(FACETS), other[b[chosen]]])
    return np.unique(pairs, axis=1)


def _pairs(facets):
    """Where equal rows are: the first of all pairs, then the second."""
    order = np.lexsort(facets.T)
    same = np.all(facets[order][1:] == facets[order][:-1], axis=1)
    return np.append(order[:-1][same], order[1:][same])
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
    """Cells of each rank; all cells, rank by rank. On other ranks than 0: none. Collective."""
    part = _parts(comm.tompi4py() if hasattr(comm, "tompi4py") else comm)[: 0 if comm.rank else None]
    sizes = np.bincount(part, minlength=comm.size)
    return sizes.astype(np.int32), np.argsort(part, kind="stable").astype(np.int32)
'''

IN_PYTHON = '''

def _parts(comm):
    """The rank of each cell. What one rank finds wrong in its file, all ranks raise. Collective."""
    said = ""
    try:
        parts = np.fromfile(MAP, np.int32, sep=" ")
    except OSError as error:
        said = error.strerror
    else:
        if len(parts) != $cells:
            said = f"{len(parts)} numbers; expected $cells: cut off?"
        elif parts.min() < 0 or parts.max() >= $ranks or comm.size != $ranks:
            there = f"ranks {parts.min()} to {parts.max()} of {comm.size}"
            said = f"{there}; expected those below $ranks of $ranks"
    for wrong in filter(None, comm.allgather(said)):
        raise ValueError(f"{MAP.name}: {wrong}")
    return parts
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
    """(files of a format, removed files of an older map with the same name).

    All files are written, or none. Raises InputError, also rather than replace a file
    that somebody else has written.
    """
    path = folder / map_name(mesh, partition)
    made = {folder / name: content for name, content in MAPS[to].files(mesh, partition).items()}
    for place, content in made.items():
        if MARK in str(content) and (there := _text(place)) and MARK not in there:
            why = "exists, and fembench has not written it; move it, or use another folder"
            raise InputError(f"{place} {why}")
    changed = path in made and made[path] != _text(path)
    with contextlib.ExitStack() as whole:
        for place, content in made.items():
            if isinstance(content, str):
                whole.enter_context(atomic_path(place)).write_text(content, encoding="utf-8")
            else:
                content(place)
    stale = [one for one in _companions(path) if changed and one not in made]
    for one in stale:
        one.unlink()
    return [*made], stale


def _companions(path: Path) -> Iterator[Path]:
    """What fembench has written beside a map, for it."""
    if (shown := Path(f"{path}.vtu")).is_file():
        yield shown
    for one in sorted(path.parent.glob("map_*")):
        if MARK in (text := _text(one)) and f'"{path.name}"' in text:
            yield one


def _text(path: Path) -> str:
    """What a file holds; "" if there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


MAPS = {
    "metis": MapFormat("the file of gpmetis", "line i is the part of cell i, both from 0", metis),
    "dolfinx": MapFormat(
        "DOLFINx", "create_mesh(…, partitioner=partitioner), from map_partitioner.py", dolfinx
    ),
    "petsc": MapFormat(
        "DMPlex of PETSc, Firedrake",
        "distribute(plex), from map_distribute.py",
        partial(with_code, "map_distribute.py", PETSC),
    ),
    "openfoam": MapFormat("OpenFOAM", "in the folder of a case: decomposePar", openfoam),
    "mfem": MapFormat(
        "MFEM",
        "map_partitioning(mesh, …) of map_partitioning.hpp gives ParMesh its parts",
        partial(with_code, "map_partitioning.hpp", MFEM),
    ),
    "dealii": MapFormat(
        "deal.II",
        "map_subdomains(triangulation, …) of map_subdomains.h",
        partial(with_code, "map_subdomains.h", DEALII),
    ),
    "vtu": MapFormat("ParaView, to look at the parts", "colour the cells by 'part'", vtu),
}
