"""Placements as launcher files: Open MPI rankfile, MPICH host file, Slurm task list.

Open MPI: `mpiexec --map-by rankfile:file=FILE`; each rank has its own core if there are enough.
MPICH (hydra): `mpiexec -f FILE`; lines are filled in order, and a host may appear again.
Slurm: `SLURM_HOSTFILE=FILE srun --distribution=arbitrary`; one line per task.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from fembench.base.errors import InputError
from fembench.model.iteration_time import CandidateHost


def rankfile(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """Open MPI: 'rank 0=node1 slot=0'."""
    lines, next_core = [], [0] * len(hosts)
    for rank, p in enumerate(place):
        lines.append(f"rank {rank}={hosts[p].name} slot={next_core[p] % hosts[p].cores}\n")
        next_core[p] += 1
    return "".join(lines)


def hostfile(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """Open MPI: 'node1 slots=2'. Raises InputError if the ranks of a host are not consecutive."""
    groups = [(p, len(list(each))) for p, each in groupby(place)]
    again = [p for p, _ in groups if sum(q == p for q, _ in groups) > 1]
    if again:
        raise InputError(f"ranks on {hosts[again[0]].name} are not consecutive; expected --format rankfile")
    return "".join(f"{hosts[p].name} slots={n}\n" for p, n in groups)


def mpich(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """MPICH: 'node1:2', in the order of ranks."""
    return "".join(f"{hosts[p].name}:{len(list(each))}\n" for p, each in groupby(place))


def slurm(place: Sequence[int], hosts: Sequence[CandidateHost]) -> str:
    """Slurm: one host per line, in the order of ranks."""
    return "".join(f"{hosts[p].name}\n" for p in place)


FORMATS: dict[str, Callable[[Sequence[int], Sequence[CandidateHost]], str]] = {
    "rankfile": rankfile,
    "hostfile": hostfile,
    "mpich": mpich,
    "slurm": slurm,
}
LAUNCH = {  # fembench run passes the file to the launcher that it finds: Open MPI, MPICH or Slurm
    "rankfile": "fembench run … --ranks {ranks} --rankfile {path}",
    "hostfile": "fembench run … --ranks {ranks} --hostfile {path}",
    "mpich": "fembench run … --ranks {ranks} --hostfile {path}   (mpiexec -f {path} -n {ranks} …)",
    "slurm": "fembench run … --ranks {ranks} --hostfile {path}   "
    "(SLURM_HOSTFILE={path} srun --distribution=arbitrary -n {ranks} …)",
}
