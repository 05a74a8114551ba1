"""Exceptions. Each carries one line for the user: what, where, what was expected."""


class FembenchError(Exception):
    """Base of all that fembench raises on purpose."""


class InputError(FembenchError):
    """Something the user gave is wrong: the command line answers one line and exit status 2."""


class BreakdownError(FembenchError):
    """An operator or preconditioner turned out not to be positive definite."""


class RunFailedError(FembenchError):
    """A run under MPI ended without a record: crashed, was killed, or ran out of time."""
