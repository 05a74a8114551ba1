"""Nodes and messages of a graph's segments, priced on a machine."""

import contextlib
import gc
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.model.collectives import expand
from fembench.model.graph import Collective, Compute, Event, ExecutionGraph, Program, Receive, Send, Wait
from fembench.model.machine import Machine
from fembench.model.order import cut, levels_of
from fembench.model.plan import Node, PlannedMessage, Segment, SimulationPlan
from fembench.records.hlogp import NOTHING, Computed, MessageCost

Key = tuple[int, int, int]  # sender, receiver, tag


def make_plan(graph: ExecutionGraph, machine: Machine) -> SimulationPlan:
    """The plan. Raises DeadlockError, which names the blocked ranks, and InputError if sizes differ."""
    if graph.ranks != machine.ranks:
        raise InputError(
            f"a graph of {plural(graph.ranks, 'rank')}; expected {machine.ranks}, as the machine has"
        )
    planner = _Planner(graph, machine)
    with _no_collection():
        segments = [planner.segment(turns, bodies) for turns, bodies in cut(graph.programs)]
    return SimulationPlan(segments, graph.ranks, graph.phases, machine.host)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of objects are made and none becomes garbage: looking for it would double the time. They are
    old at the end, or all would be looked through at once then."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was:
            gc.enable()


class _Planner:
    """Builds segments; caches the messages of collectives."""

    def __init__(self, graph: ExecutionGraph, machine: Machine) -> None:
        self._graph, self._machine = graph, machine
        self._expanded: dict[tuple[Collective, int], tuple[Event, ...]] = {}
        self._since = [Computed()] * graph.ranks  # [rank] computing since its previous send and receive

    def segment(self, turns: int, bodies: Sequence[Program]) -> Segment:
        """One turn of a part of the graph."""
        ranks = self._graph.ranks
        parts = _Parts(self._machine, ranks, len(self._graph.phases), recorded=bool(self._graph.hosts))
        chains = [self._chain(parts, rank, body, turns) for rank, body in enumerate(bodies)]
        parts.match()
        before = np.empty(len(parts.nodes), np.int64)
        for rank, chain in enumerate(chains):
            before[chain] = [rank - ranks, *chain[:-1]]
        last = [chain[-1] if chain else rank - ranks for rank, chain in enumerate(chains)]
        source = np.array([message.source for message in parts.messages], np.int64)
        n_bytes = np.array([message.m for message in parts.messages], np.float64)
        return Segment(
            turns=turns,
            nodes=parts.nodes,
            messages=parts.messages,
            before=before,
            levels=levels_of(parts.nodes, parts.messages, before),
            last=np.array(last, np.int64),
            busy=np.array(parts.busy),
            overhead=np.array(parts.overhead),
            sent=np.bincount(source, minlength=ranks),
            n_bytes=np.bincount(source, n_bytes, ranks).astype(np.int64),
        )

    def _chain(self, parts: "_Parts", rank: int, body: Program, turns: int) -> list[int]:
        """The nodes of a rank. The turns of a loop begin as its second one does: after the end of a turn."""
        events = list(self._simple(rank, body))
        one, since = parts.since(rank, events), self._since[rank]
        self._since[rank] = _later(since, one, 1)
        if turns > 1:
            since, self._since[rank] = self._since[rank], _later(since, one, turns)
        return parts.chain(rank, events, since)

    def _simple(self, rank: int, body: Program) -> Iterator[Event]:
        """The events of a rank, with collectives expanded into messages."""
        for e in body:
            if not isinstance(e, Collective):
                yield e
                continue
            key = e, rank
            if key not in self._expanded:
                self._expanded[key] = tuple(expand(e, rank, self._graph.ranks))
            yield from self._expanded[key]


class _Since(NamedTuple):
    """Computing in a part of a program, in seconds."""

    computed: float
    sent: float | None  # since the last send; None: there is none
    received: float | None


def _later(before: Computed, one: _Since, turns: int) -> Computed:
    """Computing since the previous send and receive after these turns of a part."""
    more = turns * one.computed
    sender = before.sender + more if one.sent is None else one.sent
    receiver = before.receiver + more if one.received is None else one.received
    return Computed(sender, receiver)


