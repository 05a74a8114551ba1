"""What the launcher tells the ranks of a job. On its own: ranks need nothing else of the launcher."""

import msgspec

from fembench.records.case import Case
from fembench.records.record import Reference


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job's ranks read."""

    case: Case
    id: str
    command: str  # what the user typed
    launcher: str
    reference: Reference | None = None
    fields_path: str = ""
    cores: tuple[tuple[int, ...], ...] = ()  # [rank] -> its host's cores that it runs on; (): the launcher's
    synthetic: str = ""  # how heterogeneity is emulated around the job (VALIDITY E8)
    hosts_asked: str = ""  # as Environment.hosts_asked has it
