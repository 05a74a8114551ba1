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
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.host.host import usable_cores
from fembench.launch.hostfile import HostSlots, host_slots, hostfile_of
from fembench.launch.hostlist import MOST_HOSTS, expand_counts, expand_hosts, one_name_each, same_host

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
BATCH = ("SLURM_JOB_ID", "PBS_JOBID", "PBS_NODEFILE", "LSB_JOBID", "FLUX_URI", "OAR_NODEFILE", "PE_HOSTFILE")
_JOBS = {  # variable of a job -> variables, one of which names its hosts
    "SLURM_JOB_ID": ("SLURM_JOB_NODELIST", "SLURM_JOB_NODELIST_HET_GROUP_0"),
    "LSB_JOBID": ("LSB_MCPU_HOSTS", "LSB_DJOB_HOSTFILE", "LSB_HOSTS"),
    "PBS_JOBID": ("PBS_NODEFILE",),
}
_SLURM_STEPS = 0xFFFFFFF0  # from here on, Slurm's own steps: batch script, interactive shell


@dataclass(frozen=True)
class Allocation:
    """The hosts of a job, each once, in the order in which they are filled."""

    source: str  # where it was read: 'Slurm job 7', 'PBS_NODEFILE', 'host file FILE', 'this machine'
    hosts: tuple[HostSlots, ...]
    batch: bool = False  # a batch system gave it
    order: tuple[HostSlots, ...] = ()  # of the ranks, if a host file has one of its own
    crowded: bool = False  # a host file asks for more slots on a host than the batch system gave
    heterogeneous: bool = False  # a Slurm job of several components

    @property
    def slots(self) -> int:
        """Ranks that all hosts take together."""
        return sum(host.slots for host in self.hosts)

    def __str__(self) -> str:
        shown = ", ".join(f"{host.name}:{host.slots}" for host in self.hosts[:8])
        more = f", … ({len(self.hosts)} hosts)" if len(self.hosts) > 8 else ""
        return f"{self.slots} slots, {self.source}: {shown}{more}"


def allocation(hostfile: str = "", environment: Mapping[str, str] = os.environ) -> Allocation:
    """The allocation of this process. Raises InputError if what describes it cannot be read."""
    hostfile = hostfile_of(hostfile, environment)
    if hostfile:
        return _by_hostfile(hostfile, environment)
    given = _of_batch_systems(environment)
    if not given:
        _check_complete(environment)
    for other in given[1:]:
        if not _same_hosts(given[0], other):
            raise InputError(
                f"two batch systems with different hosts: {given[0]}; {other}; unset the variables of one of "
                "them, or give --hostfile"
            )
    here = HostSlots(platform.node(), usable_cores())
    return given[0] if given else Allocation("this machine", (here,))


