"""A reference that was given: used where it answers the same question, refused otherwise."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from planted_records import FROZEN, on_ranks, wrong

from fembench.base.errors import InputError
from fembench.bench.campaign import held_against, reference_beside, reference_of
from fembench.cli.main import main
from fembench.fem.problem import load_problem, resolved
from fembench.mesh.box import box
from fembench.mesh.io import write
from fembench.mesh.presets import resolve
from fembench.records.case import Case
from fembench.records.store import load, save

CASE = Case.of(mesh="box:2x2x2", problem="corner-load", ranks=2)
replace = msgspec.structs.replace


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A function that plants a record of one rank, its case changed, its answer right or not; its path."""
    monkeypatch.chdir(tmp_path)
    write(box((2, 2, 2)), Path("same.vtu"))
    write(box((2, 2, 3)), Path("other.vtu"))
    Path("p.toml").write_text("")

    def plant(right=True, compared=True, **changes):
        case = CASE.with_(**{"ranks": 1, **changes})
        record = on_ranks(load(FROZEN), case.placement.ranks)
        record = replace(
            record,
            case=case,
            reference=record.reference if compared else None,
            sets=tuple(replace(s, iterations=case.stop.iterations or s.iterations) for s in record.sets),
            mesh=replace(record.mesh, hash=resolve(case.question.mesh).hash),
            problem=json.loads(msgspec.json.encode(resolved(load_problem(case.question.problem)))),
        )
        return str(save(record if right else wrong(record), tmp_path))

    return plant


@pytest.mark.parametrize("changes", [{}, {"mesh": "same.vtu"}, {"storage": "csr"}, {"label": "x", "sets": 7}])
def test_a_record_of_the_same_question_is_taken(given, changes):
    assert held_against(CASE, given(**changes)).energy == load(FROZEN).verification.energy


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({"iterations": 7}, False),
        ({}, True),
        ({"iterations": 7, "solver": "petsc", "storage": "aij", "precond": "gamg"}, True),  # nothing to find
    ],
)
def test_fixed_work_that_rounding_decides_is_no_reference_wherever_it_comes_from(
    given, tmp_path, changes, taken
):
    """A run that found so has no reference of its own; 26 iterations of the planted record count as 7."""
    case = CASE.with_(**changes)
    path = Path(given(compared=False, **changes)).rename(tmp_path / "box-sym-none-p1-0-r1.json")
    found = [held_against(case, path), reference_beside(case, tmp_path), reference_of(load(path))]
    assert [reference is not None for reference in found] == [taken] * 3


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"mesh": "m1"}, "mesh 'm1'"),
        ({"mesh": "other.vtu"}, "mesh 'other.vtu'"),
        ({"problem": "cantilever"}, "problem 'cantilever'"),
        ({"iterations": 7}, "iterations = 7; expected that of the case, 0"),
        ({"tolerance": 1e-3}, "tolerance = 0.001"),
        ({"precond": "jacobi"}, "precond = 'jacobi'"),
        ({"ranks": 2}, "2 ranks"),
        ({"right": False}, "INVALID"),
    ],
)
def test_one_of_another_question_is_refused_with_what_differs(given, changes, word):
    with pytest.raises(InputError, match=word):
        held_against(CASE, given(**changes))


def test_it_is_refused_before_anything_runs(given, capsys):
    assert main(["run", "m2", "--reference", given(mesh="m1")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("expected the mesh of the case, 'm2'")


def test_the_newest_one_rank_run_in_the_results_folder_is_the_reference_of_a_run(given, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    assert reference_beside(CASE, runs) is None
    for k, changes in enumerate([{}, {"iterations": 7}, {"right": False}]):
        path = Path(given(**changes)).rename(runs / f"box-sym-none-p1-{k}-r1.json")
        os.utime(path, (k, k))
    (runs / "box-sym-none-p1-9-r1.json").write_text("{")
    assert reference_beside(CASE, runs).energy == load(FROZEN).verification.energy
    assert reference_beside(CASE.with_(iterations=8), runs) is None
    (runs / "box-sym-none-p1-0-r1.json").unlink()
    assert reference_beside(CASE, runs) is None  # what is left answers another question, or is INVALID
