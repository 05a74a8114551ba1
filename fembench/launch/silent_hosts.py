"""Which hosts do not answer the remote shell with which a launcher reaches them."""

import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fembench.base.errors import shown

PATIENCE = 5  # seconds for a host to answer
IN_ALL = 12.5  # seconds for all hosts: those that were not asked long enough by then are not judged
AT_ONCE = 256  # hosts asked at the same time
MOST_SHOWN = 4  # hosts named in a line
AGENTS = (  # variables that name another remote shell than ssh: Open MPI 5 and 4, MPICH, Intel MPI
    "PRTE_MCA_plm_ssh_agent",
    "OMPI_MCA_plm_rsh_agent",
    "HYDRA_LAUNCHER_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
)
_QUICK = ("-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={PATIENCE}")


def silent_hosts(names: Iterable[str], variables: Mapping[str, str]) -> dict[str, str]:
    """{host: why} of the hosts on which the remote shell does not run `true`, in their order.

    Takes about IN_ALL seconds at most, however many there are.
    """
    hosts = list(dict.fromkeys(names))
    line, end = _remote_shell(variables), time.monotonic() + IN_ALL
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reasons = pool.map(lambda host: _why_silent([*line, host, "true"], end - time.monotonic()), hosts)
        return {host: reason for host, reason in zip(hosts, reasons) if reason}


def _remote_shell(variables: Mapping[str, str]) -> list[str]:
    named = next((variables[name] for name in AGENTS if variables.get(name)), "ssh")
    try:
        words = shlex.split(named.split(" : ")[0])
    except ValueError:  # an open quote: its launcher will say so
        words = ["ssh"]
    return [*words, *_QUICK] if words and Path(words[0]).name == "ssh" else words


def _why_silent(line: list[str], left: float) -> str:
    """Why a command fails; "" if it does not, cannot be run at all, or needs more than the seconds left."""
    if left <= 0:
        return ""
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=min(left, PATIENCE + 1),
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE} s" if left > PATIENCE else ""
    except OSError:
        return ""
    said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return shown(said[-1].strip(), 100) if done.returncode else ""


def in_one_line(silent: Mapping[str, str]) -> str:
    """What to test, and what to correct."""
    (first, reason), *others = silent.items()
    if not others:
        return (
            f"host {first} does not answer ({reason}): test `ssh {first} true`, which must need no password; "
            f"correct the host file, or leave {first} out of it"
        )
    names = ", ".join([*silent][:MOST_SHOWN]) + (", …" if len(silent) > MOST_SHOWN else "")
    return (
        f"{len(silent)} hosts do not answer ({names}; {first}: {reason}): test `ssh {first} true`, which "
        "must need no password; correct the host file, or leave them out of it"
    )
