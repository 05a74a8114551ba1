"""The hosts that this job may use, and how many ranks each of them takes.

They come from the first of these that is there: a host file, the environment of a batch system (Slurm, PBS,
LSF, Flux, OAR, Grid Engine), and else this machine with its usable cores. Everything that counts the cores of
a job asks here.
"""

import ipaddress
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.host.host import usable_cores
from fembench.launch.hostfile import HostSlots, host_slots, hostfile_of
from fembench.launch.hostlist import MOST_HOSTS, expand_counts, expand_hosts, same_host

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
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
    given = _of_batch_system(environment)
    if hostfile:
        order = host_slots(hostfile)
        if given and not environment.get("FEMBENCH_SYNTHETIC"):  # a lab has hosts of its own
            order = [_known(host, given, hostfile) for host in order]
        hosts = merged(order)
        crowded = given is not None and any(_more_than(host, given) for host in hosts)
        found = Allocation(
            f"host file {hostfile}",
            hosts,
            order=tuple(order),
            crowded=crowded,
            heterogeneous=given is not None and given.heterogeneous,
        )
        return _checked(found)
    return given or Allocation("this machine", (HostSlots(platform.node(), usable_cores()),))


def _of_batch_system(environment: Mapping[str, str]) -> Allocation | None:
    """What the first batch system that is there has given this job."""
    readers = (_slurm, _pbs, _lsf, _flux, _oar, _grid_engine)
    given = next((found for read in readers if (found := read(environment))), None)
    return given and _checked(given)


def _more_than(host: HostSlots, given: Allocation) -> bool:
    """Whether a host has more slots than were given."""
    return any(host.slots > one.slots for one in given.hosts if same_host(one.name, host.name))


def _known(host: HostSlots, given: Allocation, hostfile: str) -> HostSlots:
    """A host of a host file, with its component. Raises InputError if the batch system did not give it."""
    name = host.name.rpartition("@")[2]
    if name == "localhost" or re.fullmatch(r"[0-9.]+|.*:.*", name):  # addresses are not compared
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
    if job and components and not re.fullmatch("[1-9][0-9]{0,2}", components):  # Slurm allows 128
        raise InputError(f"SLURM_HET_SIZE = '{shown(components)}': expected the number of components, from 1")
    suffixes = [f"_HET_GROUP_{k}" for k in range(int(components))] if components else [""]
    if not job or f"SLURM_JOB_NODELIST{suffixes[0]}" not in environment:
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
    """LSB_DJOB_HOSTFILE, a file with a line per slot, or LSB_MCPU_HOSTS = 'n1 16 n2 16'."""
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
    return _from_names(environment, "LSB_DJOB_HOSTFILE")


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
    if not environment.get("FLUX_URI") or not shutil.which("flux", path=environment.get("PATH")):
        return None
    line = ["flux", "resource", "R"]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=20, env=dict(environment))
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


def _ids(text: str) -> list[int]:
    """'0-2,5' as 0, 1, 2, 5."""
    return [int(name) for name in expand_hosts(f"[{text}]", "flux resource R")]


def _from_names(environment: Mapping[str, str], variable: str) -> Allocation | None:
    """From a file with one line per slot, which a variable names."""
    path = environment.get(variable, "")
    if not path:
        return None
    names = read_text(path).split()
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
