"""Each file of a map is read as its program reads it, or computed by hand."""

import importlib.util
import re
import shutil
import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.mesh.box import box
from fembench.mesh.elements import element_named
from fembench.mesh.io import read
from fembench.mesh.mesh import Mesh
from fembench.partition.maps import MAPS, decompose_dict, ghosts, map_name, whole_shares, write_map
from fembench.partition.methods import partition

MESH = box((4, 3, 2), "tet4")
CUT = partition(MESH, (0.6, 0.3, 0.1))
PART = CUT.part_of_cell.tolist()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "parts"


@pytest.mark.parametrize("name", MAPS)
def test_every_format_writes_the_files_that_it_names_and_replaces_them_when_cut_again(name, folder):
    for _ in range(2):
        files = write_map(name, MESH, CUT, folder)[0]
        assert sorted(files) == sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_file_of_metis_says_the_part_of_each_cell_in_a_line(folder):
    [path] = write_map("metis", MESH, CUT, folder)[0]
    assert path.name == "box-4x3x2.part.3"
    assert [int(line) for line in path.read_text().splitlines()] == PART


def test_the_name_of_a_map_is_one_word_whatever_the_mesh_is_called():
    mesh = Mesh.create(MESH.x, MESH.cells, "tet4", "my wing/é")
    assert map_name(mesh, CUT) == "my-wing-.part.3"


def test_paraview_gets_the_same_cells_with_their_parts(folder):
    import meshio

    path = write_map("vtu", MESH, CUT, folder)[0][-1]
    assert read(path).hash == MESH.hash
    assert meshio.read(path).cell_data["part"][0].tolist() == PART


def test_openfoam_gets_a_list_of_labels_and_a_dictionary_that_names_it(folder):
    dictionary, cells = (path.read_text() for path in write_map("openfoam", MESH, CUT, folder)[0])
    n, labels = re.search(r"class labelList;.*}\s+(\d+)\s+\(([\d\s]*)\)\s*$", cells).groups()
    assert (int(n), [*map(int, labels.split())]) == (MESH.n_cells, PART)
    assert re.search(r"^method manual;.*\nmanualCoeffs { dataFile \"cellDecomposition\"; }", dictionary, re.M)
    assert "numberOfSubdomains 3;" in dictionary
    assert (folder / "constant" / "cellDecomposition").is_file()
    assert [len(files) for files in write_map("openfoam", MESH, CUT, folder)] == [2, 0]  # it has no map


def test_weights_of_processors_are_whole_and_in_proportion():
    assert whole_shares((0.75, 0.25)) == [750000, 250000]
    assert whole_shares((1 - 1e-9, 1e-9)) == [1000000, 1]  # Scotch takes no zero
    assert "scotchCoeffs { processorWeights (750000 250000); }" in decompose_dict((0.75, 0.25), "scotch")


def test_a_file_that_somebody_else_wrote_is_not_replaced(folder):
    theirs = folder / "system" / "decomposeParDict"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("method scotch;\n")
    with pytest.raises(InputError, match="decomposeParDict exists, and fembench has not written it"):
        write_map("openfoam", MESH, CUT, folder)
    assert theirs.read_text() == "method scotch;\n"
    assert not (folder / "constant").exists()


@pytest.mark.parametrize("name", ["vtu", "openfoam"])
def test_all_files_are_written_or_none(name, folder, full_disk):
    first, _ = MAPS[name].files(MESH, CUT).values()
    with full_disk(len(first)), pytest.raises(InputError, match=r"cannot write .*: File too large"):
        write_map(name, MESH, CUT, folder)
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_no_file_of_an_older_map_stays_beside_a_new_one_of_the_same_name(folder):
    other = partition(MESH, (0.2, 0.3, 0.5))
    more = partition(MESH, [1.0] * 30)  # its name begins as that of three parts does
    (folder / "map_folder").mkdir(parents=True)
    (folder / "map_of_mine.py").write_text('"box-4x3x2.part.3"')
    written = [path for to in ("dolfinx", "mfem", "vtu") for path in write_map(to, MESH, CUT, folder)[0]]
    kept = write_map("dealii", MESH, more, folder)[0]
    assert write_map("petsc", MESH, CUT, folder)[1] == []  # the same map
    files, removed = write_map("dolfinx", MESH, other, folder)
    names = {"map_partitioning.hpp", "map_distribute.py", "box-4x3x2.part.3.vtu"}
    assert {path.name for path in removed} == names
    files, removed = write_map("metis", MESH, CUT, folder)
    assert {path.name for path in removed} == {"map_partitioner.py"}
    left = {path for path in folder.iterdir() if path.is_file()}
    assert left == {*files, *kept, folder / "map_of_mine.py"}
    assert len(set(written)) == 4


