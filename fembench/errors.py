"""The exceptions of `import fembench`: each is a FembenchError and has one line for the user."""

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
