"""Declared costs against the kernels that cause them, and against the papers' own counts."""

import itertools
from array import array

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.kernels.backend import kernels
from fembench.methods.lookup import Combination, names, precond_of, recurrence_of, recurrences
from fembench.methods.preconditioners import CHEBYSHEV_DEGREE, PRECONDITIONERS, Grids
from fembench.methods.recipe import PLAIN, recipe
from fembench.methods.recurrences import RECURRENCES
from fembench.methods.steps import Application, Multiplication, Pass, Reduction, Work
from fembench.methods.storages import STORAGES

N = 12
NOTHING = np.zeros(0)


def vectors(letters):
    """Vectors of positive numbers by letter."""
    rng = np.random.default_rng(0)
    return {letter: _aligned(rng.random(N) + 0.5) for letter in letters.split()}


def _aligned(values):
    out = kernels.empty(values.size)
    out[:] = values
    return out


def touched(make, letters):
    """(read, written) letters of a kernel call; `make` binds it to vectors and returns what to call.

    A vector is written if its values change, and read if a NaN in it reaches any other vector or a result.
    """
    v = vectors(letters)
    before = {name: a.copy() for name, a in v.items()}
    make(v)()
    written = {name for name in v if not np.array_equal(v[name], before[name])}
    read = set()
    for name in v:
        bad = vectors(letters)
        bad[name][:] = np.nan
        results = make(bad)()
        others = [a for other, a in bad.items() if other != name]
        found = [*others, np.atleast_1d(np.asarray(results if results is not None else [], float))]
        if any(np.isnan(a).any() for a in found) or (name in written and np.isnan(bad[name]).any()):
            read.add(name)
    return read, written


def declared(step):
    return set(step.reads.split()) - {"M"}, set(step.writes.split())


def updates(recurrence, form):
    return [s for s in getattr(recurrence_of(recurrence), form) if isinstance(s, Pass) and s.writes]


def cg(v, inverse=None, z="z"):
    return kernels.CGVectors(v["x"], v["r"], v["d"], v["q"], v[z], NOTHING, inverse)


@pytest.mark.parametrize(("form", "z"), [("plain", "r"), ("folded", "r"), ("applied", "z")])
def test_the_standard_passes_touch_the_declared_vectors(form, z):
    direction, step = updates("standard", form)
    inverse = _aligned(np.full(N, 0.5)) if form == "folded" else None
    letters = "x r d q z"
    assert touched(lambda v: lambda: cg(v, inverse, z).direction(0.5), letters) == declared(direction)
    name = "step_jacobi" if form == "folded" else "step"
    assert touched(lambda v: lambda: getattr(cg(v, inverse, z), name)(0.5), letters) == declared(step)


def test_inner_products_of_their_own_touch_two_vectors():
    letters = "x r d q z"
    assert touched(lambda v: cg(v).dot_dq, letters) == ({"d", "q"}, set())
    assert touched(lambda v: cg(v).dot_rz, letters) == ({"r", "z"}, set())
    dots = [s for s in recurrence_of("standard").applied if isinstance(s, Pass) and not s.writes]
    assert [declared(s) for s in dots] == [({"r", "z"}, set())]


@pytest.mark.parametrize(("form", "u"), [("plain", "r"), ("folded", "u"), ("applied", "u")])
def test_the_single_reduction_pass_touches_the_declared_vectors(form, u):
    inverse = _aligned(np.full(N, 0.5)) if form == "folded" else None

    def call(v):
        sums = array("d", bytes(24))
        one = kernels.SingleReduction(v["x"], v["r"], v[u], v["w"], v["p"], v["s"], NOTHING, inverse, sums)
        return lambda: one.step(0.5, 0.25) or list(sums)

    assert touched(call, "x r u w p s") == declared(*updates("single-reduction", form))


@pytest.mark.parametrize("form", ["plain", "folded", "applied"])
def test_the_pipelined_pass_touches_the_declared_vectors(form):
    inverse = _aligned(np.full(N, 0.5)) if form == "folded" else None
    names = {
        "plain": "x r r w p s z s w n",
        "folded": "x r m w p s z m m n",
        "applied": "x r u w p s z q m n",
    }

    def call(v):
        sums = array("d", bytes(24))
        one = kernels.Pipelined(*(v[k] for k in names[form].split()), NOTHING, inverse, sums)
        return lambda: one.step(0.5, 0.25) or list(sums)

    assert touched(call, "x r u w p s z q m n") == declared(*updates("pipelined", form))


