"""The line that starts the ranks of a job: launcher, options and environment."""

import math
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.host.host import affinity, job_cpus, usable_cores
from fembench.launch.allocation import allocation, check_not_a_step
from fembench.launch.batch_systems import own_plugin
from fembench.launch.hosts import (
    Allocation,
    HostSlots,
    filled,
    hostfile_of,
    in_turns,
    is_rankfile,
    is_this_host,
    merged,
    placed,
)
from fembench.launch.launchers import (
    LAUNCHERS,
    SETTINGS,
    JobLine,
    Launcher,
    Options,
    absent,
    asked_mapping,
    find_launcher,
    recognised,
)

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
ASLEEP = {  # Open MPI 5: a rank that waits sleeps, in naps of 20 microseconds
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
}
# where Open MPI takes hosts from
PLACED = "PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile"
PLACES = "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"  # bind threads, the first at once
MOST_PER_CORE = 64  # ranks started on this machine: each takes 60 MiB


def job_line(
    ranks: int,
    hostfile: str = "",
    options: Sequence[str] = (),
    hosts: Sequence[HostSlots] = (),
    threads: int = 1,
) -> JobLine:
    """What starts this many ranks on hosts of the job. Raises InputError.

    `options`: more options for the launcher; `hosts`: to use, (): the allocation's.
    `threads`: of each rank, which is bound to as many cores.
    """
    if ranks < 1:
        raise InputError(f"ranks = {ranks}: expected at least 1")
    check_not_a_step()
    hostfile = hostfile_of(hostfile)
    if hostfile and not Path(hostfile).is_file():
        found = "is a folder; expected a host file" if Path(hostfile).is_dir() else "no such host file"
        raise InputError(f"{hostfile}: {found}")
    where = allocation(hostfile)
    program = find_launcher()
    launcher = recognised(program)
    options = (*options, *_asked_options())
    mapping = asked_mapping()  # refused also where it changes nothing
    if hostfile and is_rankfile(read_text(hostfile)):
        if threads > 1:
            raise InputError(f"threads = {threads}: {hostfile} binds each rank to one core; use host names")
        line = rankfile_given(program, launcher, ranks, hostfile, options)
    elif not hosts and _is_here(where):
        line = _here(program, launcher, ranks, where, options, threads)
    else:
        _check_slots(ranks, where, hosts)
        runs = _ranks_on_hosts(ranks, where, hosts, mapping)
        if where.heterogeneous:
            line = across_components(program, launcher, runs, options, where, threads)
        else:
            line = _on_hosts(program, launcher, runs, options, where, mapping or "core", threads)
    return replace(line, plugin=own_plugin(line.program, line.launcher, options), threads=threads)


def check_start() -> None:
    """Raises InputError if no job can be started from here, with these launcher settings."""
    check_not_a_step()
    find_launcher()
    _asked_options()
    asked_mapping()


def _asked_options() -> list[str]:
    """The user's options for the launcher. Raises InputError."""
    text = os.environ.get(SETTINGS["launcher_options"], "")
    try:
        return shlex.split(text)
    except ValueError:
        raise InputError(f"launcher options {shown(text)}: a quote is not closed") from None


def check_crowd(ranks: int, where: Allocation) -> None:
    """Raises InputError for more ranks than are started on this machine, if all run on it."""
    cores = usable_cores()
    if _is_here(where) and math.ceil(ranks / cores) > MOST_PER_CORE:
        most = f"expected at most {MOST_PER_CORE * cores}, {MOST_PER_CORE} per core"
        raise InputError(f"{ranks} ranks on the {plural(cores, 'core')} of this machine: {most}")


def _is_here(where: Allocation) -> bool:
    """Whether all ranks run on this machine."""
    return not where.order and len(where.hosts) == 1 and is_this_host(where.hosts[0].name)


def _check_slots(ranks: int, where: Allocation, hosts: Sequence[HostSlots]) -> None:
    slots = sum(host.slots for host in hosts) if hosts else where.slots
    if ranks <= slots:
        return
    has = f"{where.source} has"
    more = f"ask for {ranks} slots"
    if hosts:
        has = "the hosts asked for have"
        more = "ask for more hosts"
    elif where.order:
        more = "ask for more slots on its hosts ('HOST slots=N')"
    elif where.source.startswith("Slurm"):
        more = f"ask for -n {ranks}"
    raise InputError(
        f"{plural(ranks, 'rank')}, but {has} {plural(slots, 'slot')}; {more}, or for fewer ranks"
    )


def _ranks_on_hosts(
    ranks: int, where: Allocation, hosts: Sequence[HostSlots], mapping: str
) -> list[HostSlots]:
    """Hosts in the order of ranks, with the ranks that follow each other there."""
    if mapping == "host":
        return in_turns(hosts or where.hosts, ranks)
    return filled(hosts or (where.hosts if mapping else where.order or where.hosts), ranks)


