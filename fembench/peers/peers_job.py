"""The job of a comparison, apart from the code of its ranks, which loads MPI."""

import msgspec

from fembench.records.case import Case
from fembench.records.contest import Parity


class PeersJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job as its ranks read it."""

    case: Case  # mesh, problem, ranks, partition, relative tolerance
    names: tuple[str, ...]  # Entry.name
    repetitions: int
    iterations: int = 0  # > 0: iterations per repetition; 0: iterate to the tolerance
    parity: Parity = "solution"
    export: str = ""
    command: str = ""
    launcher: str = ""
