"""Explain in one line why a job left no result.

A launcher refused something, or a rank died.

The connections of the ranks tell who died first (`witness`); what the launcher printed
tells of what. Where a rank had no connection, the launcher's word counts, completed by
where each rank was started: Open MPI 5 names no rank on another host, MPICH 5 names a
process, and Intel MPI names ranks that it ended itself. The texts recognised are those
of Open MPI 5 (PRRTE), Open MPI 4, MPICH 4 and 5, Intel MPI, srun, and ssh."""

import re
import signal
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fembench.launch.hosts import same_host
from fembench.launch.job import APART, UNSHARED, StartedRank
from fembench.launch.witness import Death

_SSH = "`ssh {0}` must need no password, and MPI and fembench must be installed there, in the same place"
# kind, as JobEnd.kind or APART -> patterns of what a launcher prints, with all white space turned into single
# blanks, and below each its meaning; {0} and {1} are groups of the pattern. The first that matches counts
_SIGNS = {
    UNSHARED: r"""
could not change to the specified working directory: Working directory: (\S+) Node: (\S+)
    host {1} does not have the folder {0}: work in a folder that all hosts share
@(\S+)\] .{0,200}?unable to change wdir to (\S+)
    host {0} does not have the folder {1}: work in a folder that all hosts share
""",
    APART: r"""
unsupported PMI version (\w+)
    the ranks cannot form one job: their MPI library does not support {0}
OMPI was not built with SLURM'?s? (?:PMI )?support
    the ranks cannot form one job: Open MPI does not support this plugin of srun
(?:find the specified plugin name for|find mpi plugin for) mpi/\w+|Invalid MPI type '\w+'
    srun cannot load its plugin for --mpi
""",
    "input": r"""
satisfy the (\d+) slots that were requested
    {0} ranks, but the hosts have fewer slots: ask for fewer ranks, or for more slots ('HOST slots=N' in a
    host file, -n for an allocation)
not included in the current allocation\. Missing requested host: (\S+)
    host {0} is not in this job's allocation: correct the host file, or ask for that host
All nodes which are allocated for this job are already filled
    no free slot on the hosts of this job's allocation: correct the host file, or ask for more
binding (?:more )?processes to more cpus than .*?#processes: (\d+)
    {0} ranks on a host with fewer cores: ask for fewer ranks, or give it fewer slots
Could not resolve hostname (\S+):[ ]
    host {0} does not resolve: correct its name in the host file, or add it to DNS or /etc/hosts
ssh: connect to host (\S+) port \d+: (\w+(?: \w+)*)
    host {0} cannot be reached ({1}): {ssh}
daemon failed to report back .*?Remote host: (\S+)
    Open MPI could not start its daemon on host {0}: {ssh}
could not access (?:or execute )?an executable: Executable: (\S+) Node: (\S+)
    {0} does not exist on host {1}: install fembench there, in the same place
@(\S+)\] \w+ \([^)]*\): execvp error on file (\S+)
    {1} does not exist on host {0}: install fembench there, in the same place
line that specified a non-existent CPU: Slots: (\S+)
    the rankfile names slot {0}, which its host does not have
parse error in the hostfile: (\S+) It occur\w+ on line number (\d+)
    {0}: cannot read line {1}; expected lines such as 'host1 slots=2'
multiple definitions of the slot count .*?hostfile: (\S+) node: (\S+)
    {0}: host {1} is listed more than once; expected one line per host with all its slots
token (\S+) not supported at this time
    MPICH does not know '{0}' in a host file; expected lines such as 'host1:2'
unable to create the desired directory: Directory: (\S+) Error: (.+?) Please
    Open MPI cannot make the folder {0} ({1}): let TMPDIR name a folder in which it can
no available interfaces were found
    Open MPI finds no network interface on this host: set up at least the loopback (ip link set lo up)
PMIx server's listener thread failed to start
    Open MPI cannot start beside what a killed job left: remove ompi.* of ended jobs in TMPDIR (/tmp)
unable to run bstrap_proxy on (\S+) \(
    Intel MPI could not start its proxy on host {0}: {ssh}
unable to get host address for (\S+)
    host {0} does not resolve: correct its name in the host file, or add it to DNS or /etc/hosts
srun: error: Unable to create step for job (\d+): More processors requested than permitted
    the hosts of Slurm job {0} have fewer processors than ranks: ask for more (-n)
srun: error: Unable to create step for job (\d+): (.+?)(?= srun: |$)
    srun could not start the ranks in job {0} ({1}): check the hosts, and -n of the allocation
""",
}
_OPTIONS = (  # {0} is the option as the launcher names it; tried only if no rank started
    r"unrecognized option was included on the .{1,40} command line: Option: (\S+)",  # PRRTE
    r"match_arg \([^)]*\): unrecognized argument (\S+)",  # hydra
    r"[Uu]nrecogni[sz]ed (?:option|argument)s?:? '?\"?(-*\w[^\s'\"]*)",  # getopt, argparse
    r"(?:[Uu]nknown|[Ii]nvalid) (?:option|argument):? '?\"?(-*\w[^\s'\"]*)",
    r"invalid option -- '?(\w)",
    r"option '?(--?[\w-]+)'? (?:requires an argument|is ambiguous|doesn't allow an argument)",
    r"directive is not recognized: Directive: (\S+)",  # PRRTE, of a value
    r"policy is not recognized: Policy: (\S+)",
    r"unrecognized (?:modifier|qualifier): (?:Request|Qualifier): (\S+)",
    r"unrecognized directive \"(\S+?)\"",  # hydra
    r"unrecog\w+ .{0,120}?Param name: (\S+)",
    r"(?:Node: \S+ )?Executable: ([^/\s]\S*)(?: Node: )?",  # where PRRTE and hydra name the program
    r"execvp error on file ([^/\s]\S*)",
)
_NOISE = re.compile(
    r"^\s*$|^[-=]+$|^NOTE:|exactly when Open MPI|You may or may not see|prterun has exited|^\"abort\""
    r"|plm:ssh: Warning: setpgid|^This typically refers|^Please see the FAQ|^\[(mpiexec|proxy)\S*@.*error"
    r"|^\[mpiexec@\S+ Exit codes:|^\[\S+\] [\d,]+$"
    r"|\] \*\*\*\s+(reported by|on (a )?|MPI_ERRORS_ARE_FATAL|and MPI will)"
)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # colours, and the rest
_HELP = re.compile(r"^-{20,}\n(.*?)\n-{20,}$", re.M | re.S)  # how Open MPI sets its messages apart


