"""The closed loop: speeds -> weights -> partition -> gain.

An equal run shows the speeds of the ranks, from which weights are computed; the mesh
of the next run is partitioned by them. If a device cannot hold an equal part, the most
equal shares that the devices hold take the place of equal ones. A further round is not always better: a rank
with less work may seem faster than it is (its part fits into a cache, or it saves its
CPU quota while it waits). Therefore the weights whose own run was fastest are
compared with equal shares.

If the slowest host (or emulated rank) can contribute little, the others also run
without it, so that its benefit is measured and not only computed. Of a mixed list of
devices, the device ranks run alone, and so do those on cores.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from fembench.base.arguments import typed
from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.base.progress import progress, telling, working
from fembench.base.units import clock, plural
from fembench.bench.campaign_file import run_id
from fembench.bench.duration import about
from fembench.launch.allocation import allocation, is_open
from fembench.launch.case_job import launch
from fembench.launch.hosts import HostSlots, hostfile_text, same_host
from fembench.launch.scratch import made, occupied, reserved, writable_file
from fembench.records.case import Case
from fembench.records.quiet import disturbance, foreign_work
from fembench.records.record import Record, part_held
from fembench.records.store import save
from fembench.records.validity import SETS, WARMUPS
from fembench.records.weights import UNDECIDED, Weights, as_text, save_weights, shares_of
from fembench.weights import proof_text
from fembench.weights.advice import BOTH, LEAST_GAIN
from fembench.weights.make import by_time, equal_finish
from fembench.weights.observe import run_seconds
from fembench.weights.proof import (
    Proof,
    RunWithoutHost,
    Trail,
    each_kind_alone,
    gains_of,
    prove,
    without_weakest,
)
from fembench.workflows.cases import call_text, case_asked, check_least, with_ranks


@dataclass(frozen=True)
class TuneRuns:
    """Where the runs of one tuning take place, and where their records are kept."""

    folder: Path  # of the records
    hostfile: str
    timeout: float  # seconds of a run
    command: str  # what the records say was typed

    def __call__(self, case: Case, word: str, without: str = "", on: Sequence[str] = ()) -> Record:
        """Run a case, on all hosts but `without`. Raises FembenchError without a record.

        word: labels the run in the line of progress; on: the host of each rank, if only
        some ranks of the job take part
        """
        stem = run_id(case, 1).rsplit("-r", 1)[0]
        with working(f"tune: {word}") as now, reserved(self.folder, stem) as id:
            now.tell(about(case, self.folder))
            record = launch(
                case,
                id=id,
                command=self.command,
                scratch=self.folder,
                hostfile=self._hosts_of(without, on) if without or on else self.hostfile,
                timeout=self.timeout,
                tell=now.tell,
            ).content()
            save(record, self.folder)
        progress(f"tune: {word}: {run_seconds([record])[0]:.4g} s per set")
        return record

    def can_do_without(self, host: str) -> bool:
        """Whether the job has this host, so that ranks can be started on all others."""
        return len(self._others(host)) < len(self._others(""))

    def _hosts_of(self, left_out: str, on: Sequence[str]) -> str:
        """The path of a host file without one host, or with these slots."""
        rest = [(host.name, _slots(host, on)) for host in self._others(left_out)]
        file = self.folder / "others.hosts"
        write_atomic(file, hostfile_text(entry for entry in rest if entry[1]))
        return str(file)

    def _others(self, left_out: str) -> list[HostSlots]:
        """The hosts of the job but one ("": all), in rank order; [] on this machine."""
        job = allocation(self.hostfile)
        hosts = [] if is_open(job) else job.order or job.hosts
        return [host for host in hosts if not same_host(host.name, left_out)]


def _slots(host: HostSlots, on: Sequence[str]) -> int:
    """The slots of a host: all, or those of the ranks on it."""
    return sum(same_host(host.name, name) for name in on) if on else host.slots


ITERATIONS = 50  # fixed work, by default
EFFORT = {"warmups": WARMUPS, "sets": SETS, "seconds": 2.0}  # of a run; noise dominates shorter ones
SETTLED = 0.01  # largest relative change of shares that ends the rounds
WHY_NOT = "every pair of runs was DISTURBED"
USED = ("use", BOTH)  # verdicts
UNHELD = "equal parts do not fit into the memory of the devices"  # begins a note
FEW_PAIRS = 2  # where a rank can contribute almost nothing


class Contestant(NamedTuple):
    """A case of the comparison."""

    name: str
    case: Case
    runs: list[Record]
    where: Mapping[str, Any]  # it runs, as a Runner takes it


class Runner(Protocol):
    """Runs a case, keeps its record, `without` a host's ranks. Raises FembenchError."""

    def __call__(self, case: Case, word: str, without: str = "", on: Sequence[str] = ()) -> Record: ...


