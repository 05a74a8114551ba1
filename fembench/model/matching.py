"""Messages of a segment: each receive's own; opposite ones slow each other down.

Prices of many messages at once: a machine is asked once for all of one cost.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, I64, Mask
from fembench.base.errors import InputError
from fembench.model.event_table import groups, partners
from fembench.model.machine import Machine
from fembench.model.plan import EAGER, MessageTable
from fembench.records.hlogp import Computed
from fembench.records.network import PairClass


class Messages:
    """Messages from ranks p to ranks q of m bytes each; all (n,)."""

    def __init__(self, machine: Machine, p: I64, q: I64, m: I64) -> None:
        self._machine = machine
        self._p = p
        self._q = q
        self._m = m
        host = np.array(machine.host)
        numa = np.array(machine.numa or [-1] * machine.ranks)
        same = host[p] == host[q]
        far = same & (numa[p] != numa[q]) & (numa[p] >= 0) & (numa[q] >= 0)
        first, between = groups(host[p], host[q], far)
        ends = list(zip(p[first].tolist(), q[first].tolist()))
        classes = [(machine.pair(a, b), machine.pair(b, a)) for a, b in ends]
        numbers = {pair: k for k, pair in enumerate(dict.fromkeys(map(_identity, classes)))}
        kind = np.array([numbers[_identity(pair)] for pair in classes], np.int64)[between]
        self._group = groups(kind, same, m)[1]
        self._cold = _flags([bool(there.cold) for there, _ in classes])[between]
        self._beside = _flags([bool(back.beside) for _, back in classes])[between]

    def each(self, price: Callable[..., object], *more: npt.NDArray) -> npt.NDArray:
        """(n, …) price(p, q, m, *more) of each message, from its values in `more` (n,)."""
        first, group = groups(self._group, *more)
        columns = (column[first].tolist() for column in (self._p, self._q, self._m, *more))
        return np.array([price(*one) for one in zip(*columns)])[group]

    def costs(self, sender: F64 | float = 0.0, receiver: F64 | float = 0.0) -> F64:
        """(n, 3) Os, L and Or after sender and receiver (n,)
        computed for so many seconds."""
        after = (np.where(self._cold, seconds, 0.0) for seconds in (sender, receiver))
        return self.each(self._cost, *after).reshape(-1, 3)

    def beside(self, computing: F64, receiver: F64) -> F64:
        """(n, 2) seconds by which the receiver's computing takes longer, and Or, if it
        computes for `computing` seconds (n,) while the message travels."""
        seconds = np.where(self._beside, computing, 0.0)
        return self.each(self._cost_beside, seconds, np.where(self._cold, receiver, 0.0)).reshape(-1, 2)

    def _cost(
        self,
        p: int,
        q: int,
        m: int,
        sender: float,
        receiver: float,
    ) -> tuple[float, float, float]:
        return self._machine.cost(p, q, m, Computed(sender, receiver))

    def _cost_beside(
        self,
        p: int,
        q: int,
        m: int,
        computing: float,
        receiver: float,
    ) -> tuple[float, float]:
        return self._machine.beside(p, q, m, computing, Computed(receiver=receiver))


def _identity(pair: tuple[PairClass, PairClass]) -> tuple[int, int]:
    return id(pair[0]), id(pair[1])


def _flags(values: list[bool]) -> Mask:
    return np.array(values, np.bool_)


@dataclass(frozen=True)
class Ends:
    """One end of each message: the sends or the receives of all ranks."""

    source: I64  # (n,) ranks
    target: I64
    m: I64  # bytes
    tag: I64
    node: I64  # in which it begins
    offset: F64  # seconds after the node's begin
    waiting: I64  # node that waits for it; -1: none


def matched(sends: Ends, receives: Ends) -> I64:
    """(n_receives,) the message of each: the k-th of the same sender, receiver and tag;
    -1: none. Raises InputError if their sizes differ."""
    found = partners(*((ends.source, ends.target, ends.tag) for ends in (sends, receives)))
    there = np.append(sends.m, -1)[found]
    for k in np.flatnonzero((found >= 0) & (there != receives.m))[:1].tolist():
        raise InputError(
            f"rank {receives.target[k]} expects {receives.m[k]} bytes from rank {receives.source[k]}, which "
            f"sends {there[k]}; expected equal sizes"
        )
    return found


def message_table(
    machine: Machine, sends: Ends, receives: Ends, number: I64, latency: F64, work: F64
) -> MessageTable:
    """The table of all messages, number[k] of receive k; work (n_nodes,) s until waits."""
    prices = Messages(machine, sends.source, sends.target, sends.m)
    rendezvous: Mask = prices.each(machine.waits).astype(np.bool_)
    taken = _at(number, receives.waiting, len(latency))
    posted = np.where(rendezvous, _at(number, receives.node, len(latency)), EAGER)
    table = MessageTable(
        source=sends.source,
        target=sends.target,
        m=sends.m,
        latency=latency + _meeting(machine, sends, taken),
        gap=prices.each(machine.gap) if machine.contention else np.zeros(len(latency)),
        sent=sends.node.copy(),
        sent_offset=sends.offset.copy(),
        posted=posted,
        posted_offset=np.where(posted >= 0, _at(number, receives.offset, len(latency)), 0.0),
    )
    if not machine.overlap:  # such a message travels only while both ranks wait in MPI
        held = posted >= 0
        for node, offset, waiting in (
            (table.sent, table.sent_offset, sends.waiting),
            (table.posted, table.posted_offset, taken),
        ):
            mine = np.flatnonzero(held & (waiting >= 0))
            node[mine], offset[mine] = waiting[mine], work[waiting[mine]]
    return table


def _at(number: I64, values: npt.NDArray, n: int) -> npt.NDArray:
    """(n,) the value of each message's receive; -1: none (NEVER_POSTED of nodes)."""
    found = np.full(n, -1, values.dtype)
    found[number[number >= 0]] = values[number >= 0]
    return found


def _meeting(machine: Machine, sends: Ends, taken: I64) -> F64:
    """(n,) seconds by which a message takes longer because its opposite one travels
    too: if both send before they wait, at nodes taken (n,). Collectives are scaled."""
    found = np.zeros(len(taken))
    able = (taken >= 0) & (sends.tag >= 0)
    one = np.flatnonzero(able & (sends.source < sends.target))
    other = np.flatnonzero(able & (sends.source > sends.target))
    first = partners(
        (sends.source[one], sends.target[one], sends.tag[one]),
        (sends.target[other], sends.source[other], sends.tag[other]),
    )
    one, other = one[first[first >= 0]], other[first >= 0]
    meet = (sends.node[one] <= taken[other]) & (sends.node[other] <= taken[one])
    for a, b in ((one[meet], other[meet]), (other[meet], one[meet])):
        there = Messages(machine, sends.source[a], sends.target[a], sends.m[a])
        found[a] = there.each(machine.longer, sends.m[b])
    return found
