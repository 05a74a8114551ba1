"""Placements as files for launchers, each format declared once; the command line follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fembench.model.placement import CandidateHost


class LauncherFile(NamedTuple):
    """One format."""

    help: str  # which launcher takes it
    use: str  # the command, with {ranks} and {path}: fembench run passes the file on
    text: Callable[[Sequence[int], Sequence[CandidateHost]], str]  # of ([rank] its host, hosts)


def rankfile(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """'rank 0=node1 slot=0': each rank has its own core, if there are enough."""
    lines, next_core = [], [0] * len(hosts)
    for rank, p in enumerate(place):
        lines.append(f"rank {rank}={hosts[p].name} slot={next_core[p] % hosts[p].cores}\n")
        next_core[p] += 1
    return "".join(lines)


def mpich(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """'node1:2', filled in the order of ranks; a host may appear again."""
    return "".join(f"{hosts[p].name}:{len(list(each))}\n" for p, each in groupby(place))


def slurm(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """One host per line, in the order of ranks."""
    return "".join(f"{hosts[p].name}\n" for p in place)


LAUNCHER_FILES = {
    "rankfile": LauncherFile(
        "Open MPI, --map-by rankfile:file=FILE",
        "fembench run … --ranks {ranks} --rankfile {path}",
        rankfile,
    ),
    "mpich": LauncherFile(
        "MPICH, -f FILE",
        "fembench run … --ranks {ranks} --hostfile {path}   (mpiexec -f {path} -n {ranks} …)",
        mpich,
    ),
    "slurm": LauncherFile(
        "Slurm, SLURM_HOSTFILE=FILE",
        "fembench run … --ranks {ranks} --hostfile {path}   "
        "(SLURM_HOSTFILE={path} srun --distribution=arbitrary -n {ranks} …)",
        slurm,
    ),
}
