"""Predict a run by simulation: workload, slots, prices, graph,
simulated iteration, interval.

The interval [low, high] is meant to contain nine runs out of ten. Its width follows
from the profile's visits: the k-th visits to all kernels give the k-th sample of the
time (Student's prediction interval; no width for fewer than three visits). With a
correction fitted to runs, it is at least as wide as follows from their errors: at the
size of a cache, times vary more than at the sizes of these runs.

Forecasts as text: one row per run; for a single run, also its phases and what limits it."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import count, percent, plural, seconds
from fembench.methods.lookup import product_name
from fembench.model.cg import Correction, Price, cg_graph, prices
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.events import simulate_events
from fembench.model.graph import Collective, ExecutionGraph, Loop
from fembench.model.machine import Machine
from fembench.model.measures import bottlenecks
from fembench.model.plan import SimulationPlan
from fembench.model.planner import make_plan
from fembench.model.rates import Rates
from fembench.model.slots import Slot, company
from fembench.model.workload import Workload
from fembench.partition.shares import normalise
from fembench.records.prediction import Prediction
from fembench.records.profile import Profile
from fembench.stats.student import next_interval, student_factor

TURNS = 60  # iterations to simulate, enough to find a period
FEW = 64  # bytes of the largest all-reduce of CG
TAIL = 0.05  # on each side of the interval


@dataclass(frozen=True)
class Forecast:
    """Predicted times of one run, in seconds."""

    iteration: float
    low: float  # of an iteration
    high: float
    assembly: float  # of a set, the slowest rank
    phases: dict[str, float]  # seconds per iteration, mean over ranks
    limits: list[str]  # what limits the time, largest first
    plan: SimulationPlan
    outcome: SimulationOutcome
    work: Workload

    def total(self, iterations: int) -> tuple[float, float, float]:
        """(low, expected, high) seconds of assembly and `iterations` iterations."""
        a, n = self.assembly, iterations
        scale = (self.low / self.iteration, 1.0, self.high / self.iteration)
        return tuple(s * (a + n * self.iteration) for s in scale)  # type: ignore[return-value]


def as_in_runs(machine: Machine, slots: Sequence[Slot], correction: Correction | None) -> Machine:
    """The machine with its all-reduces corrected as in the runs."""
    if correction is None:
        return machine
    return dataclasses.replace(
        machine, collective=correction.reduce.at(1.0, max(company(slots))) * machine.collective
    )


def forecast(
    work: Workload,
    slots: Sequence[Slot],
    rates: Rates,
    machine: Machine,
    hosts: Sequence[str],
    correction: Correction | None = None,
) -> Forecast:
    """Predict one run of `work` on these slots; hosts[rank] are names. Raises InputError."""
    priced = prices(work, slots, rates, correction)
    graph = cg_graph(work, priced, TURNS)
    plan = make_plan(graph, as_in_runs(machine, slots, correction))
    result = simulate_events(plan) if machine.contention else simulate(plan)
    scale = correction.scale if correction else 1.0
    iteration = scale * per_iteration(result, TURNS)
    low, high = _interval(work, slots, rates, priced, iteration, correction, machine)
    wider = math.exp(rates.uncertain)
    spent = scale * (result.busy + result.wait + result.overhead).mean(axis=0) / TURNS
    return Forecast(
        iteration=iteration,
        low=low / wider,
        high=high * wider,
        assembly=max(p.assembly for p in priced),
        phases={name: float(t) for name, t in zip(plan.phases, spent) if t},
        limits=bottlenecks(plan, result, hosts),
        plan=plan,
        outcome=result,
        work=work,
    )


def per_iteration(result: SimulationOutcome, turns: int) -> float:
    """Seconds per iteration in the steady state, or else the mean of all iterations."""
    run = result.runs[-1]
    return run.advance / run.period if run.period else result.makespan / turns


def _interval(
    work: Workload,
    slots: Sequence[Slot],
    rates: Rates,
    priced: Sequence[Price],
    iteration: float,
    correction: Correction | None,
    machine: Machine,
) -> tuple[float, float]:
    one_more = next_interval(_of_visits(work, slots, rates, priced), 1 - 2 * TAIL)
    base = max(p.computing + p.loop for p in priced)
    low, high = (one_more.low - base, one_more.high - base) if one_more else (0.0, 0.0)
    faster, slower = _of_messages(work, priced, machine)
    earliest = max(iteration + min(low, 0.0) - faster, 0.0)
    latest = iteration + max(high, 0.0) + slower
    if correction is not None and sum(map(len, correction.errors)) > 1:
        wide = half_width(correction.errors)
        return min(earliest, iteration * math.exp(-wide)), max(latest, iteration * math.exp(wide))
    return earliest, latest


def _of_messages(work: Workload, priced: Sequence[Price], machine: Machine) -> tuple[float, float]:
    """Seconds by which messages beside computing may cost an iteration less and more: those
    of the rank that they may cost most."""
    overlap = work.case.method.overlap
    each = [
        machine.spread_beside(r, [(q, m, p.product if overlap else 0.0) for q, m in work.exchange(r)])
        for r, p in enumerate(priced)
    ]
    faster, slower = work.recipe.exchanges * np.max(each, axis=0)
    return float(faster), float(slower)


def half_width(errors: Sequence[Sequence[float]]) -> float:
    """Half-width of the central 90 % of the error of a run in a new configuration, from
    the errors in known configurations.

    Split conformal prediction (Papadopoulos et al., 2002) for runs in groups (Lee,
    Barber and Willett, 2023): every known configuration has the same weight as the new
    one, whose error is arbitrary. Fewer than nine configurations give no such bound;
    then Student's prediction interval is used.
    """
    groups = errors if len(errors) > 1 else [[e] for e in errors[0]]
    n, found = len(groups), np.concatenate(groups)
    weights = np.concatenate([np.full(len(g), 1 / len(g) / (n + 1)) for g in groups])
    order = np.argsort(np.abs(found))
    enough = np.flatnonzero(np.cumsum(weights[order]) >= 1 - 2 * TAIL - 1e-9)
    if len(enough):
        return float(np.abs(found[order[enough[0]]]))
    spread = np.std(found) * math.sqrt(n / (n - 1) * (1 + 1 / n))
    return float(student_factor(n - 1, 1 - 2 * TAIL) * spread + abs(np.mean(found)))


def _of_visits(work: Workload, slots: Sequence[Slot], rates: Rates, priced: Sequence[Price]) -> F64:
    """(n,) seconds of computing per iteration on the slowest
    rank, over the fewest visits."""
    sizes = work.product_units()
    ranks = []  # [rank] (n_visits,) seconds
    for r, (slot, p) in enumerate(zip(slots, priced)):
        product = rates.spread(slot.rank, product_name(work.case.method), sizes[r])
        updates = rates.spread(slot.rank, "updates", work.parts.dofs[r])
        n = min(len(product), len(updates))
        spent = (p.products * p.product + p.preconditioning) / product[:n] + (p.updates + p.dot) / updates[:n]
        ranks.append(p.loop + spent)
    n = min(map(len, ranks))
    return np.max([times[:n] for times in ranks], axis=0)


def balanced(work: Workload, priced: Sequence[Price]) -> str:
    """The shares, as for --shares, with which all ranks would compute equally long."""
    speeds = [cells / p.computing for cells, p in zip(work.parts.cells, priced)]
    return ",".join(f"{share:.6f}" for share in normalise(speeds))


def allreduce_scale(machine: Machine, measured: dict[int, float]) -> float:
    """The factor on all-reduces' messages that gives the measured {ranks: seconds}.

    Interpolated over the logarithm of the number of ranks; 1 without measurements.
    """
    if not measured:
        return 1.0
    counts = sorted(n for n in measured if 1 < n <= machine.ranks)
    if not counts:
        return 1.0
    factors = []
    for n in counts:
        part = Machine(
            host=machine.host[:n],
            names=machine.names,
            link=machine.link,
            speeds=machine.speeds[:n],
            overlap=machine.overlap,
            numa=machine.numa[:n],
            across=machine.across,
        )
        factors.append(measured[n] / allreduce_seconds(part))
    return float(np.exp(np.interp(np.log(machine.ranks), np.log(counts), np.log(factors))))


def allreduce_seconds(machine: Machine, m: int = 8) -> float:
    """Seconds of an all-reduce of m bytes over all ranks, in a sequence without pauses."""
    one = Loop(TURNS, (Collective("allreduce", m, 0),))
    graph = ExecutionGraph(phases=("allreduce",), programs=((one,),) * machine.ranks)
    return simulate(make_plan(graph, machine)).makespan / TURNS


def with_collectives(machine: Machine, profile: Profile) -> Machine:
    """The machine with all-reduces scaled to the profile's; unchanged without any."""
    network = profile.network
    times = {a.ranks: a.seconds for a in network.allreduce if a.m <= FEW} if network else {}
    if machine.ranks < 2 or not times:
        return machine
    return dataclasses.replace(machine, collective=allreduce_scale(machine, times))