@pytest.mark.parametrize("element", ["tet4", "hex8"])
def test_a_cell_is_a_ghost_of_every_other_part_behind_one_of_its_facets(element):
    mesh = box((4, 3, 2), element)
    cut = partition(mesh, (0.4, 0.3, 0.3))
    owners = {}
    for cell, nodes in enumerate(mesh.cells.tolist()):
        for facet in element_named(element).facets.tolist():
            owners.setdefault(frozenset(nodes[k] for k in facet), []).append(cell)
    part = cut.part_of_cell.tolist()
    both = [pair for pair in owners.values() if len(pair) == 2]
    expected = {(a, part[b]) for pair in both for a, b in (pair, pair[::-1]) if part[a] != part[b]}
    assert [tuple(row) for row in ghosts(mesh, cut).tolist()] == sorted(expected)


# ---- code that other programs run, with stand-ins for the programs


class Comm:
    """Rank `rank` of a job whose ranks have read `cells` cells each."""

    def __init__(self, rank, cells):
        self.rank, self.cells, self.size = rank, cells, len(cells)

    def allgather(self, one):
        if isinstance(one, str):  # what is wrong with the map
            return [one]
        assert one == self.cells[self.rank]
        return self.cells

    def tompi4py(self):
        return self


class GhostMode:
    none, shared = "none", "shared"

    def __init__(self, mode):
        self.mode = mode

    def __eq__(self, other):
        return self.mode == other


class Adjacency:
    def __init__(self, array, offsets):
        assert array.dtype == offsets.dtype == np.int32
        self.rows = [array[a:b].tolist() for a, b in pairwise(offsets)]


def loaded(path, monkeypatch, **modules):
    """The code in a file, where only these modules can be imported besides."""
    for name, values in modules.items():
        stand_in = types.ModuleType(name.replace("_", "."))
        vars(stand_in).update(values)
        monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    return code


@pytest.fixture
def dolfinx(folder, monkeypatch):
    path = write_map("dolfinx", MESH, CUT, folder)[0][0]
    graph, mesh = {"AdjacencyList_int32": Adjacency}, {"GhostMode": GhostMode}
    return loaded(path, monkeypatch, dolfinx={}, dolfinx_cpp={}, dolfinx_cpp_graph=graph, dolfinx_mesh=mesh)


class Ranks:
    """Threads that call a function as the ranks of a job do."""

    def __init__(self, size):
        self.board, self.gate = [None] * size, threading.Barrier(size, timeout=10)

    def of(self, function):
        """[rank] what the function returns, called with a communicator."""
        with ThreadPoolExecutor(len(self.board)) as pool:
            return list(pool.map(lambda rank: function(RankComm(self, rank)), range(len(self.board))))


class RankComm:
    def __init__(self, ranks, rank):
        self.ranks, self.rank, self.size = ranks, rank, len(ranks.board)

    def allgather(self, value):
        self.ranks.board[self.rank] = value
        self.ranks.gate.wait()
        found = list(self.ranks.board)
        self.ranks.gate.wait()
        return found


READ = [(MESH.n_cells, 0, 0), (0, MESH.n_cells, 0), (50, 60, MESH.n_cells - 110)]  # cells of each rank
OWN = [[part] for part in PART]
WITH_GHOSTS = [
    [part, *(q for c, q in ghosts(MESH, CUT).tolist() if c == cell)] for cell, part in enumerate(PART)
]


def asked(function, counts, *given, cells=MESH.cells, n_ranks=3):
    """What the ranks are told of the cells that they have read, by DOLFINx before 0.8 and since."""
    ends = np.cumsum([0, *counts])

    def old(comm):
        flat = cells[ends[comm.rank] : ends[comm.rank + 1]].ravel()
        return function(comm, n_ranks, 3, types.SimpleNamespace(array=flat), *given).rows

    def new(comm):
        flat = cells[ends[comm.rank] : ends[comm.rank + 1]].ravel()
        return function(comm, n_ranks, ["tetrahedron"], [flat]).rows

    return [[*chain(*Ranks(len(counts)).of(one))] for one in (old, new)]


