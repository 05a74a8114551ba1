"""Signals to end become an exception, so that ranks are ended and folders tidied up.

Python drops an exception that a signal raises inside a destructor or while it forks.
Code that waits for long therefore asks `raise_if_asked` now and then.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

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
