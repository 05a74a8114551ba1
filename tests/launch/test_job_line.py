"""The line that starts the ranks of a job: launcher, hosts, order and binding."""

import re
import subprocess

import pytest
from planted_environment import HETEROGENEOUS

from fembench.base.errors import InputError
from fembench.host.host import usable_cores
from fembench.launch import line as lines
from fembench.launch.allocation import hosts_asked
from fembench.launch.hosts import HostSlots
from fembench.launch.launchers import LAUNCHERS, UNKNOWN, find_launcher, recognised
from fembench.launch.line import environment, job_line

BY_NAME = {launcher.name: launcher for launcher in (*LAUNCHERS, UNKNOWN)}
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_TASKS_PER_NODE": "2(x3)"}


pytestmark = pytest.mark.usefixtures("no_batch_system")


@pytest.fixture
def using(monkeypatch):
    """A function that makes a launcher the one that is found; the program of its line is its name."""

    def use(name):
        monkeypatch.setattr(lines, "find_launcher", lambda: f"/opt/{name}")
        monkeypatch.setattr(lines, "recognised", lambda program: BY_NAME[name])
        monkeypatch.setattr("fembench.launch.batch_systems.plugin", lambda program: "pmix")

    return use


def words(line):
    """The options of a line of one part."""
    (part,) = line.parts
    return list(part[1:])


def after(option, line):
    """What follows an option."""
    (part,) = line.parts
    return part[part.index(option) + 1]


def file_of(line):
    """The host file of a line of one part."""
    (text,) = line.host_files
    return text


def hosts(folder, text):
    (folder / "hosts").write_text(text)
    return str(folder / "hosts")


def has_open_mpi():
    try:
        return recognised(find_launcher()).name == "openmpi"
    except InputError:
        return False


@pytest.mark.row("004:9.1.13")
def test_ranks_beyond_the_cores_yield_and_are_not_bound(using):
    using("openmpi")
    line = job_line(usable_cores() + 1)
    assert {"--oversubscribe", "mpi_yield_when_idle"} < set(words(line))
    assert (after("--bind-to", line), line.crowded, line.loose) == ("none", True, True)


def test_ranks_of_intel_mpi_beyond_the_cores_wait_without_polling(using, slurm, monkeypatch, tmp_path):
    monkeypatch.delenv("I_MPI_WAIT_MODE", raising=False)
    using("intelmpi")
    line = job_line(usable_cores() + 1)
    assert (line.crowded, environment(line)["I_MPI_WAIT_MODE"]) == (True, "1")
    assert "I_MPI_WAIT_MODE" not in environment(job_line(1))
    slurm()
    assert environment(job_line(4, hosts(tmp_path, "n1:4\n")))["I_MPI_WAIT_MODE"] == "1"
    assert "I_MPI_WAIT_MODE" not in environment(job_line(2, hosts(tmp_path, "n1:2\n")))
    monkeypatch.setenv("I_MPI_WAIT_MODE", "0")
    assert environment(line)["I_MPI_WAIT_MODE"] == "0"


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        ("HOME", "", "/.*"),  # Open MPI does not start without
        ("OMP_NUM_THREADS", None, "1"),
        ("OPENBLAS_NUM_THREADS", None, "1"),
        ("OMPI_MCA_btl", None, r"\^ofi"),  # a component that sleeps as it closes
        ("OMPI_MCA_btl", "tcp,self", "tcp,self"),
    ],
)
def test_ranks_get_the_variables_that_they_need_or_the_users(name, given, found, using, monkeypatch):
    using("openmpi")
    monkeypatch.delenv(name, raising=False)
    if given is not None:
        monkeypatch.setenv(name, given)
    assert re.fullmatch(found, environment(job_line(1))[name])


