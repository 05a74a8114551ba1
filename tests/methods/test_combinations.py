"""Which methods go together, what is said where they do not, and when their builders are imported."""

import subprocess
import sys

import pytest

from fembench.methods.lookup import (
    Combination,
    described,
    mismatch,
    mismatch_balance,
    mismatch_blocking,
    names,
    one_of,
    preconds,
    recurrences,
    storages,
)


@pytest.mark.parametrize(
    ("choice", "line"),
    [
        (Combination(), ""),
        (Combination(storage="ebe", precond="two-level", recurrence="pipelined"), ""),
        (Combination(solver="petsc", storage="aij", precond="gamg"), ""),
        (Combination(storage="baij"), "storage 'baij': solver own has sym, bsr"),
        (Combination(solver="petsc"), "storage 'sym': solver petsc has aij, baij, sbaij, is"),
        (Combination(precond="gamg"), "precond 'gamg': solver own has none, jacobi"),
        (
            Combination(solver="petsc", storage="baij", precond="chebyshev"),
            "precond 'chebyshev': solver",
        ),
        (
            Combination(solver="petsc", storage="baij", recurrence="pipelined"),
            "recurrence 'pipelined': solver",
        ),
    ],
)
def test_a_choice_that_does_not_fit_its_solver_is_told_what_would(choice, line):
    assert mismatch(choice).startswith(line)
    assert bool(mismatch(choice)) == bool(line)


def test_blocking_messages_serve_recurrences_that_wait_for_their_sums():
    assert mismatch_blocking(Combination(recurrence="single-reduction")) == ""
    for choice in (Combination(recurrence="pipelined"), Combination(solver="petsc", storage="baij")):
        assert mismatch_blocking(choice).endswith("solver own, recurrence standard or single-reduction")


def test_blocks_move_under_folded_preconditioners_and_the_standard_recurrence():
    fits = {p.name for p in preconds() if not mismatch_balance(Combination(precond=p.name))}
    assert {"none", "jacobi", "block-jacobi"} <= fits
    assert not fits & {"chebyshev", "two-level", "gamg"}
    assert mismatch_balance(Combination(recurrence="pipelined")).endswith("solver own, recurrence standard")
    assert mismatch_balance(Combination(precond="two-level")).endswith("none, jacobi or block-jacobi")


def test_help_texts_list_every_method_with_its_description():
    text = described(storages("petsc"))
    assert text.startswith("aij: compressed sparse rows of PETSc; baij: ")
    assert names(recurrences()) == ("standard", "single-reduction", "pipelined")
    assert one_of(["a"]) == "a"
    assert one_of(["a", "b", "c"]) == "a, b or c"


CODE = """
import sys
from fembench.methods.lookup import Combination, recurrences
import fembench.records.case
assert not [name for name in sys.modules if name.startswith("fembench.solve")]
from fembench.solve.from_names import load_builders
for recurrence in recurrences():
    load_builders(Combination(precond="two-level", recurrence=recurrence.name))
    assert recurrence.build.split(":")[0] in sys.modules, recurrence.name
"""


def test_declarations_import_no_solver_and_loading_them_imports_what_a_set_needs():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
