"""The timed part of a run: sets of assembly and CG, warm-ups first.

Nothing is gathered or verified between the first and the last set, and nothing written
but a line of progress once a second, before the barrier at which a set begins. Times are
kept as raw ticks and converted to seconds once the clock has its certificate.

How far a run is: which set comes next, of about how many, and the time that is left.
"""

import math
import time
from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from fembench.base.arrays import I64
from fembench.base.units import clock
from fembench.bench.prepare import Prepared
from fembench.host.energy import energy_meter
from fembench.host.others import OthersShare, others_meter
from fembench.launch.job import Tell
from fembench.launch.shared_page import page_of, place
from fembench.methods.steps import Work
from fembench.ranks.comm import MAX, Comm
from fembench.records.case import Case
from fembench.records.case_fields import CaseEffort
from fembench.records.ledger import BalanceFacts
from fembench.records.phases import ASSEMBLY, BETWEEN, CG, SYNC
from fembench.records.record import NO_JOULES, EnergyFacts
from fembench.records.validity import MOST_DRIFT
from fembench.solve.from_names import build_solver
from fembench.solve.iterate import CGResult, Solver, StoppingCriterion
from fembench.solve.operators import Operator
from fembench.stats.summary import drift, median, precision
from fembench.synthetic.slowness import FULL_SPEED, Slowness
from fembench.synthetic.speeds import LEARN, LEARNT
from fembench.timing.tracer import TracerLike, span

EVERY = 1.0  # seconds between two lines, at least
MOST_ADDED = 10_000  # timed sets, unless more are asked for by number: a record holds every set
AHEAD = 1.5  # of the sets that the precision so far asks for: it scatters


def silent(line: str) -> None:
    """Tell nobody."""


class HowFar:
    """Tells how far the sets are, now and then, and shows it on the page of the job."""

    def __init__(self, effort: CaseEffort, tell: Tell, iterations: int = 0) -> None:
        """`iterations`: of a set; 0: not known."""
        self._effort = effort
        self._tell = tell
        self.page = page_of(tell)
        self._about = bool(effort.seconds or effort.precision)
        self._begin = self._told = time.monotonic()
        self._sets = expected_sets(effort, ())
        self._expect(effort.warmups + self._sets)
        self.page.turn_to(1, iterations)

    def _expect(self, total: int) -> None:
        self.page.expect(total, self._about, self._begin, self._effort.warmups)

    def end(self) -> None:
        """No set comes any more."""
        self.page.turn_to(0, 0)

    def say(self, done: int, spent: Sequence[float], residual: float, iterations: int = 0) -> None:
        """Tell it after `done` sets, of which the timed ones spent these seconds in CG.

        `iterations`: of each set.
        """
        now, effort = time.monotonic(), self._effort
        self.page.turn_to(done + 1, iterations)
        if now < self._told + EVERY:
            return
        self._told = now
        fewest = max(done + 1 - effort.warmups, expected_sets(effort, spent))
        if not effort.precision or not fewest <= self._sets <= 2 * fewest:  # so that it seldom grows
            self._sets = max(fewest, expected_sets(effort, spent, AHEAD))
        total = effort.warmups + self._sets
        self._expect(total)
        left = clock((total - done) * (now - self._begin) / done)
        said = place(done + 1, total, effort.warmups, self._about)
        self._tell(f"{said}, {left} left; residual {residual:.1e}")


def expected_sets(effort: CaseEffort, spent: Sequence[float], ahead: float = 1.0) -> int:
    """How many timed sets there will be, from the seconds of CG in the first of them.

    The interval of a median shrinks as the square root of their number. `ahead`: how
    many times as many as it asks for.
    """
    least = max(effort.sets, 1)
    if not sum(spent) or not (effort.seconds or effort.precision):
        return least
    each = sum(spent) / len(spent)
    needed = max(least, math.ceil(effort.seconds / each))
    reached = 100 * precision(spent) / effort.precision if effort.precision else 0.0
    if math.isfinite(reached) and (reached > 1 or len(spent) >= needed):
        most = max(needed, math.ceil(effort.max_seconds / each))
        expected = math.ceil(ahead * len(spent) * max(reached, 1.0) ** 2)
        needed = min(most, max(needed, expected))
    return max(least, min(needed, MOST_ADDED))


