"""What is looked at while a job runs: its progress, its hosts until it has started, ranks that died, and a
launcher that stays although all ranks have left."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fembench.launch import preflight
from fembench.launch.batch_systems import in_batch_job
from fembench.launch.hostfile import names_in
from fembench.launch.hostlist import is_this_host
from fembench.launch.job import PROGRESS, STARTED
from fembench.launch.silent_hosts import in_one_line, silent_hosts
from fembench.launch.witness import Witness

START = 10.0  # seconds after which the hosts of a job that has not started are asked whether they answer
LINGER = 3.0  # seconds that a launcher may take to end after a rank has died
STAY = 30.0  # seconds that a launcher may take to end after the ranks have left with a result
HERE = ("localhost", "127.0.0.1", "::1")


class JobWatch:
    """Looks at a running job."""

    def __init__(
        self,
        folder: Path,
        result: str,
        hosts: Sequence[str],
        witness: Witness,
        tell: Callable[[str], None] | None,
        warn: bool = True,
    ) -> None:
        """`result`: the file that the ranks leave. `hosts`: those that a remote shell must reach.
        `warn` of what slows the hosts."""
        self.refusal = ""  # why the job cannot start, in one line
        self._folder, self._result, self._hosts = folder, folder / result, hosts
        self._witness, self._tell = witness, tell
        self._begin, self._told = time.monotonic(), 0
        self._done_at = math.inf  # when all ranks were seen to have left with a result
        self._asked = not hosts
        self._warned = not warn

    def is_over(self, variables: Mapping[str, str]) -> bool:
        """Pass on new lines of progress; whether the job should be ended.

        `variables`: the environment of the launcher.
        """
        self._pass_on()
        if not self._warned and self._has_started():
            self._warned = True
            preflight.warn(self._folder)
        now = time.monotonic()
        if not self._asked and now > self._begin + START:
            self._asked = True
            if not self._has_started() and (silent := silent_hosts(self._hosts, variables)):
                self.refusal = "" if self._has_started() else in_one_line(silent)
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
        """Whether all ranks have met; one that is heard may still wait for hosts that do not answer."""
        return (self._folder / STARTED).exists()

    def _pass_on(self) -> None:
        """Tell the complete lines that are new."""
        path = self._folder / PROGRESS
        if not self._tell or not path.exists():
            return
        *lines, _ = path.read_text(encoding="utf-8").split("\n")
        for line in lines[self._told :]:
            self._tell(line)
        self._told = len(lines)


def reached_by_shell(host_files: Sequence[str], launcher: str, variables: Mapping[str, str]) -> list[str]:
    """The hosts in these files that a launcher reaches by a remote shell; [] if a batch system starts it."""
    if launcher not in ("openmpi", "mpich", "intelmpi") or in_batch_job(variables):
        return []
    names = dict.fromkeys(name for text in host_files for name in names_in(text))
    return [name for name in names if not is_this_host(name) and name not in HERE]
