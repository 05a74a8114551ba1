"""What batch systems say of a job: Slurm, PBS, LSF, Flux, OAR and Grid Engine.

Each reader takes the environment; None where its batch system has not started the job.
The last functions say whether the batch system has taken the hosts of a job away.

How srun lets ranks find each other: its plugin (`srun --mpi=…`) must fit mpi4py's MPI.

A plugin that does not fit starts N jobs of one rank each, or ranks that abort. `srun
--mpi=list` and the library give the order in which plugins are tried; one that failed
is not tried again in this process.
"""

import dataclasses
import functools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fembench.base.commands import answer, interpreter
from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.launch.hosts import Allocation, HostSlots, expand_counts, expand_hosts, merged
from fembench.launch.launchers import JobLine, Launcher, absent

BATCH = ("SLURM_JOB_ID", "PBS_JOBID", "PBS_NODEFILE", "LSB_JOBID", "FLUX_URI", "OAR_NODEFILE", "PE_HOSTFILE")
_JOBS = {  # variable of a job -> variables, one of which names its hosts
    "SLURM_JOB_ID": ("SLURM_JOB_NODELIST", "SLURM_JOB_NODELIST_HET_GROUP_0"),
    "LSB_JOBID": ("LSB_MCPU_HOSTS", "LSB_DJOB_HOSTFILE", "LSB_HOSTS"),
    "PBS_JOBID": ("PBS_NODEFILE",),
}


