"""The thesis' stand-ins on 1 to 8 ranks, both partitioners, dense and csr (seed 004, section 2.9)."""

import json

import pytest
from mpi_job import run_job

EXPECTED = {
    "m1": ([245, 864, 630], 211, -1.355794854e-07),
    "m2": ([936, 3960, 2592], 328, -1.945452699e-07),
    "m3": ([1960, 9126, 5460], 428, -2.264046862e-07),
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows():
    return [json.loads(line) for line in run_job("standin_job.py", 8).splitlines() if line.startswith("{")]


def test_every_combination_ran(rows):
    plain = {(r["mesh"], r["ranks"], r["method"], r["storage"]) for r in rows if "forced" not in r}
    assert len(plain) == 3 * (1 + 7 * 2) * 2  # on one rank there is nothing to cut
    assert sum("forced" in r for r in rows) == 3 * 5


def test_sizes_are_those_of_the_source(rows):
    assert all(r["counts"] == EXPECTED[r["mesh"]][0] for r in rows)


def test_iterations_do_not_depend_on_ranks_partition_or_storage(rows):
    wrong = [r for r in rows if abs(r["iterations"] - EXPECTED[r["mesh"]][1]) > 2]
    assert not wrong


def test_the_loaded_node_moves_as_printed(rows):
    for r in rows:
        assert r["uy"] == pytest.approx(EXPECTED[r["mesh"]][2], rel=1e-6)


def test_reactions_balance_the_load_counted_once(rows):
    for r in rows:
        assert r["reactions"] == pytest.approx([0.0, 500.0, 0.0], abs=1e-5), r


def test_solutions_agree_with_one_rank(rows):
    assert max(r["error"] for r in rows) <= 1e-9


def test_shared_copies_are_bit_identical(rows):
    assert all(r["identical"] for r in rows)
