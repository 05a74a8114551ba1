"""The hosts that this job may use, their slots, and which of them a case gets.

They come from the first of these that is there: a host file, the environment of a batch
system (Slurm, PBS, LSF, Flux, OAR, Grid Engine), and else this machine with its usable
cores. Everything that counts the cores of a job asks here.

No batch system is ignored in silence. Without a host file, these are refused:

- a job whose hosts are not named: SLURM_JOB_ID without SLURM_JOB_NODELIST (or that of its components),
  LSB_JOBID without LSB_MCPU_HOSTS, LSB_DJOB_HOSTFILE and LSB_HOSTS, PBS_JOBID without PBS_NODEFILE, FLUX_URI
  without a flux program;
- hosts without a job: these variables of Slurm or LSF without SLURM_JOB_ID or LSB_JOBID;
- two batch systems with different hosts, such as PBS_NODEFILE inside a Slurm job. If both name the same
  hosts, the first in the order above gives the slots.

With a host file, its hosts must be those of one batch system, if there is any."""

import ipaddress
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fembench.base.config import read_text
from fembench.base.errors import CopyError, InputError, shown
from fembench.base.units import plural
from fembench.host.host import usable_cores
from fembench.launch.batch_systems import check_complete, given_by_batch_systems
from fembench.launch.hosts import (
    MOST_HOSTS,
    Allocation,
    HostSlots,
    expand_hosts,
    filled,
    folded,
    host_slots,
    hostfile_of,
    in_one_line,
    in_turns,
    is_rankfile,
    merged,
    one_name_each,
    same_host,
)
from fembench.launch.launchers import asked_mapping
from fembench.launch.rank_start import rank_given
from fembench.records.case import CasePlacement

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")


def allocation(hostfile: str = "", environment: Mapping[str, str] = os.environ) -> Allocation:
    """The allocation of this process. Raises InputError if it cannot be read."""
    hostfile = hostfile_of(hostfile, environment)
    if hostfile:
        return _by_hostfile(hostfile, environment)
    given = _of_batch_systems(environment)
    if not given:
        check_complete(environment)
    for other in given[1:]:
        if not _same_hosts(given[0], other):
            raise InputError(
                f"two batch systems with different hosts: {given[0]}; {other}; unset the variables of one of "
                "them, or give a host file"
            )
    here = HostSlots(platform.node(), usable_cores())
    return given[0] if given else Allocation("this machine", (here,))


def _by_hostfile(hostfile: str, environment: Mapping[str, str]) -> Allocation:
    """The hosts of a file, which a batch system, if any, must have given to this job."""
    order = _one_name_each(host_slots(hostfile), hostfile)
    batch = [] if environment.get("FEMBENCH_SYNTHETIC") else _of_batch_systems(environment)
    given = next((one for one in batch if all(_is_in(host, one) for host in order)), None)
    given = given or (batch[0] if batch else None)
    if given:
        order = [_known(host, given, hostfile) for host in order]
    hosts = merged(order)
    found = Allocation(
        f"host file {hostfile}",
        hosts,
        order=tuple(order),
        crowded=given is not None and any(_more_than(host, given) for host in hosts),
        heterogeneous=given is not None and given.heterogeneous,
    )
    return _checked(found)


def _of_batch_systems(environment: Mapping[str, str]) -> list[Allocation]:
    """What each batch system has given to this job, checked, each host once."""
    return [_checked(_each_once(found)) for found in given_by_batch_systems(environment)]


def _each_once(found: Allocation) -> Allocation:
    """The allocation, without hosts twice, with and without domain. Raises InputError."""
    hosts = _one_name_each(found.hosts, found.source)
    return found if hosts == list(found.hosts) else replace(found, hosts=merged(hosts))


def _one_name_each(hosts: Sequence[HostSlots], where: str) -> list[HostSlots]:
    """The hosts, with one name for each. Raises InputError."""
    names = one_name_each((host.name for host in hosts), where)
    return [host._replace(name=names.get(host.name, host.name)) for host in hosts]


def _same_hosts(one: Allocation, other: Allocation) -> bool:
    """Whether both have the same hosts; slots may differ."""
    return len(one.hosts) == len(other.hosts) and all(_is_in(host, other) for host in one.hosts)


def _more_than(host: HostSlots, given: Allocation) -> bool:
    """Whether a host has more slots than were given."""
    return any(host.slots > one.slots for one in given.hosts if same_host(one.name, host.name))


def _is_in(host: HostSlots, given: Allocation) -> bool:
    """Whether a batch system gave this host; addresses are not compared."""
    name = host.name.rpartition("@")[2]
    return _is_address_or_here(name) or any(same_host(one.name, name) for one in given.hosts)


def _is_address_or_here(name: str) -> bool:
    return name == "localhost" or bool(re.fullmatch(r"[0-9.]+|.*:.*", name))


def _known(host: HostSlots, given: Allocation, hostfile: str) -> HostSlots:
    """A host of a host file, with its component. Raises InputError if it was not given."""
    name = host.name.rpartition("@")[2]
    if _is_address_or_here(name):
        return host
    found = next((one for one in given.hosts if same_host(one.name, name)), None)
    if found is None:
        raise InputError(
            f"{hostfile}: host {shown(name)} is not in this job's allocation ({given}): "
            "correct the host file, or ask for that host"
        )
    return host._replace(component=found.component)


