"""What others used of a machine's processors, from counters that are planted."""

import os

import pytest
from msgspec.structs import replace

from fembench.bench import describe
from fembench.host import host, others, provenance
from fembench.host.others import UNKNOWN, CpuTimes, others_meter, share
from fembench.host.provenance import distinct_names, host_names
from fembench.ranks.comm import alone
from fembench.records.record import EnergyFacts

IDLE = (0.0,) * 8


def after(seconds, own, *, cpus=2, idle=0.0, wait=0.0, irq=0.0, softirq=0.0, steal=0.0):
    """The share of others after `seconds` on `cpus` CPUs of which the job used `own`."""
    rest = seconds * cpus - idle - wait - irq - softirq - steal
    spent = (rest, 0.0, 0.0, idle, wait, irq, softirq, steal)
    return share(CpuTimes(5.0, IDLE, dict.fromkeys(own, 0.0)), CpuTimes(5.0 + seconds, spent, own), cpus)


THREE = {"rank 0": 4.5, "rank 1": 4.0, "process 7": 0.5}


@pytest.mark.parametrize(
    ("seconds", "own", "rest", "percent"),
    [
        # 20 s of two CPUs: 5 idle, 2 of interrupts, 1 waited, 1 stolen: 11 busy, 9 of them the job's
        (10.0, THREE, {"idle": 5, "wait": 1, "irq": 1, "softirq": 1, "steal": 1}, 10.0),
        (10.0, {"rank 0": 10.0, "rank 1": 5.0}, {}, 25.0),  # a busy loop on one of two cores
        *((10.0, {f"rank {r}": 20.0 / n for r in range(n)}, {}, 0.0) for n in (2, 8, 128)),
        (1.0, {"rank 0": 1.01, "rank 1": 1.01}, {}, 0.0),  # not below nothing
        (0.01, {"rank 0": 0.01}, {}, 50.0),
    ],
)
def test_what_is_neither_idle_nor_the_jobs_is_others(seconds, own, rest, percent):
    found = after(seconds, own, **rest)
    assert found == pytest.approx((percent, min(2.0 / seconds, 100.0)), abs=1e-9)  # 2 % of a second


def test_counters_that_do_not_run_tell_nothing():
    assert share(CpuTimes(0.0, IDLE, {}), CpuTimes(10.0, IDLE, {}), 2) == UNKNOWN
    assert share(CpuTimes(0.0, (), {}), CpuTimes(10.0, (), {}), 2) == UNKNOWN


@pytest.mark.parametrize(
    ("before", "later", "percent"),
    [
        ({7: 3.0}, {7: 3.5, 8: 0.5}, 5.0),  # a process that went on, and one that began: 1 s of 20
        ({7: 3.0, 9: 1.0}, {7: 3.0}, 0.0),  # none of the 2 s that no process took: interrupts
        ({7: 3.0}, {7: 9.0}, 10.0),  # on other CPUs, too: no more than these have left
        (None, {7: 3.0}, 10.0),
        ({7: 3.0}, None, 10.0),
    ],
)
def test_what_no_process_took_is_of_no_other(before, later, percent):
    spent = (20.0, *IDLE[1:])
    found = share(
        CpuTimes(0.0, IDLE, {"rank 0": 0.0}, before), CpuTimes(10.0, spent, {"rank 0": 18.0}, later), 2
    )
    assert found.others_percent == pytest.approx(percent)


@pytest.mark.parametrize(
    ("namespace", "first", "percent"),
    [
        (others.FIRST_NAMESPACE, "1 (init) S " + "0 " * 15, 15.0),
        (others.FIRST_NAMESPACE, "", 90.0),  # processes of others are hidden
        ("pid:[4026532000]", "1 (bash) S " + "0 " * 15, 90.0),  # in a container
    ],
)
def test_the_meter_asks_each_process_that_is_not_the_jobs(
    tmp_path, files, monkeypatch, namespace, first, percent
):
    """Of 10 s, 1 is idle; process 55 takes 1 s, and a child of it that ended 0.5 s."""
    monkeypatch.setattr(host, "affinity", lambda: (0,))
    monkeypatch.setattr(others.time, "process_time", lambda: 0.0)
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to(namespace)
    mine, now = {os.getpid(): 500, os.getppid(): 0}, [0.0]

    def told(busy, idle, more):
        ticks = {**mine, 55: 100 + more}
        files(
            {"proc/stat": f"cpu0 {busy} 0 0 {idle} 0 0 0 0 0 0\n", "proc/1/stat": first}
            | {
                f"proc/{pid}/stat": f"{pid} (a) S {'0 ' * 10}{n} 0 {more // 2} 0 0\n"
                for pid, n in ticks.items()
            }
        )

    told(0, 0, 0)
    meter = others_meter(alone(), tmp_path, lambda: now[0])
    now[0] = 10.0
    mine[os.getpid()] = 900
    told(900, 100, 100)
    assert meter().others_percent == pytest.approx(percent)


