"""The hosts and slots of a job, as batch systems and host files describe them."""

import re

import pytest
from planted_environment import HETEROGENEOUS

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.host.host import usable_cores
from fembench.launch.allocation import allocation, check_not_a_step
from fembench.launch.hosts import expand_counts, expand_hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", "n1"),
        ("n[1-3,07],login", "n1 n2 n3 n07 login"),
        ("n[08-11]", "n08 n09 n10 n11"),
        ("r[0-1]c[1,3]x, b", "r0c1x r0c3x r1c1x r1c3x b"),
    ],
)
def test_a_list_of_hosts_is_expanded_in_its_order(text, names):
    assert expand_hosts(text, "LIST") == names.split()


@pytest.mark.parametrize("text", ["", "n[1-", "n]1", "n[3-1]", "n[a]", "n1,,n2", "n[1-]", "n[[1]]"])
def test_a_list_of_hosts_that_cannot_be_read_is_refused_with_its_origin(text):
    with pytest.raises(InputError, match=r"^LIST = '.*expected a list of hosts such as"):
        expand_hosts(text, "LIST")


def test_a_list_of_too_many_hosts_is_refused_before_it_fills_the_memory():
    with pytest.raises(InputError, match="at most 100000 hosts"):
        expand_hosts("n[0-99999],m", "LIST")
    with pytest.raises(InputError, match="expected"):
        expand_hosts("n[0-99999][0-99999]", "LIST")
    with pytest.raises(InputError, match="expected counts such as"):
        expand_counts("2(x999999)", "COUNTS")


def test_counts_are_expanded():
    assert expand_counts("2(x3),1", "COUNTS") == [2, 2, 2, 1]
    with pytest.raises(InputError, match=r"^COUNTS = '2\(y3\)': expected counts"):
        expand_counts("2(y3)", "COUNTS")


SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]"}
THREE = SLURM | {"SLURM_JOB_CPUS_PER_NODE": "4(x3)"}
IN_SBATCH = HETEROGENEOUS | {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)"}
IN_LSF = {"LSB_JOBID": "1"}
LAUNCH_NODE = IN_LSF | {"LSB_MCPU_HOSTS": "batch1 1 n1 42 n2 42"}
GIVEN = {"FEMBENCH_HOSTFILE": "FILE"}
TWO = SLURM | {"SLURM_TASKS_PER_NODE": "2(x3)", "PBS_NODEFILE": "FILE"}
PER_SLOT = "n1\nn1\nn2\nn2\nn3\n"
DIALECTS = "a slots=2\nb:3\nc\nc\nn[1-2] slots=4\n"


def shown(found):
    """Hosts with their slots, and with their component if it is not the first."""
    return " ".join(f"{h.name}:{h.slots}" + f"/{h.component}" * bool(h.component) for h in found.hosts)


def beside(file, text, environment):
    """The variables, FILE replaced by the path of a file with this text."""
    file.write_text(text, encoding="utf-8")
    return {name: value.replace("FILE", str(file)) for name, value in environment.items()}


