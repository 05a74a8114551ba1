"""What is looked at while a job runs, and when it is ended.

Its progress, its hosts until it has started, ranks that died, and a launcher that stays
although all ranks have left.

Also what slows the hosts of a job: their quotas, and other programs. `fembench doctor` shows
it as findings. Other commands that start a job say it once, as notes of their progress.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fembench.base.commands import answer
from fembench.base.errors import shown
from fembench.base.progress import heard, progress
from fembench.base.units import few
from fembench.launch.batch_systems import in_batch_job
from fembench.launch.hosts import folded, is_this_host, names_in
from fembench.launch.job import PROGRESS, RESULT, STARTED, Started, StartedHost
from fembench.launch.shared_page import Page
from fembench.launch.witness import Witness

if TYPE_CHECKING:
    from fembench.host.finding import Finding
    from fembench.launch.probe import ProbedHost


_warned: set[tuple[str, str]] = set()  # (item, hosts) of this process
_jobs = itertools.count()  # of this process


def slowed(found: Sequence[ProbedHost | StartedHost]) -> Iterator[Finding]:
    """The hosts with a quota, and those with other work: a line each, with the worst."""
    from fembench.host import checkup

    quotas = [(host, checkup.quota(host.cpu_quota, host.cores)) for host in found]
    loads = [(host, checkup.load(host.load_average, host.cores)) for host in found]
    for findings in (
        sorted(quotas, key=lambda q: q[0].cpu_quota),
        sorted(loads, key=lambda o: -o[0].load_average),
    ):
        bad = {host.name: finding for host, finding in findings if finding.status != "ok"}
        if bad:
            names = [host.name for host in found if host.name in bad]
            worst = next(iter(bad.values()))
            many = " at worst" if len(bad) > 1 else ""
            yield worst._replace(found=f"{folded(names)}: {worst.found}{many}")


def warn(folder: Path) -> None:
    """Warn of what slows the hosts of the job in `folder`; once per item and hosts.

    Not in a lab, which slows its hosts on purpose. Of a load only before the first job of
    this process: later, the load of the last minute includes earlier jobs.
    """
    if os.environ.get("FEMBENCH_SYNTHETIC"):
        return
    with contextlib.suppress(OSError, msgspec.DecodeError):
        hosts = msgspec.json.decode((folder / STARTED).read_bytes(), type=Started).hosts
        earlier = next(_jobs)
        for finding in slowed(hosts):
            own = finding.item == "load" and earlier
            key = finding.item, finding.found.partition(":")[0]
            if key not in _warned and heard() and not own:
                _warned.add(key)
                progress(f"note: {finding.item}: {finding.found}: {finding.advice}")


START = 10.0  # seconds before the hosts of a job are asked whether they answer
ACCEPTED = 1.0  # seconds after which ranks that met have accepted their job
LINGER = 3.0  # seconds that a launcher may take to end after a rank has died
STAY = 30.0  # seconds that a launcher may take to end after its ranks
HERE = ("localhost", "127.0.0.1", "::1")


class JobWatch:
    """Looks at a running job."""

    def __init__(
        self,
        folder: Path,
        hosts: Sequence[str],
        witness: Witness,
        tell: Callable[[str], None] | None,
        warn: bool = True,
        page: Page | None = None,
    ) -> None:
        """`hosts`: those that a remote shell must reach. `warn` of what slows the hosts.

        `page`: at which rank 0 shows how far it is inside a set.
        """
        self.refusal = ""  # why the job cannot start, in one line
        self._folder = folder
        self._result = folder / RESULT
        self._hosts = hosts
        self._witness = witness
        self._tell = tell
        self._page = page or Page()
        self._begin, self._told = time.monotonic(), 0  # bytes of progress
        self._done_at = math.inf  # when all ranks were seen to have left with a result
        self._asked = not hosts
        self._warned = not warn
        self._met = math.inf

    def is_over(self, variables: Mapping[str, str]) -> bool:
        """Pass on new lines of progress; whether the job should be ended.

        `variables`: the environment of the launcher.
        """
        self._pass_on()
        now = time.monotonic()
        if self._met == math.inf and self._has_started():
            self._met = now
        if not self._warned and (now > self._met + ACCEPTED or self._result.exists()):
            self._warned = True
            warn(self._folder)
        if not self._asked and now > self._begin + START:
            self._asked = True
            if not self._has_started() and (silent := silent_hosts(self._hosts, variables)):
                self.refusal = "" if self._has_started() else _refusal(silent)
        if self._done_at == math.inf and self._is_done():
            self._done_at = now
        deaths = self._witness.deaths
        return (
            bool(self.refusal) or (bool(deaths) and now > deaths[0].at + LINGER) or now > self._done_at + STAY
        )

    def _is_done(self) -> bool:
        """Whether only the launcher remains, as far as can be known."""
        return 0 < self._witness.heard == self._witness.left and self._result.exists()

    def _has_started(self) -> bool:
        """Whether all ranks have met; one that is heard may still wait for others."""
        return (self._folder / STARTED).exists()

    def _pass_on(self) -> None:
        """Tell the complete lines that are new, then how far a set is."""
        if not self._tell:
            return
        if (self._folder / PROGRESS).exists():
            self._pass_on_lines(self._tell)
        if inside := self._page.line():
            self._tell(inside)

    def _pass_on_lines(self, tell: Callable[[str], None]) -> None:
        with (self._folder / PROGRESS).open("rb") as stream:
            stream.seek(self._told)
            new, end, _ = stream.read().rpartition(b"\n")
        self._told += len(new + end)
        for line in new.decode().splitlines():
            tell(line)


def reached_by_shell(host_files: Sequence[str], launcher: str, variables: Mapping[str, str]) -> list[str]:
    """The hosts in these files that a remote shell must reach; [] in a batch system."""
    if launcher not in ("openmpi", "mpich", "intelmpi") or in_batch_job(variables):
        return []
    names = dict.fromkeys(name for text in host_files for name in names_in(text))
    return [name for name in names if not is_this_host(name) and name not in HERE]


_PATIENCE = 5  # seconds for a host to answer
IN_ALL = 12.5  # seconds for all hosts; those asked too late are not judged
AT_ONCE = 256  # hosts asked at the same time
MOST_SHOWN = 4  # hosts named in a line
AGENTS = (  # variables that name another remote shell than ssh: Open MPI 5 and 4, MPICH, Intel MPI
    "PRTE_MCA_plm_ssh_agent",
    "OMPI_MCA_plm_rsh_agent",
    "HYDRA_LAUNCHER_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
)
_QUICK = ("-x", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_PATIENCE}")


def silent_hosts(names: Iterable[str], variables: Mapping[str, str]) -> dict[str, str]:
    """{host: why} of the hosts on which the remote shell does not run `true`, in their order.

    Takes about IN_ALL seconds at most, however many there are.
    """
    hosts = list(dict.fromkeys(names))
    line = _remote_shell(variables)
    end = time.monotonic() + IN_ALL
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
    """Why a command fails; "" if it does not, cannot be run, or takes too long."""
    if left <= 0:
        return ""
    told = answer(line, min(left, _PATIENCE + 1))
    if told.late:
        return f"no answer within {_PATIENCE} s" if left > _PATIENCE else ""
    said = told.err.strip().splitlines() or [f"exit status {told.status}"]
    return shown(said[-1].strip(), 100) if told.status else ""


def _refusal(silent: Mapping[str, str]) -> str:
    """What to test, and what to correct."""
    (first, reason), *others = silent.items()
    if not others:
        return (
            f"host {first} does not answer ({reason}): test `ssh {first} true`, which must need no password; "
            f"correct the host file, or leave {first} out of it"
        )
    names = few([*silent], MOST_SHOWN)
    return (
        f"{len(silent)} hosts do not answer ({names}; {first}: {reason}): test `ssh {first} true`, which "
        "must need no password; correct the host file, or leave them out of it"
    )