def test_the_passes_of_preconditioners_touch_the_declared_vectors():
    inverse = _aligned(np.full(N, 0.5))
    (scale,) = precond_of("jacobi").application
    assert touched(lambda v: kernels.Scale(inverse, v["r"], v["z"]).run, "r z") == declared(scale)
    _, start, *_, step = precond_of("chebyshev").application
    call = lambda v: lambda: kernels.Chebyshev(v["z"], v["t"], v["d"], v["d"], v["D"]).start(0.25)  # noqa: E731
    assert touched(call, "z t d D") == declared(start)
    call = lambda v: lambda: kernels.Chebyshev(v["z"], v["r"], v["d"], v["q"], v["D"]).run(0.5, 0.25)  # noqa: E731
    assert touched(call, "z r d q D") == declared(step)


def test_a_chebyshev_application_is_a_copy_a_product_with_D_and_as_many_steps_as_its_degree():
    found = recipe(Combination(precond="chebyshev"))
    assert found.precond_products == CHEBYSHEV_DEGREE - 1 == 3
    assert found.applied == Work(2, 8 * 6) + Work(6, 8 * 8) * 3
    assert found.exchanges == 4


COUNTS = {  # vectors read and written per iteration: none, jacobi, block-jacobi, applied
    ("standard", "sym"): (9, 11, 13, 11),
    ("standard", "csr"): (11, 13, 15, 13),
    ("single-reduction", "sym"): (9, 12, 13, 12),
    ("single-reduction", "csr"): (11, 14, 15, 14),
    ("pipelined", "sym"): (13, 15, 16, 18),
    ("pipelined", "csr"): (13, 15, 16, 18),
}


@pytest.mark.parametrize(("recurrence", "storage"), COUNTS)
def test_vectors_per_iteration_are_those_counted_by_hand(recurrence, storage):
    names = ("none", "jacobi", "block-jacobi", "chebyshev")
    assert (PLAIN.updates, PLAIN.dots.vectors) == (Work(8, 72), 0)  # those of a profile
    for precond, count in zip(names, COUNTS[recurrence, storage]):
        found = recipe(Combination(storage=storage, precond=precond, recurrence=recurrence))
        assert found.updates.vectors + found.dots.vectors == count, precond


OWN = [
    Combination(storage=s.name, precond=p.name, recurrence=v)
    for s, p, v in itertools.product(STORAGES, PRECONDITIONERS, names(recurrences("own")))
    if s.solver == "own" and "own" in p.solvers
]


def test_what_the_solver_counts_and_what_the_model_prices_are_the_same_vectors():
    """For every own method: bytes counted on a rank are the vectors priced, and the products inside M."""
    product = Work(1e3, 1e5)
    for choice in OWN:
        found = recipe(choice)
        counted = found.counted(N, product)
        priced = found.updates.vectors + found.dots.vectors + found.applied.vectors
        assert counted.bytes == pytest.approx(8 * N * priced + 1e5 * found.precond_products), choice
        once = found.applied if Application() in found.steps else Work()
        flops = found.updates.flops + found.dots.flops + once.flops
        assert counted.flops == N * flops + 1e3 * found.precond_products, choice


def test_residual_replacement_adds_four_products_in_fifty_iterations():
    found = recipe(Combination(recurrence="pipelined", precond="chebyshev"))
    assert found.products == pytest.approx(1.08)
    assert found.applications == pytest.approx(1.04)


def test_each_recurrence_has_the_all_reduces_of_its_paper():
    own = names(recurrences("own"))
    found = {r: recipe(Combination(recurrence=r, precond="jacobi")).reductions for r in own}
    assert found == {"standard": (1, 2), "single-reduction": (3,), "pipelined": (3,)}


def test_petsc_needs_a_norm_more_where_it_preconditions():
    plain, jacobi = (
        recipe(Combination(solver="petsc", storage="baij", precond=p)) for p in ("none", "jacobi")
    )
    assert (plain.updates.vectors, plain.dots.vectors, plain.applied.vectors) == (9, 4, 0)
    assert (jacobi.updates.vectors, jacobi.dots.vectors, jacobi.applied.vectors) == (9, 5, 3)
    assert (plain.reductions, jacobi.reductions) == ((1, 1), (1, 1, 1))
    with pytest.raises(InputError, match="precond gamg: the cost"):
        recipe(Combination(solver="petsc", storage="aij", precond="gamg"))


