"""Symbolic and numeric assembly, held against numpy and against what elasticity demands."""

import time

import numpy as np
import pytest
import reference
from kernel_samples import LAM, MU, SAMPLES, grid

from fembench.kernels.backend import kernels
from fembench.mesh.elements import quality

every_sample = pytest.mark.parametrize("s", SAMPLES.values(), ids=SAMPLES.keys())
both_halves = pytest.mark.parametrize("upper", [False, True], ids=["full", "upper"])


@pytest.mark.parametrize("name", ["tets", "bricks"])
def test_element_stiffness_is_that_of_the_reference_twin(name):
    s = SAMPLES[name]
    ours, twin = kernels.stiffness(s.x, s.cells, LAM, MU), reference.stiffness(s.x, s.cells, LAM, MU)
    assert np.abs(ours - twin).max() <= 1e-13 * np.abs(twin).max()
    assert (ours == ours.transpose(0, 2, 1)).all()


def moduli(s):
    """Lamé parameters of three materials: most cells of a node have one, some have two or three."""
    kind = (s.x[s.cells].mean(axis=1)[:, :2] > 1.5).sum(axis=1)
    return np.array([LAM, 900.0, 0.05])[kind], np.array([MU, 300.0, 0.2])[kind]


@every_sample
@both_halves
@pytest.mark.parametrize("modulus", [lambda s: (LAM, MU), moduli], ids=["one material", "several"])
def test_assembled_values_are_those_of_the_reference_twin(s, upper, modulus):
    pattern = kernels.pattern(s.cells, s.n_interior, s.n_active, upper)
    arguments = (s.x, s.cells, *modulus(s), s.n_interior, upper, s.fixed, *pattern)
    ours, twin = kernels.assemble(*arguments), reference.assemble(*arguments)
    np.testing.assert_allclose(ours, twin, rtol=0, atol=1e-13 * max(np.abs(twin).max(initial=0), 1))


@both_halves
@pytest.mark.parametrize("centre", [0, 40], ids=["first", "last"])
def test_a_node_of_more_cells_than_are_sorted_at_once_gets_the_sum_of_all(upper, centre):
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 2, (41, 3))
    x[centre] = 0
    others = np.delete(np.arange(41), centre)
    cells = np.array([[centre, *rng.choice(others, 3, False)] for _ in range(9000)], np.int32)
    inverted = np.linalg.det(x[cells[:, 1:]]) < 0
    cells[inverted] = cells[inverted][:, [0, 2, 1, 3]]
    cells = cells[np.abs(np.linalg.det(x[cells[:, 1:]])) > 1e-2]
    assert len(cells) > 4096
    arguments = (x, cells, LAM, MU, 41, upper, np.zeros(123, bool), *kernels.pattern(cells, 41, 41, upper))
    ours, twin = kernels.assemble(*arguments), reference.assemble(*arguments)
    np.testing.assert_allclose(ours, twin, rtol=0, atol=1e-12 * np.abs(twin).max())


@every_sample
@both_halves
def test_several_materials_that_are_alike_give_the_bits_of_one(s, upper):
    pattern = kernels.pattern(s.cells, s.n_interior, s.n_active, upper)
    many = np.full(len(s.cells), LAM), np.full(len(s.cells), MU)
    one, several = (
        kernels.assemble(s.x, s.cells, *lame, s.n_interior, upper, s.fixed, *pattern)
        for lame in ((LAM, MU), many)
    )
    np.testing.assert_array_equal(one, several)


