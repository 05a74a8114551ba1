"""The programs of benchmarks/binaries, compiled with mpicc: their messages and loops, but not their times."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fembench.model.graph import Collective, Receive, Send
from fembench.studies.binaries.binary import load
from fembench.studies.binaries.counting import count_run, distributions, undecided
from fembench.studies.binaries.expected import flag
from fembench.studies.binaries.instructions import ROWS
from fembench.studies.binaries.walker import Given, Loops

HERE = Path(__file__).parents[3] / "benchmarks" / "binaries"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
COMPILER = shutil.which("mpicc", path=PATH)
CALLS = dict.fromkeys(("atoi", "strtol", "clock", "malloc", "printf"), 1e-7)


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2"])
def executables(request, tmp_path_factory):
    """name -> executable."""
    if not (COMPILER and shutil.which("objdump")):
        pytest.skip("no mpicc or objdump")
    folder = tmp_path_factory.mktemp("programs")
    for source in HERE.glob("*.c"):
        words = [COMPILER, request.param, "-o", str(folder / source.stem), str(source)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if "mpi.h" in done.stderr:
            pytest.skip("mpicc without mpi.h")
        assert done.returncode == 0, done.stderr
    return {source.stem: folder / source.stem for source in HERE.glob("*.c")}


def walked(path, ranks, *arguments, **given):
    program = load(path, dict.fromkeys(ROWS, 1e-9), "main")
    return program.walks(ranks, Given(calls=CALLS, arguments=arguments, **given), 0)


def flags(walks):
    return {flag([point]) for walk in walks for point in walk.loops.values()}


def test_the_product_sends_rows_and_all_its_loops_are_known(executables):
    walks = walked(executables["product"], 3, "60", "2")
    sent = [m.event for m in walks[0].messages if isinstance(m.event, Send)]
    assert [(e.to, e.m) for e in sent] == [(1, 4), (1, 14400), (2, 4), (2, 14400)]
    assert [type(m.event) for m in walks[2].messages] == [Collective, Receive, Receive, Send]
    assert flags(walks) == {"known"}
    inner = max(n for (kind, _), n in walks[1].totals.items() if kind == "turns")
    assert inner in (2 * 30 * 60 * 60, 30 * 60 * 60)  # by two where vectors are used


def test_the_sweeps_exchange_rows_with_neighbours_and_reduce(executables):
    walks = walked(executables["sweeps"], 3, "4")
    neighbours = [{m.event.to for m in walk.messages if isinstance(m.event, Send)} for walk in walks]
    assert neighbours == [{1}, {0, 2}, {1}]
    for walk in walks:
        kinds = [m.event.kind for m in walk.messages if isinstance(m.event, Collective)]
        assert kinds == ["barrier"] + ["allreduce"] * 4
        assert {m.event.m for m in walk.messages if isinstance(m.event, Send)} == {512}
    assert flags(walks) == {"known"}


def test_the_steps_of_the_integral_are_drawn_and_its_trapezoids_are_known(executables):
    walks = walked(executables["integral"], 3, "500", loops=Loops(8, 8))
    assert [type(m.event) for m in walks[0].messages] == [Collective, Send, Send, Receive, Receive]
    assert [type(m.event) for m in walks[2].messages] == [Collective, Receive, Send]
    assert flags(walks) == {"known", "unknown"}
    turns = {n for (kind, _), n in walks[1].totals.items() if kind == "turns"}
    assert 499 in turns
    assert 499 * 8 in turns or 501 * 8 in turns  # the ends may be inlined


def test_a_counting_run_under_mpiexec_tells_the_steps(executables, monkeypatch):
    for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(f"OMPI_{name}", "1")
    monkeypatch.setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    path = executables["integral"]
    launcher = shutil.which("mpiexec", path=PATH)
    if launcher is None:
        pytest.skip("no mpiexec")
    program = load(path, dict.fromkeys(ROWS, 1e-9), "main")
    branches = undecided(program, 2, Given(calls=CALLS, arguments=("100",)))
    profile = count_run(path, branches, shlex.join([launcher, "-n", "2", str(path), "100"]))
    loops, _ = distributions(program, profile)
    assert loops
    assert all(5 < found.mean <= found.limit < 20 for found in loops.values())
