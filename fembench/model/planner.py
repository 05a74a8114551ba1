"""Nodes and messages of a graph's segments, priced on a machine, for all ranks at once."""

from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64, I64, Mask
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.model.event_table import COMPUTE, RECEIVE, SEND, WAIT, EventTable, expanded, running
from fembench.model.graph import ExecutionGraph
from fembench.model.machine import Machine
from fembench.model.matching import Ends, Messages, matched, message_table
from fembench.model.plan import NodeTable, Segment, SimulationPlan, cut, levels_of


def make_plan(graph: ExecutionGraph, machine: Machine) -> SimulationPlan:
    """The plan. Raises DeadlockError with the blocked ranks, InputError if sizes differ."""
    if graph.ranks != machine.ranks:
        raise InputError(
            f"a graph of {plural(graph.ranks, 'rank')}; expected {machine.ranks}, as the machine has"
        )
    since = Since(np.zeros(graph.ranks), np.zeros(graph.ranks))
    segments = []
    for turns, events in cut(graph.programs):
        part = _Part(expanded(events), machine)
        if turns > 1:  # each turn begins after the end of a turn
            since = part.after(since, 1)
        segments.append(part.segment(turns, since, len(graph.phases), recorded=bool(graph.hosts)))
        since = part.after(since, max(turns - 1, 1))
    return SimulationPlan(segments, graph.ranks, graph.phases, machine.host)


class Since(NamedTuple):
    """Seconds that each rank has computed since its previous message; both (n_ranks,)."""

    send: F64
    receive: F64


class _Steps(NamedTuple):
    """What ranks do, node after node; all (n_steps,)."""

    event: I64
    node: I64
    seconds: F64
    phase: I64
    compute: Mask
    offset: F64  # seconds since the node's begin


