"""What commands need beside their workflow: settings, version, and formats of other programs.

Placements as files for launchers, and shares for programs that cut a mesh themselves: each
format is declared once; the command line follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from fembench.host.build import version_text
from fembench.launch.launchers import LAUNCHERS, MAP_BY, SETTINGS, use_settings
from fembench.partition.maps import MAPS, decompose_dict, whole_shares
from fembench.records.weights import Weights, as_text, shares_of

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


class ShareFormat(NamedTuple):
    """One format."""

    help: str  # which program takes it
    text: Callable[[Weights], str]


def metis(weights: Weights) -> str:
    """A line 'part = share' per part, sum 1. Source: METIS 5, gpmetis -tpwgts."""
    return "".join(f"{part} = {share:.9f}\n" for part, share in enumerate(shares_of(weights)))


def scotch(weights: Weights) -> str:
    """A weighted complete graph as target. Source: Scotch 7, gmap GRAPH FILE."""
    loads = whole_shares(shares_of(weights))
    return f"cmpltw {len(loads)} {' '.join(map(str, loads))}\n"


def openfoam(weights: Weights) -> str:
    """system/decomposeParDict with the processorWeights of Scotch and METIS."""
    return decompose_dict(shares_of(weights), "scotch")


def plain(weights: Weights) -> str:
    """All shares on one line, '0.7,0.3'."""
    return as_text(weights) + "\n"


EXPORTS = {
    "metis": ShareFormat("the file of gpmetis and mpmetis -tpwgts=FILE", metis),
    "scotch": ShareFormat("the target file of gmap", scotch),
    "openfoam": ShareFormat("system/decomposeParDict, processorWeights", openfoam),
    "shares": ShareFormat("the argument of fembench run --shares", plain),
}


__all__ = [
    "EXPORTS",
    "LAUNCHER_FILES",
    "LAUNCHER_NAMES",
    "MAPS",
    "MAP_BY",
    "SETTINGS",
    "use_settings",
    "version_text",
]

LAUNCHER_NAMES = ", ".join(one.name for one in LAUNCHERS)