@pytest.mark.parametrize("counts", READ)
def test_dolfinx_is_told_the_rank_of_each_cell_wherever_it_was_read(dolfinx, counts):
    assert asked(dolfinx.partitioner, counts) == [OWN, OWN]
    assert asked(dolfinx.partitioner, counts, GhostMode("none"))[0] == OWN
    assert asked(dolfinx.partitioner, counts, GhostMode("shared"))[0] == WITH_GHOSTS  # or the mesh is torn
    assert asked(dolfinx.with_ghosts, counts) == [WITH_GHOSTS, WITH_GHOSTS]
    assert WITH_GHOSTS != OWN


def test_dolfinx_refuses_cells_in_another_order(dolfinx):
    shuffled = np.random.default_rng(1).permutation(MESH.cells)
    with pytest.raises(ValueError, match=r"part\.3: these are not the cells of the mesh file in its order"):
        asked(dolfinx.partitioner, READ[2], cells=shuffled)


def test_dolfinx_refuses_a_map_that_was_cut_off_or_names_other_ranks_on_every_rank(
    dolfinx, tmp_path, monkeypatch
):
    short = tmp_path / "short"
    short.write_text("\n".join(map(str, PART[:-1])) + "\n")
    monkeypatch.setattr(dolfinx, "MAP", short)
    with pytest.raises(ValueError, match=rf"short: {len(PART) - 1} numbers; expected {len(PART)}: cut off"):
        asked(dolfinx.partitioner, READ[2])
    short.write_text("\n".join(map(str, [3, *PART[1:]])) + "\n")
    with pytest.raises(ValueError, match="short: ranks 0 to 3 of 3; expected those below 3 of 3"):
        asked(dolfinx.partitioner, READ[2])


def test_what_one_rank_finds_wrong_in_its_map_every_rank_refuses(dolfinx, monkeypatch):
    read, cut_off = np.fromfile, iter([1])  # on the rank that comes first
    monkeypatch.setattr(np, "fromfile", lambda *words, **more: read(*words, **more)[next(cut_off, 0) :])

    def refused(comm):
        with pytest.raises(ValueError, match=rf"{len(PART) - 1} numbers; expected {len(PART)}: cut off"):
            dolfinx._parts(comm)

    Ranks(3).of(refused)
    monkeypatch.setattr(dolfinx, "MAP", dolfinx.MAP.with_name("absent"))
    with pytest.raises(ValueError, match=r"^absent: No such file"):
        dolfinx._parts(Comm(0, [0, 0, 0]))


def test_facets_of_hexahedra_are_those_of_dolfinx(folder, monkeypatch):
    mesh = box((4, 3, 2), "hex8")
    cut = partition(mesh, (0.4, 0.3, 0.3))
    path = write_map("dolfinx", mesh, cut, folder)[0][0]
    graph, modes = {"AdjacencyList_int32": Adjacency}, {"GhostMode": GhostMode}
    code = loaded(path, monkeypatch, dolfinx={}, dolfinx_cpp={}, dolfinx_cpp_graph=graph, dolfinx_mesh=modes)
    tensor = mesh.cells[:, [0, 1, 3, 2, 4, 5, 7, 6]]  # DOLFINx's order of corners
    found = asked(code.with_ghosts, (10, 4, 10), cells=tensor)[0]
    expected = [(cell, rank) for cell, row in enumerate(found) for rank in row[1:]]
    assert expected == [tuple(row) for row in ghosts(mesh, cut).tolist()]


@pytest.mark.parametrize(("counts", "ranks"), [((10, 10, 10), 3), ((MESH.n_cells, 0), 2)])
def test_dolfinx_refuses_the_map_of_another_mesh_or_number_of_ranks(dolfinx, counts, ranks):
    with pytest.raises(ValueError, match=f"is for {MESH.n_cells} cells and 3 ranks, not {sum(counts)} cells"):
        asked(dolfinx.partitioner, counts, n_ranks=ranks)


class Plex:
    """A DMPlex that rank 0 has read, and its own partitioner."""

    def __init__(self, rank, cells):
        self.comm, self.cells, self.shell = Comm(rank, cells), cells, None

    def getHeightStratum(self, height):
        assert height == 0
        return 0, self.cells[self.comm.rank]

    def getPartitioner(self):
        return self

    def setType(self, kind):
        assert kind == "shell"

    def setShellPartition(self, n, sizes, points):
        self.shell = n, sizes.tolist(), points.tolist()

    def distribute(self, overlap):
        return overlap


