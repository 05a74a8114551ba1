"""A job of ranks from the side that starts it; here its launcher is nothing, and one Python is its rank."""

import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest

from fembench.base.errors import InputError, RunFailedError
from fembench.launch.case_job import launch
from fembench.launch.job_line import JobLine
from fembench.launch.launchers import UNKNOWN
from fembench.launch.run_job import run_job, run_ranks
from fembench.records.case import Case

ALONE = JobLine(UNKNOWN, (("env",),))  # starts one process

WELL = """
(folder / "progress.txt").write_text("one\\ntwo\\n")
(folder / "result.json").write_bytes((folder / "job.json").read_bytes())
"""


class Sum(msgspec.Struct):
    """A job."""

    numbers: list[int]


def ended(folder, code, tell=None):
    """The end of a job whose rank runs this."""
    program = folder / "rank.py"
    program.write_text(f"import sys, pathlib\nfolder = pathlib.Path(sys.argv[1])\n{code}")
    variables = dict(os.environ)
    end = run_job((str(program),), Sum([1, 2]), "result.json", ALONE, variables, scratch=folder, tell=tell)
    assert list(folder.iterdir()) == [program]  # its folder is gone
    return end


def test_a_job_is_handed_over_and_its_result_and_progress_come_back(tmp_path):
    lines = []
    end = ended(tmp_path, WELL, lines.append)
    assert (end.kind, end.exit_status, end.content()) == ("ok", 0, b'{"numbers":[1,2]}')
    assert lines == ["one", "two"]


@pytest.mark.parametrize(
    ("code", "error", "status", "message"),
    [
        ('(folder / "error.txt").write_text("input\\nno such mesh")', InputError, 2, "no such mesh"),
        ('(folder / "error.txt").write_text("failed\\nno memory")', RunFailedError, 2, "no memory"),
        ('sys.exit("the end")', RunFailedError, 1, "exit status 1: the end"),
    ],
)
def test_a_job_without_a_result_says_why(tmp_path, code, error, status, message):
    end = ended(tmp_path, code)
    assert (end.result, end.exit_status) == (None, status)
    with pytest.raises(error, match=f"{message}$"):
        end.content()


def test_the_host_file_is_written_for_the_launcher_and_named_in_its_line(tmp_path):
    line = JobLine(UNKNOWN, (("/opt/bin/start", "-f", "{file}"), ("-n", "1")), host_file="n1:2\n")
    assert line.of(["python", "x"], tmp_path) == [
        *("/opt/bin/start", "-f", str(tmp_path / "hosts"), "python", "x"),
        *(":", "-n", "1", "python", "x"),
    ]
    assert (tmp_path / "hosts").read_text() == "n1:2\n"
    assert str(line) == "start -f hosts : -n 1"


def test_what_a_launcher_prints_is_kept_without_nul_bytes():
    assert run_ranks(["printf", r"a\0b\n"], dict(os.environ)).output == "ab\n"


KILLED_WHILE_IT_FORKS = """
import os, signal, sys, time
from fembench.launch.run_job import run_ranks

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


def test_ranks_started_as_jobs_of_one_rank_each_are_refused_before_anything_is_timed(tmp_path, monkeypatch):
    """As srun and mpiexec do that do not belong to the MPI library of mpi4py."""
    alone = tmp_path / "mpiexec"
    alone.write_text('#!/bin/sh\nshift 2\n"$@" & "$@"\nwait\n')  # without '-n 2': the program, twice
    alone.chmod(0o755)
    monkeypatch.setenv("FEMBENCH_MPIEXEC", str(alone))
    for name in [name for name in os.environ if name.startswith(("OMPI_COMM", "PMIX_", "PRTE_"))]:
        monkeypatch.delenv(name)
    outcome = launch(Case.of(mesh="m1", ranks=2), id="apart", command="", scratch=tmp_path)
    assert (outcome.kind, outcome.exit_status) == ("input", 2), outcome.output
    assert outcome.message.startswith("2 ranks were started as 2 jobs of one rank each")