def test_ranks_within_the_cores_are_bound(using):
    using("openmpi")
    line = job_line(1)
    assert after("--bind-to", line) == "core:overload-allowed"
    assert "--oversubscribe" not in words(line)
    using("mpich")
    assert words(job_line(1)) == ["-print-all-exitcodes", "-bind-to", "core", "-n", "1"]
    assert (
        words(job_line(1, "", ["-print-all-exitcodes"])).count("-print-all-exitcodes") == 1
    )  # or MPICH refuses


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openmpi", "--bind-to core:overload-allowed --map-by slot:PE=2:OVERSUBSCRIBE -n 2"),
        ("mpich", "-bind-to core:2 -n 2"),
        ("intelmpi", "-n 2"),
        ("pals", "--cpu-bind depth --depth 2 -n 2"),
        ("aprun", "-d 2 -cc depth -n 2"),
        ("jsrun", "--bind packed:2 --nrs 2 --tasks_per_rs 1 --cpu_per_rs 2"),
        ("flux", "--cores-per-task=2 -o cpu-affinity=per-task -n 2"),
    ],
)
def test_each_rank_is_bound_to_as_many_cores_as_it_has_threads(name, said, using, monkeypatch):
    for name_of_all in ("affinity", "job_cpus"):
        monkeypatch.setattr(lines, name_of_all, lambda: (0, 1, 2, 3))
    monkeypatch.setattr(lines, "usable_cores", lambda: 4)
    using(name)
    line = job_line(2, threads=2)
    assert " ".join(words(line)).endswith(said)
    assert (environment(line)["OMP_NUM_THREADS"], environment(line)["OMP_PROC_BIND"]) == ("2", "false")
    assert environment(line).get("I_MPI_PIN_DOMAIN") == ("omp" if name == "intelmpi" else None)
    crowded = job_line(3, threads=2)
    assert (crowded.crowded, crowded.loose) == (True, True)
    assert "PE=2" not in " ".join(words(crowded))


def test_on_hosts_each_rank_is_bound_to_as_many_cores_as_it_has_threads(using, tmp_path):
    using("openmpi")
    text = "a:2\nb:2\n"
    assert after("--map-by", job_line(4, hosts(tmp_path, text), threads=8)) == "slot:PE=8"
    using("srun")
    said = "--cpus-per-task=8 --cpu-bind=cores"
    assert said in " ".join(words(job_line(4, hosts(tmp_path, text), threads=8)))
    ranks = tmp_path / "ranks"
    ranks.write_text("rank 0=a slot=0\n")
    with pytest.raises(InputError, match=r"threads = 2: .*ranks binds each rank to one core"):
        job_line(1, str(ranks), threads=2)


@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"])
def test_no_variable_of_the_user_binds_a_rank_when_it_loads_openmp(name, using, monkeypatch):
    for other in lines.PLACES:
        monkeypatch.delenv(other, raising=False)
    using("openmpi")
    assert "OMP_PROC_BIND" not in environment(job_line(1))
    monkeypatch.setenv(name, "0")
    assert environment(job_line(1))["OMP_PROC_BIND"] == "false"


def test_ranks_stay_on_the_cpus_that_their_starter_is_bound_to(monkeypatch, using):
    """Open MPI and MPICH would bind them to the first cores of the machine."""
    monkeypatch.setattr(lines, "affinity", lambda: (1,))
    monkeypatch.setattr(lines, "job_cpus", lambda: (0, 1))
    using("openmpi")
    assert after("--bind-to", job_line(1)) == "none"
    using("mpich")
    assert "-bind-to" not in words(job_line(1))
    using("intelmpi")
    assert environment(job_line(1))["I_MPI_PIN"] == "off"


ONE_CORE = {"HWLOC_SYNTHETIC": "Package:1 Core:1 PU:2", "HWLOC_THISSYSTEM": "1"}


