"""The runtime of OpenCL devices: pyopencl compiles and starts the kernels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.device.runtime import DEFINES, SOURCE, THREADS, DeviceName, Launch

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")  # ranks would wait for each other's lock

import pyopencl as cl


def devices(*, gpus: bool) -> list[Any]:
    """The devices with double precision, GPUs first; `gpus`: only these."""
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # no driver is installed
        return []
    able = [device for device in found if device.double_fp_config]
    apart = [device for device in able if not device.type & cl.device_type.CPU]
    return apart if gpus else apart + [device for device in able if device not in apart]


def named(device: Any, place: int) -> DeviceName:
    """What a device is; its place among those of OpenCL."""
    return DeviceName(
        device.name.strip(),
        int(device.global_mem_size),
        f"{device.platform.name} {device.driver_version}",
        f"{device.version.strip()} by pyopencl {cl.VERSION_TEXT}",
        str(place),
    )


def _for_processor(device: Any) -> list[str]:
    return ["-DPROCESSOR"] if device.type & cl.device_type.CPU else []


class OpenCLRuntime:
    """A device of OpenCL, with one queue."""

    def __init__(self, device: Any) -> None:
        self.units = int(device.max_compute_units)
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)
        self._program = cl.Program(self._context, SOURCE.read_text()).build(
            [*DEFINES, *_for_processor(device)]
        )

    def empty(self, n: int, dtype: Any = np.float64) -> Any:
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(n, 1) * np.dtype(dtype).itemsize)

    def write(self, buffer: Any, host: NDArray) -> None:
        if host.nbytes:
            cl.enqueue_copy(self._queue, buffer, host)

    def read(self, buffer: Any, host: NDArray) -> None:
        if host.nbytes:
            cl.enqueue_copy(self._queue, host, buffer)
        self.finish()

    def pinned(self, n: int) -> F64:
        return np.empty(n)

    def pin(self, host: NDArray) -> None:
        """The driver decides how it copies."""

    def bind(self, kernel: str, groups: int, *arguments: Any) -> Launch:
        start = cl.Kernel(self._program, kernel)
        for place, argument in enumerate(arguments):
            start.set_arg(place, argument)
        grid, block = (groups * THREADS,), (THREADS,)

        def launch(*numbers: float) -> None:
            for place, number in enumerate(numbers, len(arguments)):  # held here, as OpenCL does not
                start.set_arg(place, np.float64(number))
            cl.enqueue_nd_range_kernel(self._queue, start, grid, block)

        return launch

    def finish(self) -> None:
        self._queue.finish()
