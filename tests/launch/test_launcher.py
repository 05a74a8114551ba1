"""How ranks are started, and how the end of a job is understood."""

import os
import signal
import subprocess
import sys
import time

import printed
import pytest

from fembench.base.errors import InputError
from fembench.host.host import usable_cores
from fembench.launch import launcher
from fembench.launch.diagnosis import diagnosis
from fembench.launch.hostfile import hosts_asked
from fembench.launch.launcher import command_line, environment, find_mpiexec, launcher_line
from fembench.launch.run_job import run_ranks
from fembench.records.case import Case


def has_open_mpi():
    try:
        return launcher.flavour(find_mpiexec()) == "openmpi"
    except InputError:
        return False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (printed.KILLED, "rank 1 on vm was ended by signal 9 (Killed)"),
        (printed.MPICH, "rank 2 on node7 was ended by signal 9 (Killed)"),
        (printed.MPICH_5, "the rank that was process 24435 on node7 was ended by signal 9 (Killed)"),
        (printed.DISCONNECTED, "a rank on n2 crashed or was ended: a rank on n1 lost its connection to it"),
    ],
)
def test_a_killed_rank_is_named(text, message):
    assert diagnosis(137, text) == ("killed", message)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (printed.SLOTS, "3 ranks, but the hosts have fewer slots: ask for fewer ranks, or for more slots"),
        (printed.NOT_ALLOCATED, "host n7 is not in this job's allocation: correct the host file"),
        (printed.FILLED, "no free slot on the hosts of this job's allocation"),
        (printed.OVERLOAD, "4 ranks on a host with fewer cores: ask for fewer ranks"),
        (printed.UNRESOLVED, "host n7 does not resolve: correct its name in the host file"),
        (printed.UNREACHED, "host 127.0.0.9 cannot be reached (Connection refused): `ssh 127.0.0.9` must"),
        (printed.DAEMON, "Open MPI could not start its daemon on host n7: `ssh n7` must need no password"),
        (printed.NO_PROGRAM, "/no/such/python does not exist on host vm"),
        (printed.MPICH_PROGRAM, "/no/such does not exist on host vm"),
        (printed.NO_SLOT, "the rankfile names slot 7, which its host does not have"),
        (printed.HOST_LINE, "/dev/fd/63: cannot read line 1; expected lines such as 'host1 slots=2'"),
        (printed.TWICE, "/tmp/h: host vm is listed more than once; expected one line per host"),
        (printed.MPICH_SLOTS, "MPICH does not know 'slots' in a host file; expected lines such as 'host1:2'"),
    ],
)
def test_what_a_launcher_refuses_is_the_users_to_mend_and_said_in_one_line(text, words):
    kind, message = diagnosis(213, text)
    assert kind == "input"
    assert message.startswith(words)
    assert message.isprintable()


def test_a_message_of_open_mpi_that_is_not_known_is_cut_to_its_first_sentence_and_what_it_names():
    said = "The mapping request contains an unrecognized qualifier: Request: rankfile:file=/tmp/a:b/rf"
    assert diagnosis(255, printed.UNKNOWN) == ("crashed", f"the job ended with exit status 255: {said}")


def test_a_rank_that_raised_is_named():
    text = "Traceback …\nfembench: rank 3 on n1 raised ValueError: no\nprterun has exited"
    assert diagnosis(3, text) == ("crashed", "rank 3 on n1 raised ValueError: no")


def test_an_input_error_of_one_rank_is_an_input_error():
    assert diagnosis(3, "fembench: rank 0 on n1 raised InputError: cannot write x") == (
        "input",
        "cannot write x",
    )


def test_anything_else_shows_the_last_line_that_says_something():
    assert diagnosis(1, "bash: oops\n------\n\n")[1] == "the job ended with exit status 1: bash: oops"
    assert "nothing" in diagnosis(1, "")[1]