def in_batch_job(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a batch system has started this process."""
    return any(environment.get(name) for name in BATCH)


def given_by_batch_systems(environment: Mapping[str, str]) -> Iterator[Allocation]:
    """What each batch system says that it has given to this job. Raises InputError."""
    readers = (_slurm, _pbs, _lsf, _flux, _oar, _grid_engine)
    return filter(None, (read(environment) for read in readers))


def check_complete(environment: Mapping[str, str]) -> None:
    """Raises InputError if a batch system names a job, but not its hosts, or the reverse."""
    way_out = "start fembench inside the job, unset {0}, or give a host file"
    for job, named in _JOBS.items():
        there = next((name for name in named if environment.get(name)), "")
        if environment.get(job) and not there:
            raise InputError(f"{job} is set, but {' or '.join(named)} is not: {way_out.format(job)}")
        if there and not environment.get(job):
            raise InputError(f"{there} is set, but {job} is not: {way_out.format(there)}")
    if environment.get("FLUX_URI") and not _flux_program(environment):
        raise InputError(
            "FLUX_URI is set, but no flux program is on PATH to ask for the hosts of the Flux job: add it to "
            "PATH, unset FLUX_URI, or give a host file"
        )


def _slurm(environment: Mapping[str, str]) -> Allocation | None:
    """SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE, or those of each component."""
    job = environment.get("SLURM_JOB_ID", "")
    components = environment.get("SLURM_HET_SIZE", "")
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
    cores = environment.get("SLURM_CPUS_PER_TASK", "")
    return Allocation(
        f"Slurm job {job}",
        tuple(hosts),
        batch=True,
        heterogeneous=len(suffixes) > 1,
        cores_per_slot=max(int(cores), 1) if cores.isdecimal() else 1,
    )


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
    """The hosts of a job of LSF.

    From LSB_MCPU_HOSTS = 'n1 16 n2 16', or LSB_DJOB_HOSTFILE, a file with a line per
    slot, or LSB_HOSTS = 'n1 n1 n2', which LSF leaves out of large jobs.

    With jsrun, the first host is the launch node: it has one slot and takes no rank.
    """
    found = _lsf_hosts(environment)
    if found is None or len(found.hosts) < 2 or found.hosts[0].slots > 1 or not _jsrun(environment):
        return found
    return dataclasses.replace(found, hosts=found.hosts[1:])


def _jsrun(environment: Mapping[str, str]) -> bool:
    """Whether the job belongs to the job step manager, whose launcher is jsrun."""
    return "CSM_ALLOCATION_ID" in environment or bool(shutil.which("jsrun", path=environment.get("PATH", "")))


def _lsf_hosts(environment: Mapping[str, str]) -> Allocation | None:
    """What the variables of LSF name, the launch node included."""
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
    told = answer(["flux", "resource", "R"], 20, environment)
    try:
        execution = json.loads(told.out)["execution"]
        names = expand_hosts(",".join(execution["nodelist"]), "flux resource R")
        cores = dict[int, int]()
        for row in execution["R_lite"]:
            for rank in _ids(row["rank"]):
                cores[rank] = len(_ids(row["children"]["core"]))
        hosts = tuple(HostSlots(names[rank], n) for rank, n in sorted(cores.items()))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"`flux resource R` cannot be read ({shown(told.err or error)})") from None
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


ALIVE = ("RUNNING", "CONFIGURING", "PENDING", "SUSPENDED")  # states of a Slurm job
_REVOKED = (  # by launchers and batch systems
    (r"Expired or invalid job (\d+)", "Slurm job {0} has ended"),
    (r"Job allocation (\d+) has been revoked", "Slurm job {0} has ended"),
    (
        r"\*\*\* JOB (\d+) ON \S+ CANCELLED AT \S+ DUE TO TIME LIMIT",
        "Slurm job {0} reached its time limit",
    ),
    (r"\*\*\* JOB (\d+) ON \S+ CANCELLED", "Slurm job {0} has ended"),
    (r"PBS: job killed: (\w+)", "the PBS job has ended ({0})"),
    (r"(TERM_\w+): job killed", "the LSF job has ended ({0})"),
)


def how_it_ended(output: str, environment: Mapping[str, str] = os.environ) -> str:
    """'Slurm job 7 has ended (CANCELLED)' if the job lost its hosts; else "".

    `output`: what the launcher printed. Slurm itself is asked: launchers may not say it.
    """
    found = ((re.search(pattern, output), meaning) for pattern, meaning in _REVOKED)
    said = next((meaning.format(*match.groups()) for match, meaning in found if match), "")
    return said or _by_slurm(environment.get("SLURM_JOB_ID", ""))


def _by_slurm(job: str) -> str:
    if not job:
        return ""
    told = answer(["squeue", "--noheader", f"--jobs={job}", "--format=%T"], 20)
    states = told.out.split()
    if told.status != 0 and "Invalid job id" not in told.err:
        return ""
    if any(state in ALIVE for state in states):
        return ""
    return f"Slurm job {job} has ended" + (f" ({states[0]})" if states else "")


_FITTING = {  # name of a library -> patterns of plugins, the best first
    "Open MPI": (r"pmix", r"pmix_v\d+", r"pmi2"),
    "": (r"cray_shasta", r"pmi2", r"pmix", r"pmix_v\d+"),  # MPICH and its relatives
}
_FAILED: set[tuple[str, str]] = set()  # (program, plugin)


def plugin(program: str) -> str:
    """The first plugin of srun that may fit; "" for Slurm's default."""
    return next((name for name in fitting(program) if (program, name) not in _FAILED), "")


def own_plugin(program: str, launcher: Launcher, options: Sequence[str]) -> str:
    """The plugin chosen for srun; "" for another launcher, or if the user chooses."""
    return plugin(program) if launcher.name == "srun" and absent(["--mpi"], options) else ""


@functools.cache
def fitting(program: str) -> tuple[str, ...]:
    """The plugins of srun that may fit mpi4py's MPI library, the best first."""
    listed = answer([program, "--mpi=list"], 20)
    plugins = sorted(set(re.findall(r"[a-z]\w+", listed.out + listed.err)), reverse=True)
    wanted = next(patterns for name, patterns in _FITTING.items() if name in mpi_library())
    return tuple(name for pattern in wanted for name in plugins if re.fullmatch(pattern, name))


@functools.cache
def mpi_library() -> str:
    """Name and version of mpi4py's MPI library; "" if it cannot be loaded."""
    told = answer([*interpreter(), "-c", "from fembench.ranks import comm; print(comm.library())"], 60)
    return " ".join(told.out.split()) if told.status == 0 else ""


def with_next_plugin(line: JobLine) -> JobLine | None:
    """The same ranks with srun's next plugin; None: there is no other."""
    if line.plugin:
        _FAILED.add((line.program, line.plugin))
    other = plugin(line.program) if line.plugin else ""
    if not other:
        return None
    new = {f"--mpi={line.plugin}": f"--mpi={other}"}
    parts = tuple(tuple(new.get(word, word) for word in part) for part in line.parts)
    return replace(line, parts=parts, plugin=other)


def misfit(line: JobLine) -> str:
    """Why the ranks of a line do not become one job, and what to use."""
    library = mpi_library() or "mpi4py's MPI library"
    other = f"use the mpiexec of {library} (--launcher PATH)"
    if line.launcher.name != "srun":
        return f"{line.program} does not fit {library}, which mpi4py loads; {other}"
    given = [word for word in line.parts[0] if word.startswith("--mpi=")]
    if line.plugin and len(fitting(line.program)) > 1:
        return f"none of srun's --mpi={', --mpi='.join(fitting(line.program))} fits {library}; {other}"
    return f"srun's {given[0] if given else 'default for --mpi'} does not fit {library}; {other}"