def test_every_declaration_is_complete_and_named_once():
    assert len({s.name for s in STORAGES}) == len(STORAGES)
    assert len({p.name for p in PRECONDITIONERS}) == len(PRECONDITIONERS)
    assert len({(v.solver, v.name) for v in RECURRENCES}) == len(RECURRENCES)
    for method in (*STORAGES, *PRECONDITIONERS, *RECURRENCES):
        assert method.help
        assert method.help[0] != " "
        assert not method.help.endswith(".")
    for recurrence in RECURRENCES:
        forms = [recurrence.plain, recurrence.applied, *([recurrence.folded] if recurrence.folded else [])]
        assert all(sum(isinstance(s, Multiplication) for s in form) == 1 for form in forms)
        assert [any(isinstance(s, Reduction) for s in form) for form in forms] == [True] * len(forms)
        assert Application() in recurrence.applied
        assert Application() not in recurrence.plain


@pytest.mark.parametrize(("find", "word"), [(precond_of, "ilu"), (recurrence_of, "bicg")])
def test_an_unknown_name_is_refused_with_those_that_are_known(find, word):
    with pytest.raises(InputError, match=f"'{word}': expected one of [a-z, -]+"):
        find(word)


@pytest.mark.parametrize(
    ("recurrence", "precond", "flops"),
    [
        # per entry: d = r + beta d; <d, q>; x, r; <r, r>
        ("standard", "none", 2 + 2 + 4 + 2),
        # D r once in the direction and once in the step, where <r, D r> comes beside <r, r>
        ("standard", "jacobi", (1 + 2) + 2 + (4 + 2) + (1 + 2)),
        # a 3x3 block times a vector: three products and two sums per entry
        ("standard", "block-jacobi", (5 + 2) + 2 + (4 + 2) + (5 + 2)),
        # beside z = D r: six modes summed, six added; <r, z> in a pass of its own
        ("standard", "two-level", 2 + 2 + (4 + 2) + (6 + 6 + 1) + 2),
        # p, s, x, r; <r, r>, <w, r>
        ("single-reduction", "none", 4 * 2 + 2 * 2),
        ("single-reduction", "jacobi", 4 * 2 + 1 + 3 * 2),
        # z, s, p, x, r, w; <r, r>, <w, r>
        ("pipelined", "none", 6 * 2 + 2 * 2),
    ],
)
def test_flops_are_those_counted_by_hand(recurrence, precond, flops):
    for storage in ("sym", "csr"):  # wherever an inner product is taken
        choice = Combination(storage=storage, precond=precond, recurrence=recurrence)
        assert recipe(choice).counted(N).flops == N * flops


def test_the_coarse_matrix_has_six_columns_per_rank_and_six_rows_per_kind_of_node():
    assert precond_of("two-level").coarse_entries(kinds=3, ranks=4) == 6 * 4 * 6 * 3


def test_the_grids_below_a_cube_halve_its_edge_and_those_of_4000_nodes_are_on_rank_0():
    """Edges of 65 nodes: 33, 17, 9 and 5, of which the last has 125 nodes, few enough for its inverse."""
    shared, small = Grids().below(65**3, 33**3)
    assert shared == pytest.approx([17**3, 9**3])  # of a part with edges of 33
    assert small == pytest.approx([9**3, 5**3])
    assert Grids().below(5**3, 5**3) == ([], pytest.approx([3**3, 2**3]))


def test_the_work_on_the_grids_is_that_of_every_grid_with_its_products():
    """Edges of 33, 17 and 9 nodes below a mesh of 65, then 5: a dense inverse of 375 x 375 numbers."""
    found = recipe(Combination(precond="multigrid"))
    nodes = 33**3 + 17**3 + 9**3
    flops = 3 * nodes * found.applied.flops + 6 * nodes * 27 * 18 + 2 * 375**2
    n_bytes = 3 * nodes * found.applied.bytes + 6 * nodes * 14 * 40 + 8 * 375**2
    work = found.on_grids(3 * 65**3, 3 * 65**3)
    assert (work.flops, work.bytes) == (pytest.approx(flops), pytest.approx(n_bytes))