ROOM = 64  # spans per iteration, plus eight per neighbour, before a warm-up counts them


class SetTicks(Struct, frozen=True):
    """One set on one rank, in ticks."""

    warmup: bool
    ticks: I64  # (n_phases,)
    counts: I64  # (n_phases,)
    levels: I64  # (n_levels, n_phases) ticks by level of the preconditioner
    total: int
    iterations: int
    residual: float
    joules: float = NO_JOULES  # of the machine, on its first rank


class Measurement(Struct, frozen=True):
    """The result of the timed part: the last set's solution, and every set's times."""

    operator: Operator
    work: Work  # of one iteration, products apart
    result: CGResult
    sets: list[SetTicks]
    others: OthersShare | None = None  # during the sets
    energy: EnergyFacts | None = None  # of the machine
    balance: BalanceFacts | None = None  # on rank 0, where blocks may move


Make = Callable[[Case, Prepared, TracerLike], Solver]
Timed = Callable[[TracerLike, Slowness], Measurement]


def control_of(case: Case, n_equations: int) -> StoppingCriterion:
    """The stopping rule of a case."""
    return StoppingCriterion(
        tolerance=case.stop.tolerance,
        relative=case.stop.tolerance_kind == "relative",
        max_iterations=case.stop.max_iterations or 10 * n_equations,
        fixed=case.stop.iterations,
    )


def start_plain(
    comm: Comm,
    case: Case,
    prepared: Prepared,
    tracer: TracerLike,
    tell: Tell = silent,
) -> Timed:
    """A `start` that sets up nothing and measures."""
    return lambda tracer, slowness: measure(comm, case, prepared, tracer, slowness, tell=tell)


