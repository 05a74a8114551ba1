"""Simulate a plan event by event: the twin of `engine`, with contention, too.

With contention, a host has one full-duplex network card. Messages leave it in
the order in which they become ready, and each occupies it for the gap g(m); they
pass the receiver's card in the same way. Messages within a host pass its memory
once. Every turn is simulated.
"""

import heapq

import numpy as np

from fembench.base.arrays import F64
from fembench.model.engine import SegmentRun, SimulationOutcome, Turn, outcome
from fembench.model.plan import Segment, SimulationPlan


def simulate_events(plan: SimulationPlan) -> SimulationOutcome:
    """Simulate all turns of a plan."""
    cards = _Cards(plan.host)
    clock = np.zeros(plan.ranks)
    wait = np.zeros((plan.ranks, len(plan.phases)))
    runs = []
    for segment in plan.segments:
        turns = []
        for _ in range(segment.turns):
            turn, clock = _Turns(segment, plan.ranks, cards).run(clock, wait)
            turns.append(turn)
        runs.append(SegmentRun(segment, turns, 0, 0, 0.0, 0))
    return outcome(plan, clock, wait, runs)


class _Cards:
    """When the network card of each host is free, outwards and inwards, and its memory."""

    def __init__(self, host: tuple[int, ...]) -> None:
        self._host = host
        self._out: dict[tuple[int, bool], float] = {}  # (host, whether inside)
        self._in: dict[int, float] = {}

    def leave(self, source: int, target: int, ready: float, gap: float) -> float:
        """The time at which a message that is ready starts to leave."""
        host = self._host[source]
        card = host, host == self._host[target]
        begin = max(ready, self._out.get(card, 0.0))
        self._out[card] = begin + gap
        return begin

    def reach(self, source: int, target: int, arrival: float, gap: float) -> float:
        """When a message that could arrive at `arrival` has passed the receiver's card."""
        card = self._host[target]
        if card == self._host[source]:
            return arrival
        end = max(arrival, self._in.get(card, -np.inf) + gap)
        self._in[card] = end
        return end


class _Turns:
    """Simulates one turn of a segment."""

    def __init__(self, segment: Segment, ranks: int, cards: _Cards) -> None:
        self._segment = segment
        self._ranks = ranks
        self._cards = cards
        nodes = segment.nodes
        self._after = {int(b): k for k, b in enumerate(segment.before)}
        self._missing = [len(node.waits) for node in nodes]
        self._began = np.full(len(nodes), np.nan)
        self._end = np.zeros(len(nodes))
        self._bound = np.full(len(nodes), -1, np.int64)
        self._arrived = np.zeros(len(nodes))
        self._arrival: dict[int, float] = {}
        self._sides: dict[int, list[int]] = {}  # node -> messages of which it is a side
        self._waiters: dict[int, list[int]] = {}
        for number, message in enumerate(segment.messages):
            for side in {message.sent[0], message.posted[0] if message.posted else -1} - {-1}:
                self._sides.setdefault(side, []).append(number)
        for k, node in enumerate(nodes):
            for number, _ in node.waits:
                self._waiters.setdefault(number, []).append(k)
        self._queue: list[tuple[float, int, str, int]] = []

    def run(self, clock: F64, wait: F64) -> tuple[Turn, F64]:
        """Simulate from these clocks; add to `wait` (n_ranks, n_phases); new clocks."""
        self._wait, after = wait, clock.copy()
        for rank in range(self._ranks):
            if rank - self._ranks in self._after:
                self._push(float(clock[rank]), "begin", self._after[rank - self._ranks])
        while self._queue:
            time, _, what, k = heapq.heappop(self._queue)
            getattr(self, f"_{what}")(time, k)
        for rank, last in enumerate(self._segment.last):
            if last >= 0:
                after[rank] = self._end[last]
        return Turn(self._began, self._end, self._bound, self._arrived), after

    def _push(self, time: float, what: str, k: int) -> None:
        heapq.heappush(self._queue, (time, len(self._queue), what, k))

    def _begin(self, time: float, k: int) -> None:
        """Begin a node: schedule all messages that it sends or posts."""
        self._began[k] = time
        for number in self._sides.get(k, ()):
            message = self._segment.messages[number]
            sides = [message.sent] + ([message.posted] if message.posted else [])
            if all(side[0] >= 0 and not np.isnan(self._began[side[0]]) for side in sides):
                self._push(max(self._began[node] + offset for node, offset in sides), "leave", number)
        self._finish(k)

    def _leave(self, time: float, number: int) -> None:
        message = self._segment.messages[number]
        if message.gap:
            time = self._cards.leave(message.source, message.target, time, message.gap)
        self._push(time + message.latency, "reach", number)

    def _reach(self, time: float, number: int) -> None:
        message = self._segment.messages[number]
        if message.gap:
            time = self._cards.reach(message.source, message.target, time, message.gap)
        self._arrival[number] = time
        for k in self._waiters.get(number, ()):
            self._missing[k] -= 1
            self._finish(k)

    def _finish(self, k: int) -> None:
        """End a node that has begun and received all its messages; begin the next one."""
        if self._missing[k] or np.isnan(self._began[k]):
            return
        node = self._segment.nodes[k]
        t = self._began[k] + node.work
        waited = 0.0
        for number, overhead in sorted(node.waits, key=lambda w: self._arrival[w[0]]):
            arrival = self._arrival[number]
            if arrival > t:
                waited, t = waited + arrival - t, arrival
                self._bound[k], self._arrived[k] = number, arrival
            t += overhead
        if node.phase >= 0:
            self._wait[node.rank, node.phase] += waited
        self._end[k] = t
        if k in self._after:
            self._push(t, "begin", self._after[k])
