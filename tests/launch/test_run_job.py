"""A job of ranks from the side that starts it; here its launcher is nothing, and one Python is its rank."""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time

import msgspec
import pytest

from fembench.base.errors import (
    AllocationLostError,
    EndedError,
    InputError,
    RunFailedError,
    raise_if_asked,
    signals_raised,
)
from fembench.launch import batch_systems as plugins
from fembench.launch import run_job as starter
from fembench.launch.batch_systems import how_it_ended
from fembench.launch.case_job import launch
from fembench.launch.job import UNSHARED
from fembench.launch.launchers import LAUNCHERS, UNKNOWN, JobLine
from fembench.launch.run_job import rank_program, run_job, run_ranks
from fembench.records.case import Case

ALONE = JobLine(UNKNOWN, (("env",),))  # starts one process

WELL = """
(folder / "progress.txt").write_text("one\\ntwo\\n")
(folder / "result.json").write_bytes((folder / "job.json").read_bytes())
"""


UNPRINTED = """
import os
from fembench.launch.job import RankProgram
from fembench.launch.serve import serve

def run(comm, job, tell):
    raise ArithmeticError("no sum")

os.close(2)
os.open(os.devnull, os.O_WRONLY)
serve(RankProgram(dict, lambda job: 1, run), folder)
"""


class Sum(msgspec.Struct):
    """A job."""

    numbers: list[int]
    launcher: str = ""


def ended(folder, code, tell=None, line=ALONE):
    """The end of a job whose rank runs this."""
    program = folder / "rank.py"
    program.write_text(f"import sys, pathlib\nfolder = pathlib.Path(sys.argv[1])\n{code}")
    before = set(folder.iterdir())
    variables = dict(os.environ)
    end = run_job((str(program),), Sum([1, 2]), line, variables, scratch=folder, tell=tell)
    assert set(folder.iterdir()) == before  # its folder is gone
    return end


def test_a_job_is_handed_over_and_its_result_and_progress_come_back(tmp_path):
    lines = []
    end = ended(tmp_path, WELL, lines.append)
    assert (end.kind, end.exit_status, end.content()) == ("ok", 0, b'{"numbers":[1,2],"launcher":"env"}')
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


def test_what_a_rank_raised_is_said_although_its_launcher_loses_what_it_prints(tmp_path):
    end = ended(tmp_path, UNPRINTED)
    said = f"rank 0 on {platform.node()} raised ArithmeticError: no sum"
    assert (end.kind, end.message) == ("crashed", said)
    assert end.output.endswith(said)


@pytest.mark.parametrize(("text", "said"), [("true", "it printed nothing"), ("echo usage: x", "usage: x")])
def test_a_launcher_that_starts_no_ranks_is_named(tmp_path, script, text, said):
    nothing = script("mpiexec", text)
    end = ended(tmp_path, "", line=JobLine(UNKNOWN, ((nothing,),)))
    assert (end.kind, end.exit_status) == ("input", 2)
    assert f"{nothing} started no ranks; it ended with exit status 0: {said}; expected" in end.message


def test_the_host_file_is_written_for_the_launcher_and_named_in_its_line(tmp_path):
    parts = (("/opt/bin/start", "-f", "{file}"), ("-f", "{file}", "-n", "1"))
    line = JobLine(UNKNOWN, parts, ("n1:2\n", "n3:1\n"))
    assert line.of(["python", "x"], tmp_path) == [
        *("/opt/bin/start", "-f", str(tmp_path / "hosts"), "python", "x"),
        *(":", "-f", str(tmp_path / "hosts-1"), "-n", "1", "python", "x"),
    ]
    assert [(tmp_path / name).read_text() for name in ("hosts", "hosts-1")] == ["n1:2\n", "n3:1\n"]
    assert str(line) == "start -f hosts : -f hosts -n 1"


def test_what_a_launcher_prints_is_kept_without_control_characters():
    assert run_ranks(["printf", r"a\0b\033[31mc\a…\n"], dict(os.environ)).output == "abc…\n"


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


def test_ranks_started_as_jobs_of_one_rank_each_are_refused_at_once(tmp_path, script, monkeypatch):
    """As srun and mpiexec do that do not belong to the MPI library of mpi4py."""
    alone = script("mpiexec", 'shift 2\n"$@" & "$@"\nwait')  # without '-n 2': the program, twice
    monkeypatch.setenv("FEMBENCH_MPIEXEC", alone)
    for name in [name for name in os.environ if name.startswith(("OMPI_COMM", "PMIX_", "PRTE_"))]:
        monkeypatch.delenv(name)
    outcome = launch(Case.of(mesh="m1", ranks=2), id="apart", command="", scratch=tmp_path)
    assert (outcome.kind, outcome.exit_status) == ("input", 2), outcome.output
    assert outcome.message.startswith(f"the launcher started 2 jobs of one rank: {alone} does not fit ")
    assert "; use the mpiexec of " in outcome.message


SRUN = next(launcher for launcher in LAUNCHERS if launcher.name == "srun")
NOT_PMIX = """
[ "$1" = --mpi=list ] && echo 'MPI plugin types are... none pmi2 pmix' && exit
[ "$1" = --mpi=pmix ] && echo 'Fatal error in internal_Init: unsupported PMI version PMIx' && exit 1
shift; exec "$@"
"""


def test_another_plugin_of_srun_is_tried_if_one_makes_no_job_and_remembered(tmp_path, script, monkeypatch):
    monkeypatch.setattr(plugins, "mpi_library", lambda: "Open MPI v5.0.11")
    srun = script("srun", NOT_PMIX)
    line = JobLine(SRUN, ((srun, f"--mpi={plugins.plugin(srun)}"),), plugin=plugins.plugin(srun))
    assert line.plugin == "pmix"
    end = ended(tmp_path, WELL, line=line)
    assert (end.kind, msgspec.json.decode(end.content())["launcher"]) == ("ok", "srun --mpi=pmi2")
    assert plugins.plugin(srun) == "pmi2"


