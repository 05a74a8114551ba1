"""A job that cannot start or go on is ended, with all that its launcher started."""

import os
import platform
import subprocess
import sys
import time

import msgspec
import pytest

from fembench.launch import watch
from fembench.launch.launchers import LAUNCHERS, UNKNOWN
from fembench.launch.line import JobLine
from fembench.launch.rank_start import RANK
from fembench.launch.run_job import rank_program, run_job, run_ranks
from fembench.launch.watch import _refusal, reached_by_shell, silent_hosts

OPENMPI = next(one for one in LAUNCHERS if one.name == "openmpi")
# modules of ranks
DIES_AT_ONCE = """
import os, signal

os.kill(os.getpid(), signal.SIGKILL)
"""
DIES_LATER = """
import os, signal
import msgspec
from fembench.launch.job import RankProgram

class Job(msgspec.Struct):
    pass

PROGRAM = RankProgram(
    Job, lambda job: 1, lambda comm, job, tell: os.kill(os.getpid(), signal.SIGKILL)
)
"""
LEAVES = """
import pathlib, sys
from fembench.launch.witness import RankLine, witness_in

folder = pathlib.Path(sys.argv[1])
line = RankLine(witness_in(folder), 0)
(folder / "result.json").write_text("3")
line.say_goodbye()
"""


class Job(msgspec.Struct):
    """A job."""


def end_of(launcher, folder, code="", *, program=(), kind=UNKNOWN, files=()):
    """(the end of a job, the seconds that it took). `program`: () for the code as such."""
    file = folder / "rank.py"
    file.write_text(code)
    line = JobLine(kind, ((launcher,),), files)
    begin = time.monotonic()
    end = run_job(program or (str(file),), Job(), line, dict(os.environ), scratch=folder)
    return end, time.monotonic() - begin


@pytest.mark.parametrize(
    ("code", "rank"),
    [(DIES_AT_ONCE, 5), (DIES_LATER, 0)],  # the launcher is wrong: MPI knows it as rank 0
    ids=["before MPI is imported", "later"],
)
def test_a_job_ends_and_names_a_rank_that_its_launcher_survives(tmp_path, script, monkeypatch, code, rank):
    for name in RANK:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    stays = script("mpiexec", 'export SLURM_PROCID=5; "$@"; sleep 60')
    end, seconds = end_of(stays, tmp_path, code, program=rank_program("rank"))
    assert end.message.startswith(f"rank {rank} on {platform.node()} crashed or was ended")
    assert seconds < 15


def test_a_launcher_that_stays_after_its_ranks_is_ended_and_their_result_counts(
    tmp_path, script, monkeypatch
):
    monkeypatch.setattr(watch, "STAY", 0.5)
    stays = script("mpiexec", '"$@"; sleep 60')
    end, seconds = end_of(stays, tmp_path, LEAVES)
    assert (end.kind, end.content()) == ("ok", b"3")
    assert 0.5 < seconds < 10


@pytest.mark.parametrize("without", ['(folder / "result.json").write_text("3")', "line.say_goodbye()"])
def test_a_launcher_stays_while_a_rank_or_the_result_is_missing(tmp_path, script, monkeypatch, without):
    monkeypatch.setattr(watch, "STAY", 0.0)
    works = script("mpiexec", '"$@"; sleep 2; echo 4 >"$3/result.json"')
    code = LEAVES.replace(without, "") + "import time; time.sleep(2)"
    end, seconds = end_of(works, tmp_path, code)
    assert end.content() == b"4\n"
    assert seconds > 4


def test_a_host_that_does_not_answer_is_named_with_a_test(tmp_path, script, monkeypatch, no_batch_system):
    """A rank on another host that waits for it does not count as a start."""
    waits = script("mpiexec", 'PMI_RANK=0 "$@" & exec sleep 60')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    agent = script(
        "agent", '[ "$1" = n2 ] || { echo "ssh: connect to host $1 port 22: timed out" >&2; exit 255; }'
    )
    monkeypatch.setenv("PRTE_MCA_plm_ssh_agent", agent)
    monkeypatch.setattr(watch, "START", 1.5)
    remote = {"kind": OPENMPI, "files": ("n2 slots=1\nn7 slots=2\n",), "program": rank_program("rank")}
    end, seconds = end_of(waits, tmp_path, "import time\ntime.sleep(60)", **remote)
    assert (end.kind, end.exit_status) == ("input", 2)
    assert end.message == (
        "host n7 does not answer (ssh: connect to host n7 port 22: timed out): test `ssh n7 true`, which "
        "must need no password; correct the host file, or leave n7 out of it"
    )
    assert seconds < 12


