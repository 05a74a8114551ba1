"""The devices of a host, and the one that a rank takes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from fembench.base.commands import PIP
from fembench.base.errors import InputError
from fembench.device.device import Device
from fembench.device.runtime import DeviceName, Runtime

Open = Callable[[], Runtime]
Found = list[tuple[DeviceName, Open]]
KINDS = ("opencl", "gpu")
HOW = f"{PIP} cupy-cuda13x (NVIDIA; cupy-cuda12x for CUDA 12) or pyopencl (other devices)"
REPAIR = "install its driver and the libraries that it names, or another version of it"


def open_device(kind: str, number: int) -> Device:
    """Device `number` of a kind, counted again from the first beyond the last.

    gpu: NVIDIA's by CuPy, where it sees one, else GPUs of OpenCL; opencl: all devices of
    OpenCL, processors last. Raises InputError.
    """
    found, broken = _devices(kind)
    if not found:
        raise InputError(f"device '{kind}': {_why(kind, broken)}")
    said, start = found[number % len(found)]
    try:
        return Device(start(), said)
    except Exception as error:  # whatever the driver, the compiler or the library raises
        raise InputError(f"device '{kind}': {_refusal(said.name, error)}") from error


def seen() -> dict[DeviceName, str]:
    """Every device that a rank could take here, with its kind."""
    return {name: kind for kind in KINDS for name, _ in _devices(kind)[0]}


def unusable() -> list[str]:
    """Why installed libraries cannot be used, a line each."""
    return list(dict.fromkeys(line for kind in KINDS for line in _devices(kind)[1]))


def lack(kind: str) -> str:
    """Why no device of a kind can be used, and what to do; "" if one is there."""
    found, broken = _devices(kind)
    return "" if found else _why(kind, broken)


def _why(kind: str, broken: list[str]) -> str:
    return "; ".join(broken) or _nothing(kind)


def _devices(kind: str) -> tuple[Found, list[str]]:
    """(those of the first library that sees any, why libraries before it cannot be used)."""
    broken: list[str] = []
    for library in libraries(kind):
        try:
            if found := _by_cupy() if library == "cupy" else _by_pyopencl(gpus=kind == "gpu"):
                return found, broken
        except Exception as error:  # whatever a library raises without its driver
            broken.append(_refusal(library, error))
    return [], broken


def _by_cupy() -> Found:
    from fembench.device import cuda

    return [(cuda.named(k), _opener(cuda.CudaRuntime, k)) for k in range(cuda.count())]


def _by_pyopencl(*, gpus: bool) -> Found:
    from fembench.device import opencl

    there = enumerate(opencl.devices(gpus=gpus))
    return [(opencl.named(device, k), _opener(opencl.OpenCLRuntime, device)) for k, device in there]


def _opener(make: Callable[..., Runtime], which: object) -> Open:
    return lambda: make(which)


def _refusal(what: str, error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return f"{what} cannot be used: {line or type(error).__name__}"


def _nothing(kind: str) -> str:
    """Why no device of a kind is there, and what to do."""
    useful = libraries(kind)
    if not useful:
        return f"no library for it is installed: {HOW if kind == 'gpu' else f'{PIP} pyopencl'}"
    none = "no GPU" if kind == "gpu" else "no device"
    return f"{' or '.join(useful)} finds {none} on this host; fembench doctor lists what it has"


def libraries(kind: str = "gpu") -> list[str]:
    """Those installed for devices of a kind, by their Python names."""
    names = ("cupy", "pyopencl") if kind == "gpu" else ("pyopencl",)
    return [name for name in names if find_spec(name)]
