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