@pytest.mark.skipif(usable_cores() < 2, reason="two cores are needed")
@pytest.mark.skipif(not has_open_mpi(), reason="Open MPI is needed")
def test_open_mpi_starts_as_many_ranks_as_there_are_cores_also_where_it_sees_fewer(monkeypatch, tmp_path):
    for name in ("PRTE_MCA_rmaps_default_mapping_policy", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.delenv(name, raising=False)
    line = job_line(2)
    variables = environment(line) | ONE_CORE
    done = subprocess.run(line.of(["hostname"], tmp_path), env=variables, capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.split())) == (0, 2), done.stdout + done.stderr


def test_where_open_mpi_takes_its_hosts_from_elsewhere_their_slots_are_not_exceeded(monkeypatch, using):
    using("openmpi")
    assert ":OVERSUBSCRIBE" in words(job_line(1))
    monkeypatch.setenv("PRTE_MCA_prte_default_hostfile", "hosts")
    assert ":OVERSUBSCRIBE" not in words(job_line(1))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mpiexec (Open MPI) 5.0.11", "openmpi"),
        ("mpirun (Open MPI) 4.1.4", "openmpi"),
        ("HYDRA build details:", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.18", "intelmpi"),
        ("mpiexec from PALS 1.3.2", "pals"),
        ("Example MPI 1.0", "unknown"),
    ],
)
def test_a_launcher_is_recognised_by_what_it_prints(text, name, script):
    assert recognised(script("mpiexec", f"echo '{text}'")).name == name


@pytest.mark.parametrize("name", ["srun", "aprun", "jsrun", "flux"])
def test_a_launcher_with_a_name_of_its_own_is_recognised_by_it(name):
    assert recognised(f"/usr/bin/{name}").name == name