def _here(
    program: str,
    launcher: Launcher,
    ranks: int,
    where: Allocation,
    options: Sequence[str],
    threads: int,
) -> JobLine:
    """Ranks on this machine: bound if all have cores; else not bound, and yielding."""
    check_crowd(ranks, where)
    if where.batch:
        _check_slots(ranks, where, ())
    crowded = ranks * threads > usable_cores()
    loose = crowded or set(affinity()) < set(job_cpus())  # a launcher would bind them elsewhere
    own = () if loose else _spread(launcher, "core", threads)
    if crowded:
        own = (*launcher.crowded, *launcher.yielding)
    elif launcher.name == "openmpi" and not where.batch and not any(map(os.environ.get, PLACED)):
        spread = own[1] if own else ""
        own = ("--map-by", f"{spread}{launcher.crowded_map}")  # it may see fewer cores than there are
    binding = launcher.unbound if loose else _binding(launcher, threads)
    words = [*absent(binding, options), *absent(own, options)]
    part = one_part(program, launcher, ranks, [], words, options, threads)
    return JobLine(launcher, (part,), crowded=crowded, loose=loose)


def _binding(launcher: Launcher, threads: int) -> Options:
    return launcher.threaded if threads > 1 else launcher.bound


def _spread(launcher: Launcher, mapping: str, threads: int) -> Options:
    """The options of a mapping that leaves cores for threads; () if none are needed."""
    options = launcher.map_by.get(mapping, ())
    if threads == 1 or not launcher.threaded_map:
        return ()
    return (*options[:-1], f"{options[-1]}{launcher.threaded_map}")


def _on_hosts(
    program: str,
    launcher: Launcher,
    runs: Sequence[HostSlots],
    options: Sequence[str],
    where: Allocation,
    mapping: str,
    threads: int,
) -> JobLine:
    """Ranks on hosts that the launcher is given in its own form, in this order."""
    ranks = sum(run.slots for run in runs)
    if not launcher.hosts and not _unasked(launcher, ranks, runs, where):
        raise InputError(
            f"{where.source}: fembench cannot pass hosts to {program} ({launcher.name}); set "
            f"FEMBENCH_LAUNCHER to one of {', '.join(one.name for one in LAUNCHERS if one.hosts)}"
        )
    hosts, bound = list(runs), not where.crowded
    if len({run.name for run in runs}) < len(runs) and not launcher.line_per_rank:
        if list(runs) == in_turns(merged(runs), ranks) and launcher.map_by.get("host"):
            hosts, mapping = list(merged(runs)), "host"
        elif threads > 1:
            raise InputError(f"threads = {threads}: {where.source} has hosts in turns; expected each once")
        elif launcher.name == "openmpi":
            return rankfile_made(program, launcher, runs, options)
        else:  # each repetition would be bound to the first cores of the host
            bound = False
    if mapping not in launcher.map_by:
        raise InputError(f"map by '{mapping}': {launcher.name} maps by {', '.join(launcher.map_by)}")
    words = [
        *absent(_binding(launcher, threads) if bound else launcher.unbound, options),
        *absent(_mapped(launcher, mapping, where.crowded, threads if bound else 1), options),
        *(launcher.yielding if where.crowded else ()),
    ]
    part = one_part(program, launcher, ranks, selecting(launcher, runs), words, options, threads)
    files = (launcher.host_file(hosts),) if launcher.hosts else ()
    return JobLine(launcher, (part,), files, crowded=where.crowded, loose=not bound)


def _unasked(launcher: Launcher, ranks: int, runs: Sequence[HostSlots], where: Allocation) -> bool:
    """Whether a launcher that takes no hosts has this order by itself."""
    ways = [filled(where.hosts, ranks), in_turns(where.hosts, ranks)] if where.batch else []
    return bool(launcher.map_by) and list(runs) in ways


def _mapped(launcher: Launcher, mapping: str, crowded: bool, threads: int) -> Sequence[str]:
    """The options of a mapping, which may allow more ranks than cores."""
    options = _spread(launcher, mapping, threads) or launcher.map_by[mapping]
    if not crowded:
        return options
    if not launcher.crowded_map:
        return (*options, *launcher.crowded)
    return (*options[:-1], f"{options[-1]}{launcher.crowded_map}")


def environment(line: JobLine, solver: str = "own", *, asleep: bool = False) -> dict[str, str]:
    """The environment of a job: one BLAS thread per rank, and its own threads.

    Open MPI may run as root in a container, and opens no component for one-sided
    messages over fabrics, which we do not send: closing it takes a second.

    PETSc gets huge pages, which our own kernels request themselves. Beyond the cores,
    waiting ranks yield where the launcher takes that from the environment. `asleep`:
    they yield as well, as dilated ranks must if they share the processor with ranks
    that emulate other machines.
    """
    variables = dict(os.environ)
    if solver == "petsc":
        variables.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    for name in THREADS:
        variables.setdefault(name, "1")
    if not variables.get("HOME"):  # Open MPI does not start without
        variables["HOME"] = os.path.expanduser("~")
    if line.launcher.name == "openmpi" and hasattr(os, "geteuid") and os.geteuid() == 0:
        variables.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        variables.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    if line.launcher.name == "openmpi":
        variables.setdefault("OMPI_MCA_btl", "^ofi")
    if line.launcher.name == "openmpi" and asleep:
        variables.update(ASLEEP)
    if line.crowded:
        variables = {**line.launcher.yielding_variables, **variables}  # what the user set wins
    if line.threads > 1:
        variables.update(OMP_NUM_THREADS=str(line.threads), **line.launcher.threaded_variables)
    if line.threads > 1 or any(map(variables.get, PLACES)):
        variables["OMP_PROC_BIND"] = "false"
    if line.loose:
        variables.update(line.launcher.unbound_variables)
    return variables


