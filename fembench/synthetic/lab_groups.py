"""The control groups of a lab: CPUs and time of host and tenant (Linux, v1, v2).

One group per host below one group per lab, in every hierarchy of cpu and cpuset. Only
groups whose names begin with the prefix of labs are touched.

The network of a lab, as commands: one namespace per host, joined by a bridge in the
head's namespace.

Nothing exists outside these namespaces: no interface, address or route of the machine
is touched, and no packet leaves. A link's rate is a token bucket at both of its ends;
the bucket is kept small (one packet, or 100 microseconds), or a message of CG would pass
at once out of a full one."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.host.cgroup import ROOT, cpu_set, read
from fembench.records.quiet import LAB_GROUP
from fembench.synthetic import lab_tenant
from fembench.synthetic.lab_cluster import HEAD, LabCluster, LabHost, bits_per_second

PERIOD = 5000  # microseconds; short compared with a timed phase
TENANT = "tenant."  # and a host's name: names of hosts have no dot
LEAST_QUOTA = 1000  # microseconds; the kernel accepts no less
NEEDED = ("cpu", "cpuset")
PATIENCE = 5.0  # seconds for processes to end
PRIORITY = {1: ("cpu.shares", "262144"), 2: ("cpu.weight", "10000")}  # the most that the kernel takes


class Hierarchy(NamedTuple):
    """A mounted tree of control groups."""

    mount: Path
    version: int
    controllers: tuple[str, ...]  # of those needed


def hierarchies(root: Path = ROOT) -> list[Hierarchy]:
    """The trees that hold cpu and cpuset, each once. Raises InputError if one has none."""
    found: dict[Path, Hierarchy] = {}
    missing = list(NEEDED)
    for line in read(root / "proc/mounts").splitlines():
        _, point, kind, options = line.split()[:4]
        mount = root / point.lstrip("/")
        if kind == "cgroup":
            have = [c for c in missing if c in options.split(",")]
        elif kind == "cgroup2":
            have = [c for c in missing if c in read(mount / "cgroup.controllers").split()]
        else:
            continue
        if have:
            found[mount] = Hierarchy(mount, 1 if kind == "cgroup" else 2, tuple(have))
            missing = [c for c in missing if c not in have]
    if missing:
        raise InputError(
            f"no control groups with {' and '.join(missing)} here; a lab needs them to set speeds"
        )
    return list(found.values())


def make(cluster: LabCluster, trees: Sequence[Hierarchy], usable: Sequence[int]) -> None:
    """Make and fill the groups of a lab. Raises InputError with the kernel's reason."""
    for tree in trees:
        top = tree.mount / f"{LAB_GROUP}{cluster.name}"
        _make(tree, top, usable)
        if tree.version == 2:
            _write(top / "cgroup.subtree_control", " ".join(f"+{c}" for c in tree.controllers))
        if cluster.priority and "cpu" in tree.controllers:
            file, most = PRIORITY[tree.version]
            _write(top / file, most)
        _make(tree, top / HEAD, usable)
        for host in cluster.hosts:
            _make(tree, top / host.name, host.cpus)
            if "cpuset" in tree.controllers:  # with those of its own tree alone: real-time needs no share
                _make(tree, top / f"{TENANT}{host.name}", host.cpus)


def slow(cluster: LabCluster, host: LabHost, trees: Sequence[Hierarchy]) -> None:
    """Give a host its speed from now on. Raises InputError with the kernel's reason."""
    tops = {tree: tree.mount / f"{LAB_GROUP}{cluster.name}" for tree in trees}
    groups = [top / f"{TENANT}{host.name}" for tree, top in tops.items() if "cpuset" in tree.controllers]
    for group in groups:
        _empty(group)
    held = host.speed < 1
    tenant = held and cluster.alone(host) and not cluster.quota and host.speed >= lab_tenant.LEAST
    if tenant and not all(lab_tenant.start(host.speed, cpu, groups) for cpu in host.cpus):
        tenant = False
        for group in groups:
            _empty(group)
    for tree, top in tops.items():
        if "cpu" in tree.controllers:
            _grant(tree, top / host.name, host.speed * len(host.cpus) if held and not tenant else 0.0)


def _make(tree: Hierarchy, folder: Path, cpus: Sequence[int]) -> None:
    if tree.version == 2:
        lacking = set(tree.controllers) - set(read(folder.parent / "cgroup.subtree_control").split())
        if lacking:
            _write(folder.parent / "cgroup.subtree_control", " ".join(f"+{c}" for c in sorted(lacking)))
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(f"cannot make control group {folder}: {error.strerror}") from error
    if "cpuset" in tree.controllers:
        if tree.version == 1:
            _write(folder / "cpuset.mems", read(folder.parent / "cpuset.mems"))
        _write(folder / "cpuset.cpus", ",".join(map(str, cpus)))


