"""The closed form of a run from a machine profile, with the same prices as the simulation.

    product     cores    a rank's product, at the size of its part and while other ranks of its host compute
    halo        nic      gaps of its messages; they overlap with the product if the case says so
    latency     -        until the last of its messages has arrived
    updates     cores    vector updates, inner products, loop, packing, overheads of its messages
    allreduce   -        recursive doubling of 8 bytes, each stage as slow as its slowest pair

A host's cores serve the demand of its ranks: with more ranks than cores, and more than the profile measured
at once, a phase lasts at least their sum over the number of cores, at the speed that each has with all cores
busy. That speed, as measured, includes the traffic of the others to memory. Up to the number of ranks that
the profile measured at once, the speeds include all sharing, and each rank counts as having its own core.

What is expected follows from the prices themselves, as in the simulation. The interval of a price contains
nine in ten of the profile's visits or, with a correction, of the runs to which that was fitted; its middle is
no price, because disturbed visits lie on one side of it.

Runs on the machine correct the closed form. The profile's speeds are corrected as for the simulation
(`Predictor.correction`). The remaining ratio of measured to predicted iteration times is the error of the
closed form itself: its median scales an iteration, and its spread between runs determines the width of the
interval.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fembench.base.errors import InputError
from fembench.methods.lookup import names, one_of, preconds, product_name, variant_of, variants
from fembench.methods.recipe import recipe
from fembench.model.cg import Price, inside_product, prices
from fembench.model.closed_form import Activity, CgSet, ClosedForm, closed_form
from fembench.model.collectives import doubling_seconds
from fembench.model.configuration import by_configuration
from fembench.model.correct import fit, folds, measured, taught_by
from fembench.model.forecast import as_in_runs, half_width
from fembench.model.graph import Collective, Compute, Send, Wait
from fembench.model.interval import TimeRange, as_interval, shortest_window, total
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
    half_width: float = 0.0  # of the logarithm, for nine runs in ten; 0: use the profile's visits instead

    def applied(self, price: float, visits: TimeRange | None = None) -> TimeRange:
        """The interval of a corrected price, from the errors of the runs, if they are known, or else from the
        interval of its visits."""
        if self.half_width:
            factor = math.exp(self.half_width)
            return TimeRange(price * self.scale / factor, price * self.scale * factor)
        return (visits or as_interval(price)) * self.scale

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
    """Up to the number of ranks that the profile measured at once, prices include all sharing, and as many
    cores serve as there are ranks; beyond the host's cores, these serve."""
    hosts, name = study.profile.environment.hosts, product_name(work.case.method)
    crowd, cores = company(slots), [1] * (1 + max(s.host for s in slots))
    together = []
    for slot, ranks in zip(slots, crowd):
        own, known = max(hosts[slot.model].cores, 1), study.rates.together(slot.rank, name)
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
    """Assembly and the phases of an iteration, each activity with one interval per rank, or with its price if
    `exact`; cores[host] serve the ranks of a host."""
    ranks, parts = range(work.ranks), work.parts
    wider = (
        TimeRange(math.exp(-rates.uncertain), math.exp(rates.uncertain)) if not exact else as_interval(1.0)
    )
    as_measured, learned = (c.exact if exact else c.applied for c in (AS_IN_PROFILE, correction))
    before = [_before(work, r, priced[r]) for r in ranks]

    def spread(name: str, units: Sequence[float], seconds: Sequence[float], each=learned) -> list[TimeRange]:
        visits = (rates.spread(slots[r].rank, name, units[r]) for r in ranks)
        return [
            each(t, shortest_window((t / ratio).tolist(), KEPT)) * wider for t, ratio in zip(seconds, visits)
        ]

    product = spread(product_name(work.case.method), work.product_units(), [p.product for p in priced])
    vectors = spread("updates", parts.dofs, [p.updates + p.dot for p in priced])
    beside = [
        _overheads(work, machine, r, priced[r], before[r]) + priced[r].loop + sum(priced[r].pack)
        for r in ranks
    ]
    computing = Activity("product", "core", product)
    messages = (
        Activity("halo", "nic", [learned(_gaps(work, machine, r)) for r in ranks]),
        Activity("latency", "", [learned(_latency(work, machine, r, before)) for r in ranks]),
    )
    updates = Activity("updates", "core", [total((v, learned(t))) for v, t in zip(vectors, beside)])
    exchange = [(computing, *messages)] if work.case.method.overlap else [(computing,), messages]
    assembly = spread("assembly", parts.cells, [p.assembly for p in priced], as_measured)
    return CgSet(
        assembly=(Activity("assembly", "core", assembly),),
        iteration=(*exchange, (updates,)),
        allreduce=learned(_allreduce(machine, before[0].allreduces)),
        allreduces=len(recipe(work.case.method).reductions),
        host=machine.host,
        cores=cores,
    )


