"""The preconditioner that `auto` stands for."""

import pytest

from fembench.base.errors import InputError
from fembench.bench.campaign_file import settled, solution_seconds
from fembench.methods.lookup import preconds
from fembench.records.case import Case, new_case


@pytest.mark.parametrize(
    ("mesh", "found"),
    [("m1", "block-jacobi"), ("m", "multigrid"), ("l", "multigrid")],
)
def test_auto_is_cheap_on_small_meshes_and_multigrid_on_large_ones(mesh, found):
    """As measured on one core: set-up and solution of m1 take 0.7 ms by Jacobi, 3.4 ms by multigrid; of m,
    3.6 s by two levels, 0.3 s by multigrid."""
    case = settled(Case.of(mesh=mesh, precond="auto"))
    assert case.method.precond == found
    assert case.output.label.startswith(f"precond auto: {found}, expected to solve ")


def test_auto_is_the_method_of_the_shortest_expected_solution():
    case = settled(Case.of(mesh="s", precond="auto", ranks=2))
    times = {
        p.name: solution_seconds(Case.of(mesh="s", ranks=2, precond=p.name), 29484) for p in preconds("own")
    }
    assert case.method.precond == min(times, key=times.get)


def test_auto_says_what_it_takes_where_nothing_can_be_expected():
    fixed = settled(Case.of(mesh="m", precond="auto", iterations=100, label="mine"))
    assert fixed.method.precond == "none"
    assert fixed.output.label == "mine; precond auto: none, since fixed iterations reach no solution"
    file = settled(Case.of(mesh="part.msh", precond="auto"))
    assert file.method.precond == "multigrid"
    assert "the mesh is read only by the run" in file.output.label


def test_auto_respects_the_other_fields_and_other_solvers_refuse_it():
    balanced = settled(Case.of(mesh="l", precond="auto", ranks=2, storage="csr", balance="greedy"))
    assert balanced.method.precond in ("none", "jacobi", "block-jacobi")
    with pytest.raises(InputError, match="precond 'auto': solver petsc has none, jacobi, gamg"):
        new_case({"mesh": "m1", "solver": "petsc", "storage": "baij", "precond": "auto"}, "options")
