"""Simulate a plan without contention: a turn takes a dozen operations on arrays.

Only the ranks' clocks at the beginning of each turn are kept; whoever looks into a turn
simulates it again. Turns are simulated until they repeat. Once the clocks of all ranks
advance by the same amount over 1, 2, 3 or 4 turns, they do so in all later turns,
because the recurrence uses only maximum and sum.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, I64, Mask
from fembench.model.event_table import within
from fembench.model.plan import Segment, SimulationPlan

PERIODS = (1, 2, 3, 4)  # turns
EQUAL = 1e-10  # of a period: a smaller difference between ranks counts as zero


@dataclass(frozen=True)
class Turn:
    """One simulated turn of a segment."""

    begin: F64  # (n_nodes,) seconds since the start
    end: F64
    bound: I64  # (n_nodes,) message that the node waited for last; -1: it never waited
    arrived: F64  # (n_nodes,) arrival time of that message


@dataclass(frozen=True)
class SegmentRun:
    """The simulation of one segment."""

    segment: Segment
    turns: Sequence[Turn]  # all simulated turns
    period: int  # number of turns that repeat; 0: every turn was simulated
    repeats: int  # number of periods that were not simulated
    advance: float  # seconds per period
    rest: int  # number of simulated turns after the repeats


@dataclass(frozen=True)
class SimulationOutcome:
    """Final clocks of all ranks, and their breakdown: busy + wait + overhead = finish."""

    finish: F64  # (n_ranks,) seconds
    busy: F64  # (n_ranks, n_phases)
    wait: F64
    overhead: F64
    messages: I64  # (n_ranks,) sent
    n_bytes: I64
    runs: list[SegmentRun]
    simulated: int  # turns

    @property
    def makespan(self) -> float:
        return float(self.finish.max())


def simulate(plan: SimulationPlan, *, period: bool = True) -> SimulationOutcome:
    """Simulate a plan; without `period`, every turn."""
    n, phases = plan.ranks, len(plan.phases)
    clock, wait = np.zeros(n), np.zeros((n, phases))
    runs: list[SegmentRun] = []
    for segment in plan.segments:
        run, clock = _Runner(segment, n).run(clock, wait, period)
        runs.append(run)
    return outcome(plan, clock, wait, runs)


def outcome(plan: SimulationPlan, clock: F64, wait: F64, runs: list[SegmentRun]) -> SimulationOutcome:
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


@dataclass
class _Level:
    """Nodes that are simulated at once, and the messages that they wait for, in the order in which they
    arrived in the turn before: few change places from turn to turn."""

    nodes: I64  # (n,)
    place: slice  # of ends
    before: I64 | slice  # (n,) of ends
    work: F64  # (n,)
    own: F64  # (n,) work and all Or
    sources: I64  # (k, n) index into ends: the begin of each message's sender node
    offsets: F64  # (k, n) seconds from there to its arrival; -inf if a node waits for fewer
    posts: I64 | None  # of the receiver; None: no message waits for it
    post_offsets: F64
    receive: F64  # (k, n) Or
    numbers: I64  # (k, n) messages; -1 where there is none
    columns: I64  # (k, n) their places in the node's list of messages
    swapped: Mask  # (k - 1, n) whether a message is later in that list than the next one

    def arrivals(self, ends: F64) -> F64:
        """(k, n) of the first, second, … message at each node."""
        found = self._arrivals(ends)
        if len(found) > 1:
            earlier, later = found[:-1], found[1:]
            wrong = (earlier > later) | ((earlier == later) & self.swapped)
            moved = np.flatnonzero(wrong.any(axis=0))
            if len(moved):
                self._sort(moved, found[:, moved])
                found = self._arrivals(ends)
        return found

    def _arrivals(self, ends: F64) -> F64:
        found: F64 = ends[self.sources]
        found += self.offsets
        if self.posts is not None:
            np.maximum(found, ends[self.posts] + self.post_offsets, out=found)
        return found

    def _sort(self, moved: I64, arrivals: F64) -> None:
        """Put the messages of some nodes in order."""
        order = np.lexsort((self.columns[:, moved], arrivals), axis=0)
        places = order * self.columns.shape[1] + moved
        for rows in (self.sources, self.offsets, self.posts, self.post_offsets, self.receive, self.numbers,
                     self.columns):  # fmt: skip
            if rows is not None:
                rows[:, moved] = rows.take(places)
        self.swapped[:, moved] = self.columns[:-1, moved] > self.columns[1:, moved]


Arrive: TypeAlias = Callable[[_Level, F64, F64, I64], None]  # times of nodes, arrivals, messages


class _Runner:
    """Simulates one segment. In the array of ends, the nodes follow the ranks' clocks,
    level after level, so that what is simulated at once lies together."""

    def __init__(self, segment: Segment, ranks: int) -> None:
        self._segment = segment
        self._ranks = ranks
        nodes = segment.node_table
        order = np.concatenate([np.arange(0), *segment.levels])
        self._place = np.arange(ranks + len(nodes))  # in ends, of the clocks and of the nodes
        self._place[ranks + order] = ranks + np.arange(len(nodes))
        self._before = self._place[ranks + segment.before]
        self._last = self._place[ranks + segment.last]
        own = nodes.work + np.bincount(nodes.waiting(), nodes.overhead, len(nodes))
        self._levels = [self._level(level, own[level]) for level in segment.levels]
        self._waiting = order[nodes.phase[order] >= 0]
        self._last_ends = np.full(len(self._place), np.nan)

    def _level(self, level: I64, own: F64) -> _Level:
        nodes = self._segment.node_table
        messages = self._segment.message_table
        first = nodes.first_wait[level]
        counts = nodes.first_wait[level + 1] - first
        wait = within(first, counts)
        number = nodes.message[wait]
        column = np.repeat(np.arange(len(level)), counts)
        row = within(np.zeros_like(counts), counts)
        shape = int(counts.max()), len(level)

        def spread(values: npt.NDArray, empty: float) -> npt.NDArray:
            table: npt.NDArray = np.full(shape, empty, values.dtype)
            table[row, column] = values
            return table

        def ends(node: I64, offset: F64) -> tuple[I64, F64]:
            """Where a node begins, and how long after that the message arrives."""
            arrival = np.where(node >= 0, offset + messages.latency[number], -np.inf)
            return spread(self._before[np.maximum(node, 0)], 0), spread(arrival, -np.inf)

        sources, offsets = ends(messages.sent[number], messages.sent_offset[number])
        posted = messages.posted[number]
        posts, post_offsets = ends(posted, messages.posted_offset[number])
        begin = int(self._place[self._ranks + level[0]])
        return _Level(
            level,
            slice(begin, begin + len(level)),
            _view(self._before[level]),
            nodes.work[level],
            own,
            sources,
            offsets,
            posts if np.any(posted >= 0) else None,
            post_offsets,
            spread(nodes.overhead[wait], 0.0),
            spread(number, -1),
            np.arange(shape[0])[:, None] + np.zeros(shape, np.int64),
            np.zeros((shape[0] - 1, shape[1]) if shape[0] else shape, np.bool_),
        )

    def run(self, clock: F64, wait: F64, period: bool) -> tuple[SegmentRun, F64]:
        """Simulate all turns from these clocks; adds to `wait` (n_ranks, n_phases)."""
        segment, clocks = self._segment, [clock]
        waited = np.zeros(len(self._place))
        for left in reversed(range(segment.turns)):
            clocks.append(self._turn(clocks[-1], waited))
            found = _period(clocks) if period and left else 0
            if found:
                return self._extrapolate(clocks, waited, wait, found)
        self._add(wait, waited)
        return SegmentRun(segment, LazyTurns(self, clocks[:-1]), 0, 0, 0.0, 0), clocks[-1]

    def _extrapolate(
        self,
        clocks: list[F64],
        waited: F64,
        wait: F64,
        period: int,
    ) -> tuple[SegmentRun, F64]:
        """The remaining turns: whole periods at once, like the last; others one by one."""
        each = np.zeros(len(waited))
        for clock in clocks[-1 - period : -1]:
            self._turn(clock, each)
        advance = float(np.mean(clocks[-1] - clocks[-1 - period]))
        repeats, rest = divmod(self._segment.turns - len(clocks) + 1, period)
        waited += repeats * each
        clock = clocks.pop() + repeats * advance
        for _ in range(rest):
            clocks.append(clock)
            clock = self._turn(clock, waited)
        self._add(wait, waited)
        return SegmentRun(self._segment, LazyTurns(self, clocks), period, repeats, advance, rest), clock

    def _add(self, wait: F64, waited: F64) -> None:
        nodes, each = self._segment.node_table, self._waiting
        if len(each):
            cell = nodes.rank[each] * wait.shape[1] + nodes.phase[each]
            seconds = waited[self._place[self._ranks + each]]
            wait += np.bincount(cell, seconds, wait.size).reshape(wait.shape)

    def _turn(self, clock: F64, waited: F64) -> F64:
        """The clocks after one turn; each node's seconds of
        waiting are added to `waited`."""
        return np.asarray(self._ends(clock, waited)[self._last])

    def _ends(self, clock: F64, waited: F64 | None = None, arrive: Arrive | None = None) -> F64:
        """(n_ranks + n_nodes,) these clocks, and the end of each node in a turn from
        there, level after level; the next call overwrites them.

        The seconds that each node waits are added to `waited`, in the same places.
        `arrive` is told of all messages that arrive at a level's nodes before they are
        received.
        """
        ends = self._last_ends
        ends[: self._ranks] = clock
        for level in self._levels:
            begin, t = ends[level.before], ends[level.place]
            np.add(begin, level.work, out=t)
            for arrival, receive, number in zip(level.arrivals(ends), level.receive, level.numbers):
                if arrive:
                    arrive(level, t, arrival, number)
                np.maximum(t, arrival, out=t)
                t += receive
            if waited is not None:
                spent = t - begin
                spent -= level.own
                waited[level.place] += np.maximum(spent, 0.0, out=spent)
        return ends

    def turn(self, clock: F64) -> Turn:
        """The turn from these clocks."""
        bound = np.full(len(self._segment.node_table), -1, np.int64)
        arrived = np.zeros(len(self._segment.node_table))

        def arrive(level: _Level, t: F64, arrival: F64, number: I64) -> None:
            late = arrival > t
            nodes = level.nodes[late]
            bound[nodes] = number[late]
            arrived[nodes] = arrival[late]

        ends = self._ends(clock, arrive=arrive)
        return Turn(ends[self._before], ends[self._place[self._ranks :]], bound, arrived)


def _view(places: I64) -> I64 | slice:
    """The same places, as a slice if they follow each other: that copies nothing."""
    first = int(places[0]) if len(places) else 0
    together = slice(first, first + len(places))
    return together if np.array_equal(places, np.arange(first, together.stop)) else places


class LazyTurns(Sequence[Turn]):
    """The turns from the given clocks, simulated when looked at; a period is kept."""

    def __init__(self, runner: _Runner, clocks: list[F64]) -> None:
        self._runner = runner
        self._clocks = clocks
        self._turn = functools.lru_cache(max(PERIODS))(lambda k: runner.turn(clocks[k]))

    def __len__(self) -> int:
        return len(self._clocks)

    @overload
    def __getitem__(self, k: int) -> Turn: ...
    @overload
    def __getitem__(self, k: slice) -> "LazyTurns": ...
    def __getitem__(self, k: int | slice) -> "Turn | LazyTurns":
        return LazyTurns(self._runner, self._clocks[k]) if isinstance(k, slice) else self._turn(k)


def _period(clocks: list[F64]) -> int:
    """The period of the last turns: a pattern of 1 to 4 turns seen twice; 0: none."""
    rounding = 4 * np.finfo(float).eps * float(np.max(clocks[-1]))
    for p in PERIODS:
        if len(clocks) <= 2 * p:
            return 0
        first = clocks[-1] - clocks[-1 - p]
        mean = float(np.mean(first))
        limit = max(EQUAL * mean, rounding)
        if np.ptp(first) <= limit:
            second = clocks[-1 - p] - clocks[-1 - 2 * p]
            if max(np.ptp(second), abs(float(np.mean(second)) - mean)) <= limit:
                return p
    return 0