def measure(
    comm: Comm,
    case: Case,
    prepared: Prepared,
    tracer: TracerLike,
    slowness: Slowness = FULL_SPEED,
    make: Make | None = None,
    tell: Tell = silent,
) -> Measurement:
    """Run the warm-ups and the timed sets. Collective.

    `make` builds the solver of a set, synchronises emulated ranks, and replaces the
    rehearsal. `tell` gets lines of progress.
    """
    tracer = slowness.tracer(tracer)
    control = control_of(case, prepared.mesh.n_equations)
    sets: list[SetTicks] = []
    solver: Solver | None = None
    learned = [] if make else _rehearse(comm, case, prepared, tracer, slowness, control)
    make = make or _solver
    tracer.recording = False
    ended = tracer.now()
    rate = tracer.ticks_per_second
    energy = energy_meter(comm)
    spent: list[float] = []  # seconds of CG in each timed set, on the slowest rank
    how_far = HowFar(case.effort, tell, control.fixed)
    control = structs.replace(control, show=how_far.page.show)
    set_up = tracer.stored  # events of the set-up
    warmups = case.effort.warmups
    iterations = min(case.effort.trace_iterations, control.limit)
    each = ROOM + 8 * len(prepared.interface.neighbours)
    tracer.make_room(set_up, 0 if warmups else iterations * each)
    while True:
        if len(sets) == warmups:
            others = others_meter(comm)
        tracer.reset(events=False)
        tracer.add(BETWEEN, begin := ended, tracer.now())
        tracer.recording = case.effort.trace_iterations > 0 and len(sets) in (warmups - 1, warmups)
        with span(tracer, SYNC):
            solver = None  # frees the matrix and vectors of the last set
            comm.Barrier()
        solver, result = _set(comm, case, prepared, tracer, make, control)
        tracer.recording = False
        ended = tracer.now()  # first, because what follows does not belong to the set
        joules = energy.lap()
        if len(sets) == warmups - 1:  # a rehearsal: as many spans, and some more where blocks move
            tracer.make_room(set_up, 5 * (tracer.stored - set_up + tracer.dropped) // 4)
        sets.append(_harvest(tracer, ended - begin, result, joules, warmup=len(sets) < warmups))
        if not sets[-1].warmup and enough(comm, case.effort, spent, sets[-1].ticks[CG] / rate):
            how_far.end()
            facts, counted = energy.end()
            kept = sets if counted else [structs.replace(one, joules=NO_JOULES) for one in sets]
            return Measurement(solver.operator, solver.work, result, learned + kept, others(), facts)
        how_far.say(len(sets), spent, sets[-1].residual, result.iterations)


def _set(
    comm: Comm, case: Case, prepared: Prepared, tracer: TracerLike, make: Make, control: StoppingCriterion
) -> tuple[Solver, CGResult]:
    """Assemble and solve."""
    with span(tracer, ASSEMBLY):
        solver = make(case, prepared, tracer)
    with span(tracer, SYNC):
        comm.Barrier()
    return solver, solver.solve(prepared.rhs, control, record=case.effort.trace_iterations)


def _rehearse(
    comm: Comm,
    case: Case,
    prepared: Prepared,
    tracer: TracerLike,
    slowness: Slowness,
    control: StoppingCriterion,
) -> list[SetTicks]:
    """A warm-up in which emulated ranks learn what work takes. Collective."""
    tracer.reset(events=False)
    tracer.recording = False  # an iteration's events are those of the set that is traced
    begin = tracer.now()
    solver: Solver | None = None
    for _ in slowness.rehearsals(comm, LEARN, LEARNT):
        with span(tracer, SYNC):  # as before a timed set
            solver = None  # frees the matrix and vectors of the last set
            comm.Barrier()
        solver, result = _set(comm, case, prepared, tracer, _solver, control)
    if solver is None:
        return []
    slowness.agree(comm, _units(prepared, solver), among=median)
    return [_harvest(tracer, tracer.now() - begin, result, warmup=True)]


def _units(prepared: Prepared, solver: Solver) -> dict[str, float]:
    """This rank's work of each kind, in the units by which emulated ranks compare it."""
    sub = prepared.sub
    return {"assembly": sub.n_cells, "product": solver.operator.flops, "vectors": sub.n_active}


def _solver(case: Case, prepared: Prepared, tracer: TracerLike) -> Solver:
    """The matrix, the preconditioner, vectors and bound kernels."""
    return build_solver(
        case.method,
        prepared.sub,
        prepared.interface,
        prepared.lame,
        tracer,
        overlap=case.method.overlap,
        options=case.method.petsc_options.split(),
        device=prepared.device,
    )


def _harvest(
    tracer: TracerLike, total: int, result: CGResult, joules: float = NO_JOULES, *, warmup: bool
) -> SetTicks:
    return SetTicks(
        warmup=warmup,
        ticks=tracer.ticks(),
        counts=tracer.counts(),
        levels=tracer.level_ticks(),
        total=total,
        iterations=result.iterations,
        residual=result.residuals[-1],
        joules=joules,
    )


def enough(comm: Comm, effort: CaseEffort, spent: list[float], seconds: float) -> bool:
    """Whether the set just timed, with `seconds` of CG here, is the last. Collective.

    All ranks decide alike, from the time of the slowest, which is added to `spent`. Two
    ranks could otherwise disagree whether to begin another set.
    """
    if effort.seconds > 0 or effort.precision > 0:
        seconds = comm.allreduce(seconds, op=MAX)
    spent.append(seconds)
    total = sum(spent)
    if len(spent) < max(effort.sets, 1):
        return False
    if len(spent) >= MOST_ADDED:
        return True
    if total < effort.seconds:
        return False
    return total >= effort.max_seconds or not effort.precision or _known(spent, effort.precision)


def _known(spent: Sequence[float], percent: float) -> bool:
    """Whether the median is known within so many percent, and the times did not drift."""
    return 100 * precision(spent) <= percent and not abs(drift(spent)) > MOST_DRIFT