def test_the_launcher_may_be_chosen_by_name_or_path(tmp_path, script, monkeypatch):
    mpiexec = script("mpiexec", "echo 'HYDRA build details:'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("FEMBENCH_LAUNCHER", "mpich")
    assert find_launcher() == mpiexec
    monkeypatch.setenv("FEMBENCH_LAUNCHER", mpiexec)
    assert find_launcher() == mpiexec
    monkeypatch.setenv("FEMBENCH_LAUNCHER", "aprun")
    with pytest.raises(InputError, match=r"^launcher aprun: none of aprun on PATH belongs to it$"):
        find_launcher()
    monkeypatch.setenv("FEMBENCH_LAUNCHER", "poe")
    with pytest.raises(InputError, match=r"^launcher 'poe': expected one of openmpi, .*or a program$"):
        find_launcher()


DIALECTS = ("a slots=2\nb slots=1\n", "a:2\nb:1\n", "a\na\nb\n", "a slots = 2 max_slots=4\nb cpu=1\n")


@pytest.mark.row("004:9.1.7b")
@pytest.mark.parametrize("text", DIALECTS)
@pytest.mark.parametrize(
    ("name", "options", "file"),
    [
        ("openmpi", ["--hostfile", "{file}"], "a slots=2\nb slots=1\n"),
        ("mpich", ["-f", "{file}"], "a:2\nb:1\n"),
        ("intelmpi", ["-machinefile", "{file}"], "a:2\nb:1\n"),
        ("srun", ["--distribution=arbitrary", "--nodelist={file}", "--nodes=2"], "a\na\nb\n"),
        ("pals", ["--hostfile", "{file}"], "a\na\nb\n"),
        ("aprun", ["-L", "a,b", "-N", "2"], "a slots=2\nb slots=1\n"),
        ("flux", ["--requires=host:a,b"], "a slots=2\nb slots=1\n"),
    ],
)
def test_every_dialect_of_host_file_becomes_that_of_the_launcher(name, options, file, text, using, tmp_path):
    using(name)
    line = job_line(3, hosts(tmp_path, text))
    assert " ".join(options) in " ".join(words(line))
    assert file_of(line) == file
    assert words(line)[-2:] == ["-n", "3"]


@pytest.mark.parametrize(
    ("name", "option", "file"),
    [
        ("openmpi", "--map-by node", "a slots=2\nb slots=2\n"),
        ("mpich", "-ppn 1", "a:2\nb:2\n"),
        ("srun", "--distribution=arbitrary", "a\nb\na\nb\n"),
    ],
)
def test_ranks_go_to_hosts_in_turns_if_file_or_user_say_so(name, option, file, using, tmp_path, monkeypatch):
    using(name)
    line = job_line(4, hosts(tmp_path, "a\nb\na\nb\n"))
    assert option in " ".join(words(line))
    assert file_of(line) == file
    monkeypatch.setenv("FEMBENCH_MAP_BY", "host")
    assert job_line(4, hosts(tmp_path, "a:2\nb:2\n")).parts == line.parts


def test_any_other_order_of_hosts_is_kept(using, tmp_path):
    path = hosts(tmp_path, "a\nb\nb\na\n")
    using("openmpi")
    line = job_line(4, path)
    assert file_of(line) == "rank 0=a slot=0\nrank 1=b slot=0\nrank 2=b slot=1\nrank 3=a slot=1\n"
    assert (after("--map-by", line), after("--host", line)) == ("rankfile:file={file}", "a:2,b:2")
    using("mpich")
    line = job_line(4, path)
    assert file_of(line) == "a:1\nb:2\na:1\n"
    assert "-bind-to" not in words(line)  # both ranks of a host would be bound to its first core


def test_an_allocation_is_passed_to_the_launcher(using, slurm):
    slurm()
    using("mpich")
    assert file_of(job_line(5)) == "n1:2\nn2:2\nn3:1\n"
    assert file_of(job_line(2, hosts=[HostSlots("n2", 1), HostSlots("n3", 1)])) == "n2:1\nn3:1\n"
    with pytest.raises(InputError, match=r"^2 ranks, but the hosts asked for have 1 slot"):
        job_line(2, hosts=[HostSlots("n2", 1)])


def test_jsrun_spreads_ranks_over_the_hosts_of_the_job_and_takes_no_others(using, slurm, monkeypatch):
    slurm()
    using("jsrun")
    packed = job_line(5)
    assert (after("--nrs", packed), after("--launch_distribution", packed)) == ("5", "packed")
    assert not packed.host_files
    monkeypatch.setenv("FEMBENCH_MAP_BY", "host")
    assert after("--launch_distribution", job_line(5)) == "cyclic"
    monkeypatch.delenv("FEMBENCH_MAP_BY")
    with pytest.raises(InputError, match=r"cannot pass hosts to .*jsrun.* set FEMBENCH_LAUNCHER to one of"):
        job_line(2, hosts=[HostSlots("n2", 1), HostSlots("n3", 1)])


@pytest.mark.parametrize(("here", "files"), [("n1", 0), ("n1.a", 0), ("n1.b", 1), ("login", 1)])
def test_ranks_of_a_job_on_one_host_start_here_if_it_is_this_host(here, files, using, slurm, monkeypatch):
    slurm("n1.a", "1")
    monkeypatch.setattr("platform.node", lambda: here)
    using("mpich")
    assert len(job_line(1).host_files) == files


def test_hosts_of_a_file_are_those_of_the_job_or_of_a_lab_inside_it(using, slurm, monkeypatch, tmp_path):
    slurm()
    using("openmpi")
    assert file_of(job_line(3, hosts(tmp_path, "root@n2.cluster.org:3\n"))) == "root@n2.cluster.org slots=3\n"
    monkeypatch.setenv("FEMBENCH_SYNTHETIC", "a lab of its own hosts")
    assert file_of(job_line(1, hosts(tmp_path, "n9\n"))) == "n9 slots=1\n"


MAP, OPTIONS = "FEMBENCH_MAP_BY", "FEMBENCH_LAUNCHER_OPTIONS"
TWO_RANKS = "rank 0=a slot=0\nrank 1=b slot=0\n"


@pytest.mark.parametrize(
    ("name", "settings", "text", "ranks", "message"),
    [
        ("unknown", {}, "a\nb\n", 2, "host file {}: fembench cannot pass hosts to /opt/unknown (unknown)"),
        ("srun", {MAP: "numa"}, "a:2\n", 2, "map by 'numa': srun maps by core, host"),
        ("srun", {MAP: "socket"}, "a:2\n", 2, "map by 'socket': expected core, numa, host"),
        ("openmpi", {OPTIONS: "--mca 'x"}, "a:2\n", 2, "launcher options --mca 'x: a quote is not closed"),
        ("mpich", SLURM, "", 7, "7 ranks, but Slurm job 7 has 6 slots; ask for -n 7, or for fewer ranks"),
        ("openmpi", SLURM, "n1:2\nn9:2\n", 1, "{}: host n9 is not in this job's allocation (6 slots, Slurm"),
        ("openmpi", {}, "a slots=2\n", 3, "3 ranks, but host file {} has 2 slots; ask for more slots"),
        ("openmpi", {}, "rank 0=a slot=0\n", 2, "{} places 1 rank; the case has 2"),
        ("openmpi", {}, "rank 0=a slot=0\nrank 0=b slot=0\n", 2, "{}: rank 0 is placed twice"),
        ("openmpi", {}, "rank 0=a slot=0\nrank 2=b slot=0\n", 2, "{}: no line for rank 1"),
        ("openmpi", {}, "rank 0=a slot=0\nrank one=b\n", 2, "{}: cannot read 'rank one=b'"),
        ("mpich", {}, TWO_RANKS, 2, "{}: a rankfile is Open MPI's"),
    ],
)
def test_what_the_launcher_or_the_hosts_cannot_do_is_refused_before_anything_starts(
    name, settings, text, ranks, message, using, monkeypatch, tmp_path
):
    using(name)
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    file = hosts(tmp_path, text) if text else ""
    with pytest.raises(InputError, match=f"^{re.escape(message.format(file))}"):
        job_line(ranks, file)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("openmpi", "--bind-to none --map-by slot:OVERSUBSCRIBE --mca mpi_yield_when_idle 1"),
        ("srun", "--cpu-bind=none --overcommit"),
    ],
)
def test_a_host_file_with_more_slots_than_the_job_shares_its_cores(name, options, using, slurm, tmp_path):
    slurm()
    using(name)
    line = job_line(4, hosts(tmp_path, "n1:4\n"))
    assert options in " ".join(words(line))
    assert (line.crowded, line.loose) == (True, True)
    assert not job_line(2, hosts(tmp_path, "n1:2\n")).crowded