def test_petsc_is_told_the_cells_of_each_rank_on_rank_0(folder, monkeypatch):
    code = loaded(write_map("petsc", MESH, CUT, folder)[0][0], monkeypatch)
    plexes = [Plex(rank, [MESH.n_cells, 0, 0]) for rank in range(3)]
    assert [code.distribute(plex, overlap=1) for plex in plexes] == [1, 1, 1]
    n, sizes, points = plexes[0].shell
    assert (n, sizes) == (3, CUT.sizes.tolist())
    assert points == sorted(range(MESH.n_cells), key=PART.__getitem__)
    assert plexes[1].shell == (3, [0, 0, 0], [])
    for cells in ([MESH.n_cells, 0], [MESH.n_cells - 1, 1, 0]):  # ranks; distributed already
        with pytest.raises(ValueError, match=f"is for {MESH.n_cells} cells on rank 0 of 3, not"):
            code.distribute(Plex(0, cells))
    whole = code.MAP.read_text()
    for wrong in ("3", "-1"):
        code.MAP.write_text(re.sub(r"\d", wrong, whole, count=1))
        for plex in plexes:
            with pytest.raises(ValueError, match="expected those below 3 of 3"):
                code.distribute(plex)
    code.MAP.write_text(whole[:-2])
    for plex in plexes:
        with pytest.raises(ValueError, match=rf"{MESH.n_cells - 1} numbers; expected .*: cut off"):
            code.distribute(plex)


MFEM = """
#include <iostream>
#include <cstdlib>
#include <vector>
#define MFEM_VERIFY(x, text) if (!(x)) { std::cout << text; std::exit(1); }
namespace mfem {
template <class T> struct Array : std::vector<T> {
    void Append(T t) { this->push_back(t); }
    int Size() const { return int(this->size()); }
};
struct Mesh { int n; int GetNE() const { return n; } };
struct Mpi { static int WorldSize() { return std::atoi(std::getenv("RANKS")); } };
}
"""
DEALII = """
#include <iostream>
#include <string>
#include <vector>
#define AssertThrow(x, error) if (!(x)) { error; std::exit(1); }
namespace dealii {
namespace types { typedef unsigned subdomain_id; }
struct ExcMessage { ExcMessage(const std::string &text) { std::cout << text; } };
struct Cell { unsigned part; const Cell *operator->() const { return this; }
    void set_subdomain_id(unsigned p) const { std::cout << p << "\\n"; } };
template <int dim, int spacedim = dim> struct Triangulation {
    unsigned n; unsigned n_active_cells() const { return n; }
    std::vector<Cell> active_cell_iterators() const { return std::vector<Cell>(n); }
};
}
"""
PROGRAMS = {
    "mfem": (
        "mfem.hpp",
        MFEM,
        "for (int p : map_partitioning(mfem::Mesh{n}, path)) std::cout << p << '\\n';",
    ),
    "dealii": (
        "deal.II/grid/tria.h",
        DEALII,
        "dealii::Triangulation<3> tria{unsigned(n)}; map_subdomains(tria, path);",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_cplusplus_reads_the_map_and_refuses_that_of_another_mesh(name, folder):
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler")
    header, library, call = PROGRAMS[name]
    code, path = write_map(name, MESH, CUT, folder)[0]
    (folder / header).parent.mkdir(parents=True, exist_ok=True)
    (folder / header).write_text(library)
    body = f"int main(int, char **v) {{ int n = std::atoi(v[1]); const char *path = v[2]; {call} }}"
    (folder / "main.cc").write_text(f'#include "{code.name}"\n{body}\n')
    line = [compiler, "-std=c++17", "-Wall", "-Wno-dangling-else", "-Werror", f"-I{folder}", "-o"]
    subprocess.run([*line, str(folder / "a"), str(folder / "main.cc")], check=True)

    def read(cells, map_file, ranks=3):
        words, variables = [folder / "a", str(cells), map_file], {"RANKS": str(ranks)}
        return subprocess.run(words, capture_output=True, text=True, check=False, env=variables)

    got = read(MESH.n_cells, path)
    assert (got.returncode, [*map(int, got.stdout.split())]) == (0, PART)
    for cells in (7, MESH.n_cells + 1):
        other = read(cells, path)
        assert other.returncode == 1
        assert f"{MESH.n_cells}" in other.stdout
    short = folder / "short"
    short.write_text("0\n" * (MESH.n_cells - 1))
    assert read(MESH.n_cells, short).returncode == 1
    if name == "mfem":
        assert read(MESH.n_cells, path, ranks=2).stdout.endswith("is for 3 ranks")