def plain(text: str) -> str:
    """The text without control characters, such as PRRTE's NUL and colours."""
    return _CONTROL.sub("", text)


def diagnosis(
    status: int,
    output: str,
    started: Sequence[StartedRank] = (),
    deaths: Sequence[Death] = (),
    launcher: str = "the launcher",
) -> tuple[str, str]:
    """(kind, one line): which rank ended the job and how, or what the launcher refused.

    `started`: [rank] -> where it was started, if known; `deaths`: of ranks with a
    connection, in their order; `launcher`: its program.
    """
    output = plain(output)  # also for output that did not come from run_ranks
    # what a launcher prints next may stand on the same line
    refused = re.search(
        r"^fembench: rank \d+ on \S+ raised (Input|Unshared)Error: (.*?)(?:-{20,}.*)?$", output, re.M
    )
    if refused:
        return "input" if refused.group(1) == "Input" else UNSHARED, refused.group(2)
    raised = re.search(r"^fembench: (rank \d+ on \S+ raised .*?)(?:-{20,}.*)?$", output, re.M)
    if raised:
        return "crashed", raised.group(1)
    flat = " ".join(output.split())
    dead = dead_rank(output, started, deaths)
    kind, meaning = _sign(flat)
    if dead and dead.blamed and kind != APART:  # then the launcher ended the other ranks
        return "killed", str(dead)
    begun = bool(dead or started)
    if status and not begun and (option := _refused_option(flat)):
        return "input", f"{launcher} does not take {option}: correct its options (--launcher-options)"
    if kind:
        return kind, meaning
    if not begun and status == 0:
        return "input", (
            f"{launcher} started no ranks; it ended with exit status 0: {_said(output)}; expected a "
            "launcher of MPI jobs (--launcher), with options that let it start them (--launcher-options)"
        )
    return "crashed", f"{dead or f'{launcher} ended with exit status {status}'}: {_said(output)}"


def _sign(flat: str) -> tuple[str, str]:
    """(kind, meaning) of what a launcher printed; ("", "") if nothing is known."""
    for kind, table in _SIGNS.items():
        for pattern, meaning in re.findall(r"^(\S.*)\n((?: .*\n)+)", table, re.M):
            if found := re.search(pattern, flat):
                text = " ".join(meaning.split()).replace("{ssh}", _SSH)
                return kind, text.format(*found.groups())
    return "", ""


def _refused_option(flat: str) -> str:
    """The option that a launcher does not know, as it names it; "" if it refuses none."""
    found = (match for pattern in _OPTIONS if (match := re.search(pattern, flat)))
    return next((match.group(1).rstrip(".,;:") for match in found), "")


def _said(output: str) -> str:
    """The last telling line outside Open MPI's messages, or the first sentence of one.

    A sentence that ends with a colon includes what it introduces.
    """
    lines = _HELP.sub("", output).splitlines()
    outside = [line.strip() for line in lines if not _NOISE.search(line)]
    if outside:
        return outside[-1]
    inside = "\n\n".join(_HELP.findall(output))
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", inside)]
    first, *rest = [part for part in parts if part] or ["it printed nothing"]
    sentence = re.split(r"(?<=\.) ", first)[0]
    return f"{sentence} {rest[0]}" if sentence.endswith(":") and rest else sentence


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
# Open MPI, of ranks that ended themselves because another one was gone
_BEREAVED = re.compile(
    r"\*\*\* reported by process \[\d+,(\d+)\]"
    r"|due to process rank (\d+) with PID \d+ on node \S+ calling .abort"
)
_BEREFT = re.compile(r"unexpectedly disconnected.*?Local PID: (\d+)")  # and the process of one
_STATUSES = re.compile(r"\[(\S+)\] (\d+(?:,\d+)*)(?= |$)")  # MPICH, of a host's ranks, in their order
_SAME_TIME = 0.1  # seconds within which connections may close in any order
_OUT_OF_MEMORY = re.compile(r"oom[-_ ]kill", re.I)
_MOST_NAMED = 3  # ranks that may be the one


