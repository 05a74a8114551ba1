"""Interface: the neighbour sum (Ferreira 2006, Fig. 4.5) and the inner product.

One message per neighbour and direction, non-blocking and persistent; or, to compare
with, blocking sends and receives as in Ferreira (2006), ordered so that they cannot
deadlock. Every sharer adds the contributions in ascending order of rank, its own at its
place, so that all copies of a shared value are bit-identical.

Phases traced: cg.send (pack and start), cg.wait, cg.unpack (the ordered sum),
cg.allreduce. Of an all-reduce in two halves the start is cg.send, the wait for it
cg.allreduce.

What runs in every iteration is a chain of calls bound when it is made (timing/tracer.py).
"""

import itertools
import weakref
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from fembench.base.arrays import F64
from fembench.kernels.backend import kernels, kernels_of
from fembench.ranks.comm import (
    DOUBLE,
    SUM,
    Comm,
    Request,
    persistent_allreduce,
    receive_from,
    send_to,
    start_and_wait,
    sum_in_place,
    wait,
)
from fembench.ranks.subdomain import Sharing
from fembench.records.phases import ALLREDUCE, SEND, UNPACK, WAIT
from fembench.timing.tracer import NullTracer, Stamps, Step, Traffic, chain

Call = Callable[[], object]
_TAG, _BLOCKING_TAG = 7, 9


class Interface:
    """The exchange plan of a rank: who shares which dofs with it, with buffers."""

    def __init__(
        self, comm: Comm, sharing: Sharing, n_interior: int, n_active: int, *, blocking: bool = False
    ) -> None:
        self.comm = comm
        self.blocking = blocking
        self.neighbours = sharing.ranks
        self.first_dof = 3 * n_interior
        self.n_dofs = 3 * n_active
        self.nodes = sharing.nodes
        multiplicity = sharing.sharers[n_interior:n_active].astype(np.float64)
        self.weights = np.repeat(1.0 / multiplicity, 3)
        self._index = np.concatenate(self.nodes) if self.nodes else np.zeros(0, np.int32)
        self._out, self._in = np.empty(3 * self._index.size), np.empty(3 * self._index.size)
        ends = 3 * np.cumsum([0, *(n.size for n in self.nodes)])
        self.slices = tuple(slice(a, b) for a, b in itertools.pairwise(ends))
        self._requests = self._persistent_requests()
        self._total = np.empty(2)

    @property
    def message_bytes(self) -> tuple[int, ...]:
        """Bytes of one message to each neighbour."""
        return tuple(24 * n.size for n in self.nodes)

    def _persistent_requests(self) -> list[Request]:
        receive = [
            self.comm.Recv_init([self._in[s], DOUBLE], source=rank, tag=_TAG)
            for rank, s in zip(self.neighbours, self.slices)
        ]
        send = [
            self.comm.Send_init([self._out[s], DOUBLE], dest=rank, tag=_TAG)
            for rank, s in zip(self.neighbours, self.slices)
        ]
        return receive + send

    def bind(self, v: F64, tracer: Stamps) -> "Update":
        """The neighbour sum of the flat vector v (n_dofs,), to be run many times."""
        return Update(self, v, tracer)

    def update(self, v: F64) -> F64:
        """Sum v over the sharers of each dof, in place; v. Collective over neighbours."""
        update = Update(self, v, NullTracer())
        update.start()
        update.finish()
        return v

    def copies(self, v: F64) -> list[tuple[F64, F64]]:
        """(own, neighbour's) values of the shared dofs of v, by neighbour. Collective."""
        kernels.Pack(v, self._index, self._out).run()
        Request.Startall(self._requests)
        Request.Waitall(self._requests)
        return [(self._out[s].copy(), self._in[s].copy()) for s in self.slices]

    def weighted(self, v: F64) -> F64:
        """A copy of v in which the sharers' copies of a value add up to the value."""
        out = v.copy()
        out[self.first_dof :] *= self.weights
        return out

    def dot(self, a: F64, b: F64) -> float:
        """Inner product of two consistent vectors (Ferreira 2006, Fig. 4.6). Collective."""
        return self.total(float(self.weighted(a) @ b))

    def total(self, value: float) -> float:
        """Sum of one number over ranks. Collective."""
        send, receive = self._total[:1], self._total[1:]
        send[0] = value
        self.comm.Allreduce(send, receive, SUM)
        return float(receive[0])

    def close(self) -> None:
        """Free the persistent requests."""
        for request in self._requests:
            request.Free()
        self._requests = []


