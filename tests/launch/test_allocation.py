"""The hosts and slots of a job, as batch systems and host files describe them."""

import re

import pytest

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench.host.host import usable_cores
from fembench.launch.allocation import allocation, check_not_a_step
from fembench.launch.hosts import expand_counts, expand_hosts


def pairs(found):
    return [(host.name, host.slots) for host in found.hosts]


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


@pytest.mark.parametrize(
    ("text", "hosts", "order"),
    [
        ("n1 slots=2\nn1.cluster.example slots=2\n", [("n1", 4)], ["n1", "n1"]),
        (
            "n1.cluster.example\nn2\nn1\n",
            [("n1.cluster.example", 2), ("n2", 1)],
            ["n1.cluster.example", "n2"],
        ),
        ("n1.a\nn1.b\n", [("n1.a", 1), ("n1.b", 1)], ["n1.a", "n1.b"]),
        ("10.0.0.1\n10.0.0.2\n", [("10.0.0.1", 1), ("10.0.0.2", 1)], ["10.0.0.1", "10.0.0.2"]),
    ],
)
def test_a_host_listed_with_and_without_its_domain_is_one_host(tmp_path, text, hosts, order):
    path = tmp_path / "hosts"
    path.write_text(text)
    found = allocation(str(path), {})
    assert pairs(found) == hosts
    assert [host.name for host in found.order][:2] == order
    lsf = {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "n1 2 n2 2 n1.cluster.example 2"}
    assert pairs(allocation(environment=lsf)) == [("n1", 4), ("n2", 2)]


