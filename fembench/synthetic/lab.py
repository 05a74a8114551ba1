"""A lab: separate hosts on one Linux machine, to measure unequal hosts without any.

Each host is a network namespace, a control group (CPUs, CPU time), a host name and an
/etc/hosts. MPI starts its daemons on them through an agent in place of ssh and talks
TCP. Everything carries the prefix of labs, and a state file lists it before it is made,
so that `down` finds all of it also after a kill.

A slow host gets its fraction of each millisecond of its CPUs; a tenant gets the rest
(lab_tenant.py). So it is slow regardless of how ranks wait. A kernel quota replaces the
tenant if the host shares its CPUs with another one, or if the cluster file asks for it.
The kernel grants quotas in periods of 5 ms and checks them every 4 ms. Therefore work
shorter than about 20 ms is not slowed evenly, and the result depends on how ranks wait.
If they sleep (Open MPI 5), they save quota: total times are right, but a host that
waits a lot looks faster than it is. If they spin, they use up their quota: times per
unit of work are right, but total times are too long.

    /run/fembench-labs/NAME/state.json   what there is       …/hosts   MPI host file
    /run/fembench-labs/NAME/agent        AGENT HOST COMMAND: runs COMMAND on HOST, as ssh does
    /run/fembench-labs/NAME/names        stands for /etc/hosts there
"""

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from fembench.base.config import read_json, write_json
from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.records.quiet import LAB_GROUP
from fembench.synthetic import lab_groups
from fembench.synthetic.lab_cluster import HEAD, LabCluster, check, check_name, read_cluster
from fembench.synthetic.lab_groups import namespaces, up_commands

FOLDER = Path("/run/fembench-labs")
NAMESPACES = Path("/run/netns")
NAP_NS = 20_000
TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
PLACEMENT = (  # settings of Open MPI that would misplace ranks
    "PRTE_MCA_rmaps_default_mapping_policy",
    "OMPI_MCA_rmaps_base_oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy",
    "OMPI_MCA_hwloc_base_binding_policy",
)
# [-OPTION ...] HOST COMMAND, as a launcher gives them to ssh; names are set in name spaces of their own
AGENT = """#!/bin/sh
while case $1 in -*) ;; *) false ;; esac; do shift; done
host=$1; shift
for tree in {trees}; do echo $$ >"$tree/$host/cgroup.procs" || exit 255; done
exec nsenter --net={net}"$host" unshare --uts --mount sh -c \\
    'mount --bind "$1" /etc/hosts && echo "$0" >/proc/sys/kernel/hostname && exec sh -c "$2"' \\
    "$host" {names} "$*"
"""


class LabState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a lab, as in its state file."""

    cluster: LabCluster
    complete: bool  # False while it is being built, or if building was interrupted
    namespaces: tuple[str, ...]
    groups: tuple[str, ...]


def up(path: Path | str, folder: Path = FOLDER) -> LabState:
    """Build the lab of a TOML file. Raises InputError, after removing an incomplete one."""
    require_root()
    trees = lab_groups.hierarchies()
    usable = lab_groups.usable_cpus(trees)
    cluster = read_cluster(path, usable)
    home = folder / cluster.name
    leftovers = _namespaces_of(cluster.name) or lab_groups.groups_of(cluster.name, trees)
    if leftovers or (home / "state.json").exists():
        raise InputError(
            f"lab {cluster.name} exists already; remove it with fembench lab down {cluster.name}"
        )
    state = LabState(
        cluster=cluster,
        complete=False,
        namespaces=tuple(namespaces(cluster)),
        groups=tuple(str(tree.mount / f"{LAB_GROUP}{cluster.name}") for tree in trees),
    )
    _save(state, home)
    try:
        lab_groups.make(cluster, trees, usable)
        for command in up_commands(cluster):
            _do(command)
        for host in cluster.hosts:
            if host.speed < 1:
                lab_groups.slow(cluster, host, trees)
        _write_files(state, home)
    except BaseException:
        down(cluster.name, folder)
        raise
    state = msgspec.structs.replace(state, complete=True)
    _save(state, home)
    return state


def down(name: str, folder: Path = FOLDER) -> list[str]:
    """End all processes of a lab and remove it; returns the names of what was removed."""
    require_root()
    check_name(name, "lab")
    trees = lab_groups.hierarchies()
    gone = [str(group) for group in lab_groups.groups_of(name, trees)]
    lab_groups.remove(name, trees)
    for space in _namespaces_of(name):
        _do(["ip", "netns", "del", space])  # takes the interfaces inside with it
        gone.append(space)
    home = folder / name
    if home.is_dir():
        shutil.rmtree(home)
        gone.append(str(home))
    with contextlib.suppress(OSError):
        folder.rmdir()
    return gone


def set_speed(name: str, host: str, speed: float, folder: Path = FOLDER) -> LabState:
    """Give a host another fraction of its CPUs' time, also under load. Raises InputError."""
    require_root()
    state = state_of(name, folder)
    trees = lab_groups.hierarchies()
    known = {h.name: h for h in state.cluster.hosts}
    if host not in known:
        raise InputError(f"lab {name}: no host {host}; it has {', '.join(known)}")
    changed = msgspec.structs.replace(known[host], speed=speed)
    hosts = tuple(changed if h.name == host else h for h in state.cluster.hosts)
    cluster = msgspec.structs.replace(state.cluster, hosts=hosts)
    check(cluster, lab_groups.usable_cpus(trees), f"lab {name}")
    lab_groups.slow(cluster, changed, trees)
    state = msgspec.structs.replace(state, cluster=cluster)
    _save(state, folder / name)
    return state


