"""The same system solved by other packages, which take turns."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.base.progress import progress, working
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.launch.scratch import occupied
from fembench.peers.catalog import Entry, PeersJob, chosen
from fembench.records.case import FIELDS, new_case
from fembench.records.contest import Parity, PeersRecord, save_peers

PAUSE = 2.0  # seconds, at least, between lines of progress


def contested(
    mesh: str,
    *,
    problem: str = FIELDS["problem"].default,
    ranks: int = 1,
    shares: str = "",
    only: Sequence[str] = (),
    precond: Sequence[str] = (),
    tolerance: float = 1e-8,
    repetitions: int = 5,
    iterations: int = 0,
    parity: Parity = "solution",
    export: str = "",
    results: Path | str = "results/peers",
    hostfile: str = "",
    timeout: float = 0.0,
    command: str,
) -> tuple[PeersRecord, Path]:
    """Time each package whose solution agrees: (record, its file in `results`).

    only, precond: names of packages and preconditioners; (): all
    tolerance: of the relative, unpreconditioned residual; repetitions: solves per package
    iterations: after one solve to the tolerance, repeat only so many; 0: all
    parity: what must agree, the solution or the last iterate
    export: folder for K, f and u

    Raises InputError, or RunFailedError if there is no result.
    """
    entries = chosen(only, precond)
    if parity == "iterate":
        _iterates_alike(iterations, entries)
    values = {"mesh": mesh, "problem": problem, "ranks": ranks, "shares": shares, "tolerance": tolerance}
    job = PeersJob(
        case=new_case(values | {"tolerance_kind": "relative"}, "options"),
        names=tuple(e.name for e in entries),
        repetitions=repetitions,
        iterations=iterations,
        parity=parity,
        export=str(Path(export).resolve()) if export else "",
        command=command,
    )
    folder, line = Path(results), job_line(ranks, hostfile)
    with occupied(folder), working("peers: solving"):
        record = measure(
            "fembench.peers.peers_rank",
            job,
            PeersRecord,
            line,
            solver="petsc",  # all get huge pages, as our own kernels do
            scratch=folder,
            timeout=timeout,
            tell=_now_and_then(),
        )
        return record, save_peers(record, folder)


def _now_and_then() -> Callable[[str], None]:
    """Tells progress, and leaves out lines that follow another one too soon."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > PAUSE:
            last = time.monotonic()
            progress(f"peers: {text}")

    return tell


def _iterates_alike(iterations: int, entries: Sequence[Entry]) -> None:
    """Raises InputError if the iterates of the entries differ from those of numpy."""
    if not iterations:
        raise InputError("--parity iterate: expected --iterations N, too")
    other = next((e.precond for e in entries if e.precond not in ("none", "jacobi")), None)
    if other:
        raise InputError(f"--parity iterate: expected --precond none jacobi, got '{other}' too")