def _checked(found: Allocation) -> Allocation:
    """The allocation. Raises InputError for an impossible host name or number of slots."""
    if not found.hosts:
        raise InputError(f"{found.source}: no hosts in it; expected at least one")
    for host in found.hosts:
        if not (_NAME.fullmatch(host.name) or _is_address(host.name)):
            raise InputError(f"{found.source}: host '{shown(host.name)}'; expected a host name or an address")
        if not 1 <= host.slots <= MOST_HOSTS:
            raise InputError(
                f"{found.source}: {shown(host.slots)} slots on {host.name}; expected 1 to {MOST_HOSTS}"
            )
    return found


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return False


_SLURM_STEPS = 0xFFFFFFF0  # from here on, Slurm's own steps: batch script, interactive shell


def check_not_a_step(environment: Mapping[str, str] = os.environ) -> None:
    """Raises CopyError if srun or mpiexec started this process, which starts jobs itself."""
    first = rank_given(environment) in (None, 0)
    step = environment.get("SLURM_STEP_ID", "")
    if step.isdecimal() and int(step) < _SLURM_STEPS:
        job = environment.get("SLURM_JOB_ID", "?")
        raise CopyError(
            f"fembench was started by srun (step {job}.{step}), but it starts the "
            "ranks itself: type the command without srun inside salloc, or in a script for sbatch",
            first=first,
        )
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"):
        if environment.get(name, "").isdecimal():
            raise CopyError(
                f"fembench was started by an MPI launcher ({name} is set), but it starts the ranks itself: "
                "type the command without mpiexec, with --ranks",
                first=first,
            )


MOST_SHOWN = 4  # hosts named in a line


class HostsError(InputError):
    """The job has no such hosts, or not enough slots on them."""


def hosts_for(placement: CasePlacement, hostfile: str) -> list[HostSlots]:
    """The hosts of a case with their ranks; [] if it names none. Raises InputError."""
    if not placement.hosts and not placement.per_node and placement.threads == 1:
        return []
    path = hostfile_of(hostfile)
    if path and is_rankfile(read_text(path)):
        asked = "hosts, per_node" if placement.hosts or placement.per_node else "threads"
        raise InputError(f"{asked}: {path} is a rankfile, which places every rank; expected host names")
    job = allocation(hostfile)
    placed = layout(placement, job)
    return [] if is_open(job) else placed


def layout(placement: CasePlacement, job: Allocation) -> list[HostSlots]:
    """Hosts in the order of ranks, each with its next ranks. Raises InputError."""
    named = bool(placement.hosts or placement.per_node or placement.threads > 1)
    room = room_of(placement.hosts, placement.per_node, job, placement.threads)
    if is_open(job) and not placement.per_node:
        return [room[0]._replace(slots=placement.ranks)]
    there = sum(host.slots for host in room)
    if placement.ranks > there:
        raise HostsError(
            f"ranks = {placement.ranks}: expected at most {there} ({in_words(room) if named else job})"
        )
    if asked_mapping() == "host":
        return in_turns(room, placement.ranks)
    return filled(room if named else job.order or job.hosts, placement.ranks)


def hosts_asked(hostfile: str) -> str:
    """The hosts of the job as records keep them; '': this machine. Raises InputError.

    The lines of the host file, or the batch system's names: 'a slots=2; b', 'n[1-3]'.
    """
    path = hostfile_of(hostfile)
    if path:
        return in_one_line(path)
    job = allocation()
    return folded(host.name for host in job.hosts) if job.batch else ""


def is_open(job: Allocation) -> bool:
    """Whether the job is this machine alone: then more ranks than cores may run."""
    return not job.batch and not job.order


def room_of(names: str, per_node: int, job: Allocation, threads: int = 1) -> list[HostSlots]:
    """The hosts of these names ('': all), with the ranks that fit on each. Raises HostsError."""
    hosts = with_threads(chosen(names, job), job, threads)
    small = next((host for host in hosts if host.slots < per_node), None)
    if small:
        raise HostsError(
            f"per_node = {per_node}: {small.name} has {plural(small.slots, 'slot')}; name other hosts ({job})"
        )
    return [host._replace(slots=per_node or host.slots) for host in hosts]


def with_threads(hosts: list[HostSlots], job: Allocation, threads: int) -> list[HostSlots]:
    """The hosts with cores for a rank of so many threads. Raises HostsError if none has."""
    if threads == 1:
        return hosts
    room = [host._replace(slots=host.slots * job.cores_per_slot // threads) for host in hosts]
    if not any(host.slots for host in room):
        raise HostsError(f"threads = {threads}: no host has so many cores for a rank ({job})")
    return [host for host in room if host.slots]


def chosen(names: str, job: Allocation) -> list[HostSlots]:
    """The hosts of these names, in their order; for '' all. Raises InputError."""
    if not names:
        return list(job.hosts)
    known = {host.name: host for host in job.hosts}
    found = dict[str, HostSlots]()
    for name in expand_hosts(names, "hosts"):
        host = known.get(name) or next((h for h in job.hosts if same_host(h.name, name)), None)
        if host is None:
            raise HostsError(f"hosts = '{shown(names)}': no host {shown(name)} in the job ({job})")
        if host.name in found:
            raise HostsError(f"hosts = '{shown(names)}': {shown(name)} is there twice")
        found[host.name] = host
    return list(found.values())


def in_words(hosts: Sequence[HostSlots]) -> str:
    """'n1:2, n2:2', or 'n1 … n50: 50 hosts, 200 ranks'."""
    if len(hosts) <= MOST_SHOWN:
        return ", ".join(f"{host.name}:{host.slots}" for host in hosts)
    ranks = sum(host.slots for host in hosts)
    return f"{hosts[0].name} … {hosts[-1].name}: {len(hosts)} hosts, {ranks} ranks"
