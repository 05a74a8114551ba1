"""Host facts, from files of machines that are not this one."""

import os
import subprocess
import sys
import time

import pytest

from fembench.host import cgroup, host
from fembench.records.record import HostFacts

CPU = "sys/devices/system/cpu"


def test_the_numa_node_of_cpus_is_known_unless_they_belong_to_several(files):
    nodes = "sys/devices/system/node"
    root = files({f"{nodes}/node0/cpulist": "0-1,4-5\n", f"{nodes}/node1/cpulist": "2-3\n"})
    files({f"{nodes}/node2/cpulist": "\n"})  # memory without CPUs
    assert host.numa_nodes(root) == {0: (0, 1, 4, 5), 1: (2, 3)}
    assert [host.numa_node(cpus, root) for cpus in ((1, 5), (2,), (1, 2), (9,))] == [0, 1, -1, -1]


def test_a_core_is_named_by_its_first_cpu():
    assert host.first_cpus({"2,34", "0-1", "8"}) == (0, 2, 8)


def cache(index, kind, level, size):
    """The files of a cache."""
    folder = f"{CPU}/cpu0/cache/index{index}"
    return {f"{folder}/type": f"{kind}\n", f"{folder}/level": f"{level}\n", f"{folder}/size": f"{size}\n"}