SRUN = "--kill-on-bad-exit=1"
LISTED = "--distribution=arbitrary --nodelist={file}"


@pytest.fixture
def heterogeneous(monkeypatch):
    """A Slurm job of two components."""
    for name, value in HETEROGENEOUS.items():
        monkeypatch.setenv(name, value)


def test_a_heterogeneous_job_is_started_by_srun_with_a_part_for_each_component(heterogeneous, using):
    using("srun")
    line = job_line(5)
    first, second = (" ".join(part) for part in line.parts)
    assert first == f"/opt/srun {SRUN} --het-group=0 {LISTED} --nodes=2 --mpi=pmix --cpu-bind=cores -n 4"
    assert second == f"{SRUN} --het-group=1 {LISTED} --nodes=1 --mpi=pmix --cpu-bind=cores -n 1"
    assert line.host_files == ("n1\nn1\nn2\nn2\n", "n3\n")
    (part,) = job_line(4).parts  # all on the first component
    assert "--het-group=0" in part
    (part,) = job_line(1, hosts=[HostSlots("n3", 1, 1)]).parts  # all on the second
    assert "--het-group=1" in part


def test_a_launcher_that_cannot_span_a_job_is_refused(heterogeneous, using, monkeypatch, tmp_path, script):
    using("mpich")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"^Slurm job 7: mpich \(mpich\) cannot start .* not on PATH"):
        job_line(5)
    srun = script("srun", "")
    kinds = {srun: BY_NAME["srun"]}
    monkeypatch.setattr(lines, "recognised", lambda program: kinds.get(program, BY_NAME["mpich"]))
    assert [part[0] for part in job_line(5).parts] == [srun, SRUN]
    monkeypatch.setenv("FEMBENCH_LAUNCHER", "mpich")
    with pytest.raises(InputError, match="type the same command with --launcher srun"):
        job_line(5)


