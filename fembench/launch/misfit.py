"""A launcher that does not make the ranks one job: another plugin of srun, or why no line of it can."""

from dataclasses import replace

from fembench.launch.line import JobLine
from fembench.launch.plugin import fitting, mpi_library, plugin_after


def with_next_plugin(line: JobLine) -> JobLine | None:
    """The same ranks with another plugin of srun, after one that did not make them one job; None if
    there is no other."""
    other = plugin_after(line.program, line.plugin) if line.plugin else ""
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
