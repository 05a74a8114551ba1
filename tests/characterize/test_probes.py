"""What is measured of a rank: sizes that fit their caches, and units that are what they say."""

import itertools

import numpy as np
import pytest

from fembench.bench.prepare import prepare
from fembench.characterize import probes
from fembench.characterize.probes import box_of, dense_box_of, level_bytes
from fembench.fem.materials import Material
from fembench.host.host import cache_instances
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, AXPY, SPMV_INTERIOR
from fembench.records.profile import BETWEEN, LEVELS
from fembench.solve.operators import build_operator
from fembench.timing.tracer import NullTracer

MB = 1 << 20
STEEL = Material(E=2e11, nu=0.3, rho=7800.0)
LAME = (STEEL.lam, STEEL.mu)


def local(mesh):
    """The subdomain of a box that one rank has for itself."""
    from fembench.ranks.comm import alone

    return prepare(alone(), Case.of(mesh=mesh, partitioner="blocks"), NullTracer()).sub


@pytest.fixture(scope="module")
def part():
    return local("box:3000")


def test_sizes_lie_in_their_caches_and_outside():
    sizes = level_bytes({"L2": MB, "L3": 32 * MB}, sharers=2, ranks=2, memory=64 << 30)
    assert probes.PART * 2.7 <= 1  # csr of the same mesh still fits
    (inner,), (middle,), (outer,) = (sizes[level] for level in LEVELS)
    assert inner == int(0.3 * MB)
    assert MB < middle <= 32 * MB / 2 / 2.7 * 1.02
    assert outer == 64 * MB
    assert level_bytes({"L3": 1 << 30}, 1, 1, 1 << 40)["memory"] == (probes.MOST,)  # however large the cache


def test_sizes_are_dense_where_the_shared_cache_becomes_too_small():
    sizes = level_bytes({"L2": MB, "L3": 32 * MB}, sharers=2, ranks=2, memory=64 << 30)[BETWEEN]
    assert sizes[0] == 8 * MB  # both parts take half of the cache
    assert sizes[-1] == 32 * MB
    assert [b / a for a, b in itertools.pairwise(sizes)] == pytest.approx([2**0.5] * 4, rel=1e-6)


def test_sizes_ascend_also_where_caches_are_small_or_unknown():
    for caches in ({}, {"L2": MB}, {"L2": 2 * MB, "L3": MB}, {"L2": 4096, "L3": 8192}):
        sizes = level_bytes(caches, sharers=64, ranks=64, memory=0)
        assert sizes["L2"] <= sizes["L3"] < sizes["memory"]
        assert all(sizes["L3"][0] < n < sizes["memory"][0] for n in sizes[BETWEEN])


def test_all_ranks_together_take_half_the_memory_at_most():
    sizes = level_bytes({"L2": MB, "L3": 32 * MB}, sharers=8, ranks=64, memory=16 << 30)
    assert 64 * probes.COPIES * sizes["memory"][0] <= 8 << 30


@pytest.mark.parametrize("n_bytes", [300_000, 4 * MB])
def test_a_box_has_about_the_bytes_asked_for(n_bytes):
    sparse = build_operator("sym", local(box_of(n_bytes)), *LAME)
    assert 0.7 * n_bytes < sparse.matrix_bytes < 1.1 * n_bytes
    dense = build_operator("dense", local(dense_box_of(n_bytes)), *LAME)
    assert 0.5 * n_bytes < dense.matrix_bytes < 1.3 * n_bytes


def test_assembly_is_counted_in_cells_and_makes_the_matrix(part):
    probe = probes.assembly_probe("L2", part, *LAME)
    assert (probe.unit, probe.units, probe.number) == ("cells", part.n_cells, ASSEMBLY)
    x = np.random.default_rng(0).standard_normal(3 * part.n_active)
    expected = build_operator("sym", part, *LAME).apply(x)
    np.testing.assert_array_equal(probe.call().apply(x), expected)


