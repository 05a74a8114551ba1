"""The quality of a trace: coverage of CG, cost of stamps, dropped spans, clocks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fembench.base import units
from fembench.records.binding import beyond_caches, touched_in
from fembench.records.phases import CG, CG_PARTS
from fembench.records.quiet import stretch
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.records.verdict import Rule

UNCOVERED = 0.02  # fraction of CG
# seconds per iteration of a Python loop between its kernels, each of which pushes its code and data out of
# caches that do not hold all that an iteration touches: those of a core, or all (docs/decisions/0031)
LOOP, COOLER_LOOP, COLD_LOOP = 10e-6, 25e-6, 50e-6
STRETCHING = 10  # factor on LOOP if ranks are emulated
INTRUSION, STAMPS = 0.01, 3e-6  # fraction of an iteration; seconds that stamps of any may take


class Iteration(NamedTuple):
    """A typical iteration of a rank, in seconds: medians over the timed sets."""

    whole: float
    left: float  # not covered by the parts of CG
    spans: float  # number

    @property
    def share(self) -> float:
        """Fraction of the iteration that the parts of CG do not cover."""
        return self.left / self.whole if self.whole else 0.0


def trace_rules(record: Record) -> Iterator[Rule]:
    """D4, D5: coverage of CG and cost of stamps, on the worst rank. E9: dropped spans."""
    iterations = usual_iterations(record)
    if iterations and record.case.method.solver == "own":
        yield _parts(record, iterations)
        yield _intrusion(record, max(iterations, key=lambda i: i.spans / i.whole if i.whole else 0.0))
    if record.dropped:  # older records do not have it
        yield _complete(record.dropped)


def _complete(dropped: tuple[int, ...]) -> Rule:
    """E9: whether the trace had room for every span."""
    lost = sum(dropped)
    where = f", most on rank {dropped.index(max(dropped))}" if lost else ""
    return Rule(
        id="E9",
        ok=not lost,
        value=f"{units.plural(lost, 'span') if lost else 'no spans'} dropped{where}",
        threshold="a complete trace",
        note="only the traced iterations are affected: trace fewer (--trace-iterations)" if lost else "",
    )


def usual_iterations(record: Record) -> list[Iteration]:
    """[rank] typical iteration; [] if none was timed."""
    times = times_of(record)
    each, spans = times.each_iteration, times.spans
    if not len(each):
        return []
    left = each[:, :, CG] - each[:, :, CG_PARTS].sum(axis=2)
    medians = (np.median(values, axis=0).tolist() for values in (each[:, :, CG], left, spans))
    return [Iteration(*row) for row in zip(*medians)]


def _parts(record: Record, iterations: Sequence[Iteration]) -> Rule:
    """D4. Time between spans: the loop, half of each stamp, the balancer, slowness."""
    balancing = _balancing(record)
    loops = _loops(record, iterations)
    ranks = sorted(range(len(iterations)), key=lambda rank: -iterations[rank].share)
    wrong = (rank for rank in ranks if not _covered(iterations[rank], loops[rank] + balancing))
    rank = next(wrong, ranks[0])
    worst, loop = iterations[rank], loops[rank]
    own = loop + balancing
    why = "the loop in Python, which is visible because the iterations are short"
    if balancing and worst.left > loop:
        why = "the loop, and the balancer's looks and moves"
    return Rule(
        id="D4",
        ok=_covered(worst, own),
        value=f"parts of cg leave {worst.share:.2g} of it: {units.seconds(worst.left)} per iteration",
        threshold=f"<= {UNCOVERED}, or {units.seconds(own)} per iteration for the loop",
        note=""
        if abs(worst.share) <= UNCOVERED
        else why
        if worst.left <= own
        else "more than the loop takes: the rank was interrupted or shares its core",
    )


def _covered(iteration: Iteration, own: float) -> bool:
    """Whether the parts of CG leave little, or no more than what is no part takes."""
    return abs(iteration.share) <= UNCOVERED or 0 <= iteration.left <= own


def _loops(record: Record, iterations: Sequence[Iteration]) -> list[float]:
    """[rank] seconds per iteration that the loop and half of each stamp may take."""
    usual = COOLER_LOOP if touched_in(record) == "L3" else LOOP
    usual = COLD_LOOP if beyond_caches(record) else usual
    usual *= STRETCHING if record.case.emulated else 1
    e, stamp = record.environment, record.clock.span_ns * 1e-9
    slowness = [stretch(e, number) for number in range(len(e.hosts))]
    return [(usual + i.spans * stamp) * slowness[where] for i, where in zip(iterations, e.rank_host)]


def _balancing(record: Record) -> float:
    """Seconds per iteration spent on looks and moves."""
    every = record.balance.ledgers if record.balance else ()
    ledgers = [x for x in every if x.iterations and not x.warmup]
    spent = [sum(o.look_seconds + o.move_seconds for o in x.looks) / x.iterations for x in ledgers]
    return sum(spent) / max(len(spent), 1)


def _intrusion(record: Record, worst: Iteration) -> Rule:
    """D5: spans per iteration times the cost of one; consecutive spans cost half."""
    cost = worst.spans * record.clock.span_ns * 1e-9
    share = cost / worst.whole if worst.whole else 0.0
    each = units.seconds(record.clock.span_ns * 1e-9)
    return Rule(
        id="D5",
        ok=share <= INTRUSION or cost <= STAMPS,
        value=f"{worst.spans:.3g} stamps of {each} take {units.seconds(cost)}, {share:.2g} of an iteration",
        threshold=f"<= {INTRUSION} of it, or {units.seconds(STAMPS)}",
        note="" if share <= INTRUSION else "the iteration is short: a larger mesh has longer ones",
    )


def alignment(record: Record) -> str:
    """The agreement between the clocks of the hosts, in words."""
    if len(set(record.environment.rank_host)) == 1:
        return "one host, one clock: offset 0"
    if not record.offsets:
        return "offsets between hosts not recorded: timelines are aligned by one barrier"
    worst = max(o.uncertainty for o in record.offsets)
    return f"clocks of {len(record.offsets)} hosts aligned by ping-pong within {units.seconds(worst)}"
