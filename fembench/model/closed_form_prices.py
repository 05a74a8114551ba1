"""The closed form of a run from a machine profile, priced as in the simulation.

    product     cores    a rank's product, at the size of its part and while other ranks of its host compute
    halo        nic      gaps of its messages; they overlap with the product if the case says so
    latency     -        until the last of its messages has arrived
    updates     cores    vector updates, inner products, loop, packing, overheads of its messages
    precond     cores    a preconditioner's passes and products, and the gaps of its messages (precond_halo)
                -        precond_latency: what its computing does not hide of its messages; its collectives
    small_grids cores    grids of multigrid on rank 0, for which the others wait
    allreduce   -        recursive doubling of 8 bytes, each stage as slow as its slowest pair

A host's cores serve the demand of its ranks: with more ranks than cores, and more than
the profile measured at once, a phase lasts at least their sum over the number of cores,
at the speed that each has with all cores busy. That speed, as measured, includes the
traffic of the others to memory. Up to the number of ranks that the profile measured at
once, the speeds include all sharing, and each rank counts as having its own core.

What is expected follows from the prices themselves, as in the simulation. The
interval of a price contains nine in ten of the profile's visits or, with a
correction, of the runs to which that was fitted; its middle is no price, because
disturbed visits lie on one side of it.

Runs on the machine correct the closed form. The profile's speeds are corrected as for
the simulation (`Predictor.correction`). The remaining ratio of measured to predicted
iteration times is the error of the closed form itself: its median scales an iteration,
and its spread between runs determines the width of the interval.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fembench.base.errors import InputError
from fembench.methods.lookup import names, one_of, product_name, recurrence_of, recurrences
from fembench.methods.steps import Application, Multiplication
from fembench.model.cg import Price, prices
from fembench.model.closed_form import (
    Activity,
    CgSet,
    ClosedForm,
    Phase,
    TimeRange,
    as_interval,
    closed_form,
    shortest_window,
    total,
)
from fembench.model.collectives import doubling_seconds, stages
from fembench.model.configuration import by_configuration
from fembench.model.correct import fit, folds, measured, taught_by
from fembench.model.forecast import as_in_runs, half_width
from fembench.model.graph import Collective, Compute, Send, Wait
from fembench.model.iteration import events_of
from fembench.model.machine import Machine
from fembench.model.predictor import Predictor, bound_of
from fembench.model.rates import Rates
from fembench.model.slots import Slot, company
from fembench.model.workload import Workload, of_record
from fembench.records.case import Case
from fembench.records.hlogp import NOTHING, Computed
from fembench.records.prediction import Prediction
from fembench.records.record import Record

KEPT = 90.0  # percent of the visits in an interval
REDUCED = 8  # bytes of an all-reduce


@dataclass(frozen=True)
class ClosedFormCorrection:
    """A correction of the time per iteration, fitted to runs on the machine."""

    scale: float = 1.0  # measured over predicted
    half_width: float = 0.0  # of the logarithm, nine runs in ten; 0: not known

    def applied(self, price: float, visits: TimeRange | None = None) -> TimeRange:
        """The interval of a corrected price: by its visits and, if known, the errors of runs."""
        factor = math.exp(self.half_width)
        seen = visits or as_interval(price)
        return TimeRange(min(seen.low, price / factor), max(seen.high, price * factor)) * self.scale

    def exact(self, price: float, visits: TimeRange | None = None) -> TimeRange:
        """The corrected price."""
        return as_interval(price * self.scale)


AS_IN_PROFILE = ClosedFormCorrection()


def bounded(
    study: Predictor,
    work: Workload,
    iterations: int,
    correction: ClosedFormCorrection = AS_IN_PROFILE,
) -> ClosedForm:
    """The closed form of a workload. Raises InputError for a case that has none."""
    _check(work.case)
    slots, machine, _ = study.place(work.ranks)
    shared = sharing_of(study, work, slots)
    priced = prices(work, slots, study.rates, study.correction, shared.together)
    machine = as_in_runs(machine, slots, study.correction)

    def of(*, exact: bool) -> ClosedForm:
        phases = phases_of(work, slots, study.rates, priced, machine, shared.cores, correction, exact=exact)
        return closed_form(phases, iterations)

    return replace(of(exact=False), expected=of(exact=True).expected)


class SharedCores(NamedTuple):
    """How ranks share the cores of their hosts."""

    together: list[int]  # [rank] ranks of its host that compute at once
    cores: list[int]  # [host] that serve its ranks


def sharing_of(study: Predictor, work: Workload, slots: Sequence[Slot]) -> SharedCores:
    """Up to the number of ranks that the profile measured at once, prices include all
    sharing, and each rank has a core; beyond the host's cores, these serve."""
    hosts = study.profile.environment.hosts
    name = product_name(work.case.method)
    crowd = company(slots)
    cores = [1] * (1 + max(s.host for s in slots))
    together = []
    for slot, ranks in zip(slots, crowd):
        own = max(hosts[slot.model].cores, 1)
        known = study.rates.together(slot.rank, name)
        crowded = ranks > max(own, known)
        cores[slot.host] = own if crowded else ranks
        together.append(min(own, known) if crowded else ranks)
    return SharedCores(together, cores)


