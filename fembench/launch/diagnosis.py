"""Explain in one line why a job left no result, from the output of its ranks and its launcher.

Ranks that died are known from their connections, too. The texts recognised are those of Open MPI 5 (PRRTE),
Open MPI 4, MPICH 4 and 5, Intel MPI, srun, and ssh.
"""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from fembench.launch.job import APART, ERROR, STARTED, UNSHARED, Started, StartedRank
from fembench.launch.killed import dead_rank
from fembench.launch.witness import Death


@dataclass(frozen=True)
class Ended:
    """How a launcher ended."""

    status: int
    output: str  # all that it printed
    late: bool  # time ran out
    deaths: tuple[Death, ...] = ()  # of ranks with a connection, in their order


class Sign(NamedTuple):
    """Text printed by a launcher, and its meaning."""

    kind: str  # as JobEnd.kind, or APART
    pattern: str  # of the output with all white space turned into single blanks
    meaning: str  # {0}, {1}: groups of the pattern


_SSH = "`ssh {0}` must need no password, and MPI and fembench must be installed there, in the same place"
SIGNS = (
    Sign(
        "input",
        r"satisfy the (\d+) slots that were requested",
        "{0} ranks, but the hosts have fewer slots: ask for fewer ranks, or for more slots "
        "('HOST slots=N' in a host file, -n for an allocation)",
    ),
    Sign(
        "input",
        r"not included in the current allocation\. Missing requested host: (\S+)",
        "host {0} is not in this job's allocation: correct the host file, or ask for that host",
    ),
    Sign(
        "input",
        r"All nodes which are allocated for this job are already filled",
        "no free slot on the hosts of this job's allocation: correct the host file, or ask for more",
    ),
    Sign(
        "input",
        r"binding (?:more )?processes to more cpus than .*?#processes: (\d+)",
        "{0} ranks on a host with fewer cores: ask for fewer ranks, or give it fewer slots",
    ),
    Sign(
        "input",
        r"Could not resolve hostname (\S+): ",
        "host {0} does not resolve: correct its name in the host file, or add it to DNS or /etc/hosts",
    ),
    Sign(
        "input",
        r"ssh: connect to host (\S+) port \d+: (\w+(?: \w+)*)",
        f"host {{0}} cannot be reached ({{1}}): {_SSH}",
    ),
    Sign(
        "input",
        r"daemon failed to report back .*?Remote host: (\S+)",
        f"Open MPI could not start its daemon on host {{0}}: {_SSH}",
    ),
    Sign(
        "input",
        r"could not access (?:or execute )?an executable: Executable: (\S+) Node: (\S+)",
        "{0} does not exist on host {1}: install fembench there, in the same place",
    ),
    Sign(
        "input",
        r"@(\S+)\] \w+ \([^)]*\): execvp error on file (\S+)",
        "{1} does not exist on host {0}: install fembench there, in the same place",
    ),
    Sign(
        "input",
        r"line that specified a non-existent CPU: Slots: (\S+)",
        "the rankfile names slot {0}, which its host does not have",
    ),
    Sign(
        "input",
        r"parse error in the hostfile: (\S+) It occur\w+ on line number (\d+)",
        "{0}: cannot read line {1}; expected lines such as 'host1 slots=2'",
    ),
    Sign(
        "input",
        r"multiple definitions of the slot count .*?hostfile: (\S+) node: (\S+)",
        "{0}: host {1} is listed more than once; expected one line per host with all its slots",
    ),
    Sign(
        "input",
        r"token (\S+) not supported at this time",
        "MPICH does not know '{0}' in a host file; expected lines such as 'host1:2'",
    ),
    Sign(
        UNSHARED,
        r"could not change to the specified working directory: Working directory: (\S+) Node: (\S+)",
        "host {1} does not have the folder {0}: work in a folder that all hosts share",
    ),
    Sign(
        UNSHARED,
        r"@(\S+)\] .{0,200}?unable to change wdir to (\S+)",
        "host {0} does not have the folder {1}: work in a folder that all hosts share",
    ),
    Sign(
        "input",
        r"unable to run bstrap_proxy on (\S+) \(",
        f"Intel MPI could not start its proxy on host {{0}}: {_SSH}",
    ),
    Sign(
        "input",
        r"unable to get host address for (\S+)",
        "host {0} does not resolve: correct its name in the host file, or add it to DNS or /etc/hosts",
    ),
    Sign(
        APART,
        r"unsupported PMI version (\w+)",
        "the ranks cannot form one job: their MPI library does not support {0}",
    ),
    Sign(
        APART,
        r"OMPI was not built with SLURM'?s? (?:PMI )?support",
        "the ranks cannot form one job: Open MPI does not support this plugin of srun",
    ),
    Sign(
        APART,
        r"(?:find the specified plugin name for|find mpi plugin for) mpi/\w+|Invalid MPI type '\w+'",
        "srun cannot load its plugin for --mpi",
    ),
    Sign(
        "input",
        r"srun: error: Unable to create step for job (\d+): More processors requested than permitted",
        "the hosts of Slurm job {0} have fewer processors than ranks: ask for more (-n)",
    ),
    Sign(
        "input",
        r"srun: error: Unable to create step for job (\d+): (.+?)(?= srun: |$)",
        "srun could not start the ranks in job {0} ({1}): check the hosts, and -n of the allocation",
    ),
)
OPTIONS = (  # {0} is the option as the launcher names it; tried only if no rank started
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
    r"(?:Node: \S+ )?Executable: ([^/\s]\S*)(?: Node: )?",  # PRRTE and hydra take it for the program
    r"execvp error on file ([^/\s]\S*)",
)
_NOISE = re.compile(
    r"^\s*$|^[-=]+$|^NOTE:|exactly when Open MPI|You may or may not see|prterun has exited|^\"abort\""
    r"|plm:ssh: Warning: setpgid|^This typically refers|^Please see the FAQ|^\[(mpiexec|proxy)\S*@.*error"
    r"|\] \*\*\*\s+(reported by|on (a )?|MPI_ERRORS_ARE_FATAL|and MPI will)"
)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # colours, and the rest
_HELP = re.compile(r"^-{20,}\n(.*?)\n-{20,}$", re.M | re.S)  # how Open MPI sets its messages apart


