"""What the launcher passes to the ranks of a job; ranks import no other module of `launch` for it."""

import msgspec

from fembench.records.case import Case
from fembench.records.record import Reference


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The job as its ranks read it."""

    case: Case
    id: str
    command: str  # what the user typed
    launcher: str
    reference: Reference | None = None
    fields_path: str = ""
    cores: tuple[tuple[int, ...], ...] = ()  # [rank] -> its host's cores that it runs on; (): the launcher's
    synthetic: str = ""  # how heterogeneity is emulated around the job (rule E8)
    hosts_asked: str = ""  # as Environment.hosts_asked has it