class _Part:
    """One turn of a part of the graph, from its events without collectives."""

    def __init__(self, events: EventTable, machine: Machine) -> None:
        self._events = events
        self._machine = machine
        self._rank = events.rank()
        kind = events.kind
        self._seconds = events.seconds / np.array(machine.speeds)[self._rank]
        self._computed = running(self._seconds, events.first)  # by its rank before each event
        self._sends = np.flatnonzero(kind == SEND)
        self._receives = np.flatnonzero(kind == RECEIVE)
        self._out, self._into = self._messages(self._sends), self._messages(self._receives)
        rendezvous = self._out.each(machine.waits).astype(np.bool_)
        requests = np.sort(np.append(self._sends[rendezvous], self._receives))
        waits = np.where(events.blocking[requests], requests, events.waits_for(requests))
        self._wait = np.full(len(kind), -1)  # the event that waits for each request; -1: none
        self._wait[requests] = waits
        closing = np.zeros(len(kind), np.bool_)
        closing[waits[waits >= 0]] = True
        used = np.flatnonzero(closing | (kind != WAIT))
        next_rank = np.diff(self._rank[used]) > 0
        begins = np.append(True, closing[used[:-1]] | next_rank)[: len(used)]
        self._node = np.full(len(kind), -1)  # of each event; -1: none
        self._node[used] = np.cumsum(begins) - 1
        self._node_rank = self._rank[used[begins]]
        self._node_phase = np.full(len(self._node_rank), -1)
        self._node_phase[self._node[closing]] = events.phase[closing]

    def after(self, since: Since, turns: int) -> Since:
        """The computing since the previous messages after these turns."""
        kind = self._events.kind
        whole = np.bincount(self._rank, self._seconds, self._events.ranks)
        found = []
        receiving = (kind == RECEIVE) | (kind == WAIT)
        for before, is_message in zip(since, (kind == SEND, receiving)):
            seconds = before + turns * whole
            last = np.flatnonzero(is_message)
            rank = self._rank[last]
            seconds[rank] = whole[rank] - self._computed[last]
            found.append(seconds)
        return Since(*found)

    def segment(self, turns: int, since: Since, phases: int, *, recorded: bool) -> Segment:
        """The segment; `since`: computing before it. `recorded` computing already
        contains the slowdown by messages."""
        ranks = self._events.ranks
        sending, receiving, longer = self._prices(since)
        steps = self._steps(sending, np.zeros(len(longer)) if recorded else longer)
        work = np.bincount(steps.node, minlength=len(self._node_rank)).astype(float)
        work[steps.node] = steps.offset + steps.seconds  # those of its last one
        sends = self._ends(self._sends, steps, after=True)
        receives = self._ends(self._receives, steps, after=False)
        number = matched(sends, receives)
        messages = message_table(self._machine, sends, receives, number, sending[:, 1], work)
        nodes = self._nodes(steps, work, receiving, number)
        before = np.arange(-1, len(nodes) - 1)
        first = np.flatnonzero(np.diff(nodes.rank, prepend=-1))
        before[first] = nodes.rank[first] - ranks
        last = np.arange(-ranks, 0)
        last[nodes.rank] = np.arange(len(nodes))
        waiting, cells = nodes.waiting(), ranks * phases

        def by_phase(rank: I64, phase: I64, seconds: F64) -> F64:
            return np.bincount(rank * phases + phase, seconds, cells).reshape(ranks, phases).astype(float)

        step_rank = nodes.rank[steps.node]
        computing = steps.compute
        return Segment(
            turns=turns,
            node_table=nodes,
            message_table=messages,
            before=before,
            levels=levels_of(nodes, messages, before),
            last=last,
            busy=by_phase(step_rank, steps.phase, steps.seconds * computing),
            overhead=by_phase(step_rank, steps.phase, steps.seconds * ~computing)
            + by_phase(nodes.rank[waiting], nodes.phase[waiting], nodes.overhead),
            sent=np.bincount(messages.source, minlength=ranks),
            n_bytes=np.bincount(messages.source, messages.m, ranks).astype(np.int64),
        )

    def _messages(self, events: I64) -> Messages:
        """The messages of sends or of receives."""
        return Messages(self._machine, *self._source_and_target(events), self._events.m[events])

    def _source_and_target(self, events: I64) -> tuple[I64, I64]:
        here = self._rank[events]
        there = self._events.peer[events]
        return (here, there) if events is self._sends else (there, here)

    def _ends(self, events: I64, steps: _Steps, *, after: bool) -> Ends:
        """The sends or the receives, which begin after or before their steps."""
        e = self._events
        place = np.zeros(len(self._node), np.int64)
        place[steps.event] = np.arange(len(steps.event))
        here = place[events]
        wait = self._wait[events]
        return Ends(
            *self._source_and_target(events),
            e.m[events],
            e.tag[events],
            self._node[events],
            steps.offset[here] + (steps.seconds[here] if after else 0.0),
            np.where(wait >= 0, self._node[wait], -1),
        )

    def _prices(self, since: Since) -> tuple[F64, F64, F64]:
        """(n_sends, 3) Os, L, Or of the sends, (n_receives,) Or of the receives, and
        (n_receives,) seconds by which these messages prolong computing."""
        e = self._events
        receives = self._receives
        computed = self._computed
        sending = self._scaled(self._out, self._sends, self._since(self._sends, since.send), 0.0)
        wait = self._wait[receives]
        taken = e.blocking[receives] | ((e.tag[receives] >= 0) & (wait >= 0))  # collectives: as a whole
        order = np.flatnonzero(taken)
        order = order[np.argsort(wait[order], kind="stable")]
        before = np.zeros(len(receives))
        before[order] = self._since(wait[order], since.receive)
        receiving = self._scaled(self._into, receives, 0.0, before)[:, 2]
        beside = np.flatnonzero(taken & ~e.blocking[receives])
        longer = np.zeros(len(receives))
        meanwhile = np.where(wait >= 0, computed[wait] - computed[receives], 0.0)
        found = self._into.beside(meanwhile, before)
        longer[beside], receiving[beside] = found[beside].T
        return sending, receiving, longer

    def _since(self, events: I64, before: F64) -> F64:
        """The computing since the previous one of these events, rank after rank;
        `before` (n_ranks,) is that before the first one."""
        rank = self._rank[events]
        computed = self._computed[events]
        found = np.diff(computed, prepend=0.0)
        first = np.flatnonzero(np.diff(rank, prepend=-1))
        found[first] = computed[first] + before[rank[first]]
        return found

    def _scaled(
        self,
        messages: Messages,
        events: I64,
        sender: F64 | float,
        receiver: F64 | float,
    ) -> F64:
        """Costs of messages; the factor of collectives is that of messages in a row."""
        found = messages.costs(sender, receiver)
        factor = self._machine.collective
        if factor != 1:
            inside = self._events.tag[events] < 0
            found[inside] += (factor - 1) * messages.costs()[inside]
        return found

    def _steps(self, sending: F64, longer: F64) -> _Steps:
        """The steps of all nodes: computing, sends, receives, which take no time, and
        the time by which messages prolong computing, just before the wait for them."""
        e = self._events
        one = np.flatnonzero(e.kind != WAIT)
        seconds = self._seconds.copy()
        seconds[self._sends] = sending[:, 0]
        slower = np.flatnonzero(longer)
        waits = self._wait[self._receives[slower]]
        computing = np.flatnonzero(e.kind == COMPUTE)
        latest = computing[np.searchsorted(computing, waits) - 1] if len(slower) else waits
        event = np.concatenate((one, waits))
        order = np.argsort(event, kind="stable")
        columns = (
            event,
            self._node[event],
            np.concatenate((seconds[one], longer[slower])),
            e.phase[np.concatenate((one, latest))],
            np.concatenate((e.kind[one] == COMPUTE, np.zeros(len(slower), np.bool_))),
        )
        event, node, spent, phase, compute = (column[order] for column in columns)
        first = np.flatnonzero(np.diff(node, prepend=-1, append=-1))
        return _Steps(event, node, spent, phase, compute, running(spent, first))

    def _nodes(self, steps: _Steps, work: F64, receiving: F64, number: I64) -> NodeTable:
        """The table of all nodes. receiving[k], number[k]: Or and message of receive k."""
        overhead = np.zeros(len(self._wait))
        message = np.full(len(self._wait), -1)
        overhead[self._receives], message[self._receives] = receiving, number
        message[self._sends] = np.arange(len(self._sends))
        waited = np.flatnonzero(self._wait >= 0)
        waited = waited[np.argsort(self._wait[waited], kind="stable")]
        shown = self._events.kind[steps.event] != RECEIVE
        n = len(work)
        return NodeTable(
            rank=self._node_rank,
            phase=self._node_phase,
            work=work,
            first_step=_ends_of(steps.node[shown], n),
            first_wait=_ends_of(self._node[self._wait[waited]], n),
            offset=steps.offset[shown],
            seconds=steps.seconds[shown],
            step_phase=steps.phase[shown],
            compute=steps.compute[shown],
            message=message[waited],
            overhead=overhead[waited],
        )


def _ends_of(node: I64, n: int) -> I64:
    """(n + 1,) where the entries of each node begin, and the end of the last."""
    return np.append(0, np.cumsum(np.bincount(node, minlength=n)))
