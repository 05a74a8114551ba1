"""Start `characterize` under MPI, show its progress, and return the profile or the network."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from fembench.base.config import convert, read_text
from fembench.base.errors import InputError, RunFailedError, shown
from fembench.characterize.messages import NetworkJob
from fembench.characterize.speeds import CharacterizeJob
from fembench.launch.diagnosis import why_nothing
from fembench.launch.hostfile import hosts_of
from fembench.launch.launcher import SCRATCH, environment, launcher_line, run_ranks
from fembench.records.network import NetworkFound, NetworkSettings
from fembench.records.profile import Profile
from fembench.synthetic.speeds import parse_speeds

SECONDS, QUICK_SECONDS = 110.0, 12.0  # of measuring on each host; starting and binding kernels come on top
VISIT, QUICK_VISIT, LAB_VISIT = 0.05, 0.02, 0.2  # in a lab CPU time is dealt out in periods of 5 ms
ROUNDS, QUICK_ROUNDS = 30, 12
USUAL = NetworkSettings()
PATIENCE = 600.0  # seconds after which the job is ended


def measure_hosts(
    ranks: int,
    *,
    quick: bool = False,
    emulate: str = "",
    dilate: float = 1.0,
    hostfile: str = "",
    command: str = "",
    scratch: Path,
    mpi_options: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> Profile:
    """The profile of the hosts of this many ranks. `scratch`: a folder also visible to rank 0's host.

    Raises InputError, or RunFailedError if the job ended without a profile.
    """
    line, kind = launcher_line(ranks, hostfile, mpi_options)
    parse_speeds(emulate, ranks)
    if not 1 <= dilate < float("inf"):
        raise InputError(f"dilate = {dilate}: expected a number of at least 1")
    synthetic = os.environ.get("FEMBENCH_SYNTHETIC", "")
    job = CharacterizeJob(
        ranks=ranks,
        quick=quick,
        seconds=QUICK_SECONDS if quick else SECONDS,
        visit=LAB_VISIT if synthetic else QUICK_VISIT if quick else VISIT,
        rounds=QUICK_ROUNDS if quick else ROUNDS,
        emulate=emulate,
        dilate=dilate,
        command=command,
        launcher=" ".join(line),
        synthetic=synthetic,
    )
    found = run_job("speeds_rank", job, "profile.json", line, environment(kind), scratch, tell)
    return convert(msgspec.json.decode(found), Profile, where="profile")


def measure_links(
    ranks: int,
    *,
    quick: bool = False,
    pairs: str = "",
    sites: str = "",
    emulate: str = "",
    dilate: float = 1.0,
    settings: NetworkSettings = USUAL,
    hostfile: str = "",
    scratch: Path,
    mpi_options: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> NetworkFound:
    """Raw measurements of messages between this many ranks; arguments as measure_hosts and --pairs,
    --sites take them. Waiting ranks sleep, as in dilated runs.

    Raises InputError, or RunFailedError if the job ended without a result.
    """
    needs_two(ranks)
    line, kind = launcher_line(ranks, hostfile, mpi_options)
    job = NetworkJob(
        ranks=ranks,
        quick=quick,
        pairs=pairs,
        sites=sites,
        emulate=emulate,
        dilate=dilate,
        settings=settings,
    )
    variables = environment(kind, asleep=dilate > 1 and "--oversubscribe" in line)
    found = run_job("messages_rank", job, "network.json", line, variables, scratch, tell)
    return convert(msgspec.json.decode(found), NetworkFound, where="network")


def needs_two(ranks: int) -> None:
    """Raises InputError for a network of one rank."""
    if ranks < 2:
        raise InputError(f"a network of {ranks} rank; expected --ranks 2 or more: messages need two")


def run_job(
    module: str,
    job: msgspec.Struct,
    result: str,
    line: Sequence[str],
    variables: dict[str, str],
    scratch: Path,
    tell: Callable[[str], None],
    patience: float = PATIENCE,
) -> bytes:
    """The file `result` left by the ranks of a job; their progress is passed on meanwhile.

    Raises InputError, or RunFailedError if there is none.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch) as name:
        folder = Path(name)
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        full = [*line, sys.executable, "-m", f"fembench.characterize.{module}", name]
        ended = run_ranks(full, variables, patience, _watch(folder / "progress.txt", tell))
        if (folder / result).exists():
            return (folder / result).read_bytes()
        why, message = why_nothing(folder, ended, patience)
        raise InputError(message) if why == "input" else RunFailedError(message)


def _watch(path: Path, tell: Callable[[str], None]) -> Callable[[], None]:
    """A function that passes on the complete lines added to a file since the last call."""
    told = 0

    def look() -> None:
        nonlocal told
        if not path.exists():
            return
        *lines, _ = path.read_text(encoding="utf-8").split("\n")
        for line in lines[told:]:
            tell(line)
        told = len(lines)

    return look


def hosts_file(text: str) -> str:
    """The MPI host file for 'a,b:4': two hosts, the second with four ranks. Raises InputError."""
    lines = []
    for word in text.split(","):
        found = re.fullmatch(r"([\w.-]+)(?::(\d+))?", word.strip())
        if not found or found.group(2) == "0":
            raise InputError(
                f"hosts '{shown(text)}': cannot read '{shown(word)}'; expected names such as a,b or a:2,b:4"
            )
        lines.append(f"{found.group(1)} slots={found.group(2) or 1}\n")
    return "".join(lines)


def ranks_in(path: str) -> int:
    """Number of ranks in a host file: 'name slots=2', 'name:2', or one per line. Raises InputError."""
    return sum(max(host.slots, 1) for host in hosts_of(read_text(path), path))
