"""The current load of hosts: three kernels (Mendes 2004, 4.2.2), one rank per host."""

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fembench.base.errors import FembenchError, InputError
from fembench.characterize.load_kernels import kernel_times
from fembench.launch.hosts import HostSlots
from fembench.launch.job import RankProgram
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.records.network import HostLoad
from fembench.synthetic.slowness import FULL_SPEED

SAMPLES = 8
REPEATS = 3  # runs of the kernels in each
PAUSE = 0.2  # seconds between samples
PATIENCE = 60.0  # seconds after which a host counts as unreachable


class LoadJob(msgspec.Struct, frozen=True):
    """The job for its rank: no parameters."""


def loads_of(hosts: Sequence[str], scratch: Path, say: Callable[[str], None]) -> list[list[HostLoad]]:
    """Samples of the load of every host that can be reached; `say` names the others.

    `scratch`: a folder visible to all hosts. Raises InputError if none can be reached.
    """
    found = []
    for host in hosts:
        try:
            found.append(measured_here() if host == platform.node() else measured_on(host, scratch))
        except FembenchError as error:
            say(f"{host}: not reached, keeps the speeds of the profile: {error}")
    if not found:
        raise InputError(f"none of {', '.join(hosts)} could be reached; expected at least one")
    return found


def measured_here() -> list[HostLoad]:
    """Samples of the load of this host; a single one may not be typical."""
    return [_sample(PAUSE * (k > 0)) for k in range(SAMPLES)]


def _sample(pause: float) -> HostLoad:
    time.sleep(pause)
    took = kernel_times(0, FULL_SPEED, REPEATS)
    return HostLoad(platform.node(), sum(k.seconds for k in took), sum(k.cpu for k in took))


def measured_on(host: str, scratch: Path) -> list[HostLoad]:
    """Samples of another host's load, by a rank there. `scratch`: a folder it sees.

    Raises InputError, or RunFailedError if it cannot be reached.
    """
    line, program = job_line(1, hosts=[HostSlots(host, 1)]), "fembench.characterize.load_now"
    of = list[HostLoad]
    return measure(program, LoadJob(), of, line, scratch=scratch, timeout=PATIENCE, warn=False)


PROGRAM = RankProgram(LoadJob, lambda job: 1, lambda comm, job, tell: measured_here())
