"""A device with the kernels of a rank, under the names of the compiled kernels.

Each call has waited for its device when it returns, so that the stamps around it are
the time of its work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32
from fembench.device.runtime import GROUPS_PER_UNIT, LANES, THREADS, DeviceName, Runtime

DOUBLE = 8
SLICE = 9 << 20  # numbers of a matrix that are copied at a time


class DeviceVector:
    """(size,) doubles on a device. `v[:] = w` copies a vector, an array or a number."""

    def __init__(self, device: Device, size: int) -> None:
        self.kernels, self.size = device, size
        self.buffer = device.runtime.empty(size)

    def __setitem__(self, every: slice, values: DeviceVector | F64 | float) -> None:
        bind, n = self.kernels.bind, np.int64(self.size)
        if isinstance(values, DeviceVector):
            bind("fb_copy", self.size, n, values.buffer, self.buffer)()
        elif isinstance(values, np.ndarray):
            self.kernels.runtime.write(self.buffer, np.ascontiguousarray(values, np.float64))
        else:
            bind("fb_fill", self.size, n, self.buffer)(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> F64:
        out = np.empty(self.size)
        self.kernels.runtime.read(self.buffer, out)
        return out


class Device:
    """The kernels, bound to one device, which is as `said`.

    Names of classes are those of the compiled kernels; see there for their arguments.
    """

    def __init__(self, runtime: Runtime, said: DeviceName) -> None:
        self.runtime = runtime
        self.said = said
        self._limit = GROUPS_PER_UNIT * runtime.units
        self._partial = runtime.empty(2 * self._limit)
        self._sums = runtime.pinned(2 * self._limit)
        self.empty, self.matrix = partial(DeviceVector, self), partial(DeviceMatrix, self)
        self.elements = partial(DeviceElements, self)
        self.CGVectors, self.Chebyshev = partial(DeviceCGVectors, self), partial(DeviceChebyshev, self)
        self.Pack, self.NeighbourSum = partial(DevicePack, self), partial(DeviceNeighbourSum, self)
        self.Triad, self.Stream = partial(DeviceTriad, self), partial(DeviceStream, self)

    def groups(self, threads: int) -> int:
        """Groups to start for so many threads."""
        return max(1, min(self._limit, -(-threads // THREADS)))

    def upload(self, array: NDArray) -> Any:
        """A buffer with a copy of an array."""
        buffer = self.runtime.empty(array.size, array.dtype)
        self.runtime.write(buffer, np.ascontiguousarray(array))
        return buffer

    def ones(self, n: int) -> Any:
        """A buffer of n numbers."""
        v = self.empty(n)
        v[:] = 1.0
        return v.buffer

    def bind_sum(
        self, kernel: str, threads: int, *arguments: Any, sums: int = 1
    ) -> Callable[..., list[float]]:
        """A call of a kernel with partial sums in its last buffer; it returns the sums."""
        groups = self.groups(threads)
        launch = self.runtime.bind(kernel, groups, *arguments, self._partial)
        found = self._sums[: sums * groups]
        read = self.runtime.read
        rows = found.reshape(sums, groups)

        def run(*numbers: float) -> list[float]:
            launch(*numbers)
            read(self._partial, found)
            return rows.sum(axis=1).tolist()

        return run

    def bind(self, kernel: str, threads: int, *arguments: Any) -> Callable[..., None]:
        """A call of a kernel that has ended when it returns."""
        launch = self.runtime.bind(kernel, self.groups(threads), *arguments)
        finish = self.runtime.finish

        def run(*numbers: float) -> None:
            launch(*numbers)
            finish()

        return run

    def roof(self, n_bytes: int, seconds: float = 0.05) -> float:
        """Bytes per second through `n_bytes`: the better of read and triad."""
        n = max(int(n_bytes) // DOUBLE, THREADS)
        read = DOUBLE * n / _least(self.Stream(n).read, seconds)
        return max(read, self.triad(n_bytes, seconds))

    def triad(self, n_bytes: int, seconds: float = 0.05) -> float:
        """Bytes per second of a = b + s c, `n_bytes` in all, counted as STREAM does."""
        n = max(int(n_bytes) // (3 * DOUBLE), THREADS)
        run = self.Triad(n).run
        return 3 * DOUBLE * n / _least(lambda: run(0.5), seconds)


class DeviceTriad:
    """run(s): a = b + s c, of n entries each."""

    def __init__(self, device: Device, n: int) -> None:
        self.run = device.bind("fb_triad", n, np.int64(n), *(device.ones(n) for _ in range(3)))


class DeviceStream:
    """read(): the sum of n ones."""

    def __init__(self, device: Device, n: int) -> None:
        self.read = device.bind_sum("fb_read", n, np.int64(n), device.ones(n))


def _least(call: Callable[[], Any], seconds: float) -> float:
    """Seconds of one call, the least of many."""
    clock, best = time.perf_counter, float("inf")
    call()
    begin = clock()
    while clock() - begin < seconds:
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


class DeviceBsrProduct:
    """q = A d of full 3x3 blocks, fused with d . q."""

    def __init__(self, matrix: DeviceMatrix, d: DeviceVector, q: DeviceVector) -> None:
        device, inside = matrix.device, matrix.n_interior
        bound = (np.int64(matrix.n_blocks), *matrix.buffers, d.buffer, q.buffer)

        def rows(first: int, last: int) -> Callable[[], float]:
            if first == last:
                return float
            threads = LANES * (last - first)
            run = device.bind_sum("fb_product", threads, np.int32(first), np.int32(last), *bound)
            return lambda: run()[0]

        self.interface = rows(inside, matrix.n_rows)
        self.interior = rows(0, inside)


class DeviceMatrix:
    """Full 3x3 blocks: indptr (n + 1,) int64, columns (n_blocks,), values in nine planes."""

    def __init__(
        self, device: Device, indptr: NDArray, columns: NDArray, values: F64, n_interior: int
    ) -> None:
        self.device = device
        self.n_interior = n_interior
        self.n_rows = indptr.size - 1
        self.n_blocks = columns.size
        planes = device.runtime.empty(values.size)
        flat = values.reshape(-1)
        for begin in range(0, flat.size, SLICE):
            piece = flat[begin : begin + SLICE]
            count = np.int64(piece.size)
            where = np.int64(columns.size), np.int64(begin)
            device.bind("fb_planes", piece.size, count, *where, device.upload(piece), planes)()
        self.buffers = (device.upload(indptr), device.upload(columns), planes)
        self.n_bytes = indptr.nbytes + columns.nbytes + values.nbytes
        self.bind = partial(DeviceBsrProduct, self)


class DeviceElements:
    """Cells, their forces, and for each node the forces to add up, in the order of cells."""

    def __init__(
        self,
        device: Device,
        x: F64,
        cells: I32,
        fixed: I32,
        n_first: int,
        lame: F64,
        n_interior: int,
        n_active: int,
        slopes: F64,
    ) -> None:
        self.device = device
        self.n_interior = n_interior
        self.n_active = n_active
        self.n_first, (self.n_cells, self.npc) = n_first, cells.shape
        start, sources = _by_node(cells.reshape(-1), n_active)
        held = np.zeros(3 * n_active, np.int8)
        held[fixed] = 1
        step, (lam, mu) = np.int64(lame.shape[1] > 1), lame
        self.of_cells = (
            *(np.int64(self.n_cells), np.int64(n_active), step),
            *(device.upload(array) for array in (x, cells, lam, mu)),
        )
        self.shape = [device.upload(slopes)] if self.npc == 8 else []
        self.forces = device.runtime.empty(3 * cells.size)
        kept = (device.upload(array) for array in (start, sources, held))
        self.of_nodes = (np.int64(self.n_cells), np.int32(self.npc), *kept)
        arrays = (x, cells, lame, start, sources, held)
        self.n_bytes = sum(array.nbytes for array in arrays) + 2 * 3 * DOUBLE * cells.size
        self.bind = partial(DeviceEbeProduct, self)


class DeviceEbeProduct:
    """q = A d from the cells, fused with d . q."""

    def __init__(self, one: DeviceElements, d: DeviceVector, q: DeviceVector) -> None:
        device = one.device

        def rows(cells: tuple[int, int], nodes: tuple[int, int]) -> Callable[[], float]:
            work = [np.int64(end) for end in cells], [np.int64(end) for end in nodes]
            compute = device.runtime.bind(
                f"fb_ebe{one.npc}",
                device.groups(cells[1] - cells[0]),
                *(*work[0], *one.of_cells, d.buffer, *one.shape, one.forces),
            )
            bound = (*work[1], *one.of_nodes, one.forces, d.buffer, q.buffer)
            add = device.bind_sum("fb_ebe_sum", 3 * (nodes[1] - nodes[0]), *bound)

            def run() -> float:
                compute()
                return add()[0]

            return run

        inside = one.n_interior
        self.interface = rows((0, one.n_first), (inside, one.n_active))
        self.interior = rows((one.n_first, one.n_cells), (0, inside))


def _by_node(nodes: I32, n: int) -> tuple[I32, I32]:
    """(start (n + 1,), places in `nodes` of each of the first n nodes, ascending)."""
    order = np.argsort(nodes, kind="stable").astype(np.int32)
    start = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(nodes, minlength=n)[:n], out=start[1:])
    return start, order[: start[-1]]


class DeviceChebyshev:
    """start(gain): d = z = gain D^-1 r. run(keep, gain): r -= q; d = keep d + gain D^-1 r; z += d."""

    def __init__(
        self, device: Device, z: DeviceVector, r: DeviceVector, d: DeviceVector, q: DeviceVector, inverse: F64
    ) -> None:
        n, M = np.int64(z.size), device.upload(inverse)
        self.start = device.bind("fb_chebyshev_start", z.size, n, z.buffer, r.buffer, d.buffer, M)
        self.run = device.bind("fb_chebyshev", z.size, n, z.buffer, r.buffer, d.buffer, q.buffer, M)


class DeviceCGVectors:
    """The vector work of one iteration, as compiled CGVectors; `inverse`: on the host."""

    def __init__(
        self,
        device: Device,
        x: DeviceVector,
        r: DeviceVector,
        d: DeviceVector,
        q: DeviceVector,
        z: DeviceVector,
        weights: F64,
        inverse: F64 | None = None,
    ) -> None:
        n, w = x.size, device.upload(weights)
        sizes = np.int64(n), np.int64(n - weights.size)
        vectors = (x.buffer, r.buffer, d.buffer, q.buffer, w)
        dots = [device.bind_sum("fb_dot", n, *sizes, a.buffer, b.buffer, w) for a, b in ((d, q), (r, z))]
        self.dot_dq = lambda: dots[0]()[0]
        self.dot_rz = lambda: dots[1]()[0]
        step = device.bind_sum("fb_step", n, *sizes, *vectors)
        self.step = lambda alpha: step(alpha)[0]
        self.step_jacobi: Callable[[float], list[float]] | None = None
        if inverse is None:
            self.direction = device.bind("fb_direction", n, sizes[0], d.buffer, z.buffer)
            return
        kind, threads = ("jacobi", n) if inverse.ndim == 1 else ("block", n // 3)
        M = device.upload(inverse)
        self.step_jacobi = device.bind_sum(f"fb_step_{kind}", threads, *sizes, *vectors, M, sums=2)
        self.direction = device.bind(f"fb_direction_{kind}", threads, sizes[0], d.buffer, r.buffer, M)


class DevicePack:
    """Interface values of the nodes `index` into a message, an array of the host."""

    def __init__(self, device: Device, v: DeviceVector, index: I32, message: F64) -> None:
        runtime = device.runtime
        buffer = runtime.empty(message.size)
        n = np.int64(index.size)
        runtime.pin(message)
        launch = runtime.bind(
            "fb_pack", device.groups(message.size), n, device.upload(index), v.buffer, buffer
        )

        def run() -> None:
            launch()
            runtime.read(buffer, message)

        self.run = run


class DeviceNeighbourSum:
    """Sum over all sharers in ascending order of rank.

    `messages` of the neighbours, arrays of the host, lie one after the other.
    """

    def __init__(
        self,
        device: Device,
        v: DeviceVector,
        first_dof: int,
        n_below: int,
        indices: Sequence[I32],
        messages: Sequence[F64],
    ) -> None:
        runtime = device.runtime
        ends = list(accumulate((message.size for message in messages), initial=0))
        whole = np.lib.stride_tricks.as_strided(messages[0], (ends[-1],), (DOUBLE,))
        if any(m.ctypes.data != whole.ctypes.data + DOUBLE * at for m, at in zip(messages, ends)):
            raise ValueError("messages: expected one after the other in memory")
        first, n = first_dof // 3, (v.size - first_dof) // 3
        start, sources = ordered_sources(n, [index - first for index in indices], n_below)
        runtime.pin(messages[0])
        buffer = runtime.empty(whole.size)
        bound = (np.int64(n), np.int64(first), device.upload(start), device.upload(sources), buffer)
        add = device.bind("fb_neighbour_sum", 3 * n, *bound, v.buffer)

        def run() -> None:
            runtime.write(buffer, whole)
            add()

        self.run = run


def ordered_sources(n: int, indices: Sequence[I32], n_below: int) -> tuple[I32, I32]:
    """(start (n + 1,), sources): what each of n nodes adds; -1: its own value.

    `indices` are the nodes in the message of each neighbour, in ascending order of rank;
    the first `n_below` are below this rank.
    """
    received = np.arange(sum(index.size for index in indices), dtype=np.int32)
    parts = np.split(received, np.cumsum([index.size for index in indices])[:-1])
    nodes = [*indices[:n_below], np.arange(n, dtype=np.int32), *indices[n_below:]]
    values = [*parts[:n_below], np.full(n, -1, np.int32), *parts[n_below:]]
    start, order = _by_node(np.concatenate(nodes), n)
    return start, np.concatenate(values)[order]
