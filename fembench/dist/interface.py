"""Interface: the neighbour sum of shared dofs ("Atualização", seed 004, Fig. 4.5) and the inner product.

One message a neighbour and direction, non-blocking and persistent. Every sharer adds the
contributions in ascending order of rank, its own at its place, so that all copies of a shared
value are bit-identical.

Phases traced: cg.send (pack and start), cg.wait, cg.unpack (the ordered sum), cg.allreduce. Of an
all-reduce in two halves the start is cg.send, the wait for it cg.allreduce.
"""

import itertools
import weakref
from array import array
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.dist.comm import DOUBLE, IN_PLACE, SUM, Comm, Request, persistent_allreduce
from fembench.dist.sharing import Sharing
from fembench.kernels.backend import kernels
from fembench.timing.phases import ALLREDUCE, SEND, UNPACK, WAIT

F64 = NDArray[np.float64]
_TAG = 7


class Stamps(Protocol):
    """What is needed of a tracer."""

    def begin(self, phase: int) -> None: ...
    def end(self, phase: int) -> None: ...


class Interface:
    """The exchange plan of one rank: who shares which dofs with it, and the buffers for them."""

    def __init__(self, comm: Comm, sharing: Sharing, n_interior: int, n_active: int) -> None:
        self.comm = comm
        self.neighbours = sharing.ranks
        self.first_dof = 3 * n_interior
        self.n_dofs = 3 * n_active
        self.nodes = sharing.nodes
        self.weights = np.repeat(1.0 / sharing.sharers[n_interior:n_active], 3)  # 1 / multiplicity
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
        """Sum v over the sharers of each dof, in place; returns v. Collective over neighbours."""
        update = Update(self, v, _SILENT)
        update.start()
        update.finish()
        return v

    def copies(self, v: F64) -> list[tuple[F64, F64]]:
        """(own, neighbour's) values of the shared dofs of v, by neighbour. Collective over neighbours."""
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
        """Global inner product of two consistent vectors (seed 004, Fig. 4.6). Collective."""
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
    """One vector's neighbour sum, with its phases stamped."""

    def __init__(self, interface: Interface, v: F64, tracer: Stamps) -> None:
        self._tracer = tracer
        self._requests = interface._requests
        self._pack = kernels.Pack(v, interface._index, interface._out)
        buffers = [interface._in[s] for s in interface.slices]
        below = sum(rank < interface.comm.rank for rank in interface.neighbours)
        self._sum = kernels.NeighbourSum(v, interface.first_dof, below, interface.nodes, buffers)

    def start(self) -> None:
        """Pack the interface part of the vector and start the messages."""
        begin, end = self._tracer.begin, self._tracer.end
        begin(SEND)
        if self._requests:
            self._pack.run()
            Request.Startall(self._requests)
        end(SEND)

    def finish(self) -> None:
        """Wait for the neighbours' values and add everything in ascending order of rank."""
        begin, end = self._tracer.begin, self._tracer.end
        begin(WAIT)
        if self._requests:
            Request.Waitall(self._requests)
        end(WAIT)
        begin(UNPACK)
        if self._requests:
            self._sum.run()
        end(UNPACK)


class AllReduce:
    """The sum of a few numbers over ranks, in place in a fixed buffer, stamped."""

    def __init__(self, comm: Comm, count: int, tracer: Stamps) -> None:
        self.values = array("d", bytes(8 * count))  # an item costs a quarter of an ndarray's
        self._comm, self._tracer = comm, tracer
        self._buffer = [self.values, count, DOUBLE]
        self._alone = comm.size == 1  # nothing to sum, and nobody to call for it

    def run(self) -> "array[float]":
        """Replace `values` by their sums over all ranks, and return it. Collective."""
        self._tracer.begin(ALLREDUCE)
        if not self._alone:
            self._comm.Allreduce(IN_PLACE, self._buffer, SUM)
        self._tracer.end(ALLREDUCE)
        return self.values


class PendingAllReduce:
    """The same in two halves, with work between them; stamped as cg.send and cg.allreduce.

    Persistent where MPI offers it (MPI 4), else a request is made anew each time.
    """

    def __init__(self, comm: Comm, count: int, tracer: Stamps) -> None:
        self.values = array("d", bytes(8 * count))  # of this rank; untouched from start to finish
        self._sums = array("d", bytes(8 * count))
        self._comm, self._tracer = comm, tracer
        self._buffers = ([self.values, count, DOUBLE], [self._sums, count, DOUBLE], SUM)
        self._alone = comm.size == 1
        self._persistent = None if self._alone else persistent_allreduce(comm, *self._buffers)
        if self._persistent is not None:
            weakref.finalize(self, self._persistent.Free).atexit = False

    def start(self) -> None:
        """Send `values` on their way. Collective."""
        self._tracer.begin(SEND)
        if self._persistent is not None:
            self._persistent.Start()
        elif not self._alone:
            self._request = self._comm.Iallreduce(*self._buffers)
        self._tracer.end(SEND)

    def finish(self) -> "array[float]":
        """Wait for the sums over all ranks."""
        self._tracer.begin(ALLREDUCE)
        if self._persistent is not None:
            self._persistent.Wait()
        elif not self._alone:
            self._request.Wait()
        self._tracer.end(ALLREDUCE)
        return self.values if self._alone else self._sums


class _Silent:
    def begin(self, phase: int) -> None: ...
    def end(self, phase: int) -> None: ...


_SILENT = _Silent()
