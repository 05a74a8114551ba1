"""benchmarks/speed.py on planted measurements: what could not be measured costs nothing that was."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import speed


class Planted:
    """Tools whose `fembench peers` timed these peers alone, all alike but PETSc at half the speed."""

    def __init__(self, *peers):
        self._peers = peers

    def run(self, *words):
        return {"runs": [self._run(p, c, n) for p in self._peers for c in ("none", "jacobi") for n in (1, 2)]}

    @staticmethod
    def _run(peer, precond, ranks):
        seconds = 2.0 if peer.startswith("petsc") else 1.0
        return {
            "peer": peer,
            "precond": precond,
            "ranks": ranks,
            "status": "timed",
            "per_iteration": [seconds] * 7,
        }


PETSC = ("petsc-aij", "petsc-baij", "petsc-sbaij")


@pytest.fixture
def iterations(monkeypatch):
    monkeypatch.setattr(speed, "unstructured", lambda side: "jittered.vtu")
    return lambda *peers: speed.attempt(speed.iterations, Planted(*peers), speed.QUICK)


def test_with_all_peers_every_line_is_measured(iterations):
    rows = iterations("own-sym", "numpy", *PETSC)
    assert [row.measured for row in rows] == [2.0] * 4 + [1.0] * 2 + [2.0] * 6


def test_without_petsc_its_lines_say_so_and_the_others_stay(iterations):
    rows = iterations("own-sym", "numpy")
    assert [row.measured for row in rows if "numpy" in row.what] == [1.0, 1.0]
    missing = [row for row in rows if row.promise.verdict == "not measured"]
    assert len(missing) == 10
    assert all("petsc-aij with" in row.what for row in missing)


def test_a_program_that_fails_ends_its_part_and_keeps_the_rows_before():
    def part(tools, sizes):
        yield speed.Row("1", "first", 1.0)
        raise KeyError("bytes")

    first, last = speed.attempt(part, None, speed.QUICK)
    assert (first.what, first.promise.verdict) == ("first", "stated")
    assert (last.what, last.promise.verdict) == ("part: 'bytes'", "not measured")


class Solved:
    """Tools whose `fembench peers` took one second with own multigrid, and four with everything else."""

    def run(self, *words):
        methods = [("own-sym", "multigrid"), speed.GAMG, speed.TWO_LEVEL]
        return {"runs": [self._run(*method, ranks) for method in methods for ranks in (1, 2)]}

    @staticmethod
    def _run(peer, precond, ranks):
        half = 0.5 if precond == "multigrid" else 2.0
        run = {"peer": peer, "precond": precond, "ranks": ranks, "status": "timed"}
        return run | {"setup": [half], "solves": [half] * 3}


def test_a_time_to_the_solution_contains_set_up_and_a_missing_peer_costs_its_line_alone(monkeypatch):
    monkeypatch.setattr(speed, "unstructured", lambda side: "jittered.vtu")
    rows = speed.attempt(speed.solutions, Solved(), speed.FULL)
    assert [row.measured for row in rows[:6]] == [4.0] * 5 + [None]
    verdicts = [row.promise.kept for row in rows[:5]]
    assert verdicts == [False, False, True, False, True]  # limits 6, 5, 3.5, 6, 3.5
    assert "pyamg" in rows[5].what


class Counted:
    """Tools whose `levels.py` found these iterations of multigrid."""

    def __init__(self, counts):
        self._counts = counts

    def run(self, *words):
        if "multigrid" in words:
            return {"multigrid": self._counts}
        return {"two-level": {"2": 50}, "jacobi": {"2": 100}}


@pytest.mark.parametrize(
    ("counts", "kept"),
    [([7, 8], [True, True]), ([9, 10], [False, True]), ([7, 9], [True, False])],
)
def test_iterations_of_multigrid_are_few_and_alike_on_all_ranks(counts, kept):
    rows = speed.attempt(speed.levels, Counted(dict(zip("12", counts, strict=True))), speed.QUICK)
    assert [row.promise.kept for row in rows if "multigrid" in row.what] == kept
