"""Multigrid on background grids: grids, levels, and iterations that depend on the mesh alone."""

import itertools

import numpy as np
import pytest
from systems import System

from fembench.mesh.box import box
from fembench.mesh.io import write
from fembench.mesh.mesh import Mesh
from fembench.methods.lookup import precond_of
from fembench.ranks.comm import alone
from fembench.ranks.interface import Interface
from fembench.ranks.subdomain import Sharing
from fembench.solve.grids import grid_over, prolongator
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.levels import LevelMatrix, inverse_of

mpi = pytest.mark.mpi


def solved(comm, mesh, tolerance=1e-7, storage="sym", **fields):
    """The result with multigrid, and the multigrid."""
    s = System(comm, mesh, storage, "multigrid", **fields)
    result, _ = s.solve("standard", StoppingCriterion(tolerance, relative=True, max_iterations=200))
    return result, s.M


@pytest.fixture
def file_of(comm, tmp_path):
    """A function: the file of the mesh that rank 0 makes, which all ranks see."""

    def written(make):
        path = comm.bcast(tmp_path / "mesh.vtu")
        if comm.rank == 0:
            write(make(), path)
        comm.barrier()
        return path

    return written


BOX = "box:12x6x12"


@mpi
@pytest.mark.parametrize(
    ("mesh", "problem"),
    [
        *((mesh, "corner-load") for mesh in (BOX, "box:24x12x24", "box:13x7x11", "box:12x6x12:hex8")),
        *((BOX, problem) for problem in ("cantilever", "bar", "patch", "manufactured")),
    ],
)
def test_a_box_takes_at_most_nine_iterations_on_any_number_of_ranks(comm, mesh, problem):
    result, _ = solved(comm, mesh, problem=problem)
    assert result.converged
    assert result.iterations <= 9


@mpi
def test_iterations_depend_neither_on_ranks_nor_on_shares(comm):
    shares = ":".join(["7", *["1"] * (comm.size - 1)])
    equal, unequal = (solved(comm, "box:20x10x20", shares=s)[0].iterations for s in ("", shares))
    assert {equal, unequal} == {7}  # found on one rank


def stretched():
    return box((12, 24, 24), lengths=(12.0, 2.4, 2.4))


def graded():
    """A box whose cells grow by ten."""
    mesh = box((12, 12, 12), lengths=(1.0, 1.0, 1.0))
    return Mesh.create(np.expm1(2.5 * mesh.x) / np.expm1(2.5), mesh.cells, "tet4", "graded")


def jittered():
    plain = box((8, 8, 8))
    inside = ((plain.x > 1e-9) & (plain.x < plain.x.max(axis=0) - 1e-9)).all(axis=1)
    noise = 0.02 * inside[:, None] * np.random.default_rng(4).uniform(-1, 1, plain.x.shape)
    return Mesh.create(plain.x + noise, plain.cells, "tet4", "jittered")


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize(("factor", "border"), [(1e-3, 0.5), (1e3, 0.55)])  # on a plane of the grid, between
def test_two_materials_take_at_most_twice_the_iterations_of_one(comm, tmp_path, factor, border):
    path = comm.bcast(tmp_path)
    if comm.rank == 0:
        plain = box((12, 6, 12))
        right = np.flatnonzero(plain.x[plain.cells].mean(axis=1)[:, 0] > border)
        write(Mesh.create(plain.x, plain.cells, "tet4", cell_tags={"right": right}), path / "two.vtu")
        (path / "two.toml").write_text(f"""
            [materials.right]
            E = {210e9 * factor}
            [[constraints]]
            on = {{plane = "x=min"}}
            [body]
            gravity = [0.0, -10.0, 0.0]
        """)
    comm.barrier()
    one, _ = solved(comm, "box:12x6x12", problem="cantilever")
    two, _ = solved(comm, path / "two.vtu", problem=str(path / "two.toml"))
    assert two.converged
    assert two.iterations <= 2 * one.iterations
    assert two.iterations <= 9  # as found on one rank


