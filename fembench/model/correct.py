"""Correct the predictions for a machine with records of runs on it.

A profile measures kernels in isolation. It misses the loop around them, packing, and
the slowdown of kernels that run in sequence: caches are warm in a probe and cold in a
run, to an extent that can depend on the size. The corrections are medians, over ranks
and runs, of measured over predicted times. The remaining errors determine the width of
the interval.
"""

import dataclasses
import datetime
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.methods.recipe import recipe
from fembench.model.cg import Correction, Factor, Power, Price, inside_product, prices
from fembench.model.configuration import by_configuration
from fembench.model.forecast import allreduce_seconds, forecast
from fembench.model.graph import Collective
from fembench.model.iteration import coarse_exchanges, events_of
from fembench.model.machine import Machine
from fembench.model.rates import Rates
from fembench.model.slots import Slot, company, on_hosts
from fembench.model.workload import Workload, of_record
from fembench.records.phases import (
    ALLREDUCE,
    ASSEMBLY,
    AXPY,
    CG,
    CG_PARTS,
    PRECOND,
    PRODUCT_PARTS,
    SEND,
    UNPACK,
)
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.stats.summary import median

ENOUGH, APART = 6, 2.0  # least number of ranks, and least ratio of sizes, to fit a slope
Place = Callable[[int], tuple[list[Slot], Machine, list[str]]]  # ranks -> slots, machine, names of hosts


class RunMedians(NamedTuple):
    """Medians over the timed sets of a run."""

    iteration: float  # seconds of CG per iteration, slowest rank
    phases: F64  # (n_ranks, n_phases) seconds per iteration; assembly: per set
    each: F64  # (n_sets,) seconds of CG per iteration, slowest rank


class Lesson(NamedTuple):
    """The training sample from one run."""

    solver: str
    assembly: F64  # (n, 3) units, ranks on the host, measured over predicted time
    product: F64
    updates: F64
    precond: F64
    loop: F64  # seconds in place of a ratio, and units of all ranks of a host: they share its caches
    pack: tuple[float, float]
    reduce: F64  # all-reduces, with units 1; (0, 3) if there are none


def measured(record: Record) -> RunMedians:
    """The predicted times of a record. Raises InputError without timed iterations."""
    each = times_of(record).each_iteration
    if not len(each):
        raise InputError(f"record {record.id} has no timed iterations; expected a run of CG")
    slowest = each[:, :, CG].max(axis=1)
    return RunMedians(float(np.median(slowest)), np.median(each, axis=0), slowest)


def learn(records: Sequence[Record], rates: Rates, place: Place) -> Correction:
    """The correction fitted to these runs. Raises InputError if one cannot be predicted.

    Its errors are cross-validated, one configuration and one pass left out at a time.
    """
    lessons = taught_by(records, rates, place)
    found = fit(lessons)
    errors = [_error(record, rates, place, found) for record in records]
    middle = float(np.median(errors))
    for kept, left in folds(records):
        without = fit([lessons[k] for k in kept])
        for k in left:
            errors[k] = _error(records[k], rates, place, without)
    grouped = by_configuration(records, [e - middle for e in errors]).values()
    return dataclasses.replace(found, scale=math.exp(middle), errors=tuple(map(tuple, grouped)))


def folds(records: Sequence[Record]) -> list[tuple[list[int], list[int]]]:
    """(training runs, runs left out), for each configuration and pass; [] if fewer than
    two configurations would remain for training.

    The n-th repetitions of all configurations are a pass. All runs of a pass are left
    out together, as a new run comes later, too, on a changed machine. If no other pass
    has all the other configurations, only the configuration is left out.
    """
    groups = list(by_configuration(records, range(len(records))).values())
    when = [datetime.datetime.fromisoformat(record.created) for record in records]
    turns = [{k: nth for nth, k in enumerate(sorted(group, key=lambda k: when[k]))} for group in groups]
    found: dict[tuple[int, ...], list[int]] = {}
    for mine in turns if len(groups) > 2 else ():
        others = [turn for turn in turns if turn is not mine]
        for k, nth in mine.items():
            elsewhen = [[i for i, other in turn.items() if other != nth] for turn in others]
            kept = elsewhen if all(elsewhen) else [list(turn) for turn in others]
            found.setdefault(tuple(sorted(i for some in kept for i in some)), []).append(k)
    return [(list(kept), sorted(left)) for kept, left in found.items()]


def taught_by(records: Sequence[Record], rates: Rates, place: Place) -> list[Lesson]:
    """The training sample of each run. Raises InputError if one cannot be predicted."""
    if not records:
        raise InputError("no runs to learn from; expected at least one record")
    solvers = {record.case.method.solver for record in records}
    if len(solvers) > 1:
        raise InputError(f"runs of solvers {', '.join(sorted(solvers))}; expected one solver")
    return [_one(record, rates, place) for record in records]


def fit(lessons: Sequence[Lesson]) -> Correction:
    """The correction fitted to all samples."""
    packing = [t.pack for t in lessons if not math.isnan(t.pack[0])] or [(0.0, 0.0)]
    return Correction(
        assembly=_factor([t.assembly for t in lessons]),
        product=_factor([t.product for t in lessons]),
        updates=_factor([t.updates for t in lessons]),
        precond=_factor([t.precond for t in lessons]),
        solver=lessons[0].solver,
        loop=_factor([t.loop for t in lessons], 0.0),
        pack=(median([pack for pack, _ in packing]), median([unpack for _, unpack in packing])),
        reduce=_factor([t.reduce for t in lessons]),
    )