class _Pending(NamedTuple):
    """A message that a rank will wait for."""

    tag: int
    number: int  # of a message, or of a receive
    overhead: float  # Or
    receive: Receive | None = None  # posted without blocking
    since: float = 0.0  # seconds that the rank had computed when it was posted


class _Parts:
    """Nodes and messages of one segment under construction.

    A receive has a negative number until `match` has found its message. `recorded` computing already contains
    the slowdown by messages.
    """

    def __init__(self, machine: Machine, ranks: int, phases: int, *, recorded: bool) -> None:
        self._machine, self._recorded = machine, recorded
        self.nodes: list[Node] = []
        self.messages: list[PlannedMessage] = []
        # [rank][phase]; lists, because single entries of arrays are slow to change
        self.busy = [[0.0] * phases for _ in range(ranks)]
        self.overhead = [[0.0] * phases for _ in range(ranks)]
        self._sends: dict[Key, deque[int]] = defaultdict(deque)
        self._receives: dict[Key, deque[tuple[int, int, tuple[int, float]]]] = defaultdict(deque)
        self._slots = 0  # receives so far
        self._waits: list[tuple[int, int]] = []  # (message or receive, node that waits for it)
        self._chain: list[int] = []
        self._pending: list[_Pending] = []
        self._computed, self._computing = 0.0, 0  # seconds of computing so far, and its last phase
        self._sent = self._received = 0.0  # the same at the last send and receive

    def since(self, rank: int, events: Sequence[Event]) -> _Since:
        """The computing in these events, in all and since the last send and receive."""
        computed, sent, received = 0.0, None, None
        for e in reversed(events):
            if isinstance(e, Compute):
                computed += e.seconds / self._machine.speeds[rank]
            elif isinstance(e, Send) and sent is None:
                sent = computed
            elif isinstance(e, (Receive, Wait)) and received is None:
                received = computed
        return _Since(computed, sent, received)

    def chain(self, rank: int, events: Sequence[Event], since: Computed) -> list[int]:
        """Nodes of one rank, in order; `since`: its computing before them."""
        self._chain, self._pending, self._computed = [], [], 0.0
        self._sent, self._received = -since.sender, -since.receiver
        for e in events:
            if isinstance(e, Compute):
                seconds = e.seconds / self._machine.speeds[rank]
                self._node(rank).add(seconds, e.phase, True)
                self.busy[rank][e.phase] += seconds
                self._computed, self._computing = self._computed + seconds, e.phase
            elif isinstance(e, Send):
                self._send(rank, e)
            elif isinstance(e, Receive):
                self._receive(rank, e)
            elif isinstance(e, Wait):
                due = [one for one in self._pending if e.tag in (None, one.tag)]
                self._pending = [one for one in self._pending if e.tag not in (None, one.tag)]
                self._wait(rank, e.phase, [(one.number, self._overhead(rank, one)) for one in due])
        return self._chain

    def _overhead(self, rank: int, one: _Pending) -> float:
        """Or of a pending message; also charges the slowdown of the computing that it overlapped."""
        if one.receive is None or one.tag < 0:  # collectives are scaled as a whole
            return one.overhead
        came, seconds, computed = one.receive, self._computed - one.since, self._before_receive()
        longer, overhead = self._machine.beside(came.source, rank, came.m, seconds, computed)
        if longer and not self._recorded:
            self._node(rank).add(longer, self._computing, False)
            self.overhead[rank][self._computing] += longer
        return overhead

    def _node(self, rank: int) -> Node:
        """The open node of this rank."""
        if not self._chain or self.nodes[self._chain[-1]].phase >= 0:
            self._chain.append(len(self.nodes))
            self.nodes.append(Node(rank))
        return self.nodes[self._chain[-1]]

    def _wait(self, rank: int, phase: int, waits: list[tuple[int, float]]) -> None:
        """Close the open node with a wait, if there is anything to wait for."""
        if not waits:
            return
        here = self._node(rank)
        here.phase, here.waits = phase, waits
        self.overhead[rank][phase] += sum(overhead for _, overhead in waits)
        self._waits += [(k, self._chain[-1]) for k, _ in waits]

    def _send(self, rank: int, e: Send) -> None:
        computed = Computed(sender=self._computed - self._sent)
        cost, machine = self._cost(rank, e.to, e, computed), self._machine
        self._sent = self._computed
        here = self._node(rank)
        here.add(cost.send, e.phase, False)
        self.overhead[rank][e.phase] += cost.send
        number = len(self.messages)
        gap = machine.gap(rank, e.to, e.m) if machine.contention else 0.0
        sent = self._chain[-1], here.work
        self.messages.append(PlannedMessage(rank, e.to, e.m, cost.latency, gap, sent))
        self._sends[rank, e.to, e.tag].append(number)
        if machine.waits(rank, e.to, e.m):
            self._requested(rank, e, number, 0.0)

    def _receive(self, rank: int, e: Receive) -> None:
        here = self._node(rank)
        self._slots -= 1
        self._receives[e.source, rank, e.tag].append((self._slots, e.m, (self._chain[-1], here.work)))
        computed = self._before_receive() if e.blocking else NOTHING  # else it is priced where the rank waits
        self._requested(rank, e, self._slots, self._cost(e.source, rank, e, computed).receive)

    def _before_receive(self) -> Computed:
        """The computing since the previous receive, as a message is received now."""
        computed = Computed(receiver=self._computed - self._received)
        self._received = self._computed
        return computed

    def _requested(self, rank: int, e: Send | Receive, number: int, overhead: float) -> None:
        if e.blocking:
            self._wait(rank, e.phase, [(number, overhead)])
        else:
            receive = e if isinstance(e, Receive) else None
            self._pending.append(_Pending(e.tag, number, overhead, receive, self._computed))

    def _cost(self, p: int, q: int, e: Send | Receive, computed: Computed) -> MessageCost:
        """The factor of collectives is that of messages right after each other."""
        cost, factor = self._machine.cost(p, q, e.m, computed), self._machine.collective
        if e.tag >= 0 or factor == 1:
            return cost
        warm = self._machine.cost(p, q, e.m)
        return MessageCost(*(part + (factor - 1) * each for part, each in zip(cost, warm)))

    def match(self) -> None:
        """Match every receive with its message: the k-th of the same sender, receiver and tag."""
        slots: dict[int, int] = {}
        for key, queue in self._receives.items():
            for (slot, m, post), number in zip(queue, self._sends[key]):
                slots[slot] = number
                message = self.messages[number]
                if message.m != m:
                    raise InputError(
                        f"rank {key[1]} expects {m} bytes from rank {key[0]}, which sends {message.m}; "
                        "expected equal sizes"
                    )
                if self._waits_for_receiver(message):
                    message.posted = post
        for node in self.nodes:
            node.waits = [(slots.get(k, k), overhead) for k, overhead in node.waits]
        matched = set(slots.values())
        for number, message in enumerate(self.messages):
            if number not in matched and self._waits_for_receiver(message):
                message.posted = (-1, 0.0)  # never received
        self._meet(slots)
        if not self._machine.overlap:
            self._hold_back(slots)

    def _meet(self, slots: dict[int, int]) -> None:
        """Slow down pairs of opposite messages if both ranks send before they wait."""
        taken = {slots.get(k, k): node for k, node in self._waits if k < 0}  # message -> node that waits
        between = {  # those of collectives are scaled as a whole
            key: [n for n in numbers if n in taken] for key, numbers in self._sends.items() if key[2] >= 0
        }
        for (p, q, tag), there in between.items():
            for a, b in zip(there, between.get((q, p, tag), ())) if p < q else ():
                one, other = self.messages[a], self.messages[b]
                if one.sent[0] <= taken[b] and other.sent[0] <= taken[a]:
                    one.latency += self._machine.longer(p, q, one.m, other.m)
                    other.latency += self._machine.longer(q, p, other.m, one.m)

    def _waits_for_receiver(self, message: PlannedMessage) -> bool:
        return self._machine.waits(message.source, message.target, message.m)

    def _hold_back(self, slots: dict[int, int]) -> None:
        """Without overlap, a rendezvous message travels only while both ranks wait in MPI."""
        for k, number in self._waits:
            found = slots.get(k, k)
            if found < 0 or self.messages[found].posted in (None, (-1, 0.0)):
                continue
            here = number, self.nodes[number].work
            if k >= 0:
                self.messages[found].sent = here
            else:
                self.messages[found].posted = here
