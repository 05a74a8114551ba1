"""What a device room asks of a runtime, which is CuPy (cuda.py) or pyopencl (opencl.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64

SOURCE = Path(__file__).with_name("kernels.cl")
THREADS = 128  # of a group
LANES = 16  # threads that work on one row of the product
GROUPS_PER_UNIT = 8  # groups that are started for each multiprocessor, at most
DEFINES = (f"-DTHREADS={THREADS}", f"-DLANES={LANES}")

Launch = Callable[..., None]  # takes the numbers that follow the bound arguments


class DeviceName(NamedTuple):
    """What a record says of a device."""

    name: str
    memory_bytes: int
    driver: str
    compiler: str  # of the kernels, with its version
    place: str  # on its host: of NVIDIA's the PCI address, whichever of them this process sees


class Runtime(Protocol):
    """One device with compiled kernels; it works in order, and `finish` waits."""

    units: int  # multiprocessors

    def empty(self, n: int, dtype: Any = np.float64) -> Any:
        """A buffer of n entries."""

    def write(self, buffer: Any, host: NDArray) -> None:
        """Copy from the host, which may change afterwards."""

    def read(self, buffer: Any, host: NDArray) -> None:
        """Copy to the host, after all that was launched before."""

    def pinned(self, n: int) -> F64:
        """(n,) doubles of the host that the device reads and writes fastest."""

    def pin(self, host: NDArray) -> None:
        """Make transfers of an array as fast as those of `pinned`."""

    def bind(self, kernel: str, groups: int, *arguments: Any) -> Launch:
        """A function that starts a kernel; arguments are NumPy integers and buffers."""

    def finish(self) -> None:
        """Wait until all that was launched is done."""
