"""What the starter of a job and its ranks exchange through files. Of `launch`, ranks import this,
`begun.py`, `rank_start.py`, `serve.py` and `witness.py` only.
"""

import msgspec

from fembench.records.case import Case
from fembench.records.record import Reference

# files in the folder; the result is one more
JOB, ERROR, PROGRESS, STARTED = "job.json", "error.txt", "progress.txt", "started.json"
WITNESS = "witness.json"
# kinds of errors
APART = "apart"  # the launcher did not make one job of the ranks
UNSHARED = "unshared"  # a host does not see the folder of the job
REFUSED = ("input", UNSHARED)  # what the user can correct: exit status 2


class StartedRank(msgspec.Struct, frozen=True, array_like=True):
    """Where a rank was started. STARTED holds them in the order of ranks."""

    host: str
    process: int


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case, as its ranks read it."""

    case: Case
    id: str
    command: str  # what the user typed
    launcher: str
    reference: Reference | None = None
    fields_path: str = ""
    cores: tuple[tuple[int, ...], ...] = ()  # [rank] -> its host's cores that it runs on; (): the launcher's
    synthetic: str = ""  # how heterogeneity is emulated around the job (rule E8)
    hosts_asked: str = ""  # as Environment.hosts_asked has it
    crowded: bool = False  # ranks share cores on purpose
