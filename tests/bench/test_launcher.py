"""How ranks are started, and how the end of a job is understood."""

import pytest

from fembench.bench.launcher import _diagnosis, command_line, environment, usable_cores

KILLED = """
--------------------------------------------------------------------------
prterun noticed that process rank 1 with PID 27565 on node vm exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""
MPICH = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 2 PID 77 RUNNING AT node7
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================
"""


@pytest.mark.parametrize(("text", "who"), [(KILLED, "rank 1 on vm"), (MPICH, "rank 2 on node7")])
def test_a_killed_rank_is_named(text, who):
    kind, message = _diagnosis(137, text)
    assert kind == "killed"
    assert message == f"{who} was ended by signal 9 (Killed)"


def test_a_rank_that_raised_is_named():
    text = "Traceback …\nfembench: rank 3 on n1 raised ValueError: no\nprterun has exited"
    assert _diagnosis(3, text) == ("crashed", "rank 3 on n1 raised ValueError: no")


def test_an_input_error_of_one_rank_is_an_input_error():
    assert _diagnosis(3, "fembench: rank 0 on n1 raised InputError: cannot write x") == (
        "input",
        "cannot write x",
    )


def test_anything_else_shows_the_last_line_that_says_something():
    assert _diagnosis(1, "bash: oops\n------\n\n")[1] == "the job ended with exit status 1: bash: oops"
    assert "nothing" in _diagnosis(1, "")[1]


def test_ranks_beyond_the_cores_yield_and_are_not_bound():
    line = command_line("mpiexec", "openmpi", usable_cores() + 1)
    assert "--oversubscribe" in line
    assert line[line.index("--bind-to") + 1] == "none"
    assert "mpi_yield_when_idle" in line


def test_ranks_within_the_cores_are_bound():
    line = command_line("mpiexec", "openmpi", 1)
    assert line[line.index("--bind-to") + 1] == "core"
    assert "--oversubscribe" not in line


@pytest.mark.parametrize(("kind", "option"), [("openmpi", "--hostfile"), ("mpich", "-f")])
def test_a_host_file_is_passed_on(kind, option):
    line = command_line("mpiexec", kind, 64, hostfile="hosts")
    assert line[line.index(option) + 1] == "hosts"
    assert "--oversubscribe" not in line


def test_every_rank_has_one_blas_thread(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment("openmpi")["OMP_NUM_THREADS"] == "1"
    assert environment("openmpi")["OPENBLAS_NUM_THREADS"] == "1"