@pytest.mark.parametrize("storage", probes.STORAGES)
def test_products_are_counted_in_blocks_of_the_whole_stiffness(part, storage):
    probe = probes.product_probe(storage, "L2", part, *LAME)
    touching = {(a, b) for cell in part.cells for a in cell for b in cell}
    active = [(a, b) for a, b in touching if a < part.n_active and b < part.n_active]
    assert (probe.unit, probe.units, probe.number) == ("blocks", len(active), SPMV_INTERIOR)
    assert probe.cells == part.n_cells


@pytest.fixture
def made(monkeypatch):
    """The vectors that kernels make from now on."""
    empty, found = probes.kernels.empty, []

    def noted(*arguments):
        found.append(empty(*arguments))
        return found[-1]

    monkeypatch.setattr(probes.kernels, "empty", noted)
    return found


@pytest.mark.parametrize("storage", [*probes.STORAGES, "dense"])
def test_a_product_is_computed(part, storage, made):
    probe = probes.product_probe(storage, "L2", part, *LAME)
    assert storage != "dense" or probe.units == part.n_active**2
    probe.call()
    at = next(i for i, array in enumerate(made) if (array == 1).all())  # ebe makes more behind them
    _r, d, q = made[at : at + 3]
    np.testing.assert_allclose(q, build_operator("sym", part, *LAME).apply(d), atol=1e-9 * abs(q).max())


def test_updates_may_be_repeated_for_ever(part, made):
    probe = probes.updates_probe("L2", part)
    assert (probe.unit, probe.units, probe.number) == ("dofs", 3 * part.n_active, AXPY)
    for _ in range(2000):
        probe.call()
    x, r, d, _q = made[:4]
    assert (r == 1).all()
    assert (x == 0).all()
    assert d == pytest.approx(2.0)  # d = r + d / 2


def test_in_memory_vectors_have_as_many_bytes_as_the_matrix(part, made):
    *products, updates = probes.iteration_probes("memory", part, *LAME)
    assert updates.before is updates.then is None
    assert [len(array) for array in made].count(updates.units) == 4  # x, r, d, q
    assert 4 * 8 * updates.units == pytest.approx(build_operator("sym", part, *LAME).matrix_bytes, rel=0.2)
    assert updates.cells / updates.units == pytest.approx(part.n_cells / (3 * part.n_active), rel=1e-4)
    assert {p.cells for p in products} == {part.n_cells}


def test_in_the_third_level_cache_each_pass_over_vectors_follows_a_product(part, made):
    for level in ("L2", "L3", BETWEEN):
        made.clear()
        *products, updates = probes.iteration_probes(level, part, *LAME)
        x, _r, d, q = made[:4]
        assert [p.before is not None for p in products] == [level == BETWEEN] * len(probes.STORAGES)
        assert (updates.before is None) == (updates.then is None) == (level == "L2")
        if updates.before:
            updates.before()
            assert (q != 1).any()  # the product, of the same vectors
            updates.call()
            assert d == pytest.approx(1.5)  # d = r + d / 2
            x[:] = np.nan
            updates.then()
            assert np.isnan(x).all()  # x = x + 0 d
        if level == BETWEEN:
            products[0].before()
            assert d == pytest.approx(1.75)


def test_bytes_are_those_that_move():
    triad, read = probes.memory_probes("L3", 24_000)
    assert (triad.phase, triad.units) == ("triad", 24_000)  # three arrays
    assert (read.phase, read.units) == ("read", 24_000)  # one
    triad.call()
    read.call()


def test_caches_are_counted_once_for_all_who_share_them(tmp_path):
    for cpu, sharers in enumerate(("0-1", "0-1", "2-3", "2-3")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cache/index3"
        folder.mkdir(parents=True)
        for name, text in (("level", "3"), ("type", "Unified"), ("shared_cpu_list", sharers)):
            (folder / name).write_text(f"{text}\n")
    assert cache_instances(3, tmp_path) == 2
    assert cache_instances(2, tmp_path) == 0