def smallest(ranks: Sequence[int], latest: Sequence[float], deadline: float) -> int:
    """The fewest ranks that meet the deadline; latest[k] is the upper end of an
    interval, in seconds. Raises InputError if no number does."""
    enough = [p for p, t in sorted(zip(ranks, latest)) if t <= deadline]
    if not enough:
        raise InputError(
            f"deadline {deadline:g} s cannot be met; the fastest of these runs may take up to "
            f"{min(latest):.4g} s"
        )
    return enough[0]


INTERVAL = "t_min to t_max is meant to contain nine runs in ten"
NO_INTERVAL = "t_min to t_max may contain fewer than nine runs in ten"
IDEAL = 10.0  # computing over messages from which they hardly matter


def forecast_text(
    found: Sequence[Forecast], iterations: int, synthetic: str, learned: Sequence[bool], doubtful: bool
) -> str:
    """All tables. `iterations`: of a solution; `learned`: for each run that corrected it,
    whether it was DISTURBED; `doubtful`: the prediction is PROVISIONAL."""
    first = found[0].work
    corrected = f", corrected by {plural(len(learned), 'run')}" if learned else ""
    if any(learned):
        corrected += f", {f'{sum(learned)} of them ' if len(learned) > 1 else ''}DISTURBED"
    lines = [f"SYNTHETIC: {synthetic}"] if synthetic else []
    storage = first.case.method.storage
    size = count(first.n_equations)
    what = f"{first.case.question.mesh}: {size} equations, storage {storage}{corrected}"
    lines += [f"{what}; {NO_INTERVAL if doubtful else INTERVAL}", "", _runs(found, iterations)]
    if len(found) == 1:
        lines += ["", _phases(found[0]), "", *found[0].limits, *_ratio(found[0])]
    return "\n".join(lines)