@dataclass(frozen=True)
class DeadRank:
    """The rank that ended its job."""

    who: str  # as a line names it, and several if it may be any of them
    signal: int | None
    blamed: bool  # by the launcher, too
    why: str = ""

    def __str__(self) -> str:
        name = _SIGNALS.get(self.signal or 0)
        how = f"was ended by signal {self.signal}" if self.signal else "crashed or was ended"
        return f"{self.who} {how}" + (f" ({name})" if name else "") + self.why


def dead_rank(
    output: str, started: Sequence[StartedRank] = (), deaths: Sequence[Death] = ()
) -> DeadRank | None:
    """The rank that died first; None if nothing says that one did.

    `started`: [rank] -> where it was started; `deaths`: of connected ranks, in order.
    """
    flat = " ".join(output.split())
    matches = ([m.groupdict() for m in re.finditer(form, flat)] for form in _FORMS)
    found = next(filter(None, matches), [])
    why = ": the job's memory limit was reached" if _OUT_OF_MEMORY.search(flat) else ""
    ended = _ended(flat, started)
    if deaths:
        first = _first(deaths, _bereaved(flat, started))
        here = [started[one.rank] if one.rank < len(started) else StartedRank(one.host, 0) for one in first]
        said = next((one for one in found if _is_of(one, first[0].rank, here[0])), {})
        lost = bool(found) or "Socket closed" in flat  # as Open MPI calls the end of a peer
        names = [f"rank {one.rank} on {at.host}" for one, at in zip(first, here)]
        more = ["another"] if len(names) > _MOST_NAMED else []
        who = " or ".join([*names[:_MOST_NAMED], *more])
        number = ended.get(first[0].rank) or _signal(said)
        return DeadRank(who, number, lost, why)
    if not found:
        return None
    said = found[0]
    intel = len({one.get("rank") for one in found}) > 1 and "KILLED BY SIGNAL" in flat
    if intel or len(ended) > 1:  # most were ended by the launcher
        hosts = [started[rank].host for rank in ended if started] or [one["host"] for one in found]
        signals: set[int | None] = {*ended.values()} or {_signal(said)}
        who = f"a rank on {' or '.join(dict.fromkeys(hosts))}"
        number = signals.pop() if len(signals) == 1 else None
        return DeadRank(who, number, True, why)
    process = int(said.get("process") or 0)
    rank = int(said["rank"]) if said.get("rank") else _only(process, said["host"], started)
    if said.get("by") and rank is None:
        why = f": a rank on {said['by']} lost its connection to it"
    nameless = f"the rank that was process {process}" if process else "a rank"
    who = nameless if rank is None else f"rank {rank}"
    return DeadRank(f"{who} on {said['host']}", _signal(said), True, why)


def _ended(flat: str, started: Sequence[StartedRank]) -> dict[int, int]:
    """{rank: signal} of the processes that signals ended, as MPICH lists them all.

    Above that list it names the first of them, which may be one that it ended itself.
    """
    listed = _STATUSES.findall(flat.partition("Exit codes: ")[2])
    ended = {}
    for host, text in listed:
        ranks = [rank for rank, one in enumerate(started) if same_host(one.host, host)]
        statuses = [int(status) for status in text.split(",")]
        if not started and len(listed) == 1:
            ranks = list(range(len(statuses)))
        ended.update({rank: status & 0x7F for rank, status in zip(ranks, statuses) if status & 0x7F})
    return ended


def _bereaved(flat: str, started: Sequence[StartedRank]) -> set[int]:
    """Ranks that ended because they lost another one."""
    if "Socket closed" not in flat:
        return set()
    processes = {int(process) for process in _BEREFT.findall(flat)}
    named = {int(one or other) for one, other in _BEREAVED.findall(flat)}
    return named | {rank for rank, one in enumerate(started) if one.process in processes}


def _first(deaths: Sequence[Death], bereaved: Container[int]) -> Sequence[Death]:
    """The rank that died first; several if a bereaved one was seen to die before it.

    Then their order is not that of the deaths, because hosts
    are not equally far and busy.
    """
    others = [one for one in deaths if one.rank not in bereaved]
    if not others or others[0] is deaths[0]:
        return deaths[:1]
    return [one for one in others if one.at <= max(deaths[0].at + _SAME_TIME, others[0].at)]


def _is_of(said: Mapping[str, Any], rank: int, here: StartedRank) -> bool:
    """Whether a launcher means this rank, or does not say which one of its host."""
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