@pytest.mark.parametrize(
    ("environment", "text", "found"),
    [
        (THREE | {"SLURM_TASKS_PER_NODE": "2(x2),1"}, "", "n1:2 n2:2 n3:1"),
        (THREE, "", "n1:4 n2:4 n3:4"),
        (HETEROGENEOUS, "", "n1:2 n2:2 n3:1/1"),
        (IN_SBATCH, "", "n1:2 n2:2 n3:1/1"),
        ({"PBS_NODEFILE": "FILE"}, PER_SLOT, "n1:2 n2:2 n3:1"),
        ({"OAR_NODEFILE": "FILE"}, PER_SLOT, "n1:2 n2:2 n3:1"),
        (IN_LSF | {"LSB_DJOB_HOSTFILE": "FILE"}, PER_SLOT, "n1:2 n2:2 n3:1"),
        (IN_LSF | {"LSB_MCPU_HOSTS": "n1 16 n2 8"}, "", "n1:16 n2:8"),
        (IN_LSF | {"LSB_MCPU_HOSTS": "n1 2 n2 2 n1.cluster.example 2"}, "", "n1:4 n2:2"),
        (IN_LSF | {"LSB_HOSTS": "n1 n1 n2"}, "", "n1:2 n2:1"),
        (IN_LSF | {"LSB_HOSTS": "n1 n1 n2", "LSB_MCPU_HOSTS": "n1 16 n2 8"}, "", "n1:16 n2:8"),
        (LAUNCH_NODE, "", "batch1:1 n1:42 n2:42"),
        (LAUNCH_NODE | {"CSM_ALLOCATION_ID": "7"}, "", "n1:42 n2:42"),  # it takes no rank
        (IN_LSF | {"LSB_MCPU_HOSTS": "n1 1", "CSM_ALLOCATION_ID": "7"}, "", "n1:1"),
        ({"PE_HOSTFILE": "FILE"}, "n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n", "n1:4 n2:2"),
        (TWO, "n3.cluster\nn1\nn2\n", "n1:2 n2:2 n3:2"),
        (GIVEN, "n1 slots=2\nn1.cluster.example slots=2\n", "n1:4"),
        (GIVEN, "n1.cluster.example\nn2\nn1\n", "n1.cluster.example:2 n2:1"),
        (GIVEN, "n1.a\nn1.b\n", "n1.a:1 n1.b:1"),
        (GIVEN, "10.0.0.1 slots=2\n10.0.0.2\nfe80::1\nme@n1\n", "10.0.0.1:2 10.0.0.2:1 fe80::1:1 me@n1:1"),
        (GIVEN, DIALECTS, "a:2 b:3 c:2 n1:4 n2:4"),
        (GIVEN | SLURM | {"SLURM_JOB_NODELIST": "a,b,c,n[1-3]"}, DIALECTS, "a:2 b:3 c:2 n1:4 n2:4"),
        (GIVEN, "rank 0=a slot=0\nrank 2=a slot=1\nrank 1=b slot=0\n", "a:2 b:1"),
    ],
)
def test_a_batch_system_or_a_host_file_gives_hosts_with_slots(tmp_path, environment, text, found):
    made = allocation(environment=beside(tmp_path / "hosts", text, environment))
    assert shown(made) == found
    assert made.batch or "FEMBENCH_HOSTFILE" in environment
    assert made.heterogeneous == ("SLURM_HET_SIZE" in environment)


def test_the_order_of_a_host_file_names_each_host_as_it_was_named_first(tmp_path):
    text = "n1.cluster.example\nn2\nn1\n"
    found = allocation(environment=beside(tmp_path / "hosts", text, GIVEN))
    assert [host.name for host in found.order] == ["n1.cluster.example", "n2", "n1.cluster.example"]


@pytest.mark.parametrize(
    ("environment", "text", "message"),
    [
        (SLURM | {"SLURM_TASKS_PER_NODE": "2(x2)"}, "", "SLURM_TASKS_PER_NODE has 2 counts, but SLURM_JOB"),
        *(
            (SLURM | {"SLURM_HET_SIZE": n}, "", f"SLURM_HET_SIZE = '{n}': expected the number")
            for n in ("99999999", "foo", "0")
        ),
        (SLURM | {"SLURM_TASKS_PER_NODE": "2(x2),0"}, "", "Slurm job 7: 0 slots on n3; expected 1 to"),
        (SLURM | {"SLURM_JOB_NODELIST": "n1 n2,;rm"}, "", "Slurm job 7: host 'n1 n2'; expected a host name"),
        ({"PBS_NODEFILE": "FILE"}, "\n", "PBS_NODEFILE = FILE: no hosts in it"),
        ({"PBS_NODEFILE": "/no/such"}, "", "PBS_NODEFILE names a file that cannot be used: cannot read /no/"),
        (IN_LSF | {"LSB_MCPU_HOSTS": "n1 16 n2"}, "", "LSB_MCPU_HOSTS = 'n1 16 n2': expected"),
        (IN_LSF | {"LSB_MCPU_HOSTS": "  "}, "", "LSB_MCPU_HOSTS: no hosts in it"),
        (IN_LSF | {"LSB_MCPU_HOSTS": "--help 2"}, "", "LSB_MCPU_HOSTS: host '--help'; expected"),
        (TWO, "n1\nn9\n", "two batch systems with different hosts: 6 slots, Slurm job 7: n1:2, n2:2, n3:2"),
        (GIVEN | THREE, "n9\nn3\n", "FILE: host n9 is not in this job's allocation (12 slots, Slurm job 7"),
        (GIVEN, "n1.a\nn1\nn1.b\n", "FILE: host n1 may be n1.a or n1.b; expected its domain as well"),
        (GIVEN, "n1,n2\n", "host file FILE: host 'n1,n2'; expected a host name or an address"),
        (GIVEN, "n1:2:3\n", "host file FILE: host 'n1:2:3'; expected a host name or an address"),
        (GIVEN, "\ufeffn1 slots=2\n", "host file FILE: host '\ufeffn1'; expected a host name or an address"),
        (GIVEN, "n1 slots=999999999\n", "host file FILE: 999999999 slots on n1; expected 1 to 100000"),
        (GIVEN, "n1 slots=1\nrank 1=n1 slot=0\n", "FILE, line 2: cannot read 'rank 1=n1 slot=0'"),
        (GIVEN, "a slots=2\nb slots=abc\n", "FILE, line 2: cannot read 'b slots=abc'; expected lines"),
        *(
            (GIVEN, text, f"FILE, line 1: cannot read '{text}'")
            for text in ("a slots=0", "a slots=-1", "a slots 2", "slots=2")
        ),
        (GIVEN, "a[1- slots=2\n", "FILE, line 1 = 'a[1-': expected a list of hosts"),
        (GIVEN, "# nothing\n\n", "FILE: no hosts in it"),
    ],
)
def test_what_names_no_hosts_for_ranks_is_refused_with_its_origin(tmp_path, environment, text, message):
    file = tmp_path / "hosts"
    with pytest.raises(InputError, match=re.escape(re.sub(r"\bFILE\b", str(file), message))):
        allocation(environment=beside(file, text, environment))