class Update:
    """One vector's neighbour sum, with its phases stamped.

    `start()` packs the interface part of the vector and starts the messages; `finish()`
    waits for the neighbours' values and adds everything in ascending order of rank. The
    same as steps of a longer chain (timing/tracer.py): `send`, then `receive`.
    """

    def __init__(self, interface: Interface, v: F64, tracer: Stamps) -> None:
        self.send: Step = (SEND,)
        self.receive: tuple[Step, ...] = ((WAIT,), (UNPACK,))
        if interface.neighbours:
            ranks = interface.neighbours
            n_bytes = interface.message_bytes
            buffers = [interface._in[s] for s in interface.slices]
            below = sum(rank < interface.comm.rank for rank in interface.neighbours)
            of_v = kernels_of(v)
            pack = of_v.Pack(v, interface._index, interface._out).run
            add = of_v.NeighbourSum(v, interface.first_dof, below, interface.nodes, buffers).run
            if interface.blocking:
                self.send = (SEND, pack)
                self.receive = (*_one_by_one(interface), (UNPACK, add))
            else:
                start_all, wait_all = start_and_wait(interface._requests)
                self.send = (Traffic(SEND, ranks, n_bytes), pack, start_all)
                self.receive = ((Traffic(WAIT, ranks, n_bytes), wait_all), (UNPACK, add))
        self.start, self.finish = chain(tracer, self.send), chain(tracer, *self.receive)


def _one_by_one(interface: Interface) -> Iterator[Step]:
    """Blocking messages, neighbour by neighbour, ascending; the lower rank sends first.

    No deadlock, even if a send waits for its receive: a rank that waits for q, which is
    busy with r, has a higher number than r. So in a cycle of ranks that wait for each
    other, the numbers would have to decrease forever.
    """
    comm = interface.comm
    for rank, n_bytes, part in zip(interface.neighbours, interface.message_bytes, interface.slices):
        send = (
            Traffic(SEND, (rank,), (n_bytes,)),
            send_to(comm, interface._out[part], rank, _BLOCKING_TAG),
        )
        receive = (
            Traffic(WAIT, (rank,), (n_bytes,)),
            receive_from(comm, interface._in[part], rank, _BLOCKING_TAG),
        )
        yield from (send, receive) if comm.rank < rank else (receive, send)


class AllReduce:
    """The sum of a few numbers over ranks, in place in a fixed buffer, stamped.

    `run()` replaces `values` by their sums over all ranks. Collective.
    """

    def __init__(self, comm: Comm, count: int, tracer: Stamps) -> None:
        self.values = array("d", bytes(8 * count))  # an item costs a quarter of an ndarray's
        calls = [] if comm.size == 1 else [sum_in_place(comm, self.values)]
        self.run = chain(tracer, (Traffic(ALLREDUCE, (), (8 * count,)), *calls))


class PendingAllReduce:
    """The same in two halves, with work between them; stamped as cg.send and cg.allreduce.

    `start()` sends `values` on their way, untouched until `finish()` has waited for
    their `sums` over all ranks. Persistent with MPI 4, else a request each time.
    """

    def __init__(self, comm: Comm, count: int, tracer: Stamps) -> None:
        self.values = array("d", bytes(8 * count))
        self.sums = self.values if comm.size == 1 else array("d", bytes(8 * count))
        begin_sum, finish_sum = _halves(self, comm, [self.values, count, DOUBLE], [self.sums, count, DOUBLE])
        self.start = chain(tracer, (Traffic(SEND, (), (8 * count,)), *begin_sum))
        self.finish = chain(tracer, (Traffic(ALLREDUCE, (), (8 * count,)), *finish_sum))


def _halves(owner: PendingAllReduce, comm: Comm, values: list, sums: list) -> tuple[list[Call], list[Call]]:
    """The functions that begin and finish the sum; requests are freed with their owner."""
    if comm.size == 1:
        return [], []
    persistent = persistent_allreduce(comm, values, sums, SUM)
    if persistent is None:
        under_way: list = []
        return [lambda: under_way.append(comm.Iallreduce(values, sums, SUM))], [lambda: wait(under_way.pop())]
    weakref.finalize(owner, persistent.Free).atexit = False
    begin, finish = start_and_wait([persistent])
    return [begin], [finish]
