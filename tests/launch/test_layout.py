"""Which hosts take the ranks of a case."""

import re

import pytest

from fembench.base.errors import InputError
from fembench.host.host import usable_cores
from fembench.launch import case_job
from fembench.launch.allocation import HostsError, allocation, hosts_for, in_words, layout
from fembench.launch.hosts import Allocation, HostSlots, expand_hosts, folded
from fembench.records.case import Case, CasePlacement

JOB = Allocation("Slurm job 7", (HostSlots("n1", 2), HostSlots("n2", 2), HostSlots("n3", 1)), batch=True)
pytestmark = pytest.mark.usefixtures("no_batch_system")


def placed(job=JOB, **placement):
    return [(host.name, host.slots) for host in layout(CasePlacement(**placement), job)]


@pytest.mark.parametrize(
    "text", ["n[1-3,07],login", "n[08-11]", "r0c[1,3]x,b", "n9,n10,m1,n11", "a", "n[8-10].cl,n9", "n1,n1x"]
)
def test_a_folded_list_of_hosts_is_the_same_list(text):
    names = expand_hosts(text, "LIST")
    assert expand_hosts(folded(names), "LIST") == names
    assert folded(["n1", "n2", "n3"]) == "n[1-3]"


@pytest.mark.parametrize(
    ("placement", "map_by", "found"),
    [
        ({"ranks": 3}, "", [("n1", 2), ("n2", 1)]),
        ({"ranks": 5}, "", [("n1", 2), ("n2", 2), ("n3", 1)]),
        ({"ranks": 3, "hosts": "n2,n1"}, "", [("n2", 2), ("n1", 1)]),  # in the order of the names
        ({"ranks": 1, "hosts": "n3"}, "", [("n3", 1)]),
        ({"ranks": 2, "hosts": "n[1-3]", "per_node": 1}, "", [("n1", 1), ("n2", 1)]),
        ({"ranks": 3}, "host", [("n1", 1), ("n2", 1), ("n3", 1)]),  # in turn
        ({"ranks": 3, "hosts": "n1,n2"}, "host", [("n1", 1), ("n2", 1), ("n1", 1)]),
    ],
)
def test_hosts_are_filled_in_their_order_or_take_ranks_in_turn(placement, map_by, found, monkeypatch):
    monkeypatch.setenv("FEMBENCH_MAP_BY", map_by)
    assert placed(**placement) == found


def test_a_rank_takes_as_many_slots_as_it_has_threads():
    slots = HostSlots("n1", 8), HostSlots("n2", 5), HostSlots("n3", 3)
    wide = Allocation("PBS_NODEFILE", slots, batch=True)
    assert placed(wide, ranks=3, threads=4) == [("n1", 2), ("n2", 1)]
    assert placed(wide, ranks=2, threads=4, per_node=1) == [("n1", 1), ("n2", 1)]
    with pytest.raises(HostsError, match=r"ranks = 4: expected at most 3 \(n1:2, n2:1\)"):
        placed(wide, ranks=4, threads=4)
    with pytest.raises(HostsError, match="threads = 9: no host has so many cores for a rank"):
        placed(wide, ranks=1, threads=9)


def test_a_task_of_slurm_may_have_several_cores():
    variables = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)"}
    job = allocation("", {**variables, "SLURM_CPUS_PER_TASK": "8"})
    assert placed(job, ranks=4, threads=8) == [("n1", 2), ("n2", 2)]
    assert placed(job, ranks=8, threads=4) == [("n1", 4), ("n2", 4)]
    assert placed(job, ranks=3) == [("n1", 2), ("n2", 1)]


def test_more_threads_than_this_machine_has_cores_are_refused():
    with pytest.raises(HostsError, match=f"threads = {usable_cores() + 1}: no host has so many cores"):
        hosts_for(CasePlacement(threads=usable_cores() + 1), "")
    assert hosts_for(CasePlacement(threads=usable_cores()), "") == []