def _grant(tree: Hierarchy, folder: Path, cpus: float) -> None:
    """Set a quota of this many CPUs; 0: none."""
    quota, period = quota_and_period(cpus) if cpus else (0, PERIOD)
    if tree.version == 2:
        _write(folder / "cpu.max", f"{quota or 'max'} {period}")
        burst = folder / "cpu.max.burst"
    else:
        _write(folder / "cpu.cfs_quota_us", "-1")  # or the period could be too long for the quota before
        _write(folder / "cpu.cfs_period_us", str(period))
        _write(folder / "cpu.cfs_quota_us", str(quota or -1))
        burst = folder / "cpu.cfs_burst_us"
    if burst.exists() and quota:  # Linux 5.14 makes up for some lost time in the next period
        _write(burst, str(quota // 4))


def quota_and_period(cpus: float) -> tuple[int, int]:
    """Microseconds of CPU time in each period that make this many CPUs."""
    period = max(PERIOD, round(LEAST_QUOTA / cpus))
    return max(LEAST_QUOTA, round(cpus * period)), period


def groups_of(lab: str, trees: Sequence[Hierarchy]) -> list[Path]:
    """The groups of a lab that exist, inner ones first."""
    tops = [tree.mount / f"{LAB_GROUP}{lab}" for tree in trees]
    return [p for top in tops if top.is_dir() for p in (*sorted(f for f in top.iterdir() if f.is_dir()), top)]


def remove(lab: str, trees: Sequence[Hierarchy]) -> None:
    """End the processes of a lab and remove its groups, if there are any."""
    deadline = time.monotonic() + PATIENCE
    for folder in groups_of(lab, trees):
        while folder.is_dir():
            _kill(folder)
            with contextlib.suppress(OSError):
                folder.rmdir()
            if folder.is_dir() and time.monotonic() > deadline:
                raise InputError(f"control group {folder} cannot be removed: its processes do not end")
            if folder.is_dir():
                time.sleep(0.02)


def _empty(folder: Path) -> None:
    """End the processes of a group. Raises InputError if they do not end."""
    deadline = time.monotonic() + PATIENCE
    while processes(folder):
        _kill(folder)
        if time.monotonic() > deadline:
            raise InputError(f"control group {folder}: its processes do not end")
        time.sleep(0.002)


def _kill(folder: Path) -> None:
    for number in processes(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def processes(folder: Path) -> list[int]:
    """IDs of the processes in a group, without this one."""
    return [int(word) for word in read(folder / "cgroup.procs").split() if int(word) != os.getpid()]


def usable_cpus(trees: Sequence[Hierarchy]) -> tuple[int, ...]:
    """CPUs that groups under the root of the cpuset tree may have."""
    tree = next(t for t in trees if "cpuset" in t.controllers)
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
        text = read(tree.mount / name)
        if text:
            return cpu_set(text)
    return tuple(range(os.cpu_count() or 1))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise InputError(f"cannot write '{text}' to {path}: {error.strerror}") from error


PACKET = 1600  # bytes, with its headers
QUEUE = 4 << 20  # bytes that may wait for a link


def namespace(lab: str, host: str) -> str:
    """Name of a host's namespace; names of labs and hosts have no dot, so it is unique."""
    return f"{LAB_GROUP}{lab}.{host}"


def namespaces(cluster: LabCluster) -> list[str]:
    """All namespaces of a lab, the head's first."""
    return [namespace(cluster.name, name) for name in (HEAD, *(h.name for h in cluster.hosts))]


def up_commands(cluster: LabCluster) -> list[list[str]]:
    """Commands (of iproute2) that build the network."""
    head = namespace(cluster.name, HEAD)
    inside = ["ip", "-n", head]
    commands = [
        ["ip", "netns", "add", head],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "link", "add", "bridge", "type", "bridge"],
        [*inside, "addr", "add", cluster.address(len(cluster.hosts)), "dev", "bridge"],
        [*inside, "link", "set", "bridge", "up"],
    ]
    for index, host in enumerate(cluster.hosts):
        commands += _host_commands(cluster, index, host)
    return commands


def _host_commands(cluster: LabCluster, index: int, host: LabHost) -> list[list[str]]:
    here = namespace(cluster.name, host.name)
    head = namespace(cluster.name, HEAD)
    port = f"port{index}"
    commands = [
        ["ip", "netns", "add", here],
        ["ip", "-n", here, "link", "set", "lo", "up"],
        ["ip", "-n", head, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", here],
        ["ip", "-n", head, "link", "set", port, "master", "bridge", "up"],
        ["ip", "-n", here, "addr", "add", cluster.address(index), "dev", "eth0"],
        ["ip", "-n", here, "link", "set", "eth0", "up"],
    ]
    if host.rate:
        commands += [_limit(here, "eth0", host.rate), _limit(head, port, host.rate)]
    return commands


def _limit(where: str, device: str, rate: str) -> list[str]:
    burst = max(PACKET, round(bits_per_second(rate) / 8 * 100e-6))
    bucket = ["rate", rate, "burst", str(burst), "limit", str(QUEUE)]
    return ["tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", *bucket]
