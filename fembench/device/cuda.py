"""The runtime of NVIDIA's devices: CuPy compiles and starts the kernels."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime as cuda
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.device.runtime import DEFINES, SOURCE, THREADS, DeviceName, Launch

TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind


def count() -> int:
    """Devices that this process sees."""
    try:
        return int(cuda.getDeviceCount())
    except cuda.CUDARuntimeError:  # no driver, or no device
        return 0


def named(number: int) -> DeviceName:
    """What device `number` is."""
    facts = cuda.getDeviceProperties(number)
    compiler = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    return DeviceName(
        facts["name"].decode(),
        int(facts["totalGlobalMem"]),
        f"CUDA {_version(cuda.driverGetVersion())}",
        f"NVRTC {compiler} by CuPy {cupy.__version__}",
        cuda.deviceGetPCIBusId(number),
    )


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


class CudaRuntime:
    """A device of NVIDIA; all runs on its default stream."""

    def __init__(self, number: int) -> None:
        cuda.setDevice(number)
        self.units = int(cuda.getDeviceProperties(number)["multiProcessorCount"])
        self._pinned: set[int] = set()  # addresses
        self._stream = cupy.cuda.Stream.null
        self._module = cupy.RawModule(code=SOURCE.read_text(), options=("--fmad=false", *DEFINES))
        self._module.compile()

    def empty(self, n: int, dtype: Any = np.float64) -> Any:
        return cupy.empty(n, dtype)

    def write(self, buffer: Any, host: NDArray) -> None:
        if host.nbytes:
            cuda.memcpy(buffer.data.ptr, host.ctypes.data, host.nbytes, TO_DEVICE)

    def read(self, buffer: Any, host: NDArray) -> None:
        if host.nbytes:
            cuda.memcpyAsync(host.ctypes.data, buffer.data.ptr, host.nbytes, TO_HOST, self._stream.ptr)
        self._stream.synchronize()

    def pinned(self, n: int) -> F64:
        memory = cupy.cuda.alloc_pinned_memory(8 * max(n, 1))
        return np.frombuffer(memory, np.float64, n)

    def pin(self, host: NDArray) -> None:
        whole = host if host.base is None else host.base
        where = whole.ctypes.data
        if where in self._pinned or not whole.nbytes:
            return
        with contextlib.suppress(cuda.CUDARuntimeError):  # in a page with another array
            cuda.hostRegister(where, whole.nbytes, 0)
            self._pinned.add(where)
            weakref.finalize(whole, self._release, where).atexit = False

    def _release(self, where: int) -> None:
        cuda.hostUnregister(where)
        self._pinned.discard(where)

    def bind(self, kernel: str, groups: int, *arguments: Any) -> Launch:
        start = self._module.get_function(kernel)
        grid = (groups,)
        block = (THREADS,)
        return lambda *numbers: start(grid, block, (*arguments, *map(np.float64, numbers)))

    def finish(self) -> None:
        self._stream.synchronize()


class SparseCG:
    """CuPy's own conjugate gradients, for comparison: K (n, n) in compressed rows, f and inverse (n,)."""

    def __init__(self, K: Any, f: F64, inverse: F64 | None) -> None:
        from cupyx.scipy.sparse import csr_matrix
        from cupyx.scipy.sparse.linalg import LinearOperator, cg

        self.library = f"CuPy {cupy.__version__}"
        self._cg = cg
        self._rtol = "rtol" if "rtol" in inspect.signature(cg).parameters else "tol"  # before CuPy 14
        self._K = csr_matrix(K)
        self._f = cupy.asarray(f)
        self._M = None
        if inverse is not None:
            there = cupy.asarray(inverse)
            self._M = LinearOperator(K.shape, matvec=lambda r: there * r, dtype=np.float64)
        self._finish = cupy.cuda.get_current_stream().synchronize
        self._finish()

    def solve(self, tolerance: float, limit: int) -> tuple[Any, int]:
        """(x on the device, iterations) from zero, when the device has finished."""
        done: list[None] = []
        stop = {self._rtol: tolerance, "atol": 0.0, "maxiter": limit}
        x, _ = self._cg(self._K, self._f, M=self._M, callback=lambda _: done.append(None), **stop)
        self._finish()
        return x, len(done)
