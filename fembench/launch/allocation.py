"""The hosts that this job may use, and how many ranks each of them takes.

They come from the first of these that is there: a host file, the environment of a batch system (Slurm, PBS,
LSF, Flux, OAR, Grid Engine), and else this machine with its usable cores. Everything that counts the cores of
a job asks here.

Nothing that a batch system says is ignored in silence. Without a host file, these are refused in one line:

- a job whose hosts are not named: SLURM_JOB_ID without SLURM_JOB_NODELIST (or that of its components),
  LSB_JOBID without LSB_MCPU_HOSTS, LSB_DJOB_HOSTFILE and LSB_HOSTS, PBS_JOBID without PBS_NODEFILE, FLUX_URI
  without a flux program;
- hosts without a job: these variables of Slurm or LSF without SLURM_JOB_ID or LSB_JOBID;
- two batch systems with different hosts, such as PBS_NODEFILE inside a Slurm job. If both name the same
  hosts, the first in the order above gives the slots.

With a host file, its hosts must be those of one batch system, if there is any.
"""

import ipaddress
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fembench.base.errors import InputError, shown
from fembench.host.host import usable_cores
from fembench.launch.batch_systems import check_complete, given_by_batch_systems
from fembench.launch.hostfile import HostSlots, host_slots, hostfile_of
from fembench.launch.hostlist import MOST_HOSTS, one_name_each, same_host
from fembench.launch.job_hosts import Allocation, merged

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")


def allocation(hostfile: str = "", environment: Mapping[str, str] = os.environ) -> Allocation:
    """The allocation of this process. Raises InputError if what describes it cannot be read."""
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
                "them, or give --hostfile"
            )
    here = HostSlots(platform.node(), usable_cores())
    return given[0] if given else Allocation("this machine", (here,))


def _by_hostfile(hostfile: str, environment: Mapping[str, str]) -> Allocation:
    """The hosts of a file, which a batch system must have given to this job if there is one."""
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
    """What each batch system that is there has given to this job, checked, each host once."""
    return [_checked(_each_once(found)) for found in given_by_batch_systems(environment)]


def _each_once(found: Allocation) -> Allocation:
    """The allocation without hosts that are there twice: with and without their domain. Raises InputError."""
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
    """A host of a host file, with its component. Raises InputError if the batch system did not give it."""
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
    """The allocation. Raises InputError if a host has no name that a launcher can take, or no slots."""
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
