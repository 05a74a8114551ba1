"""How srun lets ranks find each other: its plugin (`srun --mpi=…`) must fit mpi4py's MPI.

A plugin that does not fit starts N jobs of one rank each, or ranks that abort. `srun
--mpi=list` and the library give the order in which plugins are tried; one that failed
is not tried again in this process."""

import functools
import re
from collections.abc import Sequence
from dataclasses import replace

from fembench.base.commands import answer, interpreter
from fembench.launch.launchers import JobLine, Launcher, absent

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