def _one(record: Record, rates: Rates, place: Place) -> Lesson:
    """The training sample from one run."""
    work, found = of_record(record), measured(record)
    slots, machine, _ = place(work.ranks)
    priced = prices(work, slots, rates, Correction(solver=record.case.method.solver))
    exchanges = recipe(record.case.method).exchanges
    product = found.phases[:, PRODUCT_PARTS].sum(axis=1)
    product -= [
        _kept(work, machine, rank, inside_product(work, priced[rank], rank)) for rank in range(work.ranks)
    ]
    n_bytes = exchanges * np.array([sum(row) for row in work.parts.message_bytes], float)
    sending = exchanges * np.array(
        [_overheads(machine, rank, work.exchange(rank)) for rank in range(work.ranks)]
    )
    for rank in range(work.ranks):
        for exchange in coarse_exchanges(work, rank):
            n_bytes[rank] += sum(m for _, m in exchange)
            sending[rank] += _overheads(machine, rank, exchange)
    each = times_of(record).each_iteration
    rest = np.median(each[:, :, CG] - each[:, :, CG_PARTS].sum(axis=2), axis=0)
    assembly = found.phases[:, ASSEMBLY]
    dofs, k = work.parts.dofs, company(slots)
    return Lesson(
        solver=record.case.method.solver,
        assembly=_points(work.parts.cells, k, assembly, [p.assembly for p in priced]),
        product=_points(work.product_units(), k, product, [p.products * p.product for p in priced]),
        updates=_points(dofs, k, found.phases[:, AXPY], [p.updates for p in priced]),
        precond=_points(dofs, k, found.phases[:, PRECOND], [p.preconditioning for p in priced]),
        loop=_points(on_hosts(slots, dofs), k, rest, np.ones(work.ranks)),
        pack=(
            _per_byte(np.maximum(found.phases[:, SEND] - sending, 0.0), n_bytes),
            _per_byte(found.phases[:, UNPACK], n_bytes),
        ),
        reduce=_points(
            [1],
            [max(k)],
            found.phases[:, ALLREDUCE].min(keepdims=True),  # of the rank that waits least
            [_reducing(work, priced[0], machine)],
        ),
    )


def _reducing(work: Workload, price: Price, machine: Machine) -> float:
    """Predicted s of an iteration's all-reduces; 0 where ranks await rank 0's grids."""
    if work.recipe.precond.grids:
        return 0.0
    sums = sum(isinstance(e, Collective) and e.kind == "allreduce" for e in events_of(work, 0, price))
    return sums * allreduce_seconds(machine) if machine.ranks > 1 else 0.0


def _overheads(machine: Machine, rank: int, exchange: Sequence[tuple[int, int]]) -> float:
    """Seconds of Os of one exchange with the neighbours."""
    return sum(machine.cost(rank, q, m).send for q, m in exchange)


def _kept(work: Workload, machine: Machine, rank: int, computing: float) -> float:
    """Seconds per iteration by which messages slow down a rank's product."""
    return sum(machine.beside(q, rank, m, computing)[0] for q, m in work.exchange(rank))


def _error(record: Record, rates: Rates, place: Place, correction: Correction) -> float:
    work = of_record(record)
    slots, machine, hosts = place(work.ranks)
    predicted = forecast(work, slots, rates, machine, hosts, dataclasses.replace(correction, errors=()))
    return math.log(measured(record).iteration / predicted.iteration)


def _points(units: Sequence[float], together: Sequence[int], times: F64, predicted: npt.ArrayLike) -> F64:
    """(n, 3) units, ranks on the host, measured over predicted time, where known."""
    t = np.asarray(times, float)
    p = np.asarray(predicted, float)
    known = (t > 0) & (p > 0)
    return np.column_stack([units, together, t / np.where(known, p, 1.0)])[known]


def _factor(points: Sequence[F64], unknown: float = 1.0) -> Factor:
    """The median factor over all ranks and runs, with powers of size and number of
    ranks if these vary enough for a fit; `unknown` without points."""
    found = np.concatenate(points)
    if not len(found):
        return Factor(unknown)
    units, together, ratios = np.log(found).T
    size = _power(units, ratios, alike=together)
    ratios = ratios - size.slope * (units - math.log(size.middle))
    shared = dataclasses.replace(_power(together, ratios), low=0.0, high=math.inf)
    ratios = ratios - shared.slope * (together - math.log(shared.middle))
    return Factor(math.exp(float(np.median(ratios))), size, shared)


def _power(x: F64, ratios: F64, alike: F64 | None = None) -> Power:
    """The power law with the median slope over pairs (Theil and Sen), in logarithms.
    Only pairs with equal `alike` count, if there are any."""
    slope = 0.0
    if len(x) >= ENOUGH and np.ptp(x) >= math.log(APART):
        a, b = np.triu_indices(len(x), 1)
        apart = np.abs(x[b] - x[a]) > math.log(APART) / 2
        if alike is not None and (apart & (alike[a] == alike[b])).any():
            apart &= alike[a] == alike[b]
        slope = float(np.median((ratios[b] - ratios[a])[apart] / (x[b] - x[a])[apart]))
    return Power(slope, *(math.exp(float(v)) for v in (np.median(x), x.min(), x.max())))


def _per_byte(times: F64, n_bytes: F64) -> float:
    """Median over the ranks that send; nan if none does."""
    busy = n_bytes > 0
    return median(times[busy] / n_bytes[busy])
