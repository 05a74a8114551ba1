"""Explain in one line why a job left no result, from the output of its ranks and its launcher.

The texts recognised are those of Open MPI 5 (PRRTE), Open MPI 4, MPICH 4 and 5, Intel MPI, and ssh.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fembench.launch.job import ERROR


@dataclass(frozen=True)
class Ended:
    """How a launcher ended."""

    status: int
    output: str  # all that it printed
    late: bool  # time ran out


class Sign(NamedTuple):
    """Text printed by a launcher, and its meaning."""

    kind: str  # as in Outcome
    pattern: str  # of the output with all white space turned into single blanks
    meaning: str  # {0}, {1}: groups of the pattern


_SSH = "`ssh {0}` must need no password, and MPI and fembench must be installed there, in the same place"
SIGNS = (
    Sign(
        "killed",
        r"process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+ \([^)]*\)|\d+)",
        "rank {0} on {1} was ended by signal {2}",
    ),
    Sign(
        "killed",
        r"RANK (\d+) PID \d+ RUNNING AT (\S+).*?KILLED BY SIGNAL: (\d+ \([^)]*\))",
        "rank {0} on {1} was ended by signal {2}",
    ),
    Sign(
        "killed",
        r" PID (\d+) RUNNING AT (\S+).*?EXIT STRING: (\w[^(]*) \(signal (\d+)\)",
        "the rank that was process {0} on {1} was ended by signal {3} ({2})",
    ),
    Sign(
        "killed",
        r"peer process has unexpectedly disconnected.*?Local host: (\S+).*?Peer host: (\S+)",
        "a rank on {1} crashed or was ended: a rank on {0} lost its connection to it",
    ),
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
)
_NOISE = re.compile(
    r"^\s*$|^[-=]+$|^NOTE:|exactly when Open MPI|You may or may not see|prterun has exited|^\"abort\""
    r"|plm:ssh: Warning: setpgid|^This typically refers|^Please see the FAQ|^\[(mpiexec|proxy)\S*@.*error"
)
_HELP = re.compile(r"^-{20,}\n(.*?)\n-{20,}$", re.M | re.S)  # how Open MPI sets its messages apart


def why_nothing(folder: Path, ended: Ended, timeout: float) -> tuple[str, str]:
    """(kind as in Outcome, one line) for a job that left no result in its folder."""
    error = folder / ERROR
    if error.exists():
        kind, message = error.read_text().split("\n", 1)
        return kind, message
    if ended.late:
        return "timeout", f"no result after {timeout:g} s: ended"
    return diagnosis(ended.status, ended.output)


def diagnosis(status: int, output: str) -> tuple[str, str]:
    """(kind, one line): which rank ended the job and how, or what the launcher refused."""
    output = output.replace("\0", "").replace("\r", "")  # also for output that did not come from run_ranks
    refused = re.search(r"^fembench: rank \d+ on \S+ raised InputError: (.*)$", output, re.M)
    if refused:
        return "input", refused.group(1)
    raised = re.search(r"^fembench: (rank \d+ on \S+ raised .*)$", output, re.M)
    if raised:
        return "crashed", raised.group(1)
    flat = " ".join(output.split())
    for sign in SIGNS:
        found = re.search(sign.pattern, flat)
        if found:
            return sign.kind, sign.meaning.format(*found.groups())
    return "crashed", f"the job ended with exit status {status}: {_said(output)}"


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