def test_hosts_of_a_host_file_keep_their_component(heterogeneous, using, tmp_path):
    using("srun")
    assert len(job_line(2, hosts(tmp_path, "n1:1\nn3:1\n")).parts) == 2


def test_options_of_the_user_replace_those_of_fembench(using, monkeypatch, tmp_path):
    using("openmpi")
    path = hosts(tmp_path, "a slots=2\n")
    assert words(job_line(2, path)).count("--bind-to") == 1
    line = job_line(2, path, ("--bind-to", "none"))
    assert (words(line).count("--bind-to"), after("--bind-to", line)) == (1, "none")
    monkeypatch.setenv("FEMBENCH_LAUNCHER_OPTIONS", "--map-by numa --mca pml 'ob1'")
    line = job_line(2, path)
    assert (words(line).count("--map-by"), after("--map-by", line), after("pml", line)) == (1, "numa", "ob1")


def test_a_rankfile_places_each_rank(using, tmp_path):
    using("openmpi")
    text = "# placed\nrank 1=b slot=0\nrank 0=a slot=0\nrank 2=b slot=1\n"
    line = job_line(3, hosts(tmp_path, text))
    assert (after("--host", line), after("--map-by", line)) == ("a:1,b:2", "rankfile:file={file}")
    assert (after("--bind-to", line), file_of(line)) == ("core", text)
    assert "--hostfile" not in words(line)
    one_slot = job_line(2, hosts(tmp_path, "rank 0=a slot=0\nrank 1=a slot=0\n"))
    assert after("--bind-to", one_slot) == "core:overload-allowed"


@pytest.mark.parametrize("folder", ["a:b", "a,b"])
def test_a_folder_whose_name_open_mpi_would_cut_in_two_is_refused(folder, using, tmp_path):
    using("openmpi")
    (tmp_path / folder).mkdir()
    line = job_line(2, hosts(tmp_path, "a slots=2\n"))
    with pytest.raises(InputError, match=f"{folder}: Open MPI reads no host file with '{folder[1]}'"):
        line.of(["x"], tmp_path / folder)


def test_a_folder_is_no_host_file(tmp_path):
    with pytest.raises(InputError, match="is a folder; expected a host file"):
        job_line(2, str(tmp_path))


def test_a_record_names_the_hosts_that_were_asked_for(tmp_path, slurm, monkeypatch):
    given, of_lab = hosts(tmp_path, "# mine\na   slots=2\nb\n"), tmp_path / "lab"
    of_lab.write_text("n1 slots=1\n")
    assert (hosts_asked(given), hosts_asked("")) == ("a slots=2; b", "")
    monkeypatch.setenv("FEMBENCH_HOSTFILE", str(of_lab))
    assert (hosts_asked(given), hosts_asked("")) == ("a slots=2; b", "n1 slots=1")
    monkeypatch.delenv("FEMBENCH_HOSTFILE")
    slurm()
    assert hosts_asked("") == "n[1-3]"


def test_more_ranks_than_64_per_core_of_this_machine_are_refused(monkeypatch, using, tmp_path):
    using("openmpi")
    monkeypatch.setattr(lines, "usable_cores", lambda: 2)
    assert words(job_line(128))[-1] == "128"
    with pytest.raises(InputError, match="900 ranks on the 2 cores of this machine: expected at most 128"):
        job_line(900)
    assert words(job_line(900, hosts(tmp_path, "a slots=450\nb slots=450\n")))[-1] == "900"