def plain(text: str) -> str:
    """The text without control characters: PRRTE ends its messages with a NUL, others print colours."""
    return _CONTROL.sub("", text)


def why_nothing(folder: Path, ended: Ended, timeout: float, launcher: str) -> tuple[str, str]:
    """(kind as JobEnd.kind or APART, one line) for a job that left no result in its folder.

    `launcher`: its program.
    """
    error = folder / ERROR
    if error.exists():
        kind, message = error.read_text().split("\n", 1)
        return kind, message
    if ended.late:
        return "timeout", f"no result after {timeout:g} s: ended"
    started = _started(folder)
    return diagnosis(ended.status, ended.output, started, ended.deaths, launcher)


def _started(folder: Path) -> Sequence[StartedRank]:
    """[rank] -> where it was started; () if the job did not come that far."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / STARTED).read_bytes(), type=Started).ranks
    return ()


def diagnosis(
    status: int,
    output: str,
    started: Sequence[StartedRank] = (),
    deaths: Sequence[Death] = (),
    launcher: str = "the launcher",
) -> tuple[str, str]:
    """(kind, one line): which rank ended the job and how, or what the launcher refused.

    `started`: [rank] -> where it was started, if known; `deaths`: of ranks with a connection, in their order;
    `launcher`: its program.
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
    flat, dead = " ".join(output.split()), dead_rank(output, started, deaths)
    signs = ((sign, found) for sign in SIGNS if (found := re.search(sign.pattern, flat)))
    sign, found = next(signs, (None, None))
    if dead and dead.blamed and not (sign and sign.kind == APART):  # then the launcher ended the other ranks
        return "killed", str(dead)
    begun = bool(dead or started)
    if status and not begun and (option := _refused_option(flat)):
        return "input", f"{launcher} does not take {option}: correct its options (--launcher-options)"
    if sign and found:
        return sign.kind, sign.meaning.format(*found.groups())
    if not begun and status == 0:
        return "input", (
            f"{launcher} started no ranks; it ended with exit status 0: {_said(output)}; expected a "
            "launcher of MPI jobs (--launcher), with options that let it start them (--launcher-options)"
        )
    return "crashed", f"{dead or f'{launcher} ended with exit status {status}'}: {_said(output)}"


def _refused_option(flat: str) -> str:
    """The option that a launcher does not know, as it names it; "" if it refuses none."""
    found = (match for pattern in OPTIONS if (match := re.search(pattern, flat)))
    return next((match.group(1).rstrip(".,;:") for match in found), "")


def _said(output: str) -> str:
    """The last informative line outside Open MPI's messages, or else the first sentence of one.

    A sentence that ends with a colon includes what it introduces.
    """
    outside = [line.strip() for line in _HELP.sub("", output).splitlines() if not _NOISE.search(line)]
    if outside:
        return outside[-1]
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", "\n\n".join(_HELP.findall(output)))]
    first, *rest = [part for part in parts if part] or ["it printed nothing"]
    sentence = re.split(r"(?<=\.) ", first)[0]
    return f"{sentence} {rest[0]}" if sentence.endswith(":") and rest else sentence
