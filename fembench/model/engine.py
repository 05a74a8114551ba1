"""Simulate a plan without contention: one turn of a loop takes a dozen array operations over all ranks.

Turns are simulated until they repeat. Once the clocks of all ranks advance by the same amount over 1, 2, 3 or
4 turns, they do so in all later turns, because the recurrence uses only maximum and sum.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.model.plan import Segment, SimulationPlan

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PERIODS = (1, 2, 3, 4)  # turns
EQUAL = 1e-10  # of a period: a smaller difference between the ranks' advances counts as zero


@dataclass(frozen=True)
class Turn:
    """One simulated turn of a segment."""

    begin: Array  # (n_nodes,) seconds since the start
    end: Array
    bound: Ints  # (n_nodes,) message that the node waited for last; -1: it never waited
    arrived: Array  # (n_nodes,) arrival time of that message


@dataclass(frozen=True)
class SegmentRun:
    """The simulation of one segment."""

    segment: Segment
    turns: list[Turn]  # all simulated turns
    period: int  # number of turns that repeat; 0: every turn was simulated
    repeats: int  # number of periods that were not simulated
    advance: float  # seconds per period
    rest: int  # number of simulated turns after the repeats


@dataclass(frozen=True)
class SimulationOutcome:
    """Final clocks of all ranks, and their breakdown: busy + wait + overhead = finish."""

    finish: Array  # (n_ranks,) seconds
    busy: Array  # (n_ranks, n_phases)
    wait: Array
    overhead: Array
    messages: Ints  # (n_ranks,) sent
    n_bytes: Ints
    runs: list[SegmentRun]
    simulated: int  # turns

    @property
    def makespan(self) -> float:
        return float(self.finish.max())


def simulate(plan: SimulationPlan, *, period: bool = True) -> SimulationOutcome:
    """Simulate a plan; without `period`, every turn. Simulated turns are kept for the timeline and the
    critical path."""
    n, phases = plan.ranks, len(plan.phases)
    clock, wait = np.zeros(n), np.zeros((n, phases))
    runs: list[SegmentRun] = []
    for segment in plan.segments:
        run, clock = _Runner(segment, n, phases).run(clock, wait, period)
        runs.append(run)
    return outcome(plan, clock, wait, runs)


def outcome(plan: SimulationPlan, clock: Array, wait: Array, runs: list[SegmentRun]) -> SimulationOutcome:
    """The outcome: sums over all segments."""
    shape = plan.ranks, len(plan.phases)
    return SimulationOutcome(
        finish=clock,
        busy=sum((s.turns * s.busy for s in plan.segments), np.zeros(shape)),
        wait=wait,
        overhead=sum((s.turns * s.overhead for s in plan.segments), np.zeros(shape)),
        messages=sum((s.turns * s.sent for s in plan.segments), np.zeros(plan.ranks, np.int64)),
        n_bytes=sum((s.turns * s.n_bytes for s in plan.segments), np.zeros(plan.ranks, np.int64)),
        runs=runs,
        simulated=sum(len(run.turns) for run in runs),
    )


class _Level(NamedTuple):
    """Nodes that are simulated at once, and the messages that they wait for."""

    nodes: Ints  # (n,)
    before: Ints  # (n,) index into ends
    work: Array  # (n,)
    sources: Ints  # (n, k) index into ends: the begin of each message's sender node
    offsets: Array  # (n, k) seconds from there to its arrival; -inf if a node waits for fewer
    posts: Ints | None  # the same for the receiver; None: no message of the level waits for its receiver
    post_offsets: Array
    receive: Array  # (n, k) Or
    numbers: Ints  # (n, k) messages; -1 where there is none


class _Runner:
    """Simulates one segment. In the array of ends, node k follows the ranks' clocks: index n_ranks + k."""

    def __init__(self, segment: Segment, ranks: int, phases: int) -> None:
        self._segment, self._ranks = segment, ranks
        nodes = segment.nodes
        self._levels = [self._level(level) for level in segment.levels]
        self._before = segment.before + ranks
        self._last = segment.last + ranks
        waits = [k for k, node in enumerate(nodes) if node.phase >= 0]
        self._waiting = np.array(waits, np.int64)
        self._place = np.array([nodes[k].rank * phases + nodes[k].phase for k in waits], np.int64)
        self._own = np.array([node.work + sum(o for _, o in node.waits) for node in nodes])

    def _level(self, level: Ints) -> _Level:
        segment, ranks = self._segment, self._ranks
        nodes = [segment.nodes[k] for k in level]
        shape = len(nodes), max(len(node.waits) for node in nodes)
        numbers, receive = np.full(shape, -1, np.int64), np.zeros(shape)
        sources, posts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        offsets, post_offsets = np.full(shape, -np.inf), np.full(shape, -np.inf)
        for i, node in enumerate(nodes):
            for j, (number, overhead) in enumerate(node.waits):
                message = segment.messages[number]
                numbers[i, j], receive[i, j] = number, overhead
                sources[i, j] = segment.before[message.sent[0]] + ranks
                offsets[i, j] = message.sent[1] + message.latency
                if message.posted is not None:
                    posts[i, j] = segment.before[message.posted[0]] + ranks
                    post_offsets[i, j] = message.posted[1] + message.latency
        two_sided = bool(np.isfinite(post_offsets).any())
        return _Level(
            level,
            segment.before[level] + ranks,
            np.array([node.work for node in nodes]),
            sources,
            offsets,
            posts if two_sided else None,
            post_offsets,
            receive,
            numbers,
        )

    def run(self, clock: Array, wait: Array, period: bool) -> tuple[SegmentRun, Array]:
        """Simulate all turns from these clocks, adding to `wait` (n_ranks, n_phases); return new clocks."""
        segment, turns = self._segment, self._segment.turns
        kept: list[Turn] = []
        clocks, waits = [clock], []
        while len(kept) < turns:
            turn, clock, spent = self._turn(clock)
            kept.append(turn)
            clocks.append(clock)
            waits.append(spent)
            found = _period(clocks) if period else 0
            if found and len(kept) < turns:
                return self._extrapolate(kept, clocks, waits, wait, found)
        self._add(wait, waits)
        return SegmentRun(segment, kept, 0, 0, 0.0, 0), clock

    def _extrapolate(
        self, kept: list[Turn], clocks: list[Array], waits: list[Array], wait: Array, period: int
    ) -> tuple[SegmentRun, Array]:
        """The remaining turns: whole periods at once, the rest one by one."""
        advance = float(np.mean(clocks[-1] - clocks[-1 - period]))
        repeats, rest = divmod(self._segment.turns - len(kept), period)
        self._add(wait, [*waits, *(repeats * spent for spent in waits[-period:])])
        clock = clocks[-1] + repeats * advance
        run = SegmentRun(self._segment, kept, period, repeats, advance, rest)
        for _ in range(rest):
            turn, clock, spent = self._turn(clock)
            kept.append(turn)
            self._add(wait, [spent])
        return run, clock

    def _add(self, wait: Array, waits: list[Array]) -> None:
        if waits and len(self._place):
            sums = np.bincount(self._place, np.sum(waits, axis=0), wait.size)
            wait += sums.reshape(wait.shape)

    def _turn(self, clock: Array) -> tuple[Turn, Array, Array]:
        """One turn: (nodes, clocks after, seconds waited by each node that waits)."""
        n = self._ranks
        ends = np.empty(n + len(self._segment.nodes))
        ends[:n] = clock
        bound = np.full(len(self._segment.nodes), -1, np.int64)
        arrived = np.zeros(len(self._segment.nodes))
        for level in self._levels:
            t = ends[level.before] + level.work
            if level.numbers.shape[1]:
                t, bound[level.nodes], arrived[level.nodes] = _wait(level, ends, t)
            ends[n + level.nodes] = t
        begin = ends[self._before]
        end = ends[n:]
        spent = (end - begin - self._own)[self._waiting]
        return Turn(begin, end, bound, arrived), ends[self._last], np.maximum(spent, 0.0)


