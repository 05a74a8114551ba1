"""Peers: raw results of fembench and other programs on one system (`fembench peers`).

Times are in seconds, of the slowest rank. Schema history:
    1  first
    2  the fields of a case in groups
    3  hosts and ranks per host of a case
"""

import math
from pathlib import Path
from statistics import median
from typing import Literal, get_args

from fembench.base.config import write_json
from fembench.records.case import Case
from fembench.records.record import Environment, Frozen, MeshFacts
from fembench.records.schema import read

PEERS_SCHEMA = 3
Parity = Literal["solution", "iterate"]  # which vector of a peer is compared with the reference
PARITIES = get_args(Parity)
NONE = (math.nan,)  # in place of times that are not there
FILE = "peers.json"  # in the folder of a campaign


class PeerRun(Frozen, frozen=True):
    """The result of one peer with one preconditioner on one number of ranks."""

    peer: str  # "own-sym", "petsc-baij", "scikit-fem", …
    precond: str
    ranks: int
    status: Literal["timed", "no parity", "failed", "missing"]
    library: str = ""  # name and version
    note: str = ""  # why it has no time, or how to install it
    difference: float | None = None  # |u - u_right| / |u_right|, see PeersRecord.parity
    iterations: int = 0  # to the tolerance, or to the iterate
    solves: tuple[float, ...] = ()  # each to the tolerance, if it is the reference
    per_iteration: tuple[float, ...] = ()  # one per repetition
    assembly: tuple[float, ...] = ()  # from cells to the matrix; () if the matrix was given
    setup: tuple[float, ...] = ()  # from the matrix to the first iteration

    @property
    def own(self) -> bool:
        return self.peer.startswith("own-")

    @property
    def solve(self) -> float:
        """Median time of a solve after set-up; nan without one."""
        return median(self.solves or NONE)

    @property
    def iteration(self) -> float:
        """Median time of an iteration; nan without one."""
        return median(self.per_iteration or NONE)

    @property
    def to_solution(self) -> float:
        """Time of set-up and solve, without assembly."""
        return median(self.setup or NONE) + self.solve


class SystemFacts(Frozen, frozen=True):
    """The system K u = f that all peers solve."""

    n_rows: int  # includes restrained dofs of active nodes, each with a 1 on the diagonal
    nonzeros: int
    residual: float  # |f - K u| / |f| of the exported u
    folder: str = ""  # where it was exported to


class PeersRecord(Frozen, frozen=True):
    """One comparison of peers."""

    schema: int
    created: str  # ISO 8601, UTC
    case: Case  # mesh, problem, ranks, partitioner, tolerance
    environment: Environment
    mesh: MeshFacts
    system: SystemFacts
    runs: tuple[PeerRun, ...]
    parity: Parity = "solution"  # the exported u, or the iterate of numpy


def best_serial(record: PeersRecord) -> PeerRun | None:
    """The fastest other program on one rank: the base of an honest speedup."""
    others = [r for r in record.runs if r.solves and not r.own and r.ranks == 1]
    return min(others, key=lambda r: r.to_solution, default=None)


def save_peers(record: PeersRecord, folder: Path) -> Path:
    """Write the record, whole or not at all; return its path."""
    path = Path(folder) / FILE
    write_json(path, record)
    return path


def load_peers(path: Path | str) -> PeersRecord:
    """The comparison in a file, of this schema. Raises InputError for anything else."""
    return read(path, PeersRecord, PEERS_SCHEMA, "a comparison of peers", has="runs", verb="peers")
