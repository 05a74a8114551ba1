"""The programs of benchmarks/binaries, compiled with mpicc: their messages and loops, but not their times."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fembench.model.graph import Collective, Receive, Send
from fembench_studies.binaries.binary import load
from fembench_studies.binaries.counting import count_run, distributions, undecided
from fembench_studies.binaries.expected_tables import flag
from fembench_studies.binaries.instructions import ROWS
from fembench_studies.binaries.walk import Given, Loops

HERE = Path(__file__).parents[3] / "benchmarks" / "binaries"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
COMPILER = shutil.which("mpicc", path=PATH)


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2"])
def executables(request, tmp_path_factory):
    """name -> executable."""
    if not (COMPILER and shutil.which("objdump")):
        pytest.skip("no mpicc or objdump")
    folder = tmp_path_factory.mktemp("programs")
    for source in HERE.glob("*.c"):
        # neither integers in vectors nor comparisons of numbers before a loop are followed
        plain = ("-fno-tree-vectorize", "-fno-tree-ch")
        words = [COMPILER, request.param, *plain, "-o", str(folder / source.stem), str(source)]
        words += ["-lm"] if source.stem != "timer" else ["-shared", "-fPIC"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if "mpi.h" in done.stderr:
            pytest.skip("mpicc without mpi.h")
        assert done.returncode == 0, done.stderr
    return {source.stem: folder / source.stem for source in HERE.glob("*.c")}


def walked(path, ranks, *arguments, **given):
    program = load(path, dict.fromkeys(ROWS, 1e-9), "main")
    return program.walks(ranks, Given(arguments=arguments, rehearsed=True, **given), 0)


def flags(walks):
    return {flag([point]) for walk in walks for point in walk.loops.values()}


def sent(walk):
    return [m.event for m in walk.messages if isinstance(m.event, Send)]


def test_the_grid_exchanges_rows_with_neighbours_and_reduces_until_a_limit(executables):
    walks = walked(executables["jacobi"], 3, "60", "4", loops=Loops(1000, 1000))
    assert [{e.to for e in sent(walk)} for walk in walks] == [{1}, {0, 2}, {1}]
    for walk in walks:
        kinds = [m.event.kind for m in walk.messages if isinstance(m.event, Collective)]
        assert kinds == ["allreduce"] * 4
        assert {e.m for e in sent(walk)} == {8 * 62}
    assert flags(walks) == {"known", "bounded"}
    assert max(n for (kind, _), n in walks[1].totals.items() if kind == "turns") == 4 * 20 * 60


def test_the_sort_swaps_all_numbers_with_a_neighbour_in_every_phase(executables):
    walks = walked(executables["oddeven"], 4, "4000")
    swapped = [[e.to for e in sent(walk) if e.m == 4000] for walk in walks]
    assert swapped == [[1, 1], [0, 2, 0, 2], [3, 1, 3, 1], [2, 2]]
    assert flags(walks) == {"known"}


def test_the_points_of_monte_carlo_are_known_though_branches_are_drawn(executables):
    walks = walked(executables["montecarlo"], 4, "40000000")
    assert all(walk.drawn for walk in walks)
    assert flags(walks) == {"known"}
    assert {max(n for (k, _), n in w.totals.items() if k == "turns") for w in walks} == {10_000_000}


def test_the_power_iteration_reduces_and_gathers_in_every_turn(executables):
    walks = walked(executables["matvec"], 2, "100", "7")
    assert flags(walks) == {"known"}
    kinds = [m.event.kind for m in walks[1].messages]
    assert kinds == ["allreduce", "allgather"] * 7
    assert max(n for (kind, _), n in walks[0].totals.items() if kind == "turns") in (35_000, 35_700)


def test_the_pipeline_passes_every_block_on(executables):
    walks = walked(executables["pipeline"], 3, "9")
    assert [[e.to for e in sent(walk)] for walk in walks] == [[1] * 9, [2] * 9, []]
    assert [e.tag for e in sent(walks[1])] == list(range(9))


def test_the_master_hands_out_all_rows_and_stops_every_worker(executables):
    walks = walked(executables["workers"], 3, "7", loops=Loops(8, 8))
    assert [e.tag for e in sent(walks[0])] == [1] * 7 + [0] * 2
    assert sum(isinstance(m.event, Receive) for m in walks[0].messages) == 7
    assert sum(len(sent(walk)) for walk in walks[1:]) == 7


def test_a_counting_run_under_mpiexec_tells_the_steps(executables, monkeypatch):
    for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(f"OMPI_{name}", "1")
    monkeypatch.setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    path = executables["workers"]
    launcher = shutil.which("mpiexec", path=PATH)
    if launcher is None:
        pytest.skip("no mpiexec")
    program = load(path, dict.fromkeys(ROWS, 1e-9), "main")
    branches = undecided(program, 2, Given(arguments=("20",)))
    profile = count_run(path, branches, shlex.join([launcher, "-n", "2", str(path), "20"]))
    loops, _ = distributions(program, profile)
    assert loops
    assert 1 < max(found.mean for found in loops.values()) <= 301
