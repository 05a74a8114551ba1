"""A sliced mesh, cut and distributed by all ranks, is the whole mesh cut by coordinates."""

import dataclasses
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.bench.prepare import prepare, prepare_parts
from fembench.fem.problem import load_problem
from fembench.mesh import sliced
from fembench.mesh.box import box
from fembench.mesh.mesh import Mesh
from fembench.mesh.slicing import source_of_mesh, write_sliced
from fembench.partition import rcb
from fembench.partition.methods import partition
from fembench.ranks import sliced as migration
from fembench.ranks.comm import on_root
from fembench.records.case import Case
from fembench.timing.tracer import NullTracer

pytestmark = pytest.mark.mpi
SHARES = {1: "", 2: "7:1", 3: "2,1,1", 4: "4:2:1:1"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(sliced, "BLOCK", 64)
    monkeypatch.setattr(migration, "BATCH", 128)


def folder_of(comm, tmp_path, mesh):
    """The mesh in a folder that all ranks see."""
    path = comm.bcast(str(tmp_path / "a.mesh"))
    on_root(comm, lambda: write_sliced(source_of_mesh(mesh), path))
    return path


def scrambled(element):
    """A box with nodes and cells in random order, moved nodes, node tags and a tag inside."""
    plain = box((5, 4, 6), element)
    rng = np.random.default_rng(0)
    nodes, cells = rng.permutation(plain.n_nodes), rng.permutation(plain.n_cells)
    x = (plain.x + rng.uniform(-0.01, 0.01, plain.x.shape) * (plain.x[:, :1] > 0))[nodes]
    tags = {name: np.argsort(nodes)[facets] for name, facets in plain.facet_tags.items()}
    inside = {"seven": np.arange(7), "x0": np.arange(3)}
    return Mesh.create(x, np.argsort(nodes)[plain.cells][cells], element, "scrambled", inside, tags)


@pytest.mark.parametrize("element", ["tet4", "hex8"])
@pytest.mark.parametrize(("problem", "spread"), [("cantilever", 0), ("patch", 4)])
def test_it_is_the_whole_mesh_cut_by_coordinates_to_the_last_bit(
    comm, tmp_path, element, problem, spread, monkeypatch
):
    monkeypatch.setattr(migration, "SPREAD", spread)
    mesh = scrambled(element)
    case = Case.of(
        mesh=folder_of(comm, tmp_path, mesh), partitioner="rcb", shares=SHARES[comm.size], problem=problem
    )
    mine = prepare(comm, case, NullTracer())
    spec = load_problem(problem)
    cut = partition(mesh, mine.partition.targets, "rcb")
    other = prepare_parts(comm, case, spec, mesh, cut, NullTracer())
    assert mine.mesh == other.mesh
    assert mine.mesh.hash == mesh.hash
    assert mine.partition == other.partition
    for name in ("global_nodes", "global_cells", "cells", "x", "restrained", "owned_nodes"):
        np.testing.assert_array_equal(getattr(mine.sub, name), getattr(other.sub, name))
    np.testing.assert_array_equal(mine.rhs, other.rhs)
    assert {**mine.sub.facet_tags}.keys() == {**other.sub.facet_tags}.keys() | {"boundary"}
    for name, facets in other.sub.facet_tags.items():
        np.testing.assert_array_equal(mine.sub.facet_tags[name], facets)
    for name, mask in other.sub.node_tags.items():
        np.testing.assert_array_equal(mine.sub.node_tags[name], mask)


def test_shares_are_met_exactly_and_no_rank_reads_more_than_its_slice(comm, tmp_path, monkeypatch):
    mesh = scrambled("tet4")
    path = folder_of(comm, tmp_path, mesh)
    read = dict.fromkeys(sliced.ARRAYS, 0)
    rows = sliced.Sliced.rows

    def counted(self, name, low, high):
        read[name] += high - low
        return rows(self, name, low, high)

    monkeypatch.setattr(sliced.Sliced, "rows", counted)
    mine = prepare(
        comm, Case.of(mesh=path, partitioner="rcb", shares=SHARES[comm.size], problem="patch"), NullTracer()
    )
    targets = np.array(mine.partition.targets) * mesh.n_cells
    assert np.abs(np.array(mine.partition.cells) - targets).max() < 1
    for name in ("cells", "corners", "nodes"):
        assert comm.allreduce(read[name]) == len(getattr(mesh, "x" if name == "nodes" else "cells"))
        assert read[name] <= comm.allreduce(read[name]) / comm.size + 64


def test_no_rank_holds_the_mesh_at_any_time(comm, tmp_path, monkeypatch):
    """All that is allocated is counted, the piece that is left included: 33 % of the folder on four ranks."""
    monkeypatch.setattr(rcb, "PIECE", 512)
    mesh = box((26, 13, 26))
    path = folder_of(comm, tmp_path, mesh)
    size = comm.bcast(sum(p.stat().st_size for p in Path(path).iterdir()) if comm.rank == 0 else 0)
    opened = sliced.Sliced(path)
    targets = (1 / comm.size,) * comm.size
    tracemalloc.start()
    part = migration.cut_slice(comm, opened, migration.read_slice(comm, opened), targets)
    migration.sliced_piece(comm, opened, migration.migrate(comm, opened, part))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < {1: 1.25, 2: 0.66, 3: 0.46, 4: 0.35}[comm.size] * size


def test_the_set_up_leaves_little_more_than_the_part_and_its_right_hand_side(comm, tmp_path):
    """Relative to the bytes of the mesh. On one this small, pieces of fixed size add a third on the way."""
    mesh = box((36, 18, 36))
    size = mesh.x.nbytes + mesh.cells.nbytes
    case = Case.of(mesh=folder_of(comm, tmp_path, mesh), partitioner="rcb", problem="cantilever")
    prepare(comm, case, NullTracer())  # imports what it needs
    tracemalloc.start()
    prepared = prepare(comm, case, NullTracer())
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert prepared.sub.n_cells
    assert left < {1: 1.65, 2: 0.85, 3: 0.59, 4: 0.45}[comm.size] * size
    assert peak < {1: 2.1, 2: 1.29, 3: 0.92, 4: 0.72}[comm.size] * size


def test_inverted_cells_are_refused_by_all_ranks(comm, tmp_path):
    mesh, path = box((3, 3, 3)), comm.bcast(str(tmp_path / "a.mesh"))
    mirrored = dataclasses.replace(source_of_mesh(mesh), nodes=lambda: [mesh.x * [1, 1, -1]])
    on_root(comm, lambda: write_sliced(mirrored, path))
    with pytest.raises(InputError, match="some cells are flat or inverted; expected volumes above 0"):
        prepare(comm, Case.of(mesh=path, partitioner="rcb", problem="patch"), NullTracer())


@pytest.mark.parametrize("gap", [0.5, 0.0])
def test_parts_that_can_move_are_found_though_they_lie_on_several_ranks(comm, tmp_path, gap):
    """Two cubes of 3 x 3 x 3 cells, apart or touching along an edge: one is clamped, the other is not."""
    cube = box((3, 3, 3), lengths=(1.0, 1.0, 1.0))
    x = np.vstack([cube.x, cube.x + [1 + gap, 1, 0]])
    x, where = np.unique(x.round(9), axis=0, return_inverse=True)
    cells = where.reshape(-1)[np.vstack([cube.cells, cube.cells + cube.n_nodes])]
    mesh = Mesh.create(x, cells, "tet4", "cubes")
    case = Case.of(mesh=folder_of(comm, tmp_path, mesh), partitioner="rcb", problem="cantilever")
    kind = "unconnected parts" if gap else "parts that share no facet"
    with pytest.raises(InputError, match=rf"2 {kind}; part 2 \(64 nodes, around \({1.5 + gap:g}, 1.5, 0.5\)"):
        prepare(comm, case, NullTracer())


def test_damage_that_one_rank_sees_is_the_error_of_all(comm, tmp_path):
    path = folder_of(comm, tmp_path, scrambled("tet4"))
    if comm.rank == 0:
        with open(f"{path}/cells.npy", "r+b") as stream:
            stream.seek(-5, 2)
            stream.write(b"?")
    comm.barrier()
    with pytest.raises(InputError, match=r"cells\.npy is damaged"):
        prepare(comm, Case.of(mesh=path, partitioner="rcb", problem="cantilever"), NullTracer())


def test_more_ranks_than_cells_are_refused(comm, tmp_path):
    mesh = box((1, 1, 1), "hex8")
    path = folder_of(comm, tmp_path, dataclasses.replace(mesh, name="one"))
    if comm.size > 1:
        with pytest.raises(InputError, match="parts of 1 cell"):
            prepare(comm, Case.of(mesh=path, partitioner="rcb", problem="cantilever"), NullTracer())