def test_a_name_may_lack_the_domain():
    job = Allocation("PBS_NODEFILE", (HostSlots("n1.cluster.org", 2), HostSlots("n2.cluster.org", 2)), True)
    assert placed(job, ranks=2, hosts="n2") == [("n2.cluster.org", 2)]
    with pytest.raises(HostsError, match=r"no host n2\.other\.org"):
        placed(job, ranks=2, hosts="n2.other.org")


def test_a_host_file_that_orders_ranks_is_followed_unless_hosts_are_named(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("a\nb\na\nb\n")
    job = allocation(str(path), {})
    assert placed(job, ranks=3) == [("a", 1), ("b", 1), ("a", 1)]
    assert placed(job, ranks=3, hosts="a,b") == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("placement", "line"),
    [
        ({"ranks": 6}, "ranks = 6: expected at most 5 (5 slots, Slurm job 7: n1:2, n2:2, n3:1)"),
        ({"ranks": 3, "hosts": "n1"}, "ranks = 3: expected at most 2 (n1:2)"),
        ({"ranks": 1, "hosts": "n9"}, "hosts = 'n9': no host n9 in the job"),
        ({"ranks": 1, "hosts": "n1,n1"}, "hosts = 'n1,n1': n1 is there twice"),
        ({"ranks": 1, "per_node": 2}, "per_node = 2: n3 has 1 slot; name other hosts"),
        ({"ranks": 4, "per_node": 1}, "ranks = 4: expected at most 3 (n1:1, n2:1, n3:1)"),
    ],
)
def test_more_than_there_is_is_refused_in_a_line_that_says_what_there_is(placement, line):
    with pytest.raises(HostsError, match=f"^{re.escape(line)}"):
        placed(**placement)


def test_this_machine_alone_takes_more_ranks_than_it_has_cores():
    job = allocation("", {})
    (host,) = job.hosts
    assert placed(job, ranks=usable_cores() + 1) == [(host.name, usable_cores() + 1)]
    with pytest.raises(HostsError, match="ranks = 2: expected at most 1"):
        placed(job, ranks=2, per_node=1)


def test_many_hosts_are_counted_not_listed():
    assert in_words([HostSlots(f"n{k}", 4) for k in range(1, 51)]) == "n1 … n50: 50 hosts, 200 ranks"


def launched(monkeypatch, tmp_path, case, hostfile=""):
    """The hosts that the launcher gets for a case."""
    found = []

    def job_line(ranks, hostfile, options, hosts, threads):
        found.append([(host.name, host.slots) for host in hosts])
        raise InputError("enough")

    monkeypatch.setattr(case_job, "job_line", job_line)
    with pytest.raises(InputError, match="enough"):
        case_job.launch(case, id="x", command="", scratch=tmp_path, hostfile=hostfile)
    return found[0]


@pytest.mark.row("004:F11")
def test_a_run_gets_the_hosts_of_its_case(slurm, monkeypatch, tmp_path):
    slurm()
    assert launched(monkeypatch, tmp_path, Case.of(ranks=2)) == []  # the launcher fills those of the job
    assert launched(monkeypatch, tmp_path, Case.of(ranks=2, hosts="n3")) == [("n3", 2)]
    assert launched(monkeypatch, tmp_path, Case.of(ranks=2, per_node=1)) == [("n1", 1), ("n2", 1)]


def test_a_run_gets_the_hosts_of_its_case_from_a_host_file(monkeypatch, tmp_path):
    path = tmp_path / "hosts"
    path.write_text("a slots=2\nb slots=2\n")
    assert launched(monkeypatch, tmp_path, Case.of(ranks=1, hosts="b"), str(path)) == [("b", 1)]
    monkeypatch.setenv("FEMBENCH_HOSTFILE", str(path))
    assert launched(monkeypatch, tmp_path, Case.of(ranks=1, hosts="b")) == [("b", 1)]


def test_hosts_and_a_rankfile_are_refused(tmp_path):
    path = tmp_path / "ranks"
    path.write_text("rank 0=a slot=0\n")
    with pytest.raises(InputError, match=r"ranks is a rankfile, which places every rank"):
        hosts_for(CasePlacement(hosts="a"), str(path))
    assert hosts_for(CasePlacement(), str(path)) == []
