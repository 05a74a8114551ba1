"""Which hosts of a job take the ranks of a case, and how many ranks each."""

from collections.abc import Sequence

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.launch.allocation import allocation
from fembench.launch.hostfile import HostSlots, hostfile_of, in_one_line, is_rankfile
from fembench.launch.hostlist import expand_hosts, folded, same_host
from fembench.launch.job_hosts import Allocation, filled, in_turns
from fembench.launch.launchers import asked_mapping
from fembench.records.case import CasePlacement

MOST_SHOWN = 4  # hosts named in a line


class HostsError(InputError):
    """The job has no such hosts, or not enough slots on them."""


def hosts_for(placement: CasePlacement, hostfile: str) -> list[HostSlots]:
    """The hosts of a case with the ranks on each; [] if it leaves them to the job. Raises InputError."""
    if not placement.hosts and not placement.per_node:
        return []
    path = hostfile_of(hostfile)
    if path and is_rankfile(read_text(path)):
        raise InputError(
            f"hosts, per_node: {path} is a rankfile, which places every rank; expected host names"
        )
    job = allocation(hostfile)
    placed = layout(placement, job)
    return [] if is_open(job) else placed


def layout(placement: CasePlacement, job: Allocation) -> list[HostSlots]:
    """Hosts in the order of ranks, with the ranks that follow each other there. Raises InputError."""
    named = bool(placement.hosts or placement.per_node)
    room = room_of(placement.hosts, placement.per_node, job)
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
    """The hosts of the job as a record keeps them; '' for this machine alone. Raises InputError.

    The lines of the host file, or the names that the batch system gave: 'a slots=2; b', 'n[1-3]'.
    """
    path = hostfile_of(hostfile)
    if path:
        return in_one_line(path)
    job = allocation()
    return folded(host.name for host in job.hosts) if job.batch else ""


def is_open(job: Allocation) -> bool:
    """Whether the job is this machine, without a batch system or host file: more ranks than cores may run."""
    return not job.batch and not job.order


def room_of(names: str, per_node: int, job: Allocation) -> list[HostSlots]:
    """The hosts of these names (all: ''), with the ranks that each may take. Raises InputError."""
    hosts = chosen(names, job)
    small = next((host for host in hosts if host.slots < per_node), None)
    if small:
        raise HostsError(
            f"per_node = {per_node}: {small.name} has {plural(small.slots, 'slot')}; name other hosts ({job})"
        )
    return [host._replace(slots=per_node or host.slots) for host in hosts]


def chosen(names: str, job: Allocation) -> list[HostSlots]:
    """The hosts of these names, in the order of the names; all of the job for ''. Raises InputError."""
    if not names:
        return list(job.hosts)
    known, found = {host.name: host for host in job.hosts}, dict[str, HostSlots]()
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
