"""How ranks are started, and how the end of a job is understood."""

import signal
import subprocess
import sys
import time

import pytest

from fembench.base.errors import InputError
from fembench.bench import launcher
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
def test_a_host_file_is_passed_on(kind, option, tmp_path):
    path = hosts(tmp_path, "a slots=32\nb slots=32\n")
    line = command_line("mpiexec", kind, 64, hostfile=path)
    assert line[line.index(option) + 1] == path
    assert "--oversubscribe" not in line


def hosts(folder, text):
    (folder / "hosts").write_text(text)
    return str(folder / "hosts")


def test_slurm_takes_the_list_line_by_line(tmp_path):
    path = hosts(tmp_path, "a\na\nb\n")
    line = command_line("srun", "srun", 3, hostfile=path)
    assert "--distribution=arbitrary" in line
    assert f"--nodelist={path}" in line


def test_a_host_may_take_more_ranks_than_it_has_cores(tmp_path):
    """Open MPI would refuse to bind the second rank of a core."""
    path = hosts(tmp_path, "a slots=2\n")
    line = command_line("mpiexec", "openmpi", 2, hostfile=path)
    assert line[line.index("--bind-to") + 1] == "core:overload-allowed"
    line = command_line("mpiexec", "openmpi", 2, hostfile=path, extra=("--bind-to", "none"))
    assert line.count("--bind-to") == 1


def test_a_rankfile_places_each_rank(tmp_path):
    path = hosts(tmp_path, "# placed\nrank 1=b slot=0\nrank 0=a slot=0\nrank 2=b slot=1\n")
    line = command_line("mpiexec", "openmpi", 3, hostfile=path)
    assert line[line.index("--host") + 1] == "a:1,b:2"
    assert line[line.index("--map-by") + 1] == f"rankfile:file={path}"
    assert [line[k + 1] for k, word in enumerate(line) if word == "--bind-to"] == ["core"]
    assert "--hostfile" not in line


def test_ranks_of_one_slot_may_share_its_core(tmp_path):
    path = hosts(tmp_path, "rank 0=a slot=0\nrank 1=a slot=0\n")
    line = command_line("mpiexec", "openmpi", 2, hostfile=path)
    assert line[line.index("--bind-to") + 1] == "core:overload-allowed"


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("openmpi", "rank 0=a slot=0\n", "places 1 ranks; the case has 2"),
        ("openmpi", "rank 0=a slot=0\nrank 0=b slot=0\n", "rank 0 is placed twice"),
        ("openmpi", "rank 0=a slot=0\nrank 2=b slot=0\n", "no line for rank 1"),
        ("openmpi", "rank 0=a slot=0\nrank one=b\n", "cannot read 'rank one=b'"),
        ("mpich", "rank 0=a slot=0\nrank 1=b slot=0\n", "Open MPI's"),
    ],
)
def test_a_rankfile_that_does_not_fit_is_refused(kind, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        command_line("mpiexec", kind, 2, hostfile=hosts(tmp_path, text))


def test_every_rank_has_one_blas_thread(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment("openmpi")["OMP_NUM_THREADS"] == "1"
    assert environment("openmpi")["OPENBLAS_NUM_THREADS"] == "1"


KILLED_WHILE_IT_FORKS = """
import os, signal, sys, time
from fembench.bench.launcher import run_ranks

def kill_the_starter():
    os.kill(starter, signal.SIGKILL)
    while os.getppid() == starter:
        time.sleep(0.001)

starter = os.getpid()
os.register_at_fork(after_in_child=kill_the_starter)
run_ranks(["touch", sys.argv[1]], dict(os.environ))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ties a launcher to its starter")
def test_nothing_is_launched_for_a_starter_killed_meanwhile(tmp_path):
    sign = tmp_path / "it was launched"
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_FORKS, str(sign)], timeout=30)
    assert done.returncode == -signal.SIGKILL
    time.sleep(0.5)
    assert not sign.exists()


def test_more_ranks_than_64_per_core_of_this_machine_are_refused(monkeypatch, tmp_path):
    monkeypatch.delenv("FEMBENCH_HOSTFILE", raising=False)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(launcher, "usable_cores", lambda: 2)
    assert launcher.launcher_line(128)[0][-1] == "128"
    with pytest.raises(
        InputError, match="900 ranks on the 2 cores of this machine: expected at most 128, 64 per"
    ):
        launcher.launcher_line(900)
    assert launcher.launcher_line(900, hosts(tmp_path, "a slots=450\nb slots=450\n"))[0][-1] == "900"