def test_the_meter_reads_the_cpus_of_the_ranks_their_siblings_and_the_daemon(tmp_path, files, monkeypatch):
    """CPU 1, and CPU 3 of the same core, for 10 s: 4 s idle, 16 s busy, of which the daemon had 6."""
    monkeypatch.setattr(host, "affinity", lambda: (1,))

    def stat(busy, idle):
        cpus = [f"cpu{i} {busy} 0 0 {idle} 0 0 0 0 0 0\n" for i in (1, 3)]
        files({"proc/stat": f"cpu 9 9 9 9 9 9 9 9 9 9\ncpu0 {99 * busy} 0 0 0 0 0 0 0 0 0\n" + "".join(cpus)})

    def daemon(ticks):
        files({f"proc/{os.getppid()}/stat": f"{os.getppid()} (a (b) c) S {'0 ' * 10}{ticks} 0 0 0\n"})

    files({"sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1,3\n"})
    now = [10.0]
    stat(100, 100)
    daemon(50)
    told = others_meter(alone(), tmp_path, lambda: now[0])
    now[0] = 20.0
    stat(900, 300)
    daemon(650)
    # of 20 s, 10 are others': this process had next to none
    assert told() == pytest.approx((50.0, 0.2), abs=2.0)


@pytest.mark.parametrize("version", [1, 2])
def test_the_tenants_of_a_lab_slow_its_hosts_on_purpose_and_are_no_others(files, version):
    line, mount = [("3:cpuset:", "sys/fs/cgroup/cpuset"), ("0::", "sys/fs/cgroup")][version - 1]
    tree = {
        f"{mount}/fembench.pair/{group}/cgroup.procs": text
        for group, text in [("n1", "5\n"), ("tenant.n1", "77\n78\n"), ("tenant.n2", "79\n")]
    }
    root = files(tree | {"proc/self/cgroup": f"{line}/fembench.pair/n1\n"})
    assert sorted(others._helpers(root)) == sorted([os.getppid(), 77, 78, 79])


def test_hosts_of_one_name_are_told_apart_by_their_machines():
    keys = [("n", "a"), ("n", "b"), ("n", "a"), ("n-2", "c"), ("n", "d"), ("m", "a")]
    assert distinct_names(keys) == ["n", "n-3", "n", "n-2", "n-4", "m"]


def described(comm, **facts):
    """The environment that the ranks describe; `facts` of their host."""
    made = replace(host.host_facts(), **facts)
    taken = host.taken_meter()
    return describe.describe(comm, made, taken, launcher="", command="", synthetic="", dilate=1.0)


@pytest.mark.mpi
def test_two_hosts_of_one_node_name_are_two(comm, monkeypatch):
    monkeypatch.setattr(provenance, "host_key", lambda: ("localhost", f"boot {comm.rank % 2}"))
    names = ["localhost", "localhost-2"][: comm.size]
    assert host_names(comm)[:2] == names
    found = described(comm)
    if comm.rank == 0:
        assert [h.name for h in found.hosts] == names
        assert found.rank_host == tuple(rank % 2 for rank in range(comm.size))


@pytest.mark.mpi
@pytest.mark.parametrize("machines", [1, 2])
def test_hosts_have_one_number_per_machine_whatever_their_names(comm, monkeypatch, machines):
    """Every rank is on a host of its own; kernels alternate."""
    boot = f"boot {comm.rank % machines}"
    monkeypatch.setattr(provenance, "host_key", lambda: (f"n{comm.rank}", boot))
    monkeypatch.setattr(describe, "machine_key", lambda: boot)
    found = described(comm, machine=-1)
    if comm.rank == 0:
        assert [h.name for h in found.hosts] == [f"n{rank}" for rank in range(comm.size)]
        assert [h.machine for h in found.hosts] == [rank % machines for rank in range(comm.size)]


@pytest.mark.mpi
def test_ranks_bound_to_one_core_are_oversubscribed(comm, monkeypatch):
    for bound, crowded in [(0, comm.size > 1), (comm.rank, False)]:
        monkeypatch.setattr(describe, "affinity", lambda bound=bound: (10_000 + bound,))
        found = described(comm, cores=64)
        assert comm.rank or found.oversubscribed is crowded
        cores = tuple(comm.allgather((10_000 + bound,)))
        assert comm.rank or (found.cores, found.numa) == (cores, (-1,) * comm.size)


@pytest.mark.mpi
def test_the_energy_of_a_host_is_what_its_first_rank_says_whichever_rank_lost_most_time(comm, monkeypatch):
    lost = host.taken_meter()(1)._replace(steal_percent=float(comm.rank), throttled_percent=0.0)
    monkeypatch.setattr(host, "taken_meter", lambda: lambda ranks: lost)
    found = described(comm, energy=EnergyFacts(why=f"rank {comm.rank}"))
    if comm.rank == 0:
        (one,) = found.hosts
        assert (one.steal_percent, one.energy.why) == (comm.size - 1, "rank 0")