def labs(folder: Path = FOLDER) -> list[str]:
    """Names of all labs that have left traces, including incomplete ones."""
    names = {p.name for p in folder.iterdir() if p.is_dir()} if folder.is_dir() else set()
    spaces = NAMESPACES.iterdir() if NAMESPACES.is_dir() else ()
    names |= {p.name.split(".")[1] for p in spaces if p.name.startswith(LAB_GROUP) and p.name.count(".") == 2}
    with contextlib.suppress(InputError):
        for tree in lab_groups.hierarchies():
            names |= {p.name.removeprefix(LAB_GROUP) for p in tree.mount.glob(f"{LAB_GROUP}*") if p.is_dir()}
    return sorted(names)


def state_of(name: str, folder: Path = FOLDER) -> LabState:
    """The state of a lab. Raises InputError if there is none, or if it is incomplete."""
    check_name(name, "lab")
    path = folder / name / "state.json"
    if not path.exists():
        names = labs(folder)
        there = f"those that are up: {', '.join(names)}" if names else "none is up"
        raise InputError(f"no lab {name}; {there} (fembench lab up CLUSTER.toml makes one)")
    state = read_json(path, LabState)
    if not state.complete:
        raise InputError(f"lab {name} is incomplete; run fembench lab down {name}, then lab up again")
    return state


def only_lab(folder: Path = FOLDER) -> str:
    """The name of the only lab. Raises InputError if there is none, or more than one."""
    names = labs(folder)
    if len(names) != 1:
        raise InputError(
            f"{len(names)} labs{': ' if names else ''}{', '.join(names)}; expected the name of one"
        )
    return names[0]


def enter(state: LabState, command: Sequence[str], *, spin: bool = False, folder: Path = FOLDER) -> None:
    """Become `command`, run at the head of a lab. Raises InputError; never returns."""
    require_root()
    if not command:
        raise InputError(
            "no command; expected one to run in the lab, such as fembench lab run fembench doctor"
        )
    if shutil.which(command[0]) is None:
        raise InputError(f"{command[0]}: no such command")
    agent = str(folder / state.cluster.name / "agent")
    line = [agent, HEAD, f"exec {shlex.join(command)}"]
    os.execve(agent, line, environment(state, os.environ, spin=spin, folder=folder))


def environment(
    state: LabState, variables: Mapping[str, str], *, spin: bool = False, folder: Path = FOLDER
) -> dict[str, str]:
    """`variables`, and those that make MPI (any library) and fembench use the lab."""
    home = folder / state.cluster.name
    agent = str(home / "agent")
    network = state.cluster.network
    kept = {name: value for name, value in variables.items() if name not in PLACEMENT}
    return kept | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_plm_ssh_agent": agent,  # Open MPI 5
        "OMPI_MCA_plm_rsh_agent": agent,  # Open MPI 4
        "HYDRA_LAUNCHER": "ssh",  # MPICH
        "HYDRA_LAUNCHER_EXEC": agent,
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",  # Intel MPI
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": agent,
        "PRTE_MCA_prte_default_hostfile": str(home / "hosts"),
        "OMPI_MCA_orte_default_hostfile": str(home / "hosts"),
        "PRTE_MCA_prte_hetero_nodes": "1",  # each host reports its own CPUs, or ranks are bound to wrong ones
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_mpi_yield_when_idle": "0" if spin else "1",
        "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
        "OMPI_MCA_threads_pthreads_nanosleep_time": str(NAP_NS),
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": network,
        "FEMBENCH_HOSTFILE": str(home / "hosts"),
        "FEMBENCH_SYNTHETIC": state.cluster.label,
    }


def require_root() -> None:
    """Raises InputError if a lab cannot be built here."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise InputError(
            "a lab needs root (namespaces, control groups); --emulate makes unequal ranks without root"
        )
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise InputError(f"a lab needs '{tool}'; install it with: apt install {package}")


def _namespaces_of(name: str) -> list[str]:
    """Namespaces of a lab that exist."""
    start = f"{LAB_GROUP}{name}."
    return (
        sorted(p.name for p in NAMESPACES.iterdir() if p.name.startswith(start))
        if NAMESPACES.is_dir()
        else []
    )


def _write_files(state: LabState, home: Path) -> None:
    name, hosts = state.cluster.name, state.cluster.hosts
    write_atomic(home / "hosts", "".join(f"{h.name} slots={h.ranks}\n" for h in hosts))
    names = [*(h.name for h in hosts), HEAD]
    lines = (f"{state.cluster.address(i).split('/')[0]} {name}\n" for i, name in enumerate(names))
    write_atomic(home / "names", f"127.0.0.1 localhost\n{''.join(lines)}")
    groups = " ".join(map(shlex.quote, state.groups))
    spaces = NAMESPACES / f"{LAB_GROUP}{name}."
    write_atomic(
        home / "agent", AGENT.format(trees=groups, net=spaces, names=shlex.quote(str(home / "names")))
    )
    (home / "agent").chmod(0o755)


def _save(state: LabState, home: Path) -> None:
    write_json(home / "state.json", state)


def _do(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise InputError(f"{shlex.join(command)}: {reason[0] if reason else f'status {done.returncode}'}")
