"""`kernels`: the compiled module. `kernels.ISA`, its instruction set, is recorded."""

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fembench.base.errors import InputError
from fembench.base.plugins import compiled_module


def _loaded() -> ModuleType:
    module = compiled_module("fembench.kernels._compiled")
    if module is None:
        raise InputError(
            f"the kernels are not compiled in {Path(__file__).parent}, and nothing is solved or measured "
            "without them: install a C compiler and Python's headers, then fembench again (./run_bench.sh "
            "doctor), or a wheel of it; if it is installed, start Python outside of this folder"
        )
    return module


if TYPE_CHECKING:
    from fembench.kernels import _compiled as kernels
else:
    kernels = _loaded()


def kernels_of(v: Any) -> Any:
    """The kernels for a vector: the compiled ones, or those of its device."""
    return getattr(v, "kernels", kernels)