@dataclass(frozen=True)
class Tuned:
    """The shares found, and whether they gain."""

    weights: Weights
    proof: Proof
    output: Path  # file of the weights
    runs: Path  # folder of the records
    alone: Case | None = None  # of the ranks that are the faster alone, if the verdict is that

    def conclusions(self) -> list[str]:
        """What disturbed the runs, the verdict, and how to use the shares, in sentences."""
        fitted = [note for note in self.weights.notes if note.startswith(UNHELD)]
        said = [*fitted, *proof_text.conclusions(self.proof, self.weights)]
        how = f"To use them: `fembench run --weights {self.output}`, with the same mesh, ranks and options."
        if self.alone is not None:
            place = self.alone.placement
            device = self.alone.method.device
            typed = f"fembench run {self.alone.question.mesh} --ranks {place.ranks} --device {device}"
            shares = f" --shares {place.shares}" if place.shares else ""
            return [*said, f"To use these ranks alone: `{typed}{shares}`, with the same options."]
        return [*said, *([how] if self.proof.advice.kind in USED else [])]

    def __repr__(self) -> str:
        return "\n".join([*self.conclusions(), "", self.as_text()])

    def as_text(self, everything: bool = False) -> str:
        """The tables that support the conclusions: times, gain, imbalance; or `everything`."""
        return proof_text.tables(self.proof, self.weights, everything)

    @property
    def where(self) -> str:
        """The file of the weights; why there is no verdict on them, if so."""
        disturbed = self.proof.advice.kind == "disturbed"
        return f"{self.output}" + (f" (no verdict: {WHY_NOT})" if disturbed else "")

    def as_tree(self) -> dict[str, Any]:
        """The same for JSON."""
        return proof_text.as_tree(self.proof, self.weights)


def weights_of(given: Weights | Tuned | Path | str | None) -> Weights | Path | str | None:
    """Weights as given, or those that tuning found."""
    return given.weights if isinstance(given, Tuned) else given


@typed
def tune(
    mesh: Case | Path | str,
    *,
    ranks: int | None = None,
    results: Path | str | None = None,
    path: Path | str | None = None,
    rounds: int = 2,
    pairs: int = 6,
    hostfile: Path | str = "",
    timeout: float = 600.0,
    command: str = "",
    tell: Callable[[str], None] | None = None,
    **fields: Any,
) -> Tuned:
    """Find the shares for a case by the speeds of its ranks, and prove their gain.

    mesh, ranks, fields: as for `run`
    results: folder of the records; by default results/tune-MESH
    path: file for the weights; by default in that folder
    rounds: at most, each deriving weights
    pairs: of equal and weighted runs, at least six to prove a gain

    Raises InputError, or RunFailedError if a run leaves no record.
    """
    check_least(1, rounds=rounds, pairs=pairs)
    check_least(0, timeout=timeout)
    fields = with_ranks(ranks, fields)
    case = fixed_work(case_asked(mesh, {**effort_with(fields), **fields}, "tune"))
    folder = Path(results or f"results/tune-{Path(case.question.mesh).stem.replace(':', '-')[:120]}")
    file = Path(path or folder / "weights.json")
    run = TuneRuns(folder / "runs", str(hostfile), timeout, command or call_text("tune", mesh, fields))
    with telling(tell), occupied(run.folder), made(file.parent):
        writable_file(file)
        try:
            trail = close_the_loop(case, run, rounds=rounds, pairs=pairs, can_do_without=run.can_do_without)
        except KeyboardInterrupt as error:
            ended = any(run.folder.glob("[!.]*.json"))
            kept = f"; records of runs that ended are kept in {run.folder}" if ended else ""
            error.args = (f"no weights were written{kept}",)
            raise
        proof = prove(trail)
        chosen = trail.alone.get(proof.advice.kind, [])
        alone = chosen[0].case if chosen else None
        found = Tuned(proven(trail.weights, proof), proof, file, run.folder, alone)
        save_weights(found.weights, found.output)
        write_atomic(folder / "tuning.json", json_text(found.as_tree()))
    return found


