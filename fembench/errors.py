"""The exceptions of `import fembench`: each is a FembenchError, with one line to print."""

from fembench.base.errors import (
    AllocationLostError,
    BreakdownError,
    FembenchError,
    InputError,
    RunFailedError,
    UnsharedError,
)

__all__ = [
    "AllocationLostError",
    "BreakdownError",
    "FembenchError",
    "InputError",
    "RunFailedError",
    "UnsharedError",
]
