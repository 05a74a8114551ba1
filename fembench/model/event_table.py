"""The events of all ranks as columns, rank after rank, in program order."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, I64, Mask
from fembench.model.collectives import expand
from fembench.model.graph import Collective, Compute, Program, Receive, Send, Wait

COMPUTE, SEND, RECEIVE, WAIT, COLLECTIVE = range(5)
KINDS: dict[type, int] = {
    Compute: COMPUTE, Send: SEND, Receive: RECEIVE, Wait: WAIT, Collective: COLLECTIVE
}  # fmt: skip
ANY = np.iinfo(np.int64).min  # the tag of a wait for all requests
DENSE = 8  # range over how many numbers, up to which they are counted, not sorted


@dataclass(frozen=True)
class EventTable:
    """Columns of events without loops. What an event of its kind does not have is 0."""

    kind: I64  # (n,) COMPUTE, …
    phase: I64  # (n,)
    seconds: F64  # (n,) of computing
    peer: I64  # (n,) rank to which or from which a message goes; number of a collective
    m: I64  # (n,) bytes
    tag: I64  # (n,)
    blocking: Mask  # (n,)
    first: I64  # (n_ranks + 1,) the first event of each rank
    collectives: tuple[Collective, ...] = ()

    @property
    def ranks(self) -> int:
        return len(self.first) - 1

    def rank(self) -> I64:
        """(n,) the rank of each event."""
        return np.repeat(np.arange(self.ranks), np.diff(self.first))

    def waits_for(self, requests: I64) -> I64:
        """(n_requests,) the event that waits for each of these messages; -1: none."""
        n = len(self.kind)
        tag = groups(self.tag)[1]
        key = tag * (n + 1) + np.arange(n)
        waits = np.flatnonzero(self.kind == WAIT)
        every = self.tag[waits] == ANY
        one = np.append(np.sort(key[waits[~every]]), -1)
        one = one[np.searchsorted(one[:-1], key[requests])]
        same = np.where(one // (n + 1) == tag[requests], one % (n + 1), n)
        some = np.append(waits[every], n)[np.searchsorted(waits[every], requests)]
        found = np.minimum(same, some)
        return np.where(found < self.first[self.rank()[requests] + 1], found, -1)


def table_of(bodies: Sequence[Program]) -> EventTable:
    """The table of the ranks' events, bodies[rank], which contain no loops."""
    events = [e for body in bodies for e in body]
    kind = np.array([KINDS[type(e)] for e in events], np.int64)
    by_type: dict[type, list[Any]] = {one: [] for one in KINDS}
    for e in events:
        by_type[type(e)].append(e)
    numbers: dict[Collective, int] = {}

    def column(values: dict[type, str], dtype: type = np.int64) -> npt.NDArray:
        found: npt.NDArray = np.zeros(len(events), dtype)
        for one, name in values.items():
            found[kind == KINDS[one]] = list(map(attrgetter(name), by_type[one]))
        return found

    peer = column({Send: "to", Receive: "source"})
    peer[kind == COLLECTIVE] = [numbers.setdefault(e, len(numbers)) for e in by_type[Collective]]
    tag = column({Send: "tag", Receive: "tag"})
    tag[kind == WAIT] = [ANY if e.tag is None else e.tag for e in by_type[Wait]]
    return EventTable(
        kind=kind,
        phase=np.array(list(map(attrgetter("phase"), events)), np.int64),
        seconds=column({Compute: "seconds"}, np.float64),
        peer=peer,
        m=column({Send: "m", Receive: "m"}),
        tag=tag,
        blocking=column({Send: "blocking", Receive: "blocking"}, np.bool_),
        first=np.append(0, np.cumsum([len(body) for body in bodies])),
        collectives=tuple(numbers),
    )


def expanded(table: EventTable) -> EventTable:
    """The table with the messages of each collective in its place."""
    ranks, rank = range(table.ranks), table.rank()
    programs = ([tuple(expand(c, r, table.ranks)) for r in ranks] for c in table.collectives)
    pools = [table, *map(table_of, programs)]
    count = np.ones(len(rank), np.int64)
    start = np.arange(len(rank))
    offset = len(rank)
    for number, pool in enumerate(pools[1:]):
        here = np.flatnonzero((table.kind == COLLECTIVE) & (table.peer == number))
        count[here] = np.diff(pool.first)[rank[here]]
        start[here] = offset + pool.first[rank[here]]
        offset += len(pool.kind)
    index = within(start, count)
    columns: dict[str, Any] = {
        f.name: np.concatenate([getattr(pool, f.name) for pool in pools])[index]
        for f in fields(EventTable)[:7]
    }
    return EventTable(**columns, first=np.append(0, np.cumsum(count))[table.first])


def within(start: I64, count: I64) -> I64:
    """start[0], start[0] + 1, … (count[0] of them), then from start[1], and so on."""
    return np.repeat(start - np.cumsum(count) + count, count) + np.arange(count.sum())


def running(values: F64, first: I64) -> F64:
    """(n,) the sum of the values before each one in its group, added in order; groups
    begin at `first`, whose last entry is n."""
    found, size = np.zeros(len(values)), np.diff(first)
    if not len(values):
        return found
    if size.max() > len(size):  # few long groups
        for begin, end in itertools.pairwise(first.tolist()):
            found[begin + 1 : end] = np.cumsum(values[begin : end - 1]) if end > begin else ()
        return found
    order = np.argsort(-size, kind="stable")
    begin = first[:-1][order]
    longer = len(size) - np.cumsum(np.bincount(size))
    total = np.zeros(len(size))
    for k in range(1, size.max()):
        n = longer[k]  # groups with an entry k
        total[:n] += values[begin[:n] + k - 1]
        found[begin[:n] + k] = total[:n]
    return found


def groups(*columns: npt.NDArray) -> tuple[I64, I64]:
    """(the first of each group of equal rows, (n,) the group of each row), ascending."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        value = _numbered(column)
        group = _numbered(group * (1 + value.max(initial=0)) + value)
    first = np.zeros(1 + group.max(initial=-1), np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return first, group


def _numbered(values: npt.NDArray) -> I64:
    """(n,) the place of each value among the distinct ones, in ascending order."""
    low, high = (values.min(), values.max()) if len(values) else (0, 0)
    if values.dtype.kind == "f" or int(high) - int(low) > DENSE * len(values):
        return np.unique(values, return_inverse=True)[1]
    place = values.astype(np.int64) - int(low)
    there = np.zeros(int(high) - int(low) + 1, np.int64)
    there[place] = 1
    return (np.cumsum(there) - 1)[place]


def partners(rows: tuple[I64, ...], others: tuple[I64, ...]) -> I64:
    """(n_others,) the row that each one is equal to, the first row for the first of
    equal ones, and so on; -1: none. Rows are given by columns."""
    n = len(rows[0])
    group = groups(*map(np.concatenate, zip(rows, others)))[1]
    place = np.concatenate((_occurrence(group[:n]), _occurrence(group[n:])))
    first, key = groups(group, place)
    found = np.full(len(first), -1)
    found[key[:n]] = np.arange(n)
    return found[key[n:]]


def _occurrence(group: I64) -> I64:
    """(n,) the number of earlier entries that are equal."""
    order = np.argsort(group, kind="stable")
    size = np.bincount(group)
    found = np.empty(len(group), np.int64)
    found[order] = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    return found
