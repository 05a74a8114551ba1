"""What one iteration consists of, by solver, variant and preconditioner, beside the product itself.

Counted as methods/work.py counts: vectors of n doubles that passes read or write, whatever lies in a cache.

    solver own         cg.axpy                                      cg.dot (2 each, as passes of their own)
    standard           9; D^-1 folded in: read twice                <d, q>, <r, z>
    single-reduction   9; 11 and D^-1 once; 10 beside a product     <w, u>, <r, u>
    pipelined          13; 14 and D^-1 once; 18 beside a product    –

Chebyshev: three steps of a product, a neighbour sum and 8 vectors, 9 before them. Two-level: 5 vectors, the
coarse matrix, an all-gather of six numbers a rank. Pipelined: every 50 iterations four products and two
applications of the preconditioner more. PETSc: its log's updates (9 vectors), dots and PCApply (3).
"""

from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.records.case import Case

FUSED = ("sym", "bsr", "ebe")  # storages whose product returns <d, A d> as well
INVERSE = {"jacobi": 1, "block-jacobi": 2}  # vectors' worth of D^-1, where it is folded into the updates
STEPS = 3  # of a Chebyshev application: products
REPLACE = 50  # iterations between two residual replacements of the pipelined variant
PROXY = {
    "aij": "csr",
    "baij": "bsr",
    "sbaij": "sym",
    "is": "csr",
}  # PETSc's storages, and ours nearest to them


class Recipe(NamedTuple):
    """Of one iteration."""

    updates: float  # vectors in cg.axpy
    dots: float  # vectors in cg.dot
    products: float = 1.0  # in cg.spmv
    precond: float = 0.0  # vectors in cg.precond
    precond_products: int = 0  # there, each with a neighbour sum

    @property
    def exchanges(self) -> float:
        """Neighbour sums."""
        return self.products + self.precond_products


def recipe(case: Case) -> Recipe:
    """The recipe of a case. Raises InputError where nothing is known of its parts."""
    if case.exchange == "blocking":
        raise InputError("exchange blocking cannot be predicted; expected nonblocking")
    if case.solver == "petsc":
        return _petsc(case)
    outer = case.precond not in ("none", *INVERSE)
    inverse, fused = INVERSE.get(case.precond, 0), case.storage in FUSED
    dots = 2.0 * (not fused) + 2.0 * outer
    products, applied = 1.0, 1.0
    if case.variant == "standard":
        updates = 9.0 + 2 * inverse
    elif case.variant == "single-reduction":
        updates = 10.0 if outer else 11.0 + inverse if inverse else 9.0
    else:
        updates, dots = 18.0 if outer else 14.0 + inverse if inverse else 13.0, 0.0
        products, applied = 1 + 4 / REPLACE, 1 + 2 / REPLACE
    vectors = {"chebyshev": 9.0 + 8 * STEPS, "two-level": 5.0}.get(case.precond, 0.0)
    return Recipe(updates, dots, products, applied * vectors, STEPS if case.precond == "chebyshev" else 0)


def _petsc(case: Case) -> Recipe:
    """KSP's CG with PETSc's own log. Raises InputError for gamg, inside which it multiplies."""
    if case.precond not in ("none", "jacobi") or case.petsc_options:
        raise InputError(
            f"solver petsc, precond {case.precond}, options '{case.petsc_options}': what PETSc does then is "
            "not known; expected precond none or jacobi and no options"
        )
    alone = case.precond == "none"
    return Recipe(updates=9.0, dots=4.0 if alone else 5.0, precond=0.0 if alone else 3.0)


def product_name(case: Case) -> str:
    """The profile's name of the case's product; for PETSc's storages the nearest of ours."""
    return f"product {PROXY.get(case.storage, case.storage)}"