def phases_of(
    work: Workload,
    slots: Sequence[Slot],
    rates: Rates,
    priced: Sequence[Price],
    machine: Machine,
    cores: Sequence[int],
    correction: ClosedFormCorrection = AS_IN_PROFILE,
    *,
    exact: bool = False,
) -> CgSet:
    """Assembly and the phases of an iteration, each activity with one interval per
    rank, or with its price if `exact`; cores[host] serve the ranks of a host."""
    ranks, parts = range(work.ranks), work.parts
    factor = 1.0 if exact else math.exp(rates.uncertain)
    wider = TimeRange(1 / factor, factor)
    as_measured, learned = (c.exact if exact else c.applied for c in (AS_IN_PROFILE, correction))
    before = [_before(work, r, priced[r]) for r in ranks]

    def spread(name: str, units: Sequence[float], seconds: Sequence[float], each=learned) -> list[TimeRange]:
        visits = (rates.spread(slots[r].rank, name, units[r]) for r in ranks)
        windows = (shortest_window((t / ratio).tolist(), KEPT) for t, ratio in zip(seconds, visits))
        return [each(t, window) * wider for t, window in zip(seconds, windows)]

    product = spread(product_name(work.case.method), work.product_units(), [p.product for p in priced])
    vectors = spread("updates", parts.dofs, [p.updates + p.dot for p in priced])
    beside = [_overheads(machine, r, before[r]) + priced[r].loop + sum(priced[r].pack) for r in ranks]
    computing = Activity("product", "core", product)
    own, inner = _places(work, before)
    messages = (
        Activity("halo", "nic", [learned(_gaps(machine, r, before[r], own)) for r in ranks]),
        Activity("latency", "", [learned(_latency(machine, r, before, own)[0]) for r in ranks]),
    )
    precond: list[Phase] = []
    if work.recipe.application:
        applied = spread("updates", parts.dofs, [p.preconditioning - p.small for p in priced])
        halo = [learned(_gaps(machine, r, before[r], inner)) for r in ranks]
        behind = [_latency(machine, r, before, inner)[1] + _collected(machine, before[r]) for r in ranks]
        precond = [
            (Activity("precond", "core", applied), Activity("precond_halo", "nic", halo)),
            (Activity("precond_latency", "", [learned(t) for t in behind]),),
        ]
        if work.recipe.precond.grids:
            precond.append((Activity("small_grids", "core", [learned(p.small) for p in priced]),))
    kept = [learned(t, _spread(machine, r, before[r], t)) for r, t in zip(ranks, beside)]
    updates = Activity("updates", "core", [total(each) for each in zip(vectors, kept)])
    exchange = [(computing, *messages)] if work.case.method.overlap else [(computing,), messages]
    assembly = spread("assembly", parts.cells, [p.assembly for p in priced], as_measured)
    return CgSet(
        assembly=(Activity("assembly", "core", assembly),),
        iteration=(*exchange, *precond, (updates,)),
        allreduce=learned(_allreduce(machine, before[0].allreduces)),
        allreduces=len(work.recipe.reductions),
        host=machine.host,
        cores=cores,
    )


def _check(case: Case) -> None:
    waits = recurrence_of(case.method.recurrence, case.method.solver).waits
    if case.method.solver != "own" or not waits:
        waiting = [v for v in recurrences("own") if v.waits]
        raise InputError(
            f"no closed form for solver {case.method.solver}, recurrence {case.method.recurrence}; "
            f"expected solver own, recurrence {one_of(names(waiting))}; method = simulation covers the others"
        )


class _Exchange(NamedTuple):
    """A neighbour sum of a rank."""

    messages: list[tuple[int, int]]  # (neighbour, bytes), in order
    before: Computed  # since its previous send, and before it receives the first
    inside: float  # seconds of computing while the messages travel


class _Before(NamedTuple):
    """Messages of a rank, and its computing before them, in all iterations but the first."""

    exchanges: list[_Exchange]
    allreduces: list[Computed]
    others: list[Collective]


def _before(work: Workload, rank: int, price: Price) -> _Before:
    """What the simulation has before each message: the second turn of the rank's events."""
    events = events_of(work, rank, price)
    since = sent = NOTHING
    for _ in range(2):
        found = _Before([], [], [])
        messages = list[tuple[int, int]]()
        inside = 0.0
        for e in events:
            if isinstance(e, Compute):
                since = Computed(since.sender + e.seconds, since.receiver + e.seconds)
                inside += e.seconds
            elif isinstance(e, Collective):
                if e.kind == "allreduce":
                    found.allreduces.append(since)
                else:
                    found.others.append(e)
                since = NOTHING
            elif isinstance(e, Send):
                sent = sent if messages else since
                since = since._replace(sender=0.0)
                inside = 0.0
                messages.append((e.to, e.m))
            elif isinstance(e, Wait):
                found.exchanges.append(_Exchange(messages, Computed(sent.sender, since.receiver), inside))
                since = since._replace(receiver=0.0)
                messages = []
    return found