def test_a_two_socket_machine_is_read_from_its_files(files):
    root = files(
        {
            "proc/cpuinfo": "model name\t: Xeon 8000 @ 2 GHz\nflags\t\t: fpu constant_tsc nonstop_tsc\n",
            "proc/meminfo": "MemTotal:       1000 kB\nMemFree: 10 kB\n",
            f"{CPU}/online": "0-3\n",
            **{f"{CPU}/cpu{i}/topology/physical_package_id": f"{i // 2}\n" for i in range(4)},
            **{f"{CPU}/cpu{i}/cpufreq/scaling_governor": "performance\n" for i in range(4)},
            f"{CPU}/cpu0/topology/thread_siblings_list": "0,2\n",
            **cache(0, "Data", 1, "48K"),
            **cache(1, "Instruction", 1, "32K"),
            **cache(3, "Unified", 3, "32M"),
            "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        }
    )
    facts = host.host_facts(root)
    assert facts.cpu_model == "Xeon 8000 @ 2 GHz"
    assert (facts.cores, facts.sockets, facts.memory_bytes) == (4, 2, 1000 * 1024)
    assert facts.caches == {"L1d": 48 * 1024, "L3": 32 * 1024**2}
    assert (facts.governor, facts.huge_pages, facts.clocksource) == ("performance", "always", "tsc")
    assert facts.tsc_flags == ("constant_tsc", "nonstop_tsc")
    assert host.threads_per_core(root) == 2


def test_a_machine_without_proc_and_sys_has_facts_too(tmp_path):
    facts = host.host_facts(tmp_path)
    assert isinstance(facts, HostFacts)
    assert facts.cores == os.cpu_count()
    assert (facts.governor, facts.huge_pages, facts.clocksource) == ("unknown",) * 3
    assert (facts.caches, facts.tsc_flags, facts.sockets) == ({}, (), 1)
    assert facts.memory_bytes > 0
    assert host.peak_memory(tmp_path) > 0
    assert host.taken_meter(tmp_path)(1) == (0.0, 0.0)
    assert (cgroup.cpu_quota(tmp_path), cgroup.allowed_cpus(tmp_path)) == (None, None)
    assert (cgroup.memory_limit(tmp_path), cgroup.throttled_seconds(tmp_path)) == (None, 0)


def test_an_arm_processor_is_named_by_its_numbers(files):
    root = files({"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"})
    assert host.cpu_model(root).endswith("implementer 0x41 part 0xd0c")


def test_mixed_governors_are_all_named(files):
    for cpu, name in enumerate(("powersave", "performance")):
        root = files({f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": name})
    assert host.governor(root) == "performance, powersave"


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3", (0, 1, 2, 3)), ("0,2-3,8\n", (0, 2, 3, 8)), ("5", (5,)), ("", ()), ("\n", ())]
)
def test_a_list_of_cpus_is_read(text, cpus):
    assert cgroup.cpu_set(text) == cpus


VERSION_2 = {
    "proc/self/cgroup": "0::/job/step\n",
    "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/job/step/cpu.max": "max 100000\n",
    "sys/fs/cgroup/job/step/cpuset.cpus.effective": "2-5\n",
    "sys/fs/cgroup/job/memory.max": "1048576\n",
    "sys/fs/cgroup/job/step/memory.max": "2097152\n",
    "sys/fs/cgroup/job/cpu.stat": "usage_usec 5\nthrottled_usec 2500000\n",
    "sys/fs/cgroup/job/step/cpu.stat": "throttled_usec 0\n",
}
VERSION_1 = {
    "proc/self/cgroup": "4:memory:/job/step\n3:cpuset:/job\n2:cpu,cpuacct:/job\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat": "nr_periods 3\nthrottled_time 2500000000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpuset/job/cpuset.effective_cpus": "2-5\n",
    "sys/fs/cgroup/memory/job/step/memory.limit_in_bytes": "2097152\n",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1048576\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
}


BESIDE = {name.replace("cgroup/", "cgroup/unified/"): text for name, text in VERSION_2.items()} | {
    "proc/self/cgroup": "2:net_cls:/\n0::/job/step\n",
    "sys/fs/cgroup/net_cls/job": "",
}


@pytest.mark.parametrize("tree", [VERSION_1, VERSION_2, BESIDE], ids=["version 1", "version 2", "beside it"])
def test_the_limits_of_a_control_group_are_the_tightest_of_its_line(files, tree):
    root = files(tree | {"proc/meminfo": "MemTotal: 99999 kB\n", f"{CPU}/online": "0-63\n"})
    assert cgroup.cpu_quota(root) == 1.5
    assert cgroup.tightest_quota(root)[1].endswith("job")
    assert (host.host_facts(root).cpu_quota, host.host_facts(root).quota_group[-3:]) == (1.5, "job")
    assert cgroup.allowed_cpus(root) == (2, 3, 4, 5)
    assert cgroup.memory_limit(root) == 1048576
    assert cgroup.throttled_seconds(root) == 2.5
    assert host.memory_bytes(root) == 1048576
    assert host.host_cores(root) == 1  # of four, one and a half may run: one whole


@pytest.mark.parametrize(
    ("quota", "most"),
    [(None, 4), ("350000 100000\n", 3), ("800000 100000\n", 4), ("25000 50000\n", 1)],
)
def test_cores_count_not_hardware_threads_and_no_more_than_a_quota_lets_run(files, monkeypatch, quota, most):
    """Eight CPUs, two to a core: CPU 0 shares its core with CPU 4."""
    pairs = {f"{CPU}/cpu{i}/topology/thread_siblings_list": f"{i % 4},{i % 4 + 4}\n" for i in range(8)}
    root = files({f"{CPU}/online": "0-7\n", **pairs})
    if quota:
        files({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota})
    monkeypatch.setattr(host, "affinity", lambda: (0, 1, 4, 5))
    assert host.usable_cores(root) == min(2, most)  # two cores, both threads of each
    monkeypatch.setattr(host, "affinity", lambda: tuple(range(8)))
    assert (host.usable_cores(root), host.host_cores(root)) == (most, most)
    assert host.physical_cores((0, 4, 7), root) == {"0,4", "3,7"}


def stat(stolen, idle):
    ours = [f"cpu{i} 100 0 0 {idle} 0 0 0 {stolen} 0 0" for i in host.affinity()]
    other = f"cpu{max(host.affinity()) + 1} 0 0 0 0 0 0 0 {stolen * 99} 0 0"
    return "\n".join(["cpu 1 1 1 1 1 1 1 1 0 0", *ours, other])


def test_steal_is_the_part_of_the_cpu_time_of_our_cpus_that_was_stolen(files):
    root = files({"proc/stat": stat(5, 1000)})
    taken = host.taken_meter(root)
    assert taken(1) == (0.0, 0.0)  # no time has passed
    files({"proc/stat": stat(35, 1070)})  # 30 stolen of 100 that passed
    assert taken(1) == pytest.approx((30.0, 0.0))


@pytest.mark.parametrize(
    ("held", "ranks", "percent"),
    [
        (2, 2, 25.0),  # of the time of two ranks, whatever CPUs this process is bound to
        (2, 1, 50.0),
        (8, 6, 50.0),  # six ranks share the four CPUs of the job
        (9, 2, 100.0),  # the group holds back other processes, too
    ],
)
def test_time_that_a_quota_took_is_part_of_that_of_all_ranks(files, monkeypatch, held, ranks, percent):
    monkeypatch.setattr(host, "affinity", lambda: (0,))
    group = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": "throttled_usec 0\n"}
    root = files(group | {f"{CPU}/online": "0-3\n"})
    now = [10.0]
    taken = host.taken_meter(root, lambda: now[0])
    now[0] = 14.0
    files({"sys/fs/cgroup/cpu.stat": f"throttled_usec {held * 1_000_000}\n"})
    assert taken(ranks) == pytest.approx((0.0, percent))


def test_the_meter_of_this_machine_answers_between_0_and_100():
    taken = host.taken_meter()
    time.sleep(0.05)
    assert all(0 <= percent <= 100 for percent in taken(1))
    assert host.host_cores() >= 1
    assert sys.platform != "linux" or set(host.affinity()) == os.sched_getaffinity(0)


def test_memory_that_was_held_shows_in_the_peak():
    # in a process of its own: this one may have held more, earlier
    code = "p = host.peak_memory; before = p(); block = bytearray(64 << 20); del block; print(p() - before)"
    command = [sys.executable, "-c", f"from fembench.host import host; {code}"]
    held = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert 32 << 20 < held < 128 << 20
