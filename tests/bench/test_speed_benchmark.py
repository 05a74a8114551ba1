"""benchmarks/speed.py on planted measurements: what could not be measured costs nothing that was."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import speed


class Tools:
    """Programs that find what is planted: `found` of (peer, preconditioner)."""

    def __init__(self, methods, found):
        self._runs = [
            {"peer": peer, "precond": precond, "ranks": ranks, "status": "timed", **found(peer, precond)}
            for peer, precond in methods
            for ranks in (1, 2)
        ]

    def run(self, *words):
        return {"runs": self._runs}


@pytest.fixture(autouse=True)
def no_mesh(monkeypatch):
    monkeypatch.setattr(speed, "unstructured", lambda side: "jittered.vtu")


PETSC = ("petsc-aij", "petsc-baij", "petsc-sbaij")


def test_a_program_that_fails_ends_its_part_and_keeps_the_rows_before():
    def part(tools, sizes):
        yield speed.Row("1", "first", 1.0)
        raise KeyError("bytes")

    first, last = speed.attempt(part, None, speed.QUICK)
    assert (first.what, first.promise.verdict) == ("first", "stated")
    assert (last.what, last.promise.verdict) == ("part: 'bytes'", "not measured")


@pytest.mark.parametrize(("l3", "least"), [(1 << 30, 0.55), (1 << 10, 0.9)])
def test_a_product_that_l3_holds_has_a_limit_of_its_own_in_the_quick_run_alone(l3, least, monkeypatch):
    monkeypatch.setattr(speed, "host_facts", lambda: SimpleNamespace(caches={"L3": l3}))
    names = ("read", "product sym", "product bsr")
    found = {"bytes": dict.fromkeys(names, 1 << 20), "ns": {name: [1.0] for name in names}}
    tools = SimpleNamespace(run=lambda *words: [found])
    quick, full = ([row.target for row in speed.products(tools, s)] for s in (speed.QUICK, speed.FULL))
    assert quick[:2] == [least, least]
    assert full[:2] == [0.9, 0.9]
    assert (quick[-1], full[-1]) == (min(least, 0.85), 0.85)  # of two processes


def iterations(*peers):
    """Rows where these peers were timed, all alike but PETSC at half the speed."""
    methods = [(peer, precond) for peer in peers for precond in ("none", "jacobi")]
    tools = Tools(methods, lambda peer, _: {"per_iteration": [2.0 if peer.startswith("petsc") else 1.0] * 7})
    return speed.attempt(speed.iterations, tools, speed.QUICK)


def test_without_petsc_its_lines_say_so_and_the_others_stay():
    rows = iterations("own-sym", "numpy", *PETSC)
    assert [row.measured for row in rows] == [2.0] * 4 + [1.0] * 2 + [2.0] * 6
    rows = iterations("own-sym", "numpy")
    assert [row.measured for row in rows if "numpy" in row.what] == [1.0, 1.0]
    missing = [row for row in rows if row.promise.verdict == "not measured"]
    assert len(missing) == 10
    assert all("petsc-aij with" in row.what for row in missing)


def test_a_time_to_the_solution_contains_set_up_and_a_missing_peer_costs_its_line_alone():
    """One second with own multigrid, and four with everything else."""

    def found(peer, precond):
        half = 0.5 if precond == "multigrid" else 2.0
        return {"setup": [half], "solves": [half] * 3}

    tools = Tools([("own-sym", "multigrid"), speed.GAMG, speed.TWO_LEVEL], found)
    rows = speed.attempt(speed.solutions, tools, speed.FULL)
    assert [row.measured for row in rows[:7]] == [4.0] * 6 + [None]
    verdicts = [row.promise.kept for row in rows[:6]]
    assert verdicts == [False, False, True, False, True, True]  # limits 6, 5, 3.5, 6, 3.5, 2
    assert "pyamg" in rows[6].what


@pytest.mark.parametrize(
    ("counts", "kept"),
    [([7, 8], [True, True]), ([9, 10], [False, True]), ([7, 9], [True, False])],
)
def test_iterations_of_multigrid_are_few_and_alike_on_all_ranks(counts, kept):
    found = {"multigrid": dict(zip("12", counts)), "two-level": {"2": 50}, "jacobi": {"2": 100}}
    tools = SimpleNamespace(run=lambda *words: found)
    rows = speed.attempt(speed.levels, tools, speed.QUICK)
    assert [row.promise.kept for row in rows if "multigrid" in row.what] == kept
