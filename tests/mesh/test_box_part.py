"""One rank's part of a box against the whole box, and at sizes that no machine holds."""

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.mesh.box import Box, box, box_cells_for_equations, check_memory
from fembench.mesh.facets import boundary_facets
from fembench.ranks.box import (
    box_piece,
    box_region,
    cut_region,
    fill_region,
    grid_indices,
    local_box,
    region_size,
)

CASES = [  # grid cells, element, targets
    ((13, 9, 13), "tet4", [1, 1]),
    ((13, 9, 13), "tet4", [7, 1]),
    ((5, 4, 3), "tet4", [3, 1, 0.2, 2, 2]),
    ((5, 4, 3), "hex8", [1] * 8),
    ((2, 3, 2), "hex8", [1] * 12),
    ((1, 1, 7), "tet4", [1, 5]),
    ((4, 1, 1), "tet4", [1]),
    ((2, 2, 2), "tet4", [1e-9, 1, 1e-9]),
    ((5, 4, 3), "tet4", [1, 1e-9, 1e-9, 1]),
]


def grid_cells_of(counts, region):
    """The numbers of the grid cells in a region, by brute force."""
    nx, ny, _ = counts
    return [
        i + nx * (j + ny * k)
        for (x0, x1), (y0, y1), (z0, z1) in region.tolist()
        for k in range(z0, z1)
        for j in range(y0, y1)
        for i in range(x0, x1)
    ]


@pytest.mark.parametrize(("counts", "element", "targets"), CASES)
def test_the_parts_are_the_box_each_cell_and_each_tagged_face_once(counts, element, targets):
    whole, plan = box(counts, element), Box(counts, element)
    parts = [local_box(plan, targets, part) for part in range(len(targets))]
    for local in parts:
        assert np.array_equal(local.x, whole.x[local.global_nodes])
        assert np.array_equal(local.global_nodes[local.cells], whole.cells[local.global_cells])
        assert np.array_equal(np.unique(local.cells), np.arange(len(local.x)))
        assert np.all(np.diff(local.global_nodes) > 0)
        assert np.all(np.diff(local.global_cells) > 0)
        types = [a.dtype for a in (local.cells, local.global_nodes, local.global_cells)]
        assert types == [np.int32, np.int64, np.int64]
    cells = np.concatenate([local.global_cells for local in parts])
    assert np.array_equal(np.sort(cells), np.arange(whole.n_cells))
    for tag, facets in whole.facet_tags.items():
        found = np.concatenate([part.global_nodes[part.facet_tags[tag]] for part in parts])
        assert sorted(found.tolist()) == sorted(facets.tolist())


@pytest.mark.parametrize(("counts", "element", "targets"), CASES)
def test_the_regions_fill_the_box_and_have_their_shares_to_one_grid_cell_but_never_nothing(
    counts, element, targets
):
    regions = [box_region(counts, targets, part) for part in range(len(targets))]
    filled = sorted(n for region in regions for n in grid_cells_of(counts, region))
    assert filled == list(range(np.prod(counts)))
    sizes = np.array([region_size(region) for region in regions])
    wanted = np.array(targets) / np.sum(targets) * np.prod(counts)
    lent = np.maximum(1.0 - wanted, 0.0).sum()  # to parts worth less than one cell
    assert np.all(np.abs(sizes - np.maximum(wanted, 1.0)) <= 1.0 + lent)
    assert sizes.min() >= 1


def test_a_cut_counts_cells_across_the_longest_side_first():
    region = np.array([[[0, 2], [0, 3], [0, 5]]])
    lower, upper = cut_region(region, 6 * 2 + 2 * 1 + 1, (2, 3, 5))
    assert region_size(lower) == 15
    assert region_size(upper) == 15
    assert sorted(grid_cells_of((2, 3, 5), lower)) == list(range(15))


@pytest.mark.parametrize(("parts", "bound", "metis"), [(2, 1188, 852), (4, 2478, 1833), (8, 4383, 3201)])
def test_interfaces_of_block_parts_are_as_short_as_those_of_a_graph_partitioner(parts, bound, metis):
    plan = Box((13, 9, 13))
    touched = np.zeros(plan.n_nodes, dtype=int)
    for part in range(parts):
        touched[local_box(plan, [1] * parts, part).global_nodes] += 1
    shared = 3 * touched[touched > 1].sum()
    assert shared <= bound
    assert shared <= 1.1 * metis


def test_a_part_of_a_box_of_three_thousand_million_equations_has_its_true_numbers():
    plan = Box(box_cells_for_equations(3_000_000_000))
    ranks = 200_000
    region = box_region(plan.cells, [1 / ranks] * ranks, ranks - 1)
    local = fill_region(plan, region)
    assert abs(region_size(region) - plan.n_cells / 6 / ranks) <= 1
    assert local.global_cells[-1] == plan.n_cells - 1 > 2**32
    assert local.global_nodes[-1] == plan.n_nodes - 1
    assert local.x[-1].tolist() == [1.0, 0.5, 1.0]
    first = local.cells[0]
    i, j, k = (int(a) for a in grid_indices([n + 1 for n in plan.cells], local.global_nodes[first[0]]))
    nx, ny, _ = plan.cells
    assert local.global_cells[0] == 6 * (i + nx * (j + ny * k))  # the first node of a grid cell's first cell
    assert len(boundary_facets(local.cells, "tet4")[0]) < len(local.cells)


def test_the_work_for_one_part_does_not_grow_with_the_box():
    import tracemalloc

    sizes = []
    for cells, ranks in (((20, 10, 20), 4), ((400, 200, 400), 4 * 20**3)):
        tracemalloc.start()
        local = local_box(Box(cells), [1 / ranks] * ranks, ranks // 2)
        sizes.append(tracemalloc.get_traced_memory()[1] - 8 * 6 * ranks)  # the targets themselves
        tracemalloc.stop()
        assert len(local.cells) == 6 * 1000
    assert sizes[1] < 2 * sizes[0]
    assert sizes[0] < 3000 * len(local.x)


def test_more_parts_than_grid_cells_are_refused():
    with pytest.raises(InputError, match="9 parts of 8 grid cells; expected at most one part per grid cell"):
        local_box(Box((2, 2, 2)), [1 / 9] * 9, 0)


def test_a_part_that_this_machine_cannot_hold_is_refused_before_it_is_made():
    with pytest.raises(InputError, match=r"generating it needs about .* GiB; this machine has"):
        box_piece(Box((10**40, 10**40, 10**40)), (0.5, 0.5), 1)
    check_memory(Box((2000, 1500, 2000)), 1e-6)
