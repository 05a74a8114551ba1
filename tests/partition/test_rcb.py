import itertools
from pathlib import Path

import numpy as np
import pytest

from fembench.mesh.box import box
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.mesh.sliced import lowest_corners
from fembench.partition.methods import partition
from fembench.partition.partition import node_parts
from fembench.partition.rcb import apportion, bisect_coordinates


def grid(nx, ny, nz):
    return np.array([[i, j, k] for k in range(nz) for j in range(ny) for i in range(nx)], dtype=float)


def test_the_longest_side_is_cut_where_the_shares_say():
    points = grid(8, 2, 3)
    part = bisect_coordinates(points, [7 * 6, 6])
    assert np.array_equal(part, (points[:, 0] == 7).astype(int))


def test_eight_parts_of_a_cube_are_its_octants():
    points = grid(4, 4, 4)
    part = bisect_coordinates(points, [8] * 8)
    octant = (points // 2) @ [1, 2, 4]
    assert len({(p, o) for p, o in zip(part.tolist(), octant.tolist())}) == 8


def test_a_cut_inside_a_layer_runs_along_the_layer():
    points = grid(5, 4, 3)
    part = bisect_coordinates(points, [30, 30])
    middle = points[:, 0] == 2
    assert set(part[points[:, 0] < 2].tolist()) == {0}
    assert set(part[points[:, 0] > 2].tolist()) == {1}
    assert np.array_equal(part[middle], (points[middle, 1] >= 2).astype(int))


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7, 60])
def test_every_part_gets_its_number_of_cells_exactly(n_parts):
    rng = np.random.default_rng(n_parts)
    sizes = rng.integers(1, 9, n_parts).tolist()
    for points in (rng.random((sum(sizes), 3)), np.zeros((sum(sizes), 3)), grid(sum(sizes), 1, 1)):
        assert np.bincount(bisect_coordinates(points, sizes), minlength=n_parts).tolist() == sizes


def test_cells_that_move_by_rounding_stay_in_their_part():
    points = grid(5, 4, 3) / 4  # multiples of the resolution: truncating instead of rounding would show
    noise = 1e-15 * np.random.default_rng(0).uniform(-1, 1, points.shape)
    sizes = [20, 25, 15]
    assert np.array_equal(bisect_coordinates(points + noise, sizes), bisect_coordinates(points, sizes))


def test_the_layers_of_kuhn_tetrahedra_are_not_torn():
    """A cut in the middle of 13 layers of 9 x 13 grid cells: two planes and a step, not a ragged surface."""
    mesh = box((13, 9, 13))
    part = bisect_coordinates(lowest_corners(mesh.x, mesh.cells), [mesh.n_cells // 2] * 2)
    layer = np.arange(mesh.n_cells) // 6 % 13
    across = [set(part[layer == i].tolist()) for i in range(13)]
    assert across == [{0}] * 6 + [{0, 1}] + [{1}] * 6
    whole = [len(set(p)) == 1 for p in part.reshape(-1, 6).tolist()]
    assert np.count_nonzero(~np.array(whole)) <= 13  # grid cells cut in two


@pytest.mark.parametrize(
    ("targets", "n", "sizes"),
    [
        ([0.875, 0.125], 864, [756, 108]),
        ([0.5, 0.5], 5, [3, 2]),
        ([1 / 3] * 3, 10, [4, 3, 3]),
        ([0.999, 0.001], 100, [99, 1]),
        ([0.0001] * 3 + [0.9997], 4, [1, 1, 1, 1]),
    ],
)
def test_apportioned_numbers_are_the_closest_whole_ones_of_at_least_one(targets, n, sizes):
    assert apportion(targets, n) == sizes


def test_apportioned_numbers_always_sum_to_the_whole():
    rng = np.random.default_rng(0)
    for n_parts, extra in itertools.product((1, 2, 5, 17), (0, 1, 3, 100)):
        targets = rng.dirichlet(np.full(n_parts, 0.3))
        sizes = apportion(targets, n_parts + extra)
        assert sum(sizes) == n_parts + extra
        assert min(sizes) >= 1


def test_a_layer_ends_at_a_gap_also_where_the_next_is_out_of_reach():
    """Two layers 2 apart, moved by up to 0.1: none is torn though both are shaken."""
    rng = np.random.default_rng(0)
    points = grid(2, 20, 20) * [20, 1, 1] + rng.uniform(0, 0.1, (800, 3)) * [1, 0, 0]
    part = bisect_coordinates(points, [600, 200])
    assert not part[points[:, 0] < 10].any()
    assert len(set(map(tuple, np.c_[part, points[:, 1]][points[:, 0] > 10]))) == 20  # whole rows


@pytest.mark.parametrize("jitter", [0.0, 0.001, 0.2])
@pytest.mark.parametrize("shares", [[1] * 4, [4, 2, 1, 1], [1] * 16])
def test_interfaces_have_at_most_15_percent_more_nodes_than_those_of_metis(jitter, shares):
    plain = box((26, 13, 26))
    noise = jitter * np.random.default_rng(0).uniform(-1, 1, plain.x.shape) / 26
    inside = (plain.x > 0) & (plain.x < [1, 0.5, 1])
    mesh = Mesh(plain.x + noise * inside, plain.cells, "tet4")
    assert nodes_over_those_of_metis(mesh, shares) <= 1.15


@pytest.mark.parametrize("shares", [[1] * 4, [4, 2, 1, 1], [1] * 16])
def test_so_have_those_of_a_small_irregular_mesh(shares):
    mesh = resolve(str(Path(__file__).parents[2] / "meshes" / "thesis3.msh"))
    assert nodes_over_those_of_metis(mesh, shares) <= 1.15


def nodes_over_those_of_metis(mesh, shares):
    rcb, metis = (shared_nodes(mesh, partition(mesh, shares, method)) for method in ("rcb", "metis"))
    return rcb / metis


def shared_nodes(mesh, cut):
    node, _ = node_parts(mesh.cells, cut.part_of_cell, mesh.n_nodes)
    return np.count_nonzero(np.bincount(node) > 1)
