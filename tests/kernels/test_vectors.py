"""Vector kernels against numpy, and their inner products against exact sums."""

import ast
import math
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference_variants import scaled

from fembench.base.errors import InputError
from fembench.kernels import backend
from fembench.kernels.backend import kernels

SIZES = [(0, 0), (3, 0), (3, 3), (12, 6), (189, 3), (192, 0), (195, 192), (600, 201), (3000, 999)]
every_size = pytest.mark.parametrize(("n", "n_weighted"), SIZES)


def system(n, n_weighted, seed=0):
    """Arrays of one iteration: x r d q z weights, reciprocals (n,), inverse blocks (n/3, 6)."""
    rng = np.random.default_rng(seed)
    vectors = [rng.standard_normal(n) for _ in range(5)]
    weights = 1 / rng.integers(2, 5, n_weighted // 3).repeat(3) if n_weighted else np.empty(0)
    return vectors, weights, rng.random(n) + 0.5, rng.random((n // 3, 6)) + [1, 1, 1, 0, 0, 0]


def dot(a, b, weights):
    m = a.size - weights.size
    return a[:m] @ b[:m] + (a[m:] * b[m:] * weights).sum()


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@every_size
def test_a_step_updates_the_solution_and_the_residual_and_a_direction_follows(n, n_weighted):
    vectors, weights, *_ = system(n, n_weighted)
    x, r, d, q, z = (v.copy() for v in vectors)
    ours = kernels.CGVectors(*vectors, weights)
    x, r = x + 0.3 * d, r - 0.3 * q
    close(ours.step(0.3), dot(r, r, weights))
    ours.direction(-0.7)
    d = z - 0.7 * d
    close(np.array(vectors), np.array([x, r, d, q, z]))
    close(ours.dot_dq(), dot(d, q, weights))
    close(ours.dot_rz(), dot(r, z, weights))


@every_size
@pytest.mark.parametrize("blocks", [False, True], ids=["jacobi", "block-jacobi"])
def test_a_folded_preconditioner_takes_the_place_of_z(n, n_weighted, blocks):
    vectors, weights, *inverses = system(n, n_weighted)
    x, r, d, q, z = (v.copy() for v in vectors)
    ours = kernels.CGVectors(*vectors, weights, inverses[blocks])
    x, r = x + 0.3 * d, r - 0.3 * q
    u = scaled(inverses[blocks], r)
    close(ours.step_jacobi(0.3), (dot(r, r, weights), dot(r, u, weights)))
    ours.direction(-0.7)
    close(np.array(vectors), np.array([x, r, u - 0.7 * d, q, z]))


@every_size
@pytest.mark.parametrize("blocks", [False, True], ids=["jacobi", "block-jacobi"])
def test_scale_multiplies_by_the_inverse(n, n_weighted, blocks):
    vectors, _, *inverses = system(n, n_weighted)
    z = np.full(n, np.nan)
    kernels.Scale(inverses[blocks], vectors[1], z).run()
    close(z, scaled(inverses[blocks], vectors[1]))


@every_size
def test_a_chebyshev_step_reduces_the_residual_and_follows_the_new_direction(n, n_weighted):
    (_, r, d, q, z), _, inverse, _ = system(n, n_weighted)
    expected_r = r - q
    expected_d = 0.3 * d + 0.9 * inverse * expected_r
    expected_z = z + expected_d
    kernels.Chebyshev(z, r, d, q, inverse).run(0.3, 0.9)
    close(np.array([r, d, z]), np.array([expected_r, expected_d, expected_z]))


def test_the_fused_residual_norm_is_accurate_for_long_vectors():
    n = 300_000
    vectors, weights, *_ = system(n, 30_000)
    r = vectors[1]
    found = kernels.CGVectors(*vectors, weights).step(0.25)
    w = np.concatenate([np.ones(n - weights.size), weights])
    assert abs(found - math.fsum(r * r * w)) <= 1e-15 * found


def test_equal_numbers_of_a_million_terms_lose_nothing():
    """One running accumulator would lose five digits here."""
    a = np.full(3_000_000, 0.1)
    found = kernels.Dot(a, a, np.empty(0)).run()
    assert abs(found - a.size * (0.1 * 0.1)) <= 4e-16 * found


def test_results_do_not_depend_on_where_the_arrays_lie():
    vectors, weights, *_ = system(600, 201)
    found = kernels.Dot(vectors[0], vectors[1], weights).run()
    for shift in range(1, 9):
        room = [np.empty(620) for _ in range(3)]
        moved = [space[shift : shift + v.size] for space, v in zip(room, (*vectors[:2], weights))]
        for m, v in zip(moved, (*vectors[:2], weights)):
            m[:] = v
        assert kernels.Dot(*moved).run() == found


def test_a_bound_kernel_keeps_its_arrays_alive():
    def made():
        a = np.ones(30_000)
        return kernels.Dot(a, a, np.empty(0))

    dots = [made() for _ in range(20)]
    assert all(dot.run() == 30_000 for dot in dots)


def test_stream_reads_and_writes_what_it_says():
    assert kernels.Stream(1000).read() == 0.0
    kernels.Triad(1000).run(2.0)


MAPPED = """
import re
from fembench.kernels.backend import kernels
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
before = peak()
stream = kernels.Stream(1 << 23)
assert peak() - before < 100 << 10, f"{before} -> {peak()} kB"  # the array has 64 MiB
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak of memory")
def test_the_read_of_one_array_takes_the_memory_of_one(tmp_path):
    """Three of 128 MiB each were a rank's peak of memory."""
    done = subprocess.run([sys.executable, "-c", MAPPED], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_released_memory_serves_the_next_array_of_its_size():
    first = kernels.zeros(1_000_000)
    second = kernels.zeros(1_000_000)
    places = {first.ctypes.data, second.ctypes.data}
    assert len(places) == 2
    del first, second
    again = [kernels.empty(1_000_000) for _ in range(2)]
    assert {array.ctypes.data for array in again} == places
    again[0][:], again[1][:] = 1, 2
    assert (again[0] == 1).all()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_released_memory_goes_back_when_another_size_is_asked_for():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    large = kernels.zeros(20_000_000)
    before = resident()
    del large
    assert resident() > before - 10_000_000
    kernels.empty(1_000_000)
    assert resident() < before - 150_000_000


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"r": np.zeros(9)}, "r: expected 12 items, got 9"),
        ({"q": np.zeros(24)[::2]}, "q: expected a C-contiguous writable array"),
        ({"d": np.zeros(12, np.float32)}, "d: expected items of kind d"),
        ({"weights": np.zeros(15)}, "three entries a node"),
        ({"x": np.frombuffer(bytes(96))}, "x: expected a C-contiguous writable array"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(wrong, message):
    arrays = {name: np.zeros(12) for name in "xrdqz"} | {"weights": np.zeros(3)} | wrong
    with pytest.raises((ValueError, TypeError), match=message):
        kernels.CGVectors(*arrays.values())


def test_kernels_that_were_not_compiled_are_refused(monkeypatch):
    monkeypatch.setattr(backend, "compiled_module", lambda name: None)
    with pytest.raises(InputError, match="kernels are not compiled"):
        backend._loaded()


def test_types_are_stated_for_every_kernel():
    stub = ast.parse((Path(backend.__file__).parent / "_compiled.pyi").read_text())
    stated = {entry.name for entry in stub.body if isinstance(entry, ast.FunctionDef | ast.ClassDef)}
    there = {name for name, value in vars(kernels).items() if callable(value) and name[0] != "_"}
    assert stated - {"_Rows"} == there