@every_sample
def test_products_without_a_matrix_are_those_of_the_assembled_one_for_several_materials(s):
    lam, mu = moduli(s)
    beside = ((s.cells >= s.n_interior) & (s.cells < s.n_active)).any(axis=1)
    order = np.argsort(~beside, kind="stable")
    cells = np.ascontiguousarray(s.cells[order])
    pattern = kernels.pattern(s.cells, s.n_interior, s.n_active, False)
    values = kernels.assemble(s.x, s.cells, lam, mu, s.n_interior, False, s.fixed, *pattern)
    d, q, expected = (kernels.zeros(3 * s.n_active) for _ in range(3))
    d[:] = np.where(s.fixed, 0.0, np.random.default_rng(0).uniform(-1, 1, d.size))
    rows = np.repeat(np.arange(s.n_active), np.diff(pattern[0]))
    np.add.at(expected.reshape(-1, 3), rows, (values @ d.reshape(-1, 3)[pattern[2]][:, :, None])[..., 0])
    fixed = np.flatnonzero(s.fixed).astype(np.int32)
    n_first = int(beside.sum())
    product = kernels.EbeProduct(s.x, cells, n_first, lam[order], mu[order], fixed, s.n_interior, d, q)
    product.interface()
    product.interior()
    np.testing.assert_allclose(q, expected, rtol=0, atol=1e-13 * max(np.abs(expected).max(initial=0), 1))


def test_as_many_lame_parameters_as_cells_are_expected():
    s = SAMPLES["tets"]
    with pytest.raises(ValueError, match="lam, mu: expected numbers or arrays"):
        kernels.stiffness(s.x, s.cells, np.ones(3), np.ones(3))


def test_a_cell_with_a_node_that_is_not_there_is_refused():
    s = SAMPLES["tets"]
    cells = s.cells.copy()
    cells[3, 2] = len(s.x)
    with pytest.raises(ValueError, match="cells: a node outside"):
        kernels.stiffness(s.x, cells, LAM, MU)


def _bandwidth(cells):
    return int((cells.max(axis=1) - cells.min(axis=1)).max())


def test_reordering_brings_a_shuffled_box_to_a_bandwidth_near_its_cross_section():
    x, hexes = grid(24, 4, 5)
    shuffled = np.random.default_rng(0).permutation(len(x)).astype(np.int32)[hexes]
    position = kernels.reorder(shuffled, len(x), len(x))
    assert _bandwidth(shuffled) > 500
    assert _bandwidth(position[shuffled]) <= 3 * 5 * 6


@pytest.mark.parametrize(("corners", "kind"), [(4, np.int32), (8, np.int64)])
def test_cells_of_many_nodes_are_sorted_bucket_by_bucket(corners, kind):
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 9000, (20_000, corners)).astype(np.int32)
    cells[7] = 8999  # the last node, and the first of a bucket:
    cells[8] = 4096
    numbers = rng.permutation(len(cells)).astype(kind) * (2**33 if kind == np.int64 else 1)
    order = reference.cell_order(cells, numbers)
    expected = cells[order], numbers[order]
    kernels.sort_cells(cells, numbers)
    np.testing.assert_array_equal(cells, expected[0])
    np.testing.assert_array_equal(numbers, expected[1])


def test_a_node_of_very_many_cells_does_not_make_sorting_them_slow():
    cells = np.random.default_rng(0).integers(1, 99, (100_000, 4)).astype(np.int32)
    cells[:, 2] = 0
    numbers = np.arange(len(cells))[::-1].copy()
    begin = time.perf_counter()
    kernels.sort_cells(cells, numbers)
    assert time.perf_counter() - begin < 5  # one by one it takes minutes
    assert (np.diff(numbers) == 1).all()


@every_sample
def test_each_node_is_found_wherever_it_stands(s):
    n_nodes = len(s.x)
    found = kernels.Incidence(s.cells, n_nodes)
    start, at, ascending = found.start, found.at, found.ascending
    for ours, twin in zip((start, at, ascending), reference.incidence(s.cells, n_nodes)):
        assert ours.dtype == twin.dtype
        np.testing.assert_array_equal(ours, twin)
        with pytest.raises(ValueError, match="read-only"):
            ours[0] = 1
    assert sorted(at) == list(range(s.cells.size))
    assert (ascending.reshape(-1)[at] == np.repeat(np.arange(n_nodes), np.diff(start[:-1]))).all()


