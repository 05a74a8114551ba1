"""The closed loop: speeds -> weights -> partition -> gain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.base.progress import progress, working
from fembench.bench.campaign_file import run_id
from fembench.launch.allocation import allocation, is_open
from fembench.launch.case_job import launch
from fembench.launch.hosts import HostSlots, same_host
from fembench.launch.scratch import occupied, reserved, writable_file
from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.store import save
from fembench.records.weights import Weights, save_weights
from fembench.weights import proof_text
from fembench.weights.observe import run_seconds
from fembench.weights.proof import Proof, prove
from fembench.weights.tune import close_the_loop

ITERATIONS = 50  # fixed work, by default
SECONDS = 2.0  # seconds of CG per run, by default; shorter runs are dominated by momentary noise


@dataclass(frozen=True)
class Tuned:
    """The shares found, and whether they gain."""

    weights: Weights
    proof: Proof
    output: Path  # file of the weights
    runs: Path  # folder of the records

    def as_text(self) -> str:
        """Shares, times, gain, imbalance, the slowest host or rank, and the verdict."""
        return proof_text.as_text(self.proof, self.weights)

    def as_tree(self) -> dict[str, Any]:
        """The same for JSON."""
        return proof_text.as_tree(self.proof, self.weights)


def tune_case(
    case: Case,
    *,
    results: str | None = None,
    output: str | None = None,
    rounds: int = 2,
    pairs: int = 6,
    hostfile: str = "",
    timeout: float = 600.0,
    command: str,
) -> Tuned:
    """Run with equal shares, derive weights from the speeds, run with them; then prove the gain in pairs.

    results: folder; by default results/tune-MESH. output: file for the weights; by default in that folder
    rounds: at most, each deriving weights. pairs: of equal and weighted runs, at least six to prove a gain

    Raises InputError, or RunFailedError if a run leaves no record.
    """
    case = fixed_work(case)
    folder = Path(results or f"results/tune-{Path(case.question.mesh).stem.replace(':', '-')[:120]}")
    runs, file = folder / "runs", Path(output or folder / "weights.json")

    def say(text: str) -> None:
        progress(f"tune: {text}")

    with occupied(runs):
        writable_file(file)
        trail = close_the_loop(
            case,
            _runner(runs, hostfile, timeout, command, say),
            say,
            rounds=rounds,
            pairs=pairs,
            can_do_without=lambda host: len(_others(hostfile, host)) < len(_others(hostfile, "")),
        )
        found = Tuned(trail.weights, prove(trail), file, runs)
        save_weights(found.weights, found.output)
        write_atomic(folder / "tuning.json", json_text(found.as_tree()))
    return found


def fixed_work(case: Case) -> Case:
    """The case, with defaults for fixed work and seconds of CG. Raises InputError."""
    if case.placement.shares:
        raise InputError("tune finds the shares itself; omit --shares")
    if case.placement.ranks < 2:
        raise InputError(f"tune --ranks {case.placement.ranks}: expected at least 2 ranks to share the mesh")
    return case.with_(
        iterations=case.stop.iterations or ITERATIONS,
        sets=1 if case.effort.sets == type(case)().effort.sets else case.effort.sets,
        seconds=case.effort.seconds or SECONDS,
    )


def _runner(
    runs: Path, hostfile: str, timeout: float, command: str, say: Callable[[str], None]
) -> Callable[..., Record]:
    """A function that runs a case under MPI and keeps its record. Raises FembenchError if there is none."""

    def one(case: Case, word: str, *, without: str = "") -> Record:
        stem = run_id(case, 1).rsplit("-r", 1)[0]
        with working(f"tune: {word}"), reserved(runs, stem) as id:
            record = launch(
                case,
                id=id,
                command=command,
                scratch=runs,
                hostfile=_hosts_but(hostfile, without, runs) if without else hostfile,
                timeout=timeout,
            ).content()
            save(record, runs)
        say(f"{word}: {run_seconds([record])[0]:.4g} s per set")
        return record

    return one


def _hosts_but(path: str, left_out: str, folder: Path) -> str:
    """The path of a host file that omits one host."""
    rest = _others(path, left_out)
    write_atomic(folder / "others.hosts", "".join(f"{host.name} slots={host.slots}\n" for host in rest))
    return str(folder / "others.hosts")


def _others(path: str, left_out: str) -> list[HostSlots]:
    """The hosts of the job except one ("": all), in the order of ranks; [] if the job is this machine."""
    job = allocation(path)
    hosts = [] if is_open(job) else job.order or job.hosts
    return [host for host in hosts if not same_host(host.name, left_out)]
