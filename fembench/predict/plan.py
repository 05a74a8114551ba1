"""A graph made ready to be simulated on a machine: nodes, messages, and what waits for what.

A node is a stretch of one rank's program up to and with the next wait. Its own work is known before anything
is simulated; what is not known is how long it waits:

    begin(node)   = end of the rank's node before it
    ready(msg)    = begin(source node) + offset; where it waits for its receiver, the later of both sides
    arrival(msg)  = ready + L
    end(node)     = begin + work, then for each message waited for, in order of arrival:
                    end = max(end, arrival) + Or

A graph is cut into segments where all ranks have loops with the same number of turns; each segment's
messages stay inside it, so a loop is planned once.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import FembenchError, InputError
from fembench.predict.collectives import expand
from fembench.predict.graph import (
    Collective,
    Compute,
    Event,
    Graph,
    Loop,
    Program,
    Receive,
    Send,
    Wait,
    flat,
    length,
)
from fembench.predict.machine import Machine

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LONGEST = 5_000_000  # events that a graph may have unrolled, where its loops do not fit together


class DeadlockError(FembenchError):
    """Ranks wait for messages that never come."""


class Step(NamedTuple):
    """A part of a node: what its rank does from `offset` on."""

    offset: float
    seconds: float
    phase: int
    compute: bool  # else overhead of a message


@dataclass
class Node:
    rank: int
    phase: int = -1  # of the wait that ends it; -1: none does
    work: float = 0.0  # seconds until the wait
    steps: list[Step] = field(default_factory=list)
    waits: list[tuple[int, float]] = field(default_factory=list)  # (message, Or)

    def add(self, seconds: float, phase: int, compute: bool) -> None:
        self.steps.append(Step(self.work, seconds, phase, compute))
        self.work += seconds


@dataclass
class Message:
    source: int  # rank
    target: int
    m: int
    latency: float
    gap: float
    sent: tuple[int, float]  # node, offset from which it may travel, for the sender's part
    posted: tuple[int, float] | None = None  # for the receiver's; None: it need not wait for that


@dataclass(frozen=True)
class Segment:
    """One turn of a part of the graph."""

    turns: int
    nodes: list[Node]
    messages: list[Message]
    before: Ints  # (n_nodes,) node before it on its rank; rank - n_ranks (negative) for the first
    levels: list[Ints]  # nodes whose waits depend on earlier levels only
    last: Ints  # (n_ranks,) last node of each rank; rank - n_ranks where it has none
    busy: Array  # (n_ranks, n_phases) seconds of a turn
    overhead: Array
    sent: Ints  # (n_ranks,) messages of a turn
    n_bytes: Ints  # (n_ranks,) sent


@dataclass(frozen=True)
class Plan:
    segments: list[Segment]
    ranks: int
    phases: tuple[str, ...]
    host: tuple[int, ...]


def make_plan(graph: Graph, machine: Machine) -> Plan:
    """The plan. Raises DeadlockError naming the blocked ranks, InputError where graph and machine differ."""
    if graph.ranks != machine.ranks:
        raise InputError(f"a graph of {graph.ranks} ranks on a machine of {machine.ranks}; expected as many")
    planner = _Planner(graph, machine)
    segments = [planner.segment(turns, bodies) for turns, bodies in _cut(graph.programs)]
    return Plan(segments, graph.ranks, graph.phases, machine.host)


def _cut(programs: Sequence[Program]) -> Iterator[tuple[int, list[Program]]]:
    """(turns, body of each rank) for every segment; one segment where loops or messages do not fit."""
    parts = [list(_parts(program)) for program in programs]
    shapes = {tuple(turns for turns, _ in part) for part in parts}
    if len(shapes) == 1:
        cut = [(turns, [part[k][1] for part in parts]) for k, turns in enumerate(shapes.pop())]
        if all(_closed(bodies) for _, bodies in cut):
            yield from ((turns, bodies) for turns, bodies in cut if any(bodies))
            return
    total = sum(map(length, programs))
    if total > LONGEST:
        raise InputError(
            f"{total} events, and loops of the ranks differ; expected at most {LONGEST} unless all ranks "
            "have the same loops with messages that stay inside them"
        )
    yield 1, [tuple(flat(program)) for program in programs]


def _parts(program: Program) -> Iterator[tuple[int, Program]]:
    """Straight parts (one turn) and loops in turn; a straight part may be empty."""
    straight: list[Event] = []
    for event in program:
        if isinstance(event, Loop):
            yield 1, tuple(straight)
            yield event.turns, tuple(flat(event.body))
            straight = []
        else:
            straight.append(event)
    yield 1, tuple(straight)


def _closed(bodies: Sequence[Program]) -> bool:
    """Whether all that is sent is received, and all waits are over, within one turn."""
    balance: dict[tuple[int, int, int], int] = defaultdict(int)
    shared: list[tuple[object, ...]] = []
    for rank, body in enumerate(bodies):
        open_requests = 0
        for e in body:
            if isinstance(e, Send):
                balance[rank, e.to, e.tag] += 1
                open_requests += not e.blocking
            elif isinstance(e, Receive):
                balance[e.source, rank, e.tag] -= 1
                open_requests += not e.blocking
            elif isinstance(e, Wait):
                open_requests = 0
        if open_requests:
            return False
        shared.append(tuple(e.kind for e in body if isinstance(e, Collective)))
    return not any(balance.values()) and len(set(shared)) == 1


class _Planner:
    """Builds segments; keeps nothing between them but the prices of collectives."""

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self._graph, self._machine = graph, machine
        self._expanded: dict[tuple[Collective, int], tuple[Event, ...]] = {}

    def segment(self, turns: int, bodies: Sequence[Program]) -> Segment:
        ranks, phases = self._graph.ranks, len(self._graph.phases)
        self._nodes: list[Node] = []
        self._messages: list[Message] = []
        self._slots = 0  # numbers of receives, negative
        self._sends: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
        self._receives: dict[tuple[int, int, int], deque[tuple[int, int, tuple[int, float]]]] = defaultdict(
            deque
        )
        self._late: list[tuple[int, int, str]] = []  # (message, node, side): may travel once that node waits
        self._busy, self._overhead = np.zeros((ranks, phases)), np.zeros((ranks, phases))
        chains = [self._rank(rank, body) for rank, body in enumerate(bodies)]
        self._match()
        before = np.empty(len(self._nodes), np.int64)
        last = np.empty(ranks, np.int64)
        for rank, chain in enumerate(chains):
            before[chain] = [rank - ranks, *chain[:-1]]
            last[rank] = chain[-1] if chain else rank - ranks
        sent, n_bytes = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
        for message in self._messages:
            sent[message.source] += 1
            n_bytes[message.source] += message.m
        return Segment(
            turns,
            self._nodes,
            self._messages,
            before,
            _levels(self._nodes, self._messages, before),
            last,
            self._busy,
            self._overhead,
            sent,
            n_bytes,
        )

    def _rank(self, rank: int, body: Program) -> list[int]:
        """Nodes of one rank, in order."""
        machine, speed = self._machine, self._machine.speeds[rank]
        chain: list[int] = []
        pending: list[
            tuple[int, float]
        ] = []  # (message, Or); a receive has -1 - its number until it is matched

        def node() -> Node:
            if not chain or self._nodes[chain[-1]].phase >= 0:
                chain.append(len(self._nodes))
                self._nodes.append(Node(rank))
            return self._nodes[chain[-1]]

        def wait(phase: int, waits: list[tuple[int, float]]) -> None:
            if waits:
                here = node()
                here.phase, here.waits = phase, waits
                for k, _ in waits:
                    self._late.append((k, chain[-1], "sender" if k >= 0 else "receiver"))

        for e in self._simple(rank, body):
            if isinstance(e, Compute):
                node().add(e.seconds / speed, e.phase, True)
                self._busy[rank, e.phase] += e.seconds / speed
            elif isinstance(e, Send):
                cost = machine.cost(rank, e.to, e.m)
                here = node()
                here.add(cost.send, e.phase, False)
                self._overhead[rank, e.phase] += cost.send
                number = len(self._messages)
                gap = machine.gap(rank, e.to, e.m) if machine.contention else 0.0
                self._messages.append(Message(rank, e.to, e.m, cost.latency, gap, (chain[-1], here.work)))
                self._sends[rank, e.to, e.tag].append(number)
                if machine.waits(rank, e.to, e.m):
                    if e.blocking:
                        wait(e.phase, [(number, 0.0)])
                    else:
                        pending.append((number, 0.0))
            elif isinstance(e, Receive):
                here = node()
                queue = self._receives[e.source, rank, e.tag]
                self._slots -= 1
                slot = self._slots
                queue.append((slot, e.m, (chain[-1], here.work)))
                cost = machine.cost(e.source, rank, e.m)
                self._overhead[rank, e.phase] += cost.receive
                if e.blocking:
                    wait(e.phase, [(slot, cost.receive)])
                else:
                    pending.append((slot, cost.receive))
            elif isinstance(e, Wait):
                wait(e.phase, pending)
                pending = []
        return chain

    def _simple(self, rank: int, body: Program) -> Iterator[Event]:
        """The events with collectives expanded."""
        for e in body:
            if not isinstance(e, Collective):
                yield e
                continue
            key = e, rank
            if key not in self._expanded:
                self._expanded[key] = tuple(expand(e, rank, self._graph.ranks))
            yield from self._expanded[key]

    def _match(self) -> None:
        """Join every receive with its message; the k-th of a sender, receiver and tag are a pair."""
        slots: dict[int, int] = {}
        for key, queue in self._receives.items():
            for (slot, m, post), number in zip(queue, self._sends[key]):
                slots[slot] = number
                message = self._messages[number]
                if message.m != m:
                    raise InputError(
                        f"rank {key[1]} expects {m} bytes of rank {key[0]}, which sends {message.m}; "
                        "expected the same"
                    )
                if self._machine.waits(message.source, message.target, m):
                    message.posted = post
        for node in self._nodes:
            node.waits = [(slots.get(k, k) if k < 0 else k, o) for k, o in node.waits]
        matched = set(slots.values())
        for number, message in enumerate(self._messages):
            if number not in matched and self._machine.waits(message.source, message.target, message.m):
                message.posted = (-1, 0.0)  # nobody ever receives it
        if not self._machine.overlap:
            self._hold_back(slots)

    def _hold_back(self, slots: dict[int, int]) -> None:
        """Without overlap a message that waits travels only while both its ranks are in MPI, waiting."""
        for k, number, side in self._late:
            found = k if k >= 0 else slots.get(k)
            if found is None or self._messages[found].posted in (None, (-1, 0.0)):
                continue
            here = number, self._nodes[number].work
            if side == "sender":
                self._messages[found].sent = here
            else:
                self._messages[found].posted = here


def _levels(nodes: list[Node], messages: list[Message], before: Ints) -> list[Ints]:
    """Nodes in an order in which everything that one waits for is known. Raises DeadlockError."""
    needs: list[list[int]] = []
    for k, node in enumerate(nodes):
        on = [int(before[k])]
        for number, _ in node.waits:
            if number < 0:
                on.append(-1 << 40)  # a message that nobody sends
                continue
            message = messages[number]
            on.append(int(before[message.sent[0]]))
            if message.posted is not None:
                on.append(int(before[message.posted[0]]) if message.posted[0] >= 0 else -1 << 40)
        needs.append(on)
    left = [sum(1 for n in on if n >= 0) + (1 << 20) * any(n == -1 << 40 for n in on) for on in needs]
    users: list[list[int]] = [[] for _ in nodes]
    for k, on in enumerate(needs):
        for n in on:
            if n >= 0:
                users[n].append(k)
    level = [k for k, count in enumerate(left) if not count]
    found, done = [], 0
    while level:
        found.append(np.array(level, np.int64))
        done += len(level)
        following = []
        for k in level:
            for user in users[k]:
                left[user] -= 1
                if not left[user]:
                    following.append(user)
        level = following
    if done < len(nodes):
        raise DeadlockError(_blocked(nodes, messages, left))
    return found


def _blocked(nodes: list[Node], messages: list[Message], left: list[int]) -> str:
    """Which ranks wait for whom for ever."""
    first: dict[int, Node] = {}
    for k, node in enumerate(nodes):
        if left[k] > 0:
            first.setdefault(node.rank, node)
    told = []
    for rank, node in sorted(first.items())[:8]:
        partners = set()
        for number, _ in node.waits:
            if number >= 0:
                message = messages[number]
                partners.add(message.target if message.source == rank else message.source)
        told.append(f"{rank} (for {', '.join(map(str, sorted(partners))) or 'a message that nobody sends'})")
    more = f" and {len(first) - 8} more" if len(first) > 8 else ""
    return f"deadlock: blocked ranks {', '.join(told)}{more}"
