"""Exceptions. Each carries one line for the user: what, where, what was expected."""


class FembenchError(Exception):
    """Base of all that fembench raises on purpose."""


class InputError(FembenchError):
    """Something the user gave is wrong: the command line answers one line and exit status 2."""


def shown(text: object, most: int = 60) -> str:
    """A text that is quoted in a message: on one line, and cut after `most` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[:most]}…"


class BreakdownError(FembenchError):
    """An operator or preconditioner turned out not to be positive definite."""


class RunFailedError(FembenchError):
    """A run under MPI ended without a record: crashed, was killed, or ran out of time."""
