"""Start a comparison under MPI and return its record."""

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.base.errors import FembenchError, InputError
from fembench.launch.diagnosis import why_nothing
from fembench.launch.launcher import SCRATCH, TAIL, environment, launcher_line, run_ranks
from fembench.peers.contest import PeersJob
from fembench.peers.peers_rank import PROGRESS
from fembench.records.contest import PeersRecord


def launch_peers(
    job: PeersJob,
    *,
    scratch: Path | None = None,
    hostfile: str = "",
    timeout: float = 0.0,
    progress: Callable[[str], None] = lambda line: None,
) -> PeersRecord:
    """Run the job; `progress` gets its lines while it runs. Raises InputError, or FembenchError if it fails.

    All processes get huge pages from their allocator, since our own kernels request theirs.
    """
    line, kind = launcher_line(job.case.placement.ranks, hostfile)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch) as name:
        folder = Path(name)
        libraries = os.environ.get("LD_LIBRARY_PATH", "")
        job = msgspec.structs.replace(job, launcher=" ".join(line), library_path=libraries)
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        full = [*line, sys.executable, "-m", "fembench.peers.peers_rank", name]
        watch = _Tail(folder / PROGRESS, progress)
        ended = run_ranks(full, environment(kind, "petsc"), timeout, watch)
        path = folder / "record.json"
        if path.exists():
            return convert(msgspec.json.decode(path.read_bytes()), PeersRecord, where="record of peers")
        why, message = why_nothing(folder, ended, timeout)
        if why == "input":
            raise InputError(message)
        tail = "\n".join(ended.output.splitlines()[-TAIL:])
        raise FembenchError(f"{message}\n{tail}".strip())


class _Tail:
    """Passes on the lines added to a file."""

    def __init__(self, path: Path, pass_on: Callable[[str], None]) -> None:
        self._path, self._pass_on, self._at = path, pass_on, 0

    def __call__(self) -> None:
        if not self._path.exists():
            return
        with open(self._path) as stream:
            stream.seek(self._at)
            for line in stream.read().splitlines():
                self._pass_on(line)
            self._at = stream.tell()