def test_ranks_beyond_the_cores_yield_and_are_not_bound():
    line = command_line("mpiexec", "openmpi", usable_cores() + 1)
    assert "--oversubscribe" in line
    assert line[line.index("--bind-to") + 1] == "none"
    assert "mpi_yield_when_idle" in line


def test_ranks_within_the_cores_are_bound():
    line = command_line("mpiexec", "openmpi", 1)
    assert line[line.index("--bind-to") + 1] == "core:overload-allowed"
    assert "--oversubscribe" not in line


def test_ranks_stay_on_the_cpus_that_their_starter_is_bound_to(monkeypatch):
    """Open MPI and MPICH would bind them to the first cores of the machine."""
    monkeypatch.setattr(launcher, "affinity", lambda: (1,))
    monkeypatch.setattr(launcher, "job_cpus", lambda: (0, 1))
    line = command_line("mpiexec", "openmpi", 1)
    assert line[line.index("--bind-to") + 1] == "none"
    assert "-bind-to" not in command_line("mpiexec", "mpich", 1)


ONE_CORE = {"HWLOC_SYNTHETIC": "Package:1 Core:1 PU:2", "HWLOC_THISSYSTEM": "1"}


@pytest.mark.skipif(usable_cores() < 2, reason="two cores are needed")
@pytest.mark.skipif(not has_open_mpi(), reason="Open MPI is needed")
def test_open_mpi_starts_as_many_ranks_as_there_are_cores_also_where_it_sees_fewer(monkeypatch):
    for name in ("PRTE_MCA_rmaps_default_mapping_policy", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.delenv(name, raising=False)
    line, kind = launcher_line(2)
    done = subprocess.run(
        [*line, "hostname"], env=environment(kind) | ONE_CORE, capture_output=True, text=True
    )
    assert (done.returncode, len(done.stdout.split())) == (0, 2), done.stdout + done.stderr


@pytest.mark.parametrize("name", ["PBS_JOBID", "LSB_JOBID", "PRTE_MCA_prte_default_hostfile"])
def test_the_slots_of_an_allocation_are_not_exceeded(monkeypatch, name):
    assert ":OVERSUBSCRIBE" in command_line("mpiexec", "openmpi", 1)
    monkeypatch.setenv(name, "7")
    assert ":OVERSUBSCRIBE" not in command_line("mpiexec", "openmpi", 1)


def launcher_that_says(folder, text):
    """A script in place of mpiexec."""
    path = folder / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return str(path)


def test_a_host_file_for_a_launcher_that_is_not_recognised_is_refused(tmp_path, monkeypatch):
    mpiexec = launcher_that_says(tmp_path, "Example MPI 1.0")
    monkeypatch.setenv("FEMBENCH_MPIEXEC", mpiexec)
    path = hosts(tmp_path, "a\nb\n")
    with pytest.raises(InputError, match=f"^{path}: {mpiexec} is not the launcher of Open MPI, MPICH"):
        launcher_line(2, path)
    assert launcher_line(2) == ([mpiexec, "-n", "2"], "unknown")


@pytest.mark.parametrize(("folder", "text"), [("a:b", "rank 0=a slot=0\nrank 1=a slot=1\n"), ("a,b", "a\n")])
def test_a_path_that_open_mpi_would_cut_in_two_is_refused(folder, text, tmp_path):
    (tmp_path / folder).mkdir()
    path = hosts(tmp_path / folder, text)
    with pytest.raises(InputError, match=f"Open MPI takes no host file with '{folder[1]}'"):
        command_line("mpiexec", "openmpi", 2, hostfile=path)


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
        ("openmpi", "rank 0=a slot=0\n", "places 1 rank; the case has 2"),
        ("openmpi", "rank 0=a slot=0\nrank 0=b slot=0\n", "rank 0 is placed twice"),
        ("openmpi", "rank 0=a slot=0\nrank 2=b slot=0\n", "no line for rank 1"),
        ("openmpi", "rank 0=a slot=0\nrank one=b\n", "cannot read 'rank one=b'"),
        ("mpich", "rank 0=a slot=0\nrank 1=b slot=0\n", "Open MPI's"),
    ],
)
def test_a_rankfile_that_does_not_fit_is_refused(kind, text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        command_line("mpiexec", kind, 2, hostfile=hosts(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a slots=2\nb slots=abc\n", "line 2: cannot read 'b slots=abc'; expected lines such as"),
        ("a slots=0\n", "line 1: cannot read 'a slots=0'; .*at least 1 slot"),
        ("a slots=-1\n", "line 1: cannot read"),
        ("a slots 2\n", "line 1: cannot read"),
        ("slots=2\n", "line 1: cannot read"),
        ("# a\n\na slots=1\na slots=1\n", "line 4: host a is on line 3 already"),
        ("a\na slots=1\n", "line 2: host a is on line 1 already"),
        ("a:2\n", "line 1: 'a:2' is MPICH's; expected 'a slots=2' for Open MPI"),
        ("# nothing\n\n", "no hosts in it"),
        ("", "no hosts in it"),
    ],
)
def test_a_host_file_that_open_mpi_would_reject_is_refused_with_its_line(text, message, tmp_path):
    path = hosts(tmp_path, text)
    with pytest.raises(InputError, match=f"^{path}(, |: ){message}"):
        command_line("mpiexec", "openmpi", 2, hostfile=path)


@pytest.mark.parametrize(
    "text", ["a slots = 2 max_slots=4\n", "me@a slots:2\n", "a\na\nb\n", "fe80::1 slots=2\n", "a cpu=2\n"]
)
def test_what_open_mpi_reads_in_a_host_file_is_passed_on(text, tmp_path):
    assert "--hostfile" in command_line("mpiexec", "openmpi", 2, hostfile=hosts(tmp_path, text))


def test_a_folder_is_no_host_file(tmp_path):
    with pytest.raises(InputError, match="is a folder; expected a host file"):
        launcher.launcher_line(2, str(tmp_path))


def test_what_a_launcher_prints_is_kept_without_nul_bytes():
    assert run_ranks(["printf", r"a\0b\n"], dict(os.environ)).output == "ab\n"


def test_a_record_names_the_hosts_that_were_asked_for(tmp_path, monkeypatch):
    given, of_lab = hosts(tmp_path, "# mine\na   slots=2\nb\n"), tmp_path / "lab"
    of_lab.write_text("n1 slots=1\n")
    monkeypatch.delenv("FEMBENCH_HOSTFILE", raising=False)
    assert (hosts_asked(given), hosts_asked("")) == ("a slots=2; b", "")
    monkeypatch.setenv("FEMBENCH_HOSTFILE", str(of_lab))
    assert (hosts_asked(given), hosts_asked("")) == ("a slots=2; b", "n1 slots=1")


def test_every_rank_has_one_blas_thread(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment("openmpi")["OMP_NUM_THREADS"] == "1"
    assert environment("openmpi")["OPENBLAS_NUM_THREADS"] == "1"


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


def test_ranks_started_as_jobs_of_one_rank_each_are_refused_before_anything_is_timed(tmp_path, monkeypatch):
    """As srun and mpiexec do that do not belong to the MPI library of mpi4py."""
    alone = tmp_path / "mpiexec"
    alone.write_text('#!/bin/sh\nshift 2\n"$@" & "$@"\nwait\n')  # without '-n 2': the program, twice
    alone.chmod(0o755)
    monkeypatch.setenv("FEMBENCH_MPIEXEC", str(alone))
    for name in [name for name in os.environ if name.startswith(("OMPI_COMM", "PMIX_", "PRTE_"))]:
        monkeypatch.delenv(name)
    outcome = launcher.launch(Case.of(mesh="m1", ranks=2), id="apart", command="", scratch=tmp_path)
    assert (outcome.kind, outcome.exit_status) == ("input", 2), outcome.output
    assert outcome.message.startswith("2 ranks were started as 2 jobs of one rank each")
