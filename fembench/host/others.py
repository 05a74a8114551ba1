"""CPU time that processes outside the job used on its CPUs (rule D6).

    busy    elapsed time of the CPUs minus idle, I/O wait, interrupts and steal (/proc/stat)
    own     processor time of the ranks on this machine, of the launcher's daemons that started them, and of
            the tenants that slow the hosts of a lab on purpose
    beside  processor time of all other processes of the machine and of their children that ended, if all
            of them can be seen from here
    others  busy - own, at most `beside`, as a share of the elapsed time of the CPUs

The CPUs are those that the ranks on this machine may run on, with the hardware threads
that share a core with them. All hosts of a machine get one figure: hosts of a lab, or
containers, share its processors. Interrupts belong to neither, because many of them
serve the job's own messages. Some kernels count interrupts, and the ways into and out of
idling, as nothing at all: they are part of `busy`, 3 to 6 % where four ranks sleep for
20 us at a time, but not of `beside`. Processes outside of a container cannot be seen
from inside: there, `busy - own` counts alone.

The kernel counts in ticks of 10 ms, so idle time may be off by a tick per CPU at either
end: 2 % in one second, 0.2 % in ten. If the counts of a CPU do not add up to the
elapsed time, the share is unknown.
"""

import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from fembench.host import cgroup, host
from fembench.host.cgroup import ROOT, read
from fembench.host.provenance import machine_key
from fembench.ranks.comm import Comm
from fembench.records.quiet import LAB_GROUP

TICK = 1 / (os.sysconf("SC_CLK_TCK") if "SC_CLK_TCK" in getattr(os, "sysconf_names", {}) else 100)  # seconds
FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of Linux
MISCOUNT = 0.1  # largest relative difference of the counts of CPUs from the elapsed time


class OthersShare(NamedTuple):
    """The share of other processes and its uncertainty, in percent."""

    others_percent: float  # -1: not measured
    others_resolution: float  # at most 100


UNKNOWN = OthersShare(-1.0, 100.0)  # the system does not report it


class CpuTimes(NamedTuple):
    """The CPUs of a machine at one moment, seconds."""

    at: float
    spent: tuple[float, ...]  # as host.stat_ticks has them
    own: dict[str, float]  # of each process of the job
    beside: dict[int, float] | None = None  # process -> seconds; None: some cannot be seen


Clock = Callable[[], float]


def others_meter(
    comm: Comm, root: Path = ROOT, clock: Clock = time.perf_counter
) -> Callable[[], OthersShare]:
    """A function: what other processes have used since now. Both are collective."""
    key = machine_key(root)
    machine = cast(Comm, comm.Split(comm.allgather(key).index(key), comm.rank))
    cpus: frozenset[int] = frozenset().union(*machine.allgather(host.with_siblings(host.affinity(), root)))
    begin = _look(machine, cpus, root, clock)

    def others() -> OthersShare:
        end = _look(machine, cpus, root, clock)
        found = machine.bcast(share(begin, end, len(cpus)))
        machine.Free()
        return found

    return others


def _look(machine: Comm, cpus: Collection[int], root: Path, clock: Clock) -> CpuTimes:
    """The CPU times now; complete only on the machine's first rank. Collective."""
    helpers = _helpers(root)
    taken = {f"process {pid}": sum(_seconds(pid, root)[:2]) for pid in helpers}
    pids = [os.getpid(), *helpers] if _all_visible(root) else []
    machine.Barrier()
    used, at = time.process_time(), clock()
    spent = tuple(TICK * n for n in host.stat_ticks(cpus, root)) if machine.rank == 0 else ()
    everyone = machine.allgather(({f"rank {machine.rank}": used} | taken, pids))
    own = {name: seconds for one, _ in everyone for name, seconds in one.items()}
    if machine.rank or not all(pids for _, pids in everyone):
        return CpuTimes(at, spent, own)
    return CpuTimes(at, spent, own, _beside(root, {pid for _, pids in everyone for pid in pids}))


def share(begin: CpuTimes, end: CpuTimes, n_cpus: int) -> OthersShare:
    """The share of other processes in the time of `n_cpus` CPUs, between two readings."""
    spent = [after - before for before, after in zip(begin.spent, end.spent)]
    passed = (end.at - begin.at) * n_cpus
    if len(spent) < 8 or abs(sum(spent) - passed) > MISCOUNT * passed + len(spent) * TICK * n_cpus:
        return UNKNOWN
    busy = passed - sum(spent[3:])
    own = sum(max(0.0, used - begin.own[name]) for name, used in end.own.items() if name in begin.own)
    others = max(0.0, busy - own)
    if begin.beside is not None and end.beside is not None:
        more = (used - begin.beside.get(pid, 0.0) for pid, used in end.beside.items())
        others = min(others, sum(seconds for seconds in more if seconds > 0))
    percent = 100 * others / passed
    return OthersShare(min(percent, 100.0), min(100 * 2 * TICK * n_cpus / passed, 100.0))


def _helpers(root: Path) -> list[int]:
    """Processes that work for this rank or slow it on purpose: daemons, a lab's tenants."""
    labs = [p for p in cgroup.folders("cpuset", root) if p.name.startswith(LAB_GROUP)]
    tenants = [read(file).split() for lab in labs for file in lab.glob("tenant.*/cgroup.procs")]
    return [os.getppid(), *(int(pid) for pids in tenants for pid in pids)]


def _all_visible(root: Path) -> bool:
    """Whether this process sees those of the whole machine: no container, and none hidden."""
    try:
        first = os.readlink(root / "proc/self/ns/pid") == FIRST_NAMESPACE
    except OSError:
        return False
    return first and bool(read(root / "proc/1/stat"))


def _beside(root: Path, job: Collection[int]) -> dict[int, float]:
    """Processor time of each process that is not of the job, and of its children that ended."""
    pids = (int(folder.name) for folder in (root / "proc").glob("[0-9]*"))
    return {pid: sum(_seconds(pid, root)) for pid in pids if pid not in job}


def _seconds(pid: int, root: Path) -> list[float]:
    """Processor time of a process: as a program, in the kernel, and the same of its children
    that ended; [] if unknown."""
    fields: Sequence[str] = read(root / f"proc/{pid}/stat").rpartition(")")[2].split()
    return [TICK * int(field) for field in fields[11:15]]