def _places(work: Workload, before: Sequence[_Before]) -> tuple[list[int], list[int]]:
    """The places of the product's exchange in an iteration, and the preconditioner's."""
    places = list(range(max(len(one.exchanges) for one in before)))
    steps = work.recipe.steps
    first = Application() not in steps or steps.index(Application()) > steps.index(Multiplication())
    return (places[:1], places[1:]) if first else (places[-1:], places[:-1])


def _overheads(machine: Machine, rank: int, before: _Before) -> float:
    """Seconds per iteration that a rank's messages take from its computing: overheads
    of sending and receiving, and the slowdown of its products while they travel."""
    return sum(
        machine.cost(rank, q, m, Computed(sender=computed.sender)).send
        + sum(machine.beside(q, rank, m, one.inside, Computed(receiver=computed.receiver)))
        for one in before.exchanges
        for k, (q, m) in enumerate(one.messages)
        for computed in (NOTHING if k else one.before,)
    )


def _spread(machine: Machine, rank: int, before: _Before, seconds: float) -> TimeRange:
    """The interval of these seconds, from turns of messages beside computing."""
    found = [(q, m, one.inside) for one in before.exchanges for q, m in one.messages]
    faster, slower = machine.spread_beside(rank, found)
    return TimeRange(max(seconds - faster, 0.0), seconds + slower)


def _gaps(machine: Machine, rank: int, before: _Before, places: Sequence[int]) -> float:
    """Seconds per iteration in which these exchanges occupy the host's network card."""
    found = before.exchanges
    return sum(machine.gap(rank, q, m) for k in places if found for q, m in found[k].messages)


def _latency(
    machine: Machine, rank: int, before: Sequence[_Before], places: Sequence[int]
) -> tuple[float, float]:
    """Seconds, summed over these exchanges, until the last message that a rank waits
    for has arrived, and of these, how long the rank does not compute meanwhile."""
    whole = exposed = 0.0
    for k in places if before[rank].exchanges else ():
        one = before[rank].exchanges[k]

        def computed(q: int, k: int = k) -> Computed:
            theirs = before[q].exchanges[k]
            return Computed(sender=theirs.before.sender) if theirs.messages[0][0] == rank else NOTHING

        exchanged = (machine.exchanged(q, rank, m, m, computed(q)) for q, m in one.messages)
        last = max(message.latency for message in exchanged)
        whole += last
        exposed += max(0.0, last - one.inside)
    return whole, exposed


def _collected(machine: Machine, before: _Before) -> float:
    """Seconds of the preconditioner's collectives, stage by stage."""
    seconds = 0.0
    for one in before.others:
        for k in range(stages(machine.ranks)):
            m = one.m << k if one.kind == "allgather" else one.m
            seconds += machine.cost(0, min(1 << k, machine.ranks - 1), m).total
    return machine.collective * seconds


def _allreduce(machine: Machine, before: Sequence[Computed]) -> float:
    """Mean seconds of an iteration's all-reduces by recursive doubling, scaled to
    measured ones; the first stage of each comes after computing."""
    if machine.ranks == 1:
        return 0.0
    seconds = doubling_seconds(machine.ranks, lambda a, b: machine.cost(a, b, REDUCED).total)
    firsts = [machine.cost(0, 1, REDUCED, computed).total for computed in before]
    cold = sum(firsts) / len(before)
    warm = machine.cost(0, 1, REDUCED).total
    return machine.collective * seconds + cold - warm


TURNS = 100  # iterations, if only the time per iteration matters


def learn_closed_form(study: Predictor, records: Sequence[Record]) -> ClosedFormCorrection:
    """The correction from runs on the machine of `study`. Errors are cross-validated over
    configurations and passes. Raises InputError for runs that cannot be predicted."""
    if not records:
        return ClosedFormCorrection()
    errors = [_error(study, record) for record in records]
    middle = float(np.median(errors))
    lessons = taught_by(records, study.rates, study.place) if study.correction else []
    for kept, left in folds(records) if lessons else []:
        others = dataclasses.replace(study, correction=fit([lessons[k] for k in kept]))
        for k in left:
            errors[k] = _error(others, records[k])
    left_over = [error - middle for error in errors]
    grouped = list(by_configuration(records, left_over).values())
    width = half_width(grouped) if len(errors) > 1 else 0.0
    return ClosedFormCorrection(math.exp(middle), width)


def _error(study: Predictor, record: Record) -> float:
    found = bounded(study, of_record(record), TURNS).expected.iteration
    return math.log(measured(record).iteration / found)


def in_closed_form(
    study: Predictor, correction: ClosedFormCorrection, learned: Sequence[Record], case: Case
) -> Prediction:
    """The closed-form prediction of a run, to be saved before the run. Raises InputError."""
    work = study.workload(case)
    return bound_of(study, work, bounded(study, work, TURNS, correction=correction), learned)