def in_batch_job(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a batch system has started this process."""
    return any(environment.get(name) for name in BATCH)


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
    """What each batch system that is there has given to this job."""
    readers = (_slurm, _pbs, _lsf, _flux, _oar, _grid_engine)
    return [_checked(_each_once(found)) for read in readers if (found := read(environment))]


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


def _check_complete(environment: Mapping[str, str]) -> None:
    """Raises InputError if a batch system says that there is a job, but not where, or the reverse."""
    way_out = "start fembench inside the job, unset {0}, or give --hostfile"
    for job, named in _JOBS.items():
        there = next((name for name in named if environment.get(name)), "")
        if environment.get(job) and not there:
            raise InputError(f"{job} is set, but {' or '.join(named)} is not: {way_out.format(job)}")
        if there and not environment.get(job):
            raise InputError(f"{there} is set, but {job} is not: {way_out.format(there)}")
    if environment.get("FLUX_URI") and not _flux_program(environment):
        raise InputError(
            "FLUX_URI is set, but no flux program is on PATH to ask for the hosts of the Flux job: add it to "
            "PATH, unset FLUX_URI, or give --hostfile"
        )


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


def check_not_a_step(environment: Mapping[str, str] = os.environ) -> None:
    """Raises InputError if srun or mpiexec started this process, which starts jobs itself."""
    step = environment.get("SLURM_STEP_ID", "")
    if step.isdecimal() and int(step) < _SLURM_STEPS:
        job = environment.get("SLURM_JOB_ID", "?")
        raise InputError(
            f"fembench was started by srun (step {job}.{step}), but it starts the "
            "ranks itself: type the command without srun inside salloc, or in a script for sbatch"
        )
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"):
        if environment.get(name, "").isdecimal():
            raise InputError(
                f"fembench was started by an MPI launcher ({name} is set), but it starts the ranks itself: "
                "type the command without mpiexec, with --ranks"
            )


def _slurm(environment: Mapping[str, str]) -> Allocation | None:
    """SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE, or those of each component of a heterogeneous job."""
    job, components = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_HET_SIZE", "")
    if not job:
        return None
    if components and not re.fullmatch("[1-9][0-9]{0,2}", components):  # Slurm allows 128
        raise InputError(f"SLURM_HET_SIZE = '{shown(components)}': expected the number of components, from 1")
    suffixes = [f"_HET_GROUP_{k}" for k in range(int(components))] if components else [""]
    if f"SLURM_JOB_NODELIST{suffixes[0]}" not in environment:
        return None
    hosts: list[HostSlots] = []
    for component, suffix in enumerate(suffixes):
        listed = f"SLURM_JOB_NODELIST{suffix}"
        names = expand_hosts(environment.get(listed, ""), listed)
        slots = _slurm_slots(environment, suffix, len(names))
        hosts += [HostSlots(name, n, component) for name, n in zip(names, slots)]
    return Allocation(f"Slurm job {job}", tuple(hosts), batch=True, heterogeneous=len(suffixes) > 1)


def _slurm_slots(environment: Mapping[str, str], suffix: str, n_hosts: int) -> list[int]:
    """[host of a component] -> its tasks, or its CPUs if Slurm gives no tasks."""
    for name in (f"SLURM_TASKS_PER_NODE{suffix}", f"SLURM_JOB_CPUS_PER_NODE{suffix}"):
        if environment.get(name):
            slots = expand_counts(environment[name], name)
            if len(slots) != n_hosts:
                listed = f"SLURM_JOB_NODELIST{suffix}"
                raise InputError(f"{name} has {len(slots)} counts, but {listed} has {n_hosts} hosts")
            return slots
    return [1] * n_hosts


def _pbs(environment: Mapping[str, str]) -> Allocation | None:
    return _from_names(environment, "PBS_NODEFILE")


def _oar(environment: Mapping[str, str]) -> Allocation | None:
    return _from_names(environment, "OAR_NODEFILE")


def _lsf(environment: Mapping[str, str]) -> Allocation | None:
    """LSB_MCPU_HOSTS = 'n1 16 n2 16', or LSB_DJOB_HOSTFILE, a file with a line per slot, or LSB_HOSTS =
    'n1 n1 n2', which LSF leaves out of large jobs.
    """
    if not environment.get("LSB_JOBID"):
        return None
    if environment.get("LSB_MCPU_HOSTS"):
        words = environment["LSB_MCPU_HOSTS"].split()
        pairs = list(zip(words[::2], words[1::2]))
        if len(words) % 2 or not all(n.isdecimal() and int(n) > 0 for _, n in pairs):
            raise InputError(
                f"LSB_MCPU_HOSTS = '{shown(' '.join(words))}': expected 'HOST SLOTS HOST SLOTS …'"
            )
        hosts = merged(HostSlots(name, int(n)) for name, n in pairs)
        return Allocation("LSB_MCPU_HOSTS", hosts, batch=True)
    if environment.get("LSB_DJOB_HOSTFILE") or not environment.get("LSB_HOSTS"):
        return _from_names(environment, "LSB_DJOB_HOSTFILE")
    hosts = merged(HostSlots(name, 1) for name in environment["LSB_HOSTS"].split())
    return Allocation("LSB_HOSTS", hosts, batch=True)


def _grid_engine(environment: Mapping[str, str]) -> Allocation | None:
    """PE_HOSTFILE: lines 'host slots queue processors'."""
    path = environment.get("PE_HOSTFILE", "")
    if not path:
        return None
    rows = [line.split() for line in read_text(path).splitlines() if line.strip()]
    if not rows or not all(len(row) > 1 and row[1].isdecimal() and int(row[1]) > 0 for row in rows):
        raise InputError(f"PE_HOSTFILE = {path}: expected lines 'HOST SLOTS QUEUE PROCESSORS'")
    return Allocation("PE_HOSTFILE", merged(HostSlots(row[0], int(row[1])) for row in rows), batch=True)


def _flux(environment: Mapping[str, str]) -> Allocation | None:
    """What `flux resource R` prints inside a Flux instance that is a job (RFC 20)."""
    if not environment.get("FLUX_URI") or not _flux_program(environment):
        return None
    line = ["flux", "resource", "R"]
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, errors="replace", timeout=20, env=dict(environment)
        )
        execution = json.loads(done.stdout)["execution"]
        names = expand_hosts(",".join(execution["nodelist"]), "flux resource R")
        cores = dict[int, int]()
        for row in execution["R_lite"]:
            for rank in _ids(row["rank"]):
                cores[rank] = len(_ids(row["children"]["core"]))
        hosts = tuple(HostSlots(names[rank], n) for rank, n in sorted(cores.items()))
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"`flux resource R` cannot be read ({shown(error)})") from None
    return Allocation("flux resource R", hosts, batch=True)


def _flux_program(environment: Mapping[str, str]) -> str | None:
    return shutil.which("flux", path=environment.get("PATH"))


def _ids(text: str) -> list[int]:
    """'0-2,5' as 0, 1, 2, 5."""
    return [int(name) for name in expand_hosts(f"[{text}]", "flux resource R")]


def _from_names(environment: Mapping[str, str], variable: str) -> Allocation | None:
    """From a file with one line per slot, which a variable names."""
    path = environment.get(variable, "")
    if not path:
        return None
    try:
        names = read_text(path).split()
    except InputError as error:
        raise InputError(f"{variable} names a file that cannot be used: {error}") from None
    if not names:
        raise InputError(f"{variable} = {path}: no hosts in it; expected one name per line")
    return Allocation(variable, merged(HostSlots(name, 1) for name in names), batch=True)


def merged(hosts: Iterable[HostSlots]) -> tuple[HostSlots, ...]:
    """Each host once, where it is named first, with all its slots."""
    found: dict[str, HostSlots] = {}
    for host in hosts:
        known = found.get(host.name, host._replace(slots=0))
        found[host.name] = known._replace(slots=known.slots + host.slots)
    return tuple(found.values())


def filled(hosts: Iterable[HostSlots], ranks: int) -> list[HostSlots]:
    """Hosts with the ranks that they take, one host after another."""
    found: list[HostSlots] = []
    for host in hosts:
        taken = min(host.slots, ranks)
        ranks -= taken
        if taken and found and found[-1].name == host.name:
            found[-1] = host._replace(slots=found[-1].slots + taken)
        elif taken:
            found.append(host._replace(slots=taken))
    return found


def in_turns(hosts: Iterable[HostSlots], ranks: int) -> list[HostSlots]:
    """Hosts in the order of ranks if each host takes the next one in turn."""
    left, found = list(hosts), list[HostSlots]()
    while left and len(found) < ranks:
        found += [host._replace(slots=1) for host in left]
        left = [host._replace(slots=host.slots - 1) for host in left if host.slots > 1]
    return filled(found, ranks)