def _wait(level: _Level, ends: Array, t: Array) -> tuple[Array, Ints, Array]:
    """(end of each node's wait, the last message that it waited for, the arrival of that message)."""
    arrivals = ends[level.sources] + level.offsets
    if level.posts is not None:
        arrivals = np.maximum(arrivals, ends[level.posts] + level.post_offsets)
    rows = np.arange(len(t))
    last, when = np.full(len(t), -1, np.int64), np.zeros(len(t))
    order = np.argsort(arrivals, axis=1, kind="stable") if arrivals.shape[1] > 1 else None
    for k in range(arrivals.shape[1]):
        column = k if order is None else order[:, k]
        arrival = arrivals[rows, column]
        late = arrival > t
        last = np.where(late, level.numbers[rows, column], last)
        when = np.where(late, arrival, when)
        t = np.where(late, arrival, t) + level.receive[rows, column]
    return t, last, when


def _period(clocks: list[Array]) -> int:
    """The period of the last turns: a pattern of 1 to 4 turns seen twice; 0 if there is none."""
    for p in PERIODS:
        if len(clocks) <= 2 * p:
            return 0
        first, second = clocks[-1] - clocks[-1 - p], clocks[-1 - p] - clocks[-1 - 2 * p]
        mean = float(np.mean(first))
        limit = max(EQUAL * mean, 4 * np.finfo(float).eps * float(np.max(clocks[-1])))
        if max(np.ptp(first), np.ptp(second), abs(float(np.mean(second)) - mean)) <= limit:
            return p
    return 0