def one_part(
    program: str,
    launcher: Launcher,
    ranks: int,
    select: Sequence[str],
    words: Sequence[str],
    options: Sequence[str],
    threads: int = 1,
) -> tuple[str, ...]:
    """The launcher with its options."""
    count = [word.replace("{ranks}", str(ranks)) for word in launcher.ranks]
    own = own_plugin(program, launcher, options)
    meet = [f"--mpi={own}"] if own else []
    words = [word.replace("{threads}", str(threads)) for word in words]
    count = [word.replace("{threads}", str(threads)) for word in count]
    return (program, *absent(launcher.first, options), *select, *meet, *words, *options, *count)


def selecting(launcher: Launcher, runs: Sequence[HostSlots]) -> list[str]:
    """The options that select hosts."""
    hosts = merged(runs)
    meaning = {
        "{names}": ",".join(host.name for host in hosts),
        "{per_host}": str(max(host.slots for host in hosts)),
        "{n_hosts}": str(len(hosts)),
        "{group}": str(runs[0].component),
    }
    found = list(launcher.hosts)
    for name, value in meaning.items():
        found = [word.replace(name, value) for word in found]
    return found


def rankfile_given(
    program: str, launcher: Launcher, ranks: int, path: str, options: Sequence[str]
) -> JobLine:
    """Each rank on the host and core that a rankfile gives it."""
    if launcher.name != "openmpi":
        raise InputError(f"{path}: a rankfile is Open MPI's; expected a list of hosts ({launcher.name})")
    text = read_text(path)
    places = placed(text, path)
    if len(places) != ranks:
        raise InputError(f"{path} places {plural(len(places), 'rank')}; the case has {ranks}")
    slots = Counter(host for host, _ in places)
    listed = ",".join(f"{host}:{n}" for host, n in slots.items())
    binding = ("--bind-to", "core") if len(set(places)) == len(places) else launcher.bound
    words = ["--map-by", "rankfile:file={file}", *absent(binding, options)]
    part = one_part(program, launcher, ranks, ["--host", listed], words, options)
    return JobLine(launcher, (part,), (text,))


def rankfile_made(
    program: str, launcher: Launcher, runs: Sequence[HostSlots], options: Sequence[str]
) -> JobLine:
    """Ranks in an order of hosts that no mapping of Open MPI gives."""
    names = [run.name for run in runs for _ in range(run.slots)]
    text, next_slot = "", Counter[str]()
    for rank, name in enumerate(names):
        text += f"rank {rank}={name} slot={next_slot[name]}\n"
        next_slot[name] += 1
    listed = ",".join(f"{name}:{n}" for name, n in next_slot.items())
    words = ["--map-by", "rankfile:file={file}", *absent(launcher.bound, options)]
    part = one_part(program, launcher, len(names), ["--host", listed], words, options)
    return JobLine(launcher, (part,), (text,))


def across_components(
    program: str,
    launcher: Launcher,
    runs: Sequence[HostSlots],
    options: Sequence[str],
    where: Allocation,
    threads: int,
) -> JobLine:
    """Ranks on several components of a Slurm job: one part of an srun line for each."""
    if not launcher.component:
        program, launcher = _srun_instead(program, launcher, where.source)
    parts: list[tuple[str, ...]] = []
    files: list[str] = []
    for group in dict.fromkeys(run.component for run in runs):
        own = [run for run in runs if run.component == group]
        select = [word.replace("{group}", str(group)) for word in launcher.component]
        select += selecting(launcher, own)
        ranks = sum(run.slots for run in own)
        words = absent(_binding(launcher, threads), options)
        part = one_part(program, launcher, ranks, select, words, options, threads)
        parts.append(part[1:] if parts else part)
        files.append(launcher.host_file(own))
    return JobLine(launcher, tuple(parts), tuple(files))


def _srun_instead(program: str, launcher: Launcher, where: str) -> tuple[str, Launcher]:
    """srun, if this launcher cannot start the job. Raises InputError if chosen."""
    srun = shutil.which("srun")
    if srun and not os.environ.get(SETTINGS["launcher"]):
        return srun, recognised(srun)
    how = "type the same command with --launcher srun" if srun else "srun, which can, is not on PATH"
    raise InputError(
        f"{where}: {Path(program).name} ({launcher.name}) cannot start ranks on several components of a "
        f"heterogeneous job: {how}, or ask for hosts in one component (salloc -N3 -n6, without a colon)"
    )
