"""Exceptions. Each carries one line for the user: what, where, what was expected.

Signals to end become an exception as well, so that ranks are ended and folders tidied up.
Python drops an exception that a signal raises inside a destructor or while it forks.
Code that waits for long therefore asks `raise_if_asked` now and then.
"""

import contextlib
import os
import re
import signal
import threading
from collections.abc import Collection, Iterable, Iterator

LONGEST = 800  # characters of a message


class FembenchError(Exception):
    """Base of all exceptions that fembench raises on purpose."""


class InputError(FembenchError):
    """Wrong input: the command line prints one line and exits with status 2.

    The message is kept to one line of moderate length, whatever it quotes.
    """

    def __init__(self, message: object) -> None:
        super().__init__(
            shown(message, LONGEST) if "\n" in str(message) or len(str(message)) > LONGEST else message
        )


def shown(text: object, most: int = 60) -> str:
    """A text to quote in a message: on one line, cut after `most` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[:most]}…"


def closest(word: str, known: Iterable[str], *, alike: float = 0.0) -> str:
    """The known name most like a word, for a message; "" if none is as similar as `alike`, from 0 to 1."""
    from difflib import get_close_matches  # slow to import, and needed for messages only

    return next(iter(get_close_matches(word, known, 1, alike)), "")


_KEY = re.compile(r"(?<![\w.\]])([a-z_]+) = (?:(true|false)\b|'([^'\s]+)')?")  # and its value
_OF_FILE = re.compile(r"\.\w+(:| \[\[)|^reference ")  # before a key in a file
_WANTED = re.compile(r"expected (\w+ = \S+ (and|or) )*$")  # before what is to be typed


@contextlib.contextmanager
def options_named(known: Collection[str]) -> Iterator[None]:
    """Errors name these options as they are typed: --per-node 3 for per_node = 3. Keys of a file stay."""

    def typed(found: re.Match[str]) -> str:
        option = f"--{found[1].replace('_', '-')}"
        before = found.string[: found.start()]
        if option not in known or (_OF_FILE.search(before) and not _WANTED.search(before)):
            return found[0]
        return option.replace("--", "--no-") * (found[2] == "false") or f"{option} {found[3] or ''}"

    try:
        yield
    except FembenchError as error:
        error.args = (_KEY.sub(typed, str(error)),)
        raise


class UnsharedError(InputError):
    """A host of the job does not see the folder of the results: no job in it can succeed."""


class CopyError(InputError):
    """A launcher started copies of a command that starts ranks. The first copy says so."""

    def __init__(self, message: object, *, first: bool = True) -> None:
        super().__init__(message)
        self.first = first


class BreakdownError(FembenchError):
    """An operator or preconditioner turned out not to be positive definite."""


class AllocationLostError(FembenchError):
    """The batch system ended the job while it ran: nothing further can be started."""


class RunFailedError(FembenchError):
    """A run under MPI ended without a record: crashed, was killed, or ran out of time."""

    def __init__(self, message: object, output: str = "") -> None:
        super().__init__(message)
        self.output = output  # last lines that a crashed job printed; "" after another end


_raised: list[BaseException] = []  # by a signal, inside signals_raised


class EndedError(BaseException):
    """A signal that asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def raise_if_asked() -> None:
    """Raise what a signal has raised, which may have been dropped."""
    if _raised:
        raise _raised[0]


@contextlib.contextmanager
def signals_raised() -> Iterator[None]:
    """SIGTERM, SIGHUP: EndedError; SIGINT: KeyboardInterrupt, once; nohup is kept."""

    process = os.getpid()

    def end(number: int, frame: object) -> None:
        if os.getpid() != process:  # forked: it has nothing to tidy up
            os._exit(128 + number)
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # a second one must not stop the tidying
        _raised.append(KeyboardInterrupt() if number == signal.SIGINT else EndedError(number))
        raise_if_asked()

    here = threading.current_thread() is threading.main_thread()
    asked = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT) if here}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {each: handler for each, handler in asked.items() if handler in usual}
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        signalled = _raised[:1]
        _raised.clear()
        for each, handler in before.items():
            signal.signal(each, handler)
        if signalled:  # also if Python or other code replaced it
            raise signalled[0]