def _ratio(one: Forecast) -> list[str]:
    """Computing over messages and waiting: how well it suits a cluster (Herai 2005, 5.2)."""
    busy = one.outcome.busy.sum()
    other = one.outcome.wait.sum() + one.outcome.overhead.sum()
    if not other > 0:  # nothing is sent
        return []
    few = "messages hardly matter" if busy >= IDEAL * other else "computing outweighs messages"
    suits = few if busy > other else "more ranks gain little"
    return [f"computing over messages and waiting: {busy / other:.3g} ({suits})"]


def outcome_text(prediction: Prediction, record: str) -> str:
    """Errors of the prediction for the run with this id, in total and by phase, and whether
    the run lies in the predicted interval."""
    seen = next(o for o in prediction.observed if o.record == record)
    before = prediction.predicted
    said, took, low, high = map(seconds, (before.iteration, seen.iteration, before.low, before.high))
    lines = [f"predicted {said} per iteration, measured {took}: error {100 * seen.error:+.1f} %"]
    lines.append(
        f"the run is {'inside' if seen.inside else 'OUTSIDE'} the predicted interval, {low} to {high}"
    )
    phases = sorted(seen.phases.items(), key=lambda item: -abs(item[1]))
    lines += [f"  {name:20s} {100 * error:+.1f} % of the iteration" for name, error in phases]
    return "\n".join(lines)


def _runs(found: Sequence[Forecast], iterations: int) -> str:
    total = [plural(iterations, "iteration")] if iterations else []
    heads = ["ranks", "iteration", "t_min", "t_max", "assembly", *total]
    heads += ["speedup", "slowest rank / mean", "bound by"]
    alone = found[0].iteration if found[0].work.ranks == 1 else None
    rows = []
    for f in found:
        busy = f.outcome.busy.sum(axis=1)
        row: list[object] = [f.work.ranks, *map(seconds, (f.iteration, f.low, f.high, f.assembly))]
        row += [seconds(f.total(iterations)[1])] if iterations else []
        row += [
            alone / f.iteration if alone else None,
            float(busy.max() / busy.mean()),
            f.limits[0].split(":")[0],
        ]
        rows.append(row)
    return table(heads, rows, align="r" * (len(heads) - 1) + "l", digits=3)


def _phases(one: Forecast) -> str:
    whole = sum(one.phases.values())
    parts = sorted(one.phases.items(), key=lambda item: -item[1])
    return table(["phase", "time", "part"], [[n, seconds(t), percent(t / whole)] for n, t in parts])
