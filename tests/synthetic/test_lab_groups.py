"""Control groups of labs in made-up trees of both versions; the real ones are in test_lab.py."""

import pytest

from fembench.base.errors import InputError
from fembench.synthetic import lab_groups
from fembench.synthetic.lab_cluster import LabCluster, LabHost

CLUSTER = LabCluster(
    name="pair",
    priority=True,
    quota=True,
    hosts=(LabHost(name="a", cpus=(0,)), LabHost(name="b", cpus=(1, 3), speed=0.25)),
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


def test_version_1_has_a_tree_for_each_controller(tmp_path):
    trees, base = machine(tmp_path, 1)
    assert [(t.mount, t.version, t.controllers) for t in trees] == [
        (base / "cpu", 1, ("cpu",)),
        (base / "cpuset", 1, ("cpuset",)),
    ]


def test_version_2_has_one_tree_for_both(tmp_path):
    trees, base = machine(tmp_path, 2)
    assert [(t.mount, t.version, t.controllers) for t in trees] == [(base, 2, ("cpu", "cpuset"))]


def test_no_tree_with_a_controller_is_an_error(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text("none /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n")
    with pytest.raises(InputError, match="no control groups with cpuset"):
        lab_groups.hierarchies(tmp_path)


def test_groups_of_version_1_hold_quota_and_cpus(tmp_path):
    trees, base = machine(tmp_path, 1)
    lab_groups.make(CLUSTER, trees, (0, 1, 2, 3))
    lab_groups.slow(CLUSTER, CLUSTER.hosts[1], trees)
    slow = base / "cpu/fembench.pair/b"
    assert (slow / "cpu.cfs_quota_us").read_text() == "2500"  # a quarter of two CPUs in 5000 microseconds
    assert (slow / "cpu.cfs_period_us").read_text() == "5000"
    assert not (base / "cpu/fembench.pair/a/cpu.cfs_quota_us").exists()
    assert (base / "cpuset/fembench.pair/b/cpuset.cpus").read_text() == "1,3"
    assert (base / "cpuset/fembench.pair/b/cpuset.mems").read_text() == "0"
    assert (base / "cpu/fembench.pair/cpu.shares").read_text() == "262144"


def test_groups_of_version_2_hold_quota_and_cpus(tmp_path):
    trees, base = machine(tmp_path, 2)
    lab_groups.make(CLUSTER, trees, (0, 1, 2, 3))
    lab_groups.slow(CLUSTER, CLUSTER.hosts[1], trees)
    top = base / "fembench.pair"
    assert (top / "cgroup.subtree_control").read_text() == "+cpu +cpuset"
    assert (top / "b/cpu.max").read_text() == "2500 5000"
    assert (top / "b/cpuset.cpus").read_text() == "1,3"
    assert (top / "head/cpuset.cpus").read_text() == "0,1,2,3"
    assert (top / "cpu.weight").read_text() == "10000"


def test_a_group_that_is_there_already_is_not_taken(tmp_path):
    trees, base = machine(tmp_path, 2)
    (base / "fembench.pair").mkdir()
    with pytest.raises(InputError, match=r"cannot make control group .*fembench\.pair"):
        lab_groups.make(CLUSTER, trees, (0, 1, 2, 3))


@pytest.mark.parametrize("cpus", [0.001, 0.13, 0.2, 0.25, 0.5, 0.99, 1.5, 7.75])
def test_quota_over_period_is_the_speed_and_no_less_than_the_kernel_takes(cpus):
    quota, period = lab_groups.quota_and_period(cpus)
    assert quota / period == pytest.approx(cpus, rel=1e-3)
    assert quota >= 1000
    assert 1000 <= period <= 1_000_000


def test_usable_cpus_are_those_of_the_tree(tmp_path):
    trees, _ = machine(tmp_path, 1)
    assert lab_groups.usable_cpus(trees) == (0, 1, 2, 3)