def test_flux_prints_what_the_instance_has(tmp_path, script):
    script(
        "flux",
        'echo \'{"version": 1, "execution": {"nodelist": ["n[1-3]"], "R_lite": '
        '[{"rank": "0-1", "children": {"core": "0-3"}}, {"rank": "2", "children": {"core": "0,5"}}]}}\'',
    )
    inside = {"FLUX_URI": "local:///x", "PATH": f"{tmp_path}:/bin:/usr/bin"}
    assert shown(allocation(environment=inside)) == "n1:4 n2:4 n3:2"
    script("flux", "echo nothing")
    with pytest.raises(InputError, match="`flux resource R` cannot be read"):
        allocation(environment=inside)


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        ({"SLURM_JOB_ID": "7"}, "SLURM_JOB_NODELIST or SLURM_JOB_NODELIST_HET_GROUP_0 is not"),
        ({"SLURM_JOB_NODELIST": "n[1-3]"}, "SLURM_JOB_ID is not"),
        (IN_LSF, "LSB_MCPU_HOSTS or LSB_DJOB_HOSTFILE or LSB_HOSTS is not"),
        ({"LSB_HOSTS": "n1 n2"}, "LSB_JOBID is not"),
        ({"PBS_JOBID": "7.head"}, "PBS_NODEFILE is not"),
        ({"FLUX_URI": "local:///x", "PATH": "/no/such"}, "no flux program is on PATH to ask for the hosts"),
    ],
)
def test_what_only_half_describes_a_job_is_refused_unless_a_host_file_does(tmp_path, environment, missing):
    with pytest.raises(InputError, match=f"^{next(iter(environment))} is set, but {missing}"):
        allocation(environment=environment)
    (tmp_path / "hosts").write_text("a slots=2\n")
    assert shown(allocation(str(tmp_path / "hosts"), environment)) == "a:2"


def test_without_any_of_them_it_is_this_machine():
    found = allocation(environment={"SLURM_HET_SIZE": "foo"})  # counts inside a job only
    assert (found.source, found.slots, found.batch) == ("this machine", usable_cores(), False)


def test_copies_of_fembench_started_by_srun_or_mpiexec_are_refused():
    check_not_a_step({})
    check_not_a_step({"SLURM_STEP_ID": "4294967290"})  # the interactive shell of salloc
    with pytest.raises(InputError, match=r"started by srun \(step 7.0\).*inside salloc"):
        check_not_a_step({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"})
    with pytest.raises(InputError, match=r"MPI launcher \(OMPI_COMM_WORLD_SIZE is set\).*with --ranks"):
        check_not_a_step({"OMPI_COMM_WORLD_SIZE": "2"})


def test_only_the_first_of_these_copies_says_so(monkeypatch, capsys):
    monkeypatch.setattr("fembench.launch.line.check_not_a_step", lambda: check_not_a_step(step))
    for rank, lines in ((0, 1), (1, 0)):
        step = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank)}
        assert main(["run", "m1", "--ranks", "2"]) == 2
        assert capsys.readouterr().err.count("started by srun") == lines