def slit_box(width):
    """A box with a slit across z that is open on three sides: nodes doubled (0), or a layer left out."""
    n = 24
    plain = box((n, n // 2, n))
    centre, x, cells = plain.x[plain.cells].mean(axis=1), plain.x, plain.cells.copy()
    level = (n // 2 + 1) / n
    if width:
        gap = (np.abs(centre[:, 2] - level - 0.5 / n) < 0.5 / n) & (centre[:, 0] > 0.25)
        used, cells = np.unique(cells[~gap], return_inverse=True)
        return Mesh.create(x[used], cells.reshape(-1, 4), "tet4", "slit")
    edge = np.flatnonzero((np.abs(x[:, 2] - level) < 1e-9) & (x[:, 0] > 0.25 + 1e-9))
    copy = np.arange(len(x))
    copy[edge] = len(x) + np.arange(len(edge))
    above = centre[:, 2] > level
    cells[above] = copy[cells[above]]
    return Mesh.create(np.vstack([x, x[edge]]), cells, "tet4", "slit")


@mpi
@pytest.mark.parametrize(
    ("make", "most"),
    [
        (stretched, 30),  # ten to one: coarsened in the short directions first
        (graded, 40),
        (lambda: slit_box(0), 25),
        (lambda: slit_box(1), 25),
    ],
    ids=["stretched", "graded", "slit", "gap"],
)
def test_meshes_that_no_grid_fits_take_a_bounded_number_of_iterations(comm, file_of, make, most):
    result, _ = solved(comm, file_of(make), problem="cantilever")
    assert result.converged
    assert result.iterations <= most


@mpi
@pytest.mark.parametrize("storage", ["ebe", "csr"])
def test_every_storage_has_the_same_levels(comm, storage):
    one, other = (solved(comm, "box:12x6x12", storage=s)[0] for s in ("sym", storage))
    assert one.iterations == other.iterations
    np.testing.assert_allclose(one.x, other.x, rtol=1e-5, atol=1e-12)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize(
    ("mesh", "name", "storage"),
    [
        *((BOX, "corner-load", storage) for storage in ("sym", "bsr", "ebe")),
        *((mesh, "cantilever", "sym") for mesh in ("box:16x4x4", "jittered")),
    ],
)
def test_grids_stored_in_single_precision_take_as_many_iterations_as_in_double_precision(
    comm, file_of, monkeypatch, mesh, name, storage
):
    mesh = file_of(jittered) if mesh == "jittered" else mesh
    single, M = solved(comm, mesh, 1e-10, problem=name, storage=storage)
    with monkeypatch.context() as patch:
        patch.setattr(LevelMatrix, "rounded", lambda self: self)
        double, exact = solved(comm, mesh, 1e-10, problem=name, storage=storage)
    assert comm.allreduce(exact.nbytes) > comm.allreduce(M.nbytes)
    assert single.converged
    assert abs(double.iterations - single.iterations) <= 1
    np.testing.assert_allclose(double.x, single.x, rtol=0, atol=1e-8 * np.abs(double.x).max())


@mpi
def test_a_true_residual_of_1e_10_is_reached_with_grids_in_single_precision(comm):
    s = System(comm, BOX, precond="multigrid")
    result, _ = s.solve("standard", StoppingCriterion(1e-11, relative=True, max_iterations=200))
    assert s.true_residual(result.x) <= 1e-10 * s.norm(s.rhs)


@pytest.mark.mpi(1, 4)
@pytest.mark.parametrize(("mesh", "most"), [("box:40x20x40", 1.55), ("box:16x8x16:hex8", 1.4)])
def test_multigrid_adds_about_half_to_the_memory_of_the_matrix_on_any_number_of_ranks(comm, mesh, most):
    s = System(comm, mesh, precond="multigrid")
    s.solve()
    matrix = comm.allreduce(s.A.matrix_bytes)
    assert matrix + comm.allreduce(s.M.nbytes) <= most * matrix


@mpi
def test_multigrid_holds_less_than_is_stated_per_node(comm):
    _, M = solved(comm, "box:24x12x24")
    assert M.nbytes <= precond_of("multigrid").node_bytes * M._cycle.levels[0].z.size / 3


@mpi
def test_large_levels_are_shared_by_all_ranks(comm, monkeypatch):
    monkeypatch.setattr("fembench.solve.multigrid.SMALL_LEVEL", 60)
    result, M = solved(comm, "box:24x12x24")
    assert len(M._cycle.levels) == 3
    assert result.iterations <= 9


def test_a_grid_reproduces_linear_functions_at_every_point():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, (200, 3)) * [3.0, 1.0, 2.0]
    grid = grid_over(np.zeros(3), np.array([3.0, 1.0, 2.0]), np.array([0.5, 0.4, 0.7]))
    one = np.ones(len(x), np.int32)
    interface = Interface(alone(), Sharing((), (), one, one.astype(bool)), len(x), len(x))
    row = np.arange(len(x), dtype=np.int32)
    pattern = np.arange(len(x) + 1), row, row  # no node has a neighbour: each is a piece of its own
    P = prolongator(interface, grid, x, np.arange(len(x)), pattern)
    at_nodes = grid.at(P.numbers)
    np.testing.assert_allclose(np.einsum("nk,nkc->nc", P.weight, at_nodes[P.parent]), x, atol=1e-6)
    np.testing.assert_allclose(P.weight.sum(axis=1), 1.0, atol=1e-6)


def test_a_node_on_a_grid_plane_has_parents_on_that_plane_alone():
    grid = grid_over(np.zeros(3), np.ones(3), np.full(3, 0.25))
    numbers, weights = grid.weights(np.array([[0.25 + 1e-9, 0.5, 1.0], [0.3, 0.5, 1.0]]))
    assert (weights > 0).sum(axis=1).tolist() == [1, 2]
    np.testing.assert_array_equal(grid.at(numbers[:1, 0]), [[0.25, 0.5, 1.0]])


def test_weights_reproduce_any_point_and_zeros_come_last():
    grid = grid_over(np.zeros(3), np.ones(3), np.full(3, 0.25))
    inside, first, last = 0.1, 0.0, 1.0  # the last plane is on the second side of its cell
    x = np.array(list(itertools.product((inside, first, last), repeat=3)))
    numbers, weights = grid.weights(x)
    corners = grid.at(numbers.reshape(-1)).reshape(len(x), 8, 3)
    np.testing.assert_allclose(np.einsum("nc,nci->ni", weights, corners), x, atol=1e-12)
    present = weights > 0
    assert (present[:, :-1] >= present[:, 1:]).all()


def test_only_short_spacings_are_doubled():
    grid = grid_over(np.zeros(3), np.full(3, 8.0), np.array([4.0, 1.0, 1.9]))
    np.testing.assert_allclose(grid.coarser().spacing, [4.0, 2.0, 3.8])
    np.testing.assert_allclose(grid.coarser().coarser().spacing, [4.0, 4.0, 7.6])


def test_a_singular_block_gets_its_pseudo_inverse():
    rng = np.random.default_rng(2)
    roots = rng.standard_normal((3, 3, 3))
    blocks = roots @ roots.transpose(0, 2, 1)
    blocks[1, 2] = blocks[1, :, 2] = 0.0  # no stiffness in z
    blocks[2] = 0.0
    found = inverse_of(blocks)[:, [0, 3, 5, 3, 1, 4, 5, 4, 2]].reshape(3, 3, 3)
    np.testing.assert_allclose(found, np.linalg.pinv(blocks, hermitian=True), atol=1e-9)
