"""How loaded hosts are now: thesis-001's kernels and what the system says, by one rank per host."""

import platform
import tempfile
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.characterize.load_kernels import kernel_times, load_of
from fembench.characterize.start import run_job
from fembench.launch.launcher import environment, launcher_line
from fembench.records.network import RankLoad
from fembench.timing.tracer import NullTracer

REPEATS = 9  # of the kernels
PATIENCE = 60.0  # seconds until a host counts as not reached


class HostLoad(msgspec.Struct, frozen=True):
    """What one host says of itself."""

    host: str  # its own name
    load: RankLoad
    seconds: float  # that the kernels took
    cpu: float  # in which they had a processor


class LoadJob(msgspec.Struct, frozen=True):
    """What the rank reads: nothing."""


def measured_here() -> HostLoad:
    """Of this host."""
    now = load_of(0)
    took = kernel_times(0, NullTracer(), REPEATS)
    return HostLoad(platform.node(), now, sum(k.seconds for k in took), sum(k.cpu for k in took))


def measured_on(host: str, scratch: Path) -> HostLoad:
    """Of another host, by a rank started there. `scratch`: a folder that it sees too.

    Raises InputError, or RunFailedError where it cannot be reached.
    """
    with tempfile.TemporaryDirectory(prefix=".hosts-", dir=scratch) as folder:
        path = Path(folder, "host")
        path.write_text(f"{host} slots=1\n", encoding="utf-8")
        line, kind = launcher_line(1, str(path))
        found = run_job(
            "load_rank", LoadJob(), "load.json", line, environment(kind), scratch, print, patience=PATIENCE
        )
    return convert(msgspec.json.decode(found), HostLoad, where=host)
