"""`kernels`: the compiled module, or its reference twin if nothing was compiled.

A compiled module that this host cannot load is an error: the twin would be slow without anybody's wish.
FEMBENCH_KERNELS=reference selects the twin. `kernels.NAME` ("compiled" or "reference") and
`kernels.ISA` (the instruction set in use) go into every record.
"""

import importlib
import os
import warnings
from types import ModuleType
from typing import TYPE_CHECKING

from fembench.base.compiled import compiled_module
from fembench.base.errors import InputError


def _choose() -> ModuleType:
    wanted = os.environ.get("FEMBENCH_KERNELS", "compiled")
    if wanted not in ("compiled", "reference"):
        raise InputError(f"FEMBENCH_KERNELS={wanted}: expected 'compiled' or 'reference'")
    if wanted == "compiled":
        module = compiled_module("fembench.kernels._compiled")
        if module is not None:
            return module
        warnings.warn("the kernels are not compiled; numpy is used instead, which is slow", stacklevel=2)
    return importlib.import_module("fembench.kernels.reference")


if TYPE_CHECKING:  # the twin has the signatures of the compiled module (tests/kernels)
    from fembench.kernels import reference as kernels
else:
    kernels = _choose()
