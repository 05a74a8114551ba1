"""Threads of a rank: every result has the same bits, whatever their number."""

from types import SimpleNamespace

import numpy as np
import pytest
from kernel_samples import LAM, MU, SAMPLES, sample
from test_products import every_sample, vectors
from test_vectors import system

from fembench.kernels.backend import kernels
from fembench.mesh.presets import resolve
from fembench.ranks.piece import rows_in_space
from fembench.solve.operators import build_operator

needs_threads = pytest.mark.skipif(not kernels.HAS_THREADS, reason="compiled without OpenMP")
THREADS = (1, 2, 3, 4)
STORAGES = ("sym", "bsr", "csr", "dense", "ebe")
LARGE = sample((14, 13, 12), "tet4", 3, dropped=0.02, interior=0.8)
LONG = [(30000, 0), (30000, 9003), (9000, 9000), (8193, 3)]  # entries, weighted: too long for one thread


@pytest.fixture(autouse=True)
def one_thread():
    yield
    kernels.use_threads(1)


def products_of(operator, s):
    """[number of threads] -> q and both parts of d . q, twice, with another d for the second time."""
    found = []
    for n in THREADS:
        kernels.use_threads(n)
        d, q = vectors(s)
        product = operator.bind(d, q)
        first = product.interface(), product.interior(), q.tobytes()
        d *= -0.7
        found.append((first, product.interface(), product.interior(), q.tobytes()))
    return found


@needs_threads
@every_sample
@pytest.mark.parametrize("storage", STORAGES)
def test_a_product_has_the_same_bits_for_any_number_of_threads(s, storage):
    one, *others = products_of(build_operator(storage, s, LAM, MU), s)
    assert others == [one] * len(others)


@needs_threads
@pytest.mark.parametrize("storage", ["sym", "bsr", "csr"])
def test_threads_that_share_most_of_their_columns_add_in_the_order_of_one(storage):
    one, *others = products_of(build_operator(storage, LARGE, LAM, MU), LARGE)  # nodes numbered at random
    assert others == [one] * len(others)


@needs_threads
def test_threads_with_nodes_in_the_order_of_a_rank_add_in_the_order_of_one():
    mesh = resolve("m3")
    position = rows_in_space(mesh.x, len(mesh.x) - 300, len(mesh.x))
    cells = np.ascontiguousarray(position[mesh.cells], np.int32)
    x = np.empty_like(mesh.x)
    x[position] = mesh.x
    n = len(x)
    s = SimpleNamespace(x=x, cells=cells, n_interior=n - 300, n_active=n, fixed=np.zeros(3 * n, bool))
    one, *others = products_of(build_operator("sym", s, LAM, MU), s)
    assert others == [one] * len(others)


def everything(n, n_weighted, blocks):
    """The bytes of all vectors and sums after a pass of each kind."""
    (x, r, d, q, z), weights, *inverses = system(n, n_weighted)
    ours = kernels.CGVectors(x, r, d, q, z, weights, inverses[blocks])
    plain = kernels.CGVectors(x, r, d, q, z, weights)
    single = inverses[blocks].astype(np.float32) if blocks else inverses[blocks]
    steps = kernels.Chebyshev(z, r, d, q, single)
    sums = [ours.step_jacobi(0.3), plain.step(-0.2), plain.dot_dq(), plain.dot_rz()]
    ours.direction(0.6)
    plain.direction(-0.7)
    steps.start(0.9)
    steps.run(0.3, 0.8)
    kernels.Scale(inverses[blocks], r, q).run()
    sums.append(kernels.Dot(x, d, weights).run())
    return sums, [v.tobytes() for v in (x, r, d, q, z)]


@needs_threads
@pytest.mark.parametrize(("n", "n_weighted"), LONG)
@pytest.mark.parametrize("blocks", [False, True], ids=["jacobi", "block-jacobi"])
def test_passes_over_vectors_have_the_same_bits_for_any_number_of_threads(n, n_weighted, blocks):
    n -= n % 3
    found = []
    for threads in THREADS:
        kernels.use_threads(threads)
        found.append(everything(n, n_weighted, blocks))
    assert found[1:] == found[:1] * (len(found) - 1)


@needs_threads
def test_every_thread_of_a_product_computes():
    kernels.use_threads(2)
    operator = build_operator("sym", LARGE, LAM, MU)
    product = operator.bind(*vectors(LARGE))
    for _ in range(20):
        product.interface()
        product.interior()
    seconds = kernels.thread_seconds()
    assert seconds.shape == (2,)
    assert (seconds > 0).all()
    kernels.use_threads(2)
    assert not kernels.thread_seconds().any()


@needs_threads
def test_columns_that_do_not_ascend_are_refused_by_several_threads():
    indptr, rows, columns, values = build_operator("sym", LARGE, LAM, MU).arrays
    row = np.flatnonzero(np.diff(indptr) > 2)[0]
    columns = columns.copy()
    columns[indptr[row] + 1 : indptr[row + 1]] = columns[indptr[row] + 1 : indptr[row + 1]][::-1]
    kernels.use_threads(2)
    with pytest.raises(ValueError, match="columns: expected them to ascend"):
        kernels.SymProduct(indptr, rows, columns, values, LARGE.n_interior, *vectors(LARGE))


@pytest.mark.parametrize("n", [0, -1, 100_000])
def test_a_number_of_threads_that_is_impossible_is_refused(n):
    with pytest.raises(ValueError, match=f"threads = {n}: expected 1 to"):
        kernels.use_threads(n)


def test_samples_have_several_windows_for_each_thread():
    assert SAMPLES["many windows"].n_interior > 32 * max(THREADS)
    assert LARGE.n_active - LARGE.n_interior > 32 * max(THREADS)