def _check(case: Case) -> None:
    waits = variant_of(case.method.variant, case.method.solver).waits
    if case.method.solver != "own" or recipe(case.method).application or not waits:
        expected = [p for p in preconds("own") if p.identity or p.folds]
        waiting = [v for v in variants("own") if v.waits]
        raise InputError(
            f"no closed form for solver {case.method.solver}, precond {case.method.precond}, "
            f"variant {case.method.variant}; "
            f"expected solver own, precond {one_of(names(expected))}, and variant {one_of(names(waiting))}; "
            "--method simulation covers the others"
        )


class _Before(NamedTuple):
    """Computing of a rank since its previous send and receive, in all iterations but the first."""

    exchange: Computed  # before its first message of a product, and before it receives the first
    allreduces: list[Computed]


def _before(work: Workload, rank: int, price: Price) -> _Before:
    """What the simulation has before each message: the second turn of the rank's events."""
    found, since, sent = _Before(NOTHING, []), NOTHING, NOTHING
    events = events_of(work, rank, price)
    for e in (*events, *events):
        if isinstance(e, Compute):
            since = Computed(since.sender + e.seconds, since.receiver + e.seconds)
        elif isinstance(e, Collective):
            found.allreduces.append(since)
            since = NOTHING
        elif isinstance(e, Send) and since.sender:
            sent, since = since, since._replace(sender=0.0)
        elif isinstance(e, Wait):
            found = found._replace(exchange=Computed(sent.sender, since.receiver))
            since = since._replace(receiver=0.0)
    return found._replace(allreduces=found.allreduces[len(found.allreduces) // 2 :])


def _overheads(work: Workload, machine: Machine, rank: int, price: Price, before: _Before) -> float:
    """Seconds per iteration that a rank's messages take from its computing: overheads of sending and
    receiving, and the slowdown of its product while they travel."""
    inside = inside_product(work, price, rank)
    return sum(
        machine.cost(rank, q, m, Computed(sender=computed.sender)).send
        + sum(machine.beside(q, rank, m, inside, Computed(receiver=computed.receiver)))
        for k, (q, m) in enumerate(work.exchange(rank))
        for computed in (NOTHING if k else before.exchange,)
    )


def _gaps(work: Workload, machine: Machine, rank: int) -> float:
    """Seconds per iteration for which a rank's messages occupy the network card of its host."""
    return sum(machine.gap(rank, q, m) for q, m in work.exchange(rank))


def _latency(work: Workload, machine: Machine, rank: int, before: Sequence[_Before]) -> float:
    """Seconds until the last message that a rank waits for has arrived."""

    def computed(q: int) -> Computed:
        first = work.exchange(q)[0][0] == rank
        return Computed(sender=before[q].exchange.sender) if first else NOTHING

    return max(
        (0.0, *(machine.exchanged(q, rank, m, m, computed(q)).latency for q, m in work.exchange(rank)))
    )


def _allreduce(machine: Machine, before: Sequence[Computed]) -> float:
    """Mean seconds of an iteration's all-reduces by recursive doubling, scaled to measured ones, which follow
    each other. The first stage of each comes after computing."""
    if machine.ranks == 1:
        return 0.0
    seconds = doubling_seconds(machine.ranks, lambda a, b: machine.cost(a, b, REDUCED).total)
    cold = sum(machine.cost(0, 1, REDUCED, computed).total for computed in before) / len(before)
    return machine.collective * seconds + cold - machine.cost(0, 1, REDUCED).total


TURNS = 100  # iterations, if only the time per iteration matters


def learn_closed_form(study: Predictor, records: Sequence[Record]) -> ClosedFormCorrection:
    """The correction from runs on the machine of `study`. Errors are cross-validated, one configuration and
    one pass left out at a time. Raises InputError for runs that cannot be predicted."""
    if not records:
        return ClosedFormCorrection()
    errors = [_error(study, record) for record in records]
    middle = float(np.median(errors))
    lessons = taught_by(records, study.rates, study.place) if study.correction else []
    for kept, left in folds(records) if lessons else []:
        others = dataclasses.replace(study, correction=fit([lessons[k] for k in kept]))
        for k in left:
            errors[k] = _error(others, records[k])
    grouped = list(by_configuration(records, [e - middle for e in errors]).values())
    return ClosedFormCorrection(math.exp(middle), half_width(grouped) if len(errors) > 1 else 0.0)


def _error(study: Predictor, record: Record) -> float:
    found = bounded(study, of_record(record), TURNS).expected.iteration
    return math.log(measured(record).iteration / found)


def in_closed_form(
    study: Predictor, correction: ClosedFormCorrection, learned: Sequence[Record], case: Case
) -> Prediction:
    """The closed-form prediction of a run, to be saved before the run. Raises InputError."""
    work = study.workload(case)
    return bound_of(study, work, bounded(study, work, TURNS, correction=correction), learned)