def test_a_job_that_no_plugin_of_srun_starts_is_refused_in_one_line(tmp_path, script, monkeypatch):
    monkeypatch.setattr(plugins, "mpi_library", lambda: "MPICH Version: 5.0.2")
    srun = script("srun", NOT_PMIX.replace('[ "$1" = --mpi=pmix ] && ', ""))
    end = ended(tmp_path, WELL, line=JobLine(SRUN, ((srun, "--mpi=pmi2"),), plugin="pmi2"))
    assert (end.kind, end.exit_status) == ("input", 2)
    assert "none of srun's --mpi=pmi2, --mpi=pmix fits MPICH Version: 5.0.2" in end.message
    end = ended(tmp_path, WELL, line=JobLine(SRUN, ((srun, "--mpi=none"),)))  # the user's choice
    assert "srun's --mpi=none does not fit MPICH" in end.message


def test_plugins_of_srun_are_tried_in_the_order_that_fits_the_library(script, monkeypatch):
    listed = "MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n\tpmix\n"
    listed += "specific pmix plugin versions available: pmix_v4,pmix_v5"
    for library, order in (
        ("Open MPI v5.0.11", ("pmix", "pmix_v5", "pmix_v4", "pmi2")),
        ("Intel(R) MPI Library 2021.18", ("cray_shasta", "pmi2", "pmix", "pmix_v5", "pmix_v4")),
    ):
        monkeypatch.setattr(plugins, "mpi_library", lambda library=library: library)
        assert plugins.fitting(script(library.split()[0], f"echo '{listed}' >&2")) == order


def test_a_job_whose_allocation_ended_says_so_whatever_its_launcher_says(tmp_path, script, monkeypatch):
    script("squeue", "echo CANCELLED")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    end = ended(tmp_path, 'sys.exit("All nodes which are allocated for this job are already filled")')
    assert (end.kind, end.message) == ("revoked", "Slurm job 7 has ended (CANCELLED)")
    with pytest.raises(AllocationLostError):
        end.content()


@pytest.mark.parametrize(
    ("squeue", "said"),
    [
        ("echo RUNNING", ""),
        ("echo COMPLETING", "Slurm job 7 has ended (COMPLETING)"),
        ("true", "Slurm job 7 has ended"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "Slurm job 7 has ended"),
        ("echo 'Unable to contact slurm controller' >&2; exit 1", ""),
    ],
)
def test_slurm_is_asked_whether_the_job_still_has_its_hosts(tmp_path, script, monkeypatch, squeue, said):
    script("squeue", squeue)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert how_it_ended("", {"SLURM_JOB_ID": "7"}) == said
    assert how_it_ended("", {}) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 7", "Slurm job 7 has ended"),
        ("salloc: Job allocation 7 has been revoked.", "Slurm job 7 has ended"),
        ("*** JOB 7 ON n1 CANCELLED AT 10:00 DUE TO TIME LIMIT", "Slurm job 7 reached its time limit"),
        ("=>> PBS: job killed: walltime 62 exceeded limit 60", "the PBS job has ended (walltime)"),
        ("TERM_RUNLIMIT: job killed after reaching LSF", "the LSF job has ended (TERM_RUNLIMIT)"),
    ],
)
def test_a_job_that_its_batch_system_ended_is_recognised_by_what_was_printed(text, said):
    assert how_it_ended(f"…\n{text}\n…", {}) == said


def test_a_folder_that_the_hosts_of_the_ranks_do_not_see_is_named_with_the_host(tmp_path, script):
    other = 'exec "${@:1:$#-1}" /no/such/results/.job-x'
    blind = script("mpiexec", f"exec bash -c '{other}' _ \"$@\"")
    program = rank_program("fembench.launch.probe")
    line = JobLine(UNKNOWN, ((blind,),))
    end = run_job(program, Sum([]), line, dict(os.environ), scratch=tmp_path)
    assert (end.kind, end.exit_status) == (UNSHARED, 2), end.output
    assert end.message == (
        f"host {platform.node()} cannot read /no/such/results (No such file or directory): "
        "results need a folder that all hosts share; give another one"
    )


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, EndedError), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_whose_exception_python_dropped_ends_the_job(monkeypatch, number, error):
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    class Dropping:
        def __del__(self):
            os.kill(os.getpid(), number)

    begin = time.monotonic()
    with contextlib.suppress(error), signals_raised():
        Dropping()
        assert [one.exc_type for one in dropped] == [error]
        with pytest.raises(error):
            run_ranks(["sleep", "30"], dict(os.environ), glance=0.1)
    assert time.monotonic() - begin < 20
    raise_if_asked()  # nothing is left of it
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_in_a_fork_that_is_no_other_program_yet_ends_it_without_a_word(capfd):
    with signals_raised():
        process = subprocess.Popen(
            ["sleep", "30"], preexec_fn=lambda: os.kill(os.getpid(), signal.SIGTERM), text=True
        )
        assert process.wait(20) == 128 + signal.SIGTERM
        raise_if_asked()  # it was not for this process
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("name", "guard"), [("intelmpi", True), ("mpich", False)])
def test_a_guard_stands_by_where_a_killed_launcher_may_leave_processes(tmp_path, monkeypatch, name, guard):
    given = {}
    monkeypatch.setattr(
        starter, "run_ranks", lambda *_, **how: given.update(how) or starter.Ended(1, "", False)
    )
    ended(tmp_path, "", line=JobLine(next(one for one in LAUNCHERS if one.name == name), (("mpiexec",),)))
    assert given["guard"] is guard
