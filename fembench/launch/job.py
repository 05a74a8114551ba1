"""What the starter of a job and its ranks exchange through files. Of `launch`, ranks import this
and `serve.py` only.
"""

import msgspec

from fembench.records.case import Case
from fembench.records.record import Reference

JOB, ERROR, PROGRESS = "job.json", "error.txt", "progress.txt"  # files in the folder; the result is one more


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
