"""Which rank died, on which host, and of what.

The connections of the ranks tell who died first (`witness`); what the launcher printed tells of what. Where a
rank had no connection, the launcher's word counts, completed by where each rank was started: Open MPI 5 names
no rank on another host, MPICH 5 names a process, and Intel MPI names ranks that it ended itself.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fembench.launch.hostlist import same_host
from fembench.launch.job import StartedRank
from fembench.launch.witness import Death

_SIGNALS = {int(number): signal.strsignal(number) or "" for number in signal.valid_signals()}
_NAMES = "Killed|Terminated|Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception"
_FORMS = (  # of the output with all white space turned into single blanks
    # Open MPI
    r"process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal (?P<signal>\d+)",
    # MPICH 4, Intel MPI
    r"RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<host>\S+) = KILLED BY SIGNAL: (?P<signal>\d+)",
    # MPICH 5
    r" PID (?P<process>\d+) RUNNING AT (?P<host>\S+) .*?EXIT STRING: \w[^(]* \(signal (?P<signal>\d+)\)",
    r" PID (?P<process>\d+) RUNNING AT (?P<host>\S+) = EXIT CODE: (?P<signal>4|6|7|8|9|11|15)\b",
    # srun
    rf"srun: error: (?P<host>\S+): task (?P<rank>\d+): (?P<named>{_NAMES})",
    rf"srun: error: (?P<host>\S+): tasks \S+: (?P<named>{_NAMES})",
    # Open MPI 5, if the rank was on another host
    r"peer process has unexpectedly disconnected.*?Local host: (?P<by>\S+).*?Peer host: (?P<host>\S+)",
)
# Open MPI, of a rank that ended itself because another one was gone
_BEREAVED = re.compile(r"\*\*\* reported by process \[\d+,(\d+)\]")
_OUT_OF_MEMORY = re.compile(r"oom[-_ ]kill", re.I)


@dataclass(frozen=True)
class DeadRank:
    """The rank that ended its job."""

    host: str
    rank: int | None  # None: not known
    signal: int | None
    blamed: bool  # by the launcher, too
    process: int = 0  # 0: not known
    why: str = ""

    def __str__(self) -> str:
        who = f"rank {self.rank}" if self.rank is not None else "a rank"
        if self.rank is None and self.process:
            who = f"the rank that was process {self.process}"
        name = _SIGNALS.get(self.signal or 0)
        how = f"was ended by signal {self.signal}" if self.signal else "crashed or was ended"
        return f"{who} on {self.host} {how}" + (f" ({name})" if name else "") + self.why


def dead_rank(
    output: str, started: Sequence[StartedRank] = (), deaths: Sequence[Death] = ()
) -> DeadRank | None:
    """The rank that died first; None if nothing says that one did.

    `started`: [rank] -> where it was started, if known; `deaths`: of ranks with a connection, in their order.
    """
    flat = " ".join(output.split())
    found = next((all_ for form in _FORMS if (all_ := [m.groupdict() for m in re.finditer(form, flat)])), [])
    why = ": the job's memory limit was reached" if _OUT_OF_MEMORY.search(flat) else ""
    if deaths:
        bereaved = _bereaved(flat)
        first = next((one for one in deaths if one.rank not in bereaved), deaths[0])
        here = started[first.rank] if first.rank < len(started) else StartedRank(first.host, 0)
        said = next((one for one in found if _is_of(one, first.rank, here)), {})
        lost = bool(found) or "Socket closed" in flat  # as Open MPI calls the end of a peer
        return DeadRank(here.host, first.rank, _signal(said), lost, why=why)
    if not found:
        return None
    said = found[0]
    if len({one.get("rank") for one in found}) > 1 and "KILLED BY SIGNAL" in flat:  # Intel MPI ended most
        hosts = dict.fromkeys(one["host"] for one in found)
        return DeadRank(" or ".join(hosts), None, _signal(said), True, why=why)
    process = int(said.get("process") or 0)
    rank = int(said["rank"]) if said.get("rank") else _only(process, said["host"], started)
    if said.get("by") and rank is None:
        why = f": a rank on {said['by']} lost its connection to it"
    return DeadRank(said["host"], rank, _signal(said), True, process, why)


def _bereaved(flat: str) -> set[int]:
    """Ranks that ended because they lost another one. Their connection may be seen to close before that of
    the other, whose host is farther away or busier."""
    return {int(rank) for rank in _BEREAVED.findall(flat)} if "Socket closed" in flat else set()


def _is_of(said: Mapping[str, Any], rank: int, here: StartedRank) -> bool:
    """Whether a launcher means this rank, or does not say which rank of its host it means."""
    if said.get("rank") or said.get("process"):
        return rank == int(said.get("rank") or -1) or here.process == int(said.get("process") or -1)
    return same_host(said["host"], here.host)


def _signal(said: Mapping[str, Any]) -> int | None:
    """The number of the signal that a launcher names."""
    return int(said["signal"]) if said.get("signal") else _number(said.get("named"))


def _number(name: str | None) -> int | None:
    return next((number for number, known in _SIGNALS.items() if name and known == name), None)


def _only(process: int, host: str, started: Sequence[StartedRank]) -> int | None:
    """The rank on a host with this process (0: not known), if there is just one."""
    on_host = [rank for rank, one in enumerate(started) if same_host(one.host, host)]
    found = [rank for rank in on_host if process in (0, started[rank].process)]
    return found[0] if len(found) == 1 else None
