"""What the starter of a job and its ranks exchange through files.

Of `launch`, ranks import this, `begun.py`, `shared_page.py`, `rank_start.py`, `serve.py` and
`witness.py` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from fembench.records.case import Case
from fembench.records.record import Reference

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm

# files in the folder
JOB = "job.json"
ERROR = "error.txt"
PROGRESS = "progress.txt"
STARTED = "started.json"
RESULT = "result.json"
WITNESS = "witness.json"
PAGE = "page.json"
# kinds of errors
APART = "apart"  # the launcher did not make one job of the ranks
UNSHARED = "unshared"  # a host does not see the folder of the job
REFUSED = ("input", UNSHARED)  # what the user can correct: exit status 2


J = TypeVar("J", bound=msgspec.Struct)
Tell = Callable[[str], None]


class RankProgram(msgspec.Struct, Generic[J], frozen=True):
    """What every rank of a job does."""

    job: type[J]
    n_ranks: Callable[[J], int]  # that the job needs
    run: Callable[[Comm, J, Tell], Any]  # the result on rank 0, None elsewhere. Collective


class StartedRank(msgspec.Struct, frozen=True, array_like=True):
    """Where a rank was started."""

    host: str
    process: int


class StartedHost(msgspec.Struct, frozen=True):
    """A host of the job when its ranks have met."""

    name: str
    cores: int  # that the job can use at the same time
    cpu_quota: float  # CPU seconds per second; 0: no limit
    load_average: float  # over the last minute; 0 if only the job's ranks run now


class Started(msgspec.Struct, frozen=True):
    """What STARTED holds."""

    ranks: tuple[StartedRank, ...]  # [rank]
    hosts: tuple[StartedHost, ...]


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case, as its ranks read it."""

    case: Case
    id: str
    command: str  # what the user typed
    launcher: str = ""  # with its options; run_job says it
    reference: Reference | None = None
    fields_path: str = ""
    cores: tuple[tuple[int, ...], ...] = ()  # [rank] -> cores that it runs on; (): the launcher's
    synthetic: str = ""  # how heterogeneity is emulated around the job (rule E8)
    hosts_asked: str = ""  # as Environment.hosts_asked has it
    crowded: bool = False  # ranks share cores on purpose