def test_a_name_without_domain_that_fits_two_hosts_is_refused(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("n1.a\nn1\nn1.b\n")
    with pytest.raises(InputError, match=r"host n1 may be n1\.a or n1\.b; expected its domain as well"):
        allocation(str(path), {})


def test_slurm_gives_hosts_with_the_tasks_of_each():
    found = allocation(
        environment=SLURM | {"SLURM_TASKS_PER_NODE": "2(x2),1", "SLURM_JOB_CPUS_PER_NODE": "8(x3)"}
    )
    assert pairs(found) == [("n1", 2), ("n2", 2), ("n3", 1)]
    assert (found.source, found.slots, found.batch, found.heterogeneous) == ("Slurm job 7", 5, True, False)


def test_slurm_without_tasks_gives_cpus():
    assert pairs(allocation(environment=SLURM | {"SLURM_JOB_CPUS_PER_NODE": "4(x3)"})) == [
        ("n1", 4),
        ("n2", 4),
        ("n3", 4),
    ]


def test_counts_that_do_not_match_the_hosts_are_refused():
    with pytest.raises(
        InputError, match="SLURM_TASKS_PER_NODE has 2 counts, but SLURM_JOB_NODELIST has 3 hosts"
    ):
        allocation(environment=SLURM | {"SLURM_TASKS_PER_NODE": "2(x2)"})


def test_each_component_of_a_heterogeneous_job_counts():
    in_salloc = {
        "SLURM_JOB_ID": "7",
        "SLURM_HET_SIZE": "2",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "n[1-2]",
        "SLURM_TASKS_PER_NODE_HET_GROUP_0": "2(x2)",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "n3",
        "SLURM_TASKS_PER_NODE_HET_GROUP_1": "1",
    }
    in_sbatch = in_salloc | {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)"}
    for environment in (in_salloc, in_sbatch):
        found = allocation(environment=environment)
        assert [tuple(host) for host in found.hosts] == [("n1", 2, 0), ("n2", 2, 0), ("n3", 1, 1)]
        assert (found.heterogeneous, found.batch) == (True, True)


@pytest.mark.parametrize("variable", ["PBS_NODEFILE", "OAR_NODEFILE", "LSB_DJOB_HOSTFILE"])
def test_a_file_with_a_line_per_slot_gives_each_host_once(variable, tmp_path):
    path = tmp_path / "nodes"
    path.write_text("n1\nn1\nn2\nn2\nn3\n")
    found = allocation(environment={variable: str(path), "LSB_JOBID": "1"})
    assert pairs(found) == [("n1", 2), ("n2", 2), ("n3", 1)]
    assert (found.source, found.batch) == (variable, True)
    path.write_text("\n")
    with pytest.raises(InputError, match=f"^{variable} = .*no hosts in it"):
        allocation(environment={variable: str(path), "LSB_JOBID": "1"})


def test_lsf_gives_pairs_of_hosts_and_slots():
    assert pairs(allocation(environment={"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "n1 16 n2 8"})) == [
        ("n1", 16),
        ("n2", 8),
    ]
    with pytest.raises(InputError, match="LSB_MCPU_HOSTS = 'n1 16 n2': expected"):
        allocation(environment={"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "n1 16 n2"})


def test_grid_engine_gives_hosts_with_slots_and_queues(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n")
    assert pairs(allocation(environment={"PE_HOSTFILE": str(path)})) == [("n1", 4), ("n2", 2)]


def test_flux_prints_what_the_instance_has(tmp_path):
    flux = tmp_path / "flux"
    flux.write_text(
        '#!/bin/sh\necho \'{"version": 1, "execution": {"nodelist": ["n[1-3]"], "R_lite": '
        '[{"rank": "0-1", "children": {"core": "0-3"}}, {"rank": "2", "children": {"core": "0,5"}}]}}\'\n'
    )
    flux.chmod(0o755)
    inside = {"FLUX_URI": "local:///x", "PATH": f"{tmp_path}:/bin:/usr/bin"}
    assert pairs(allocation(environment=inside)) == [("n1", 4), ("n2", 4), ("n3", 2)]
    flux.write_text("#!/bin/sh\necho nothing\n")
    with pytest.raises(InputError, match="`flux resource R` cannot be read"):
        allocation(environment=inside)


IN_LSF = {"LSB_JOBID": "1"}


def test_lsf_gives_a_small_job_its_hosts_by_name_as_well():
    assert pairs(allocation(environment=IN_LSF | {"LSB_HOSTS": "n1 n1 n2"})) == [("n1", 2), ("n2", 1)]
    both = IN_LSF | {"LSB_HOSTS": "n1 n1 n2", "LSB_MCPU_HOSTS": "n1 16 n2 8"}
    assert pairs(allocation(environment=both)) == [("n1", 16), ("n2", 8)]


def test_the_launch_node_of_lsf_takes_no_rank():
    lsf = IN_LSF | {"LSB_MCPU_HOSTS": "batch1 1 n1 42 n2 42"}
    assert pairs(allocation(environment=lsf)) == [("batch1", 1), ("n1", 42), ("n2", 42)]
    assert pairs(allocation(environment=lsf | {"CSM_ALLOCATION_ID": "7"})) == [("n1", 42), ("n2", 42)]
    alone = IN_LSF | {"LSB_MCPU_HOSTS": "n1 1", "CSM_ALLOCATION_ID": "7"}
    assert pairs(allocation(environment=alone)) == [("n1", 1)]


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        (
            {"SLURM_JOB_ID": "7"},
            "SLURM_JOB_ID is set, but SLURM_JOB_NODELIST or SLURM_JOB_NODELIST_HET_GROUP_0 is not: start fem",
        ),
        ({"SLURM_JOB_NODELIST": "n[1-3]"}, "SLURM_JOB_NODELIST is set, but SLURM_JOB_ID is not: "),
        (IN_LSF, "LSB_JOBID is set, but LSB_MCPU_HOSTS or LSB_DJOB_HOSTFILE or LSB_HOSTS is not: "),
        ({"LSB_HOSTS": "n1 n2"}, "LSB_HOSTS is set, but LSB_JOBID is not: "),
        ({"PBS_JOBID": "7.head"}, "PBS_JOBID is set, but PBS_NODEFILE is not: "),
        (
            {"FLUX_URI": "local:///x", "PATH": "/no/such"},
            "FLUX_URI is set, but no flux program is on PATH to ask for the hosts of the Flux job: ",
        ),
        ({"PBS_NODEFILE": "/no/such"}, "PBS_NODEFILE names a file that cannot be used: cannot read /no/such"),
    ],
)
def test_what_only_half_describes_a_job_is_refused_unless_a_host_file_does(tmp_path, environment, line):
    with pytest.raises(InputError) as error:
        allocation(environment=environment)
    assert str(error.value).startswith(line)
    if "PBS_NODEFILE" not in environment:
        (tmp_path / "hosts").write_text("a slots=2\n")
        assert pairs(allocation(str(tmp_path / "hosts"), environment)) == [("a", 2)]


def test_two_batch_systems_must_agree_on_the_hosts_and_the_first_gives_the_slots(tmp_path):
    nodes, hosts = tmp_path / "nodes", tmp_path / "hosts"
    both = SLURM | {"SLURM_TASKS_PER_NODE": "2(x3)", "PBS_NODEFILE": str(nodes)}
    nodes.write_text("n3.cluster\nn1\nn2\n")
    assert pairs(allocation(environment=both)) == [("n1", 2), ("n2", 2), ("n3", 2)]
    nodes.write_text("n1\nn9\n")
    with pytest.raises(InputError) as error:
        allocation(environment=both)
    assert str(error.value) == (
        "two batch systems with different hosts: 6 slots, Slurm job 7: n1:2, n2:2, n3:2; 2 slots, "
        "PBS_NODEFILE: n1:1, n9:1; unset the variables of one of them, or give --hostfile"
    )
    hosts.write_text("n9\nn1\n")
    assert pairs(allocation(str(hosts), both)) == [("n9", 1), ("n1", 1)]
    hosts.write_text("n9\nn3\n")
    with pytest.raises(InputError, match=r"host n9 is not in this job's allocation \(6 slots, Slurm job 7"):
        allocation(str(hosts), both)


def test_a_host_file_comes_before_what_the_batch_system_says(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("a slots=2\nb:3\nc\nc\nn[1-2] slots=4\n")
    expected = [("a", 2), ("b", 3), ("c", 2), ("n1", 4), ("n2", 4)]
    assert pairs(allocation(str(path), {})) == expected
    wider = SLURM | {"SLURM_JOB_NODELIST": "a,b,c,n[1-3]"}
    assert pairs(allocation(str(path), wider)) == expected
    assert pairs(allocation(environment=wider | {"FEMBENCH_HOSTFILE": str(path)})) == expected
    path.write_text("rank 0=a slot=0\nrank 2=a slot=1\nrank 1=b slot=0\n")
    assert pairs(allocation(str(path), {})) == [("a", 2), ("b", 1)]


def test_without_any_of_them_it_is_this_machine():
    found = allocation(environment={})
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


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (SLURM | {"SLURM_HET_SIZE": "99999999"}, "SLURM_HET_SIZE = '99999999': expected the number"),
        (SLURM | {"SLURM_HET_SIZE": "0"}, "SLURM_HET_SIZE = '0': expected the number"),
        (SLURM | {"SLURM_TASKS_PER_NODE": "0(x3)"}, "Slurm job 7: 0 slots on n1; expected 1 to"),
        (SLURM | {"SLURM_TASKS_PER_NODE": "2(x2),0"}, "Slurm job 7: 0 slots on n3; expected 1 to"),
        (SLURM | {"SLURM_JOB_NODELIST": "n1 n2,;rm"}, "Slurm job 7: host 'n1 n2'; expected a host name"),
        ({"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "  "}, "LSB_MCPU_HOSTS: no hosts in it"),
        ({"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "--help 2"}, "LSB_MCPU_HOSTS: host '--help'; expected"),
    ],
)
def test_hosts_that_no_launcher_can_take_are_refused_with_their_origin(environment, message):
    with pytest.raises(InputError, match=re.escape(message)):
        allocation(environment=environment)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n1,n2\n", "host 'n1,n2'; expected a host name or an address"),
        ("n1:2:3\n", "host 'n1:2:3'; expected a host name or an address"),
        ("\ufeffn1 slots=2\n", "expected a host name or an address"),
        ("n1 slots=999999999\n", "999999999 slots on n1; expected 1 to 100000"),
        ("n1 slots=1\nrank 1=n1 slot=0\n", "line 2: cannot read 'rank 1=n1 slot=0'"),
    ],
)
def test_host_files_with_other_things_than_hosts_are_refused(tmp_path, text, message):
    path = tmp_path / "hosts"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        allocation(str(path), {})


def test_addresses_are_hosts(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 slots=2\nfe80::1 slots=1\nuser@n1\n", encoding="utf-8")
    assert pairs(allocation(str(path), {})) == [("10.0.0.1", 2), ("fe80::1", 1), ("user@n1", 1)]


@pytest.mark.parametrize("size", ["foo", "400000000"])
def test_the_size_of_a_heterogeneous_job_counts_inside_a_job_only(size):
    assert allocation(environment={"SLURM_HET_SIZE": size}).source == "this machine"
    with pytest.raises(InputError, match="expected the number of components"):
        allocation(environment={"SLURM_HET_SIZE": size, "SLURM_JOB_ID": "7"})
