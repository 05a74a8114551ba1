"""What reaches the compiled kernels from Python is checked once, when they are bound."""

import numpy as np
import pytest
from kernel_samples import LAM, MU, SAMPLES

from fembench.kernels.backend import kernels

N = 3  # nodes of a chain: 0 - 1 - 2, two of them interior


def vectors():
    return kernels.zeros(3 * N), kernels.zeros(3 * N)


def sym(indptr=(0, 1, 3, 5), columns=(2, 0, 2, 1, 2), n_interior=2, n_rows=N):
    values = kernels.zeros((len(columns), 3, 3))
    rows = np.arange(n_rows, dtype=np.int32)
    return kernels.SymProduct(
        np.array(indptr), rows, np.array(columns, np.int32), values, n_interior, *vectors()
    )


def bsr(indptr=(0, 2, 5, 7), columns=(0, 1, 0, 1, 2, 1, 2), n_interior=2):
    values = kernels.zeros((len(columns), 3, 3))
    return kernels.BsrProduct(np.array(indptr), np.array(columns, np.int32), values, n_interior, *vectors())


def csr(indptr=tuple(range(10)), columns=tuple(range(9)), n_interior=2):
    values = kernels.zeros(len(columns))
    return kernels.CsrProduct(np.array(indptr), np.array(columns, np.int32), values, n_interior, *vectors())


@pytest.mark.parametrize("make", [sym, bsr, csr])
def test_a_pattern_that_fits_is_taken(make):
    product = make()
    product.interface()
    product.interior()


OUTSIDE, UNFILLED = r"columns: an index outside 0\.\.", "indptr: expected rows of at least"


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        *((sym, {"columns": (2, 0, 2, 1, last)}, OUTSIDE) for last in (3, -1)),
        (bsr, {"columns": (0, 1, 0, 1, 2, 1, 3)}, OUTSIDE),
        (bsr, {"columns": (-1, 1, 0, 1, 2, 1, 2)}, OUTSIDE),
        *((csr, {"columns": (*range(8), last)}, OUTSIDE) for last in (9, -(2**31))),
        (sym, {"indptr": (0, 1, 1, 5)}, UNFILLED),  # a row without its own block
        (sym, {"indptr": (0, 1, 3, 6)}, UNFILLED),
        *((bsr, {"indptr": indptr}, UNFILLED) for indptr in ((0, 5, 2, 7), (1, 2, 5, 7))),
        (csr, {"indptr": (*range(9), 2**40)}, UNFILLED),
    ],
)
def test_columns_outside_the_matrix_and_rows_that_do_not_fill_it_are_refused(make, wrong, message):
    with pytest.raises(ValueError, match=message):
        make(**wrong)


def assembled(s, **changed):
    indptr, rows, columns = kernels.pattern(s.cells, s.n_interior, s.n_active, True)
    where = kernels.Incidence(s.cells, len(s.x))
    parts = {"indptr": indptr, "rows": rows, "columns": columns, "where": where} | changed
    return kernels.assemble(s.x, s.cells, LAM, MU, s.n_interior, True, s.fixed, **parts)


@pytest.mark.parametrize("name", ["tets", "bricks"])
def test_assembly_refuses_a_pattern_of_other_nodes(name):
    s = SAMPLES[name]
    indptr, rows, columns = kernels.pattern(s.cells, s.n_interior, s.n_active, True)
    assert assembled(s).shape == (columns.size, 3, 3)
    for message, changed in {
        "columns: an index outside": {
            "columns": np.where(columns == 5, s.n_active, columns).astype(np.int32)
        },
        "rows: an index outside": {"rows": rows + np.int32(1)},
        "rows: expected every node once": {"rows": np.zeros_like(rows)},
        "indptr: expected rows of at least 1": {"indptr": np.zeros_like(indptr)},
        "where: expected that of cells": {"where": kernels.Incidence(s.cells[1:], len(s.x))},
        "where: expected that of .* nodes": {"where": kernels.Incidence(s.cells % 5, 5)},
    }.items():
        with pytest.raises(ValueError, match=message):
            assembled(s, **changed)


def test_cells_of_another_mesh_write_nowhere_but_into_the_values():
    a, b = SAMPLES["bricks"], SAMPLES["nothing dropped"]
    n = min(a.n_active, b.n_active)
    indptr, rows, columns = kernels.pattern(b.cells[:1], n, n, True)
    values = kernels.assemble(
        a.x, a.cells, LAM, MU, n, True, np.zeros(3 * n, bool), indptr, rows, columns
    )  # nonsense, but it stays within its memory: the sanitizers look at this test
    assert values.shape == (columns.size, 3, 3)


def test_more_interface_cells_than_cells_are_refused():
    s = SAMPLES["tets"]
    d, q = kernels.zeros(3 * s.n_active), kernels.zeros(3 * s.n_active)
    with pytest.raises(ValueError, match=r"n_first: expected 0\.\."):
        kernels.EbeProduct(s.x, s.cells, len(s.cells) + 1, LAM, MU, np.zeros(0, np.int32), s.n_interior, d, q)


def test_a_product_into_its_own_argument_is_refused():
    d = kernels.zeros(9)
    with pytest.raises(ValueError, match="q: expected another vector than d"):
        kernels.DenseProduct(kernels.zeros((9, 9)), 2, d, d)


def stated(array, order):
    """The same numbers with their byte order stated, as files have it."""
    swapped = array.byteswap() if order == ">" else array
    return swapped.view(array.dtype.newbyteorder(order))


def test_arrays_may_state_the_byte_order_of_the_machine():
    s = SAMPLES["tets"]
    expected = kernels.stiffness(s.x, s.cells, LAM, MU)
    x, cells = stated(s.x, "<"), stated(s.cells, "<")
    assert memoryview(x).format == "<d"
    np.testing.assert_array_equal(kernels.stiffness(x, cells, LAM, MU), expected)


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        (stated(SAMPLES["tets"].x, ">"), "got kind >d with 8"),
        (SAMPLES["tets"].x.astype(np.float32), "got kind f with 4"),
        (SAMPLES["tets"].x.view(np.int64), "got kind l with 8"),
        (SAMPLES["tets"].x.view("f8,f8,f8"), "got kind T{.*} with 24"),
    ],
)
def test_arrays_of_another_kind_are_refused_by_name(x, complaint):
    with pytest.raises(TypeError, match=f"x: expected items of kind d with 8 bytes, {complaint}"):
        kernels.stiffness(x.reshape(len(SAMPLES["tets"].x), -1), SAMPLES["tets"].cells, LAM, MU)


def test_read_only_arrays_are_read_and_strided_ones_refused():
    s = SAMPLES["tets"]
    x = s.x.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(
        kernels.stiffness(x, s.cells, LAM, MU), kernels.stiffness(s.x, s.cells, LAM, MU)
    )
    with pytest.raises(ValueError, match="x: expected a C-contiguous array"):
        kernels.stiffness(np.asfortranarray(s.x), s.cells, LAM, MU)
