"""Control groups of labs in made-up trees, and commands of their networks; test_lab.py has real ones."""

import pytest

from fembench.base.errors import InputError
from fembench.records.quiet import LAB_GROUP
from fembench.synthetic import lab_groups
from fembench.synthetic.lab_cluster import LabCluster, LabHost
from fembench.synthetic.lab_groups import namespaces, up_commands

CLUSTER = LabCluster(
    name="pair",
    priority=True,
    quota=True,
    hosts=(LabHost(name="a", cpus=(0,)), LabHost(name="b", cpus=(1, 3), speed=0.25, rate="100mbit")),
)
MOUNTS = {
    1: "none /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\nnone /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n",
    2: "none /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
}


def machine(root, version):
    """A root of a file system with control groups of one version."""
    (root / "proc").mkdir()
    (root / "proc/mounts").write_text("/dev/sda / ext4 rw 0 0\n" + MOUNTS[version])
    base = root / "sys/fs/cgroup"
    for name in ("cpu", "cpuset") if version == 1 else (".",):
        (base / name).mkdir(parents=True, exist_ok=True)
    if version == 1:
        (base / "cpuset/cpuset.mems").write_text("0\n")
        (base / "cpuset/cpuset.cpus").write_text("0-3\n")
    else:
        (base / "cgroup.controllers").write_text("cpuset cpu io memory\n")
        (base / "cgroup.subtree_control").write_text("cpuset cpu\n")
    return lab_groups.hierarchies(root), base


@pytest.mark.parametrize(
    ("version", "trees"),
    [(1, [("cpu", ("cpu",)), ("cpuset", ("cpuset",))]), (2, [(".", ("cpu", "cpuset"))])],
)
def test_version_1_has_a_tree_for_each_controller_and_version_2_one_for_both(tmp_path, version, trees):
    found, base = machine(tmp_path, version)
    expected = [(base / mount, version, controllers) for mount, controllers in trees]
    assert [(t.mount, t.version, t.controllers) for t in found] == expected
    assert lab_groups.usable_cpus(found) == (0, 1, 2, 3) or version == 2


def test_no_tree_with_a_controller_is_an_error(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("none /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n")
    with pytest.raises(InputError, match="no control groups with cpuset"):
        lab_groups.hierarchies(tmp_path)


HELD = {  # {version: {file: text}} below the mount
    1: {
        "cpu/fembench.pair/b/cpu.cfs_quota_us": "2500",  # a quarter of two CPUs in 5000 microseconds
        "cpu/fembench.pair/b/cpu.cfs_period_us": "5000",
        "cpuset/fembench.pair/b/cpuset.cpus": "1,3",
        "cpuset/fembench.pair/b/cpuset.mems": "0",
        "cpu/fembench.pair/cpu.shares": "262144",
    },
    2: {
        "fembench.pair/cgroup.subtree_control": "+cpu +cpuset",
        "fembench.pair/b/cpu.max": "2500 5000",
        "fembench.pair/b/cpuset.cpus": "1,3",
        "fembench.pair/head/cpuset.cpus": "0,1,2,3",
        "fembench.pair/cpu.weight": "10000",
    },
}


@pytest.mark.parametrize("version", [1, 2])
def test_groups_hold_quota_and_cpus_and_are_not_taken_twice(tmp_path, version):
    trees, base = machine(tmp_path, version)
    lab_groups.make(CLUSTER, trees, (0, 1, 2, 3))
    lab_groups.slow(CLUSTER, CLUSTER.hosts[1], trees)
    assert {file: (base / file).read_text() for file in HELD[version]} == HELD[version]
    assert not (base / "cpu/fembench.pair/a/cpu.cfs_quota_us").exists()
    with pytest.raises(InputError, match=r"cannot make control group .*fembench\.pair"):
        lab_groups.make(CLUSTER, trees, (0, 1, 2, 3))


@pytest.mark.parametrize("cpus", [0.001, 0.13, 0.2, 0.25, 0.5, 0.99, 1.5, 7.75])
def test_quota_over_period_is_the_speed_and_no_less_than_the_kernel_takes(cpus):
    quota, period = lab_groups.quota_and_period(cpus)
    assert quota / period == pytest.approx(cpus, rel=1e-3)
    assert quota >= 1000
    assert 1000 <= period <= 1_000_000


def test_every_command_works_inside_a_namespace_of_the_lab():
    known = []
    for command in up_commands(CLUSTER):
        if command[:3] == ["ip", "netns", "add"]:
            known.append(command[3])
        else:
            assert command[1] == "-n"
            assert command[2] in known
    assert known == namespaces(CLUSTER) == [f"{LAB_GROUP}pair.{name}" for name in ("head", "a", "b")]


def test_a_limited_link_is_limited_at_both_ends_and_its_bucket_holds_one_packet():
    limits = [c for c in up_commands(CLUSTER) if c[0] == "tc"]
    ends = [(c[2].removeprefix(f"{LAB_GROUP}pair."), c[c.index("dev") + 1]) for c in limits]
    assert ends == [("b", "eth0"), ("head", "port1")]
    for command in limits:
        assert command[command.index("rate") + 1] == "100mbit"
        assert 1514 < int(command[command.index("burst") + 1]) < 2 * 1514


def test_names_of_interfaces_are_short_enough_for_the_kernel():
    many = LabCluster(hosts=tuple(LabHost(name=f"h{i}", cpus=(0,)) for i in range(200)))
    for command in up_commands(many):
        if "veth" in command:
            assert len(command[command.index("add") + 1]) <= 15
