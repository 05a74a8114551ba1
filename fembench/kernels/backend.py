"""`kernels`: the compiled module, or its reference twin if nothing was compiled.

FEMBENCH_KERNELS=reference selects the twin. `kernels.NAME` ("compiled" or "reference") and
`kernels.ISA` (the instruction set in use) go into every record.
"""

import importlib
import os
import warnings
from types import ModuleType
from typing import TYPE_CHECKING

from fembench.base.errors import InputError


def _choose() -> ModuleType:
    wanted = os.environ.get("FEMBENCH_KERNELS", "compiled")
    if wanted not in ("compiled", "reference"):
        raise InputError(f"FEMBENCH_KERNELS={wanted}: expected 'compiled' or 'reference'")
    if wanted == "compiled":
        try:
            return importlib.import_module("fembench.kernels._compiled")
        except ImportError as error:
            warnings.warn(
                f"the compiled kernels are missing ({error}); numpy is used instead, which is slow",
                stacklevel=2,
            )
    return importlib.import_module("fembench.kernels.reference")


if TYPE_CHECKING:  # the twin has the signatures of the compiled module (tests/kernels)
    from fembench.kernels import reference as kernels
else:
    kernels = _choose()
