"""Start `characterize` under MPI, show its progress, and return the profile or the network."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.characterize.jobs import CharacterizeJob, NetworkJob
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.records.network import NetworkFound, NetworkSettings
from fembench.records.profile import Profile
from fembench.synthetic.speeds import parse_speeds

SECONDS, QUICK_SECONDS = 110.0, 12.0  # of measuring per host, in addition to the start and the set-up
USUAL_TIME, QUICK_TIME = "3 to 4 minutes", "1 to 2 minutes"  # in total: --quick took 96 s on two cores
VISIT, QUICK_VISIT, LAB_VISIT = 0.05, 0.02, 0.2  # seconds; a lab grants CPU time in periods of 5 ms
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
    """The profile of the hosts of `ranks` ranks. `scratch`: a folder that rank 0's host can also access.

    Raises InputError, or RunFailedError if the job ended without a profile.
    """
    line = job_line(ranks, hostfile, mpi_options)
    parse_speeds(emulate, ranks)
    if not 1 <= dilate < float("inf"):
        raise InputError(f"dilate = {dilate}: expected a finite number of at least 1")
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
        synthetic=synthetic,
    )
    usual = QUICK_TIME if quick else USUAL_TIME
    tell(f"starting {plural(ranks, 'rank')}: usually takes {usual}, {job.seconds:g} s of it measuring")
    program = "fembench.characterize.speeds"
    return measure(program, job, Profile, line, scratch=scratch, timeout=PATIENCE, tell=tell)


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
    """Raw measurements of messages between `ranks` ranks; arguments as for measure_hosts, `pairs` and `sites`
    as for --pairs and --sites. In dilated jobs, waiting ranks sleep as in dilated runs.

    Raises InputError, or RunFailedError if the job ended without a result.
    """
    needs_two(ranks)
    line = job_line(ranks, hostfile, mpi_options)
    job = NetworkJob(
        ranks=ranks,
        quick=quick,
        pairs=pairs,
        sites=sites,
        emulate=emulate,
        dilate=dilate,
        settings=settings,
    )
    return measure(
        "fembench.characterize.messages",
        job,
        NetworkFound,
        line,
        asleep=dilate > 1 and line.crowded,
        scratch=scratch,
        timeout=PATIENCE,
        tell=tell,
    )


def needs_two(ranks: int) -> None:
    """Raises InputError for fewer than two ranks, which exchange no messages."""
    if ranks < 2:
        raise InputError(f"a network of {ranks} rank; expected --ranks 2 or more: messages need two")


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