def effort_with(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The effort beside these fields, by default: a number of sets alone is exact."""
    return EFFORT | ({"seconds": 0.0} if "sets" in fields else {})


def fixed_work(case: Case) -> Case:
    """The case, with a default for its iterations. Raises InputError."""
    if case.placement.shares:
        raise InputError("tune finds the shares itself; omit shares")
    if case.placement.ranks < 2:
        raise InputError(f"tune: ranks = {case.placement.ranks}: expected at least 2, which share the mesh")
    return case.with_(iterations=case.stop.iterations or ITERATIONS)


def close_the_loop(
    equal: Case,
    run: Runner,
    *,
    rounds: int = 2,
    pairs: int = 6,
    can_do_without: Callable[[str], bool] = lambda host: True,
) -> Trail:
    """Find weights in up to `rounds` rounds, then time equal and weighted runs in turns.

    The timings of the comparison are not those from which the weights were computed.
    equal: the case, without shares; can_do_without: whether the job has hosts beside
    this one.
    """
    trail = Trail()
    equal = find_weights(equal, run, trail, rounds)
    kinds = each_kind_alone(equal, trail)
    weakest = None if kinds else without_weakest(equal, trail)
    if weakest is not None and weakest.host and not can_do_without(weakest.host):
        weakest = None
    if not kinds and min(gains_of(trail).values()) < LEAST_GAIN:
        pairs = min(pairs, FEW_PAIRS)
    compare(equal, weakest, kinds, run, trail, pairs)
    return trail


def find_weights(equal: Case, run: Runner, trail: Trail, rounds: int) -> Case:
    """Speeds of an equal run -> weights -> a run by them, whose speeds give the next ones.

    The case of the first run: equal, or as equal as the devices hold.
    """
    equal, record = first_run(equal, run)
    if loud := disturbance([record.environment]):
        progress(f"note: {loud}; until then, no verdict is possible: stop this one with Ctrl-C")
    for number in range(1, rounds + 1):
        sizes = [earlier for earlier, _ in trail.rounds] if record.environment.devices else []
        weights = by_time([*sizes, record])
        trail.rounds.append((record, _with_note(weights, equal.placement.shares)))
        shares = shares_of(weights)
        progress(f"tune: round {number}: shares {' : '.join(f'{share:.3f}' for share in shares)}")
        change = max(abs(new / old - 1) for old, new in zip(record.partition.targets, shares))
        if rounds == 1 or (trail.tried and change < SETTLED):
            break
        record = run(equal.with_(shares=as_text(weights)), f"round {number}")
        trail.tried.append((trail.rounds[-1][1], record))
    return equal


def first_run(equal: Case, run: Runner) -> tuple[Case, Record]:
    """A run with equal shares, or with the most equal ones that the memory of devices holds.

    Each run that is refused says how much of its part one device holds. Raises
    InputError if the devices and cores together cannot hold the mesh, or a device
    holds next to nothing.
    """
    n = equal.placement.ranks
    case = equal
    shares = np.full(n, 1 / n)
    most = np.full(n, np.inf)
    while True:
        try:
            record = run(case, "equal" if case is equal else "as equal as devices hold")
        except InputError as error:
            held = part_held(str(error))
            if held is None:
                raise
            rank, part = held
            most[rank] = part * shares[rank]
            if most.sum() < 1:
                raise
        else:
            if case is not equal:
                progress(f"tune: {_unheld(case.placement.shares)}")
            return case, record
        shares = equal_finish(np.ones(n), np.zeros(n), 1.0, most)[0]
        case = equal.with_(shares=",".join(f"{share:.6g}" for share in shares))


def _unheld(shares: str) -> str:
    return f"{UNHELD}; runs called equal have shares {shares.replace(',', ' : ')}, the most equal that fit"


def _with_note(weights: Weights, shares: str) -> Weights:
    """The weights, with what the runs called equal were, if not equal."""
    return replace(weights, notes=(*weights.notes, _unheld(shares))) if shares else weights


def compare(
    equal: Case,
    weakest: RunWithoutHost | None,
    kinds: Mapping[str, tuple[Sequence[int], Case]],
    run: Runner,
    trail: Trail,
    pairs: int,
) -> None:
    """Run with equal shares, with the weights, and without the weakest, in turns.

    kinds: name -> (ranks, case) that also run alone. The order is reversed in every second
    turn, so that steady slowing favours none.
    """
    weighted = equal.with_(shares=as_text(trail.weights))
    contestants = [
        Contestant("equal", equal, trail.equal, {}),
        Contestant("weighted", weighted, trail.weighted, {}),
    ]
    if weakest is not None:
        trail.left_out = weakest.owner
        name = f"without {weakest.owner}"
        contestants.append(Contestant(name, weakest.case, trail.without, {"without": weakest.host}))
    hosts = [rank.host for rank in trail.weights.ranks]
    for name, (ranks, case) in kinds.items():
        kept = trail.alone.setdefault(name, [])
        where = {"on": [hosts[rank] for rank in ranks]} if len(set(hosts)) > 1 else {}
        contestants.append(Contestant(name, case, kept, where))
    began = time.monotonic()
    for pair in range(1, pairs + 1):
        for one in contestants[:: 1 if pair % 2 else -1]:
            one.runs.append(run(one.case, f"pair {pair}/{pairs}, {one.name}", **one.where))
        loud = foreign_work([one.runs[-1].environment for one in contestants])
        said = [f"pair {pair}/{pairs}: DISTURBED"] if loud else []
        if left := pairs - pair:
            seconds = (time.monotonic() - began) / pair * left
            said.append(f"{plural(left, 'pair')} to come, in about {clock(seconds)}")
        if said:
            progress(f"tune: {'; '.join(said)}")


def proven(weights: Weights, proof: Proof) -> Weights:
    """The weights; if they proved their gain, no run is warned of those that they are from.

    If foreign work disturbed every pair, each run by these weights is warned of it.
    """
    if proof.advice.kind == "disturbed":
        others = [note for note in weights.notes if not note.startswith((UNDECIDED, "DISTURBED"))]
        return replace(weights, notes=(f"{UNDECIDED}: {WHY_NOT}", proof.disturbed, *others))
    if proof.advice.kind not in USED:
        return weights
    notes = [
        f"gain proven by pairs of runs; {n}" if n.startswith("PROVISIONAL") else n for n in weights.notes
    ]
    return replace(weights, notes=tuple(notes))