def test_a_slow_start_on_hosts_that_answer_is_waited_for(tmp_path, script, monkeypatch, no_batch_system):
    monkeypatch.setenv("PRTE_MCA_plm_ssh_agent", "true")
    monkeypatch.setattr(watch, "START", 0.0)
    slow = script("mpiexec", 'sleep 2; "$@"')
    code = "import pathlib, sys\n(pathlib.Path(sys.argv[1]) / 'result.json').write_text('1')\n"
    end, _ = end_of(slow, tmp_path, code, kind=OPENMPI, files=("n7 slots=2\n",))
    assert end.content() == b"1"


def test_only_hosts_behind_a_remote_shell_are_asked():
    files = (f"n1:2\n{platform.node()}:2\nlocalhost\n", "rank 0=n2 slot=0\nrank 1=n1 slot=0\n")
    assert reached_by_shell(files, "mpich", {}) == ["n1", "n2"]
    assert reached_by_shell(files, "mpich", {"PBS_JOBID": "7"}) == []
    assert reached_by_shell(files, "srun", {}) == []


def test_hundreds_of_hosts_that_do_not_answer_are_found_within_one_bound_of_time(script, monkeypatch):
    """Ten at a time, of a second each: one after another, they would take ten seconds."""
    monkeypatch.setattr(watch, "AT_ONCE", 10)
    monkeypatch.setattr(watch, "_PATIENCE", 0)
    monkeypatch.setattr(watch, "IN_ALL", 1.5)
    begin = time.monotonic()
    names = [f"n{k}" for k in range(100)]
    silent = silent_hosts(names, {"HYDRA_LAUNCHER_EXEC": script("mute", "exec sleep 60")})
    assert time.monotonic() - begin < 6
    assert set(names[:10]) <= set(silent)
    assert "n99" not in silent  # not asked


def test_many_silent_hosts_are_counted_and_the_first_is_explained():
    silent = silent_hosts([f"n{k}" for k in range(6)], {"HYDRA_LAUNCHER_EXEC": "false"})
    assert silent == {f"n{k}": "exit status 1" for k in range(6)}
    said = "6 hosts do not answer (n0, n1, n2, n3 and 2 more; n0: exit status 1): test "
    assert _refusal(silent).startswith(said)
    assert silent_hosts(["n1"], {"HYDRA_LAUNCHER_EXEC": "/no/such/shell"}) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is known")
def test_processes_that_left_the_group_or_the_session_of_an_ended_launcher_end_with_it(script, tmp_path):
    long = f"9{os.getpid()}"  # seconds: a name for these processes

    def running():
        done = subprocess.run(["pgrep", "-f", f"^sleep {long}$"], capture_output=True, text=True)
        return len(done.stdout.split())

    seen = []
    launcher = script("mpiexec", f"setsid sleep {long} &\nset -m\nenv -i sleep {long} &\nexec sleep 60")
    other = subprocess.Popen(["sleep", "60"])
    try:
        ended = run_ranks([launcher], dict(os.environ), 1.5, lambda: seen.append(running()), 0.4)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert ended.late
    assert max(seen) == 2
    assert running() == 0
    killed = script("mpirun", f"mkdir $TMPDIR/ompi.$$\nsetsid sleep {long} &\nsleep 0.3\nkill -9 $$")
    assert run_ranks([killed], os.environ | {"TMPDIR": str(tmp_path)}).status != 0
    assert running() == 0
    assert not list(tmp_path.glob("ompi.*"))  # Open MPI would not start beside it


STARTS_A_LAUNCHER = """
import os, sys
from fembench.launch.run_job import run_ranks

run_ranks(sys.argv[1:], dict(os.environ), guard=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing guards a launcher")
def test_what_a_launcher_started_ends_although_its_starter_was_killed(script):
    long = f"8{os.getpid()}"
    running = ["pgrep", "-f", f"^sleep {long}$"]
    launcher = script(
        "mpiexec", f"trap '' TERM; set -m; sleep {long} & setsid sleep {long} & exec sleep {long}"
    )
    with subprocess.Popen([sys.executable, "-c", STARTS_A_LAUNCHER, launcher]) as starter:
        deadline = time.monotonic() + 10
        while len(subprocess.run(running, capture_output=True).stdout.split()) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(0.5)  # the guard has started
        starter.kill()
    deadline = time.monotonic() + 10
    while subprocess.run(running, capture_output=True).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.1)