@every_sample
@both_halves
def test_what_was_found_before_need_not_be_looked_for_again(s, upper):
    where = kernels.Incidence(s.cells, len(s.x))
    pattern = kernels.pattern(s.cells, s.n_interior, s.n_active, upper)
    for given, looked_for in zip(kernels.pattern(s.cells, s.n_interior, s.n_active, upper, where), pattern):
        np.testing.assert_array_equal(given, looked_for)
    arguments = (s.x, s.cells, LAM, MU, s.n_interior, upper, s.fixed, *pattern)
    assert (kernels.assemble(*arguments, where) == kernels.assemble(*arguments)).all()


def test_nodes_with_many_neighbours_have_them_all_in_order():
    spokes = np.random.default_rng(3).permutation(np.arange(1, 61, dtype=np.int32)).reshape(-1, 3)
    cells = np.concatenate([np.insert(spokes, column, 0, axis=1) for column in range(4)])
    for upper in (False, True):
        for n_interior in (61, 40):
            ours = kernels.pattern(cells, n_interior, 61, upper)
            for a, b in zip(ours, reference.pattern(cells, n_interior, 61, upper)):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("corners", [4, 8])
def test_blocks_of_many_nodes_are_counted_once(corners):
    firsts = np.random.default_rng(0).integers(0, 20_000, (9000, 1))
    cells = (firsts + 7 * np.arange(corners)[::-1] ** 2).astype(np.int32)  # corners of several rounds of rows
    n_active = 15_000
    pairs = {(i, j) for cell in cells.tolist() for i in cell for j in cell if i < j < n_active}
    assert kernels.count_blocks(cells, n_active) == n_active + 2 * len(pairs)


@every_sample
def test_nodes_are_numbered_anew_in_place(s):
    held = np.zeros(len(s.x) + 2, bool)
    held[s.cells + 1] = True
    np.testing.assert_array_equal(kernels.held_nodes(s.cells + 1, 0, len(held)), held)
    np.testing.assert_array_equal(kernels.held_nodes(s.cells + 3, 2, len(held) + 2), held)
    position = np.random.default_rng(0).permutation(len(s.x)).astype(np.int32)
    for low in (0, 5):
        cells = s.cells + np.int32(low)
        kernels.renumber(cells, position, low)
        np.testing.assert_array_equal(cells, position[s.cells])


@every_sample
def test_no_node_outside_is_numbered(s):
    highest = int(s.cells.max())
    for low, high in ((1, highest + 1), (0, highest)):
        with pytest.raises(ValueError, match=rf"a node outside {low}\.\.{high - 1}"):
            kernels.held_nodes(s.cells, low, high)
        with pytest.raises(ValueError, match=rf"a node outside {low}\.\.{high - 1}"):
            kernels.renumber(s.cells.copy(), np.zeros(high - low, np.int32), low)


@every_sample
def test_cells_that_meet_marked_nodes_are_found(s):
    marked = np.random.default_rng(0).random(len(s.x)) < 0.4
    for least in range(s.cells.shape[1] + 2):
        expected = np.flatnonzero(marked[s.cells].sum(axis=1) >= least)
        np.testing.assert_array_equal(kernels.cells_meeting(s.cells, marked, least), expected)
    with pytest.raises(ValueError, match="a node outside"):
        kernels.cells_meeting(s.cells, marked[:-1], 1)


@every_sample
def test_the_lowest_quality_is_that_of_the_worst_cell(s):
    element = {4: "tet4", 8: "hex8"}[s.cells.shape[1]]
    expected = quality(s.x, s.cells, element).min()
    assert kernels.lowest_quality(s.x, s.cells) == pytest.approx(expected, rel=1e-13)
    mirrored = s.x * [1, 1, -1]
    assert kernels.lowest_quality(np.ascontiguousarray(mirrored), s.cells) == 0
    assert kernels.lowest_quality(s.x, s.cells[:0]) == np.inf
