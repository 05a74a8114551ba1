"""The devices of a host, and the one that a rank takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec

from fembench.base.errors import InputError
from fembench.device.device import Device
from fembench.device.runtime import DeviceName, Runtime

Open = Callable[[], Runtime]
HOW = "pip install cupy-cuda13x (NVIDIA; cupy-cuda12x for CUDA 12) or pyopencl (other devices)"


def open_device(kind: str, number: int) -> Device:
    """Device `number` of a kind, counted again from the first beyond the last.

    gpu: NVIDIA's by CuPy, where it sees one, else GPUs of OpenCL; opencl: all devices of
    OpenCL, processors last. Raises InputError.
    """
    found = _devices(kind)
    if not found:
        raise InputError(f"device '{kind}': {_nothing(kind)}")
    said, start = found[number % len(found)]
    try:
        return Device(start(), said)
    except Exception as error:  # whatever the driver, the compiler or the library raises
        line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"device '{kind}': {said.name} cannot be used: {line}") from error


def seen() -> list[DeviceName]:
    """Every device that a rank could take here."""
    return [name for kind in ("gpu", "opencl") for name, _ in _devices(kind)]


def _devices(kind: str) -> list[tuple[DeviceName, Open]]:
    """A library that cannot be loaded, as without its driver, has no devices."""
    found: list[tuple[DeviceName, Open]] = []
    if kind == "gpu" and find_spec("cupy"):
        with suppress(ImportError):
            from fembench.device import cuda

            found = [(cuda.named(k), _opener(cuda.CudaRuntime, k)) for k in range(cuda.count())]
    if not found and find_spec("pyopencl"):
        with suppress(ImportError):
            from fembench.device import opencl

            there = opencl.devices(gpus=kind == "gpu")
            found = [
                (opencl.named(device, k), _opener(opencl.OpenCLRuntime, device))
                for k, device in enumerate(there)
            ]
    return found


def _opener(make: Callable[..., Runtime], which: object) -> Open:
    return lambda: make(which)


def _nothing(kind: str) -> str:
    """Why no device of a kind is there, and what to do."""
    useful = [name for name in libraries() if kind == "gpu" or name == "pyopencl"]
    if not useful:
        return f"no library for it is installed: {HOW}"
    none = "no GPU" if kind == "gpu" else "no device"
    return f"{' or '.join(useful)} finds {none} on this host; fembench doctor lists what it has"


def libraries() -> list[str]:
    """Those that are installed, by their Python names."""
    return [name for name in ("cupy", "pyopencl") if find_spec(name)]
