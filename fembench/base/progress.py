"""Progress: told to a caller, or shown on stderr: lines that stay, one for waiting.

with working("tune: equal shares") as now:      # a terminal shows it after two seconds, with its time
    progress("[1/40] m1: 2.1 s")                # a line that stays, on a terminal or in a file
    now.tell("set 3 of about 12")               # shown after the time, until something else is told
    now.text = "tune: weighted shares"
"""

import contextlib
import functools
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator

from fembench.base.units import clock

PATIENCE = 2.0  # seconds of work before its line is shown
EVERY = 1.0  # seconds between two looks at the clock
SILENCE = 5.0  # seconds without a line, off a terminal; then twice as long, and so on
LONGEST_SILENCE = 60.0
_LOCK = threading.RLock()
_shown = False  # whether a line stands on the terminal that is not to stay


class _Told(threading.local):
    """Who is told instead, the innermost last, by calls in this thread; None: nobody."""

    def __init__(self) -> None:
        self.by_calls: list[Callable[[str], None] | None] = []


_told = _Told()
_doing: list["Doing"] = []  # the innermost last, whether shown or not


def current() -> "Doing | None":
    """What this process is doing, the innermost activity."""
    return next(iter(_doing[-1:]), None)


def progress(text: str) -> None:
    """One line of progress, at once."""
    if _told.by_calls:
        if tell := _told.by_calls[-1]:
            tell(text)
    elif sys.stderr:
        with _LOCK:
            _erase()
            print(text, file=sys.stderr, flush=True)


def heard() -> bool:
    """Whether progress reaches anybody."""
    return not _told.by_calls or _told.by_calls[-1] is not None


@contextlib.contextmanager
def telling(tell: Callable[[str], None] | None) -> Iterator[None]:
    """Send progress to this function or, with None, to nobody; `progress` changes nothing.

    Of this thread alone: calls in other threads have their own.
    """
    if tell is progress:
        yield
        return
    _told.by_calls.append(tell)
    try:
        yield
    finally:
        _told.by_calls.pop()


class Doing:
    """The current activity; a new text restarts its clock and ends its stage."""

    _due: float  # seconds after which its line is told

    def __init__(self, text: str, *, told: bool = False) -> None:
        """`told`: its line goes to who is told, now and then, whenever a stage is told."""
        self._is_told = told
        self.text = text

    def tell(self, stage: str) -> None:
        """Say how far it is; on a narrow terminal, what follows '; ' gives way first, then
        the iteration."""
        self._stage = stage
        if self._is_told and (passed := time.monotonic() - self.began) >= self._due:
            self._due = passed + min(passed, LONGEST_SILENCE)
            progress(self.line())

    @property
    def stage(self) -> str:
        """How far it is; "" if that is not known."""
        return self._stage

    @property
    def text(self) -> str:
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text = text
        self._stage = ""
        self.began = time.monotonic()
        self._due = SILENCE

    def line(self, width: int | None = None) -> str:
        """'run: m on 2 ranks … 0:05, set 3 of about 12'; at this width, with less of the text."""
        passed = clock(int(time.monotonic() - self.began))
        first = self._stage.partition("; ")[0]
        plain = re.sub(r" \([^()]*\)$", "", self._stage)
        shorter = first.partition(", iteration ")[0]
        stages = list(dict.fromkeys([self._stage, plain, first, shorter]))
        rests = [f" … {', '.join(filter(None, [passed, stage]))}" for stage in stages]
        if not width:
            return self.text + rests[0]
        rest = next((one for one in rests if len(self.text + one) <= width), rests[-1])
        return (self.text[: max(0, width - len(rest))] + rest)[:width]


@contextlib.contextmanager
def working(text: str, *, patience: float = PATIENCE, every: float = EVERY) -> Iterator[Doing]:
    """Show what takes over `patience` seconds, with its time, on a line erased at the end.

    Off a terminal, the lines stay, and come ever more seldom. Who is told instead gets
    them in this thread, when a stage is told.
    """
    work = Doing(text, told=bool(_told.by_calls))
    _doing.append(work)
    try:
        if _told.by_calls or not sys.stderr:
            yield work
        else:
            with _shown_while(work, patience, every):
                yield work
    finally:
        _doing.remove(work)


@contextlib.contextmanager
def _shown_while(work: Doing, patience: float, every: float) -> Iterator[None]:
    ended = threading.Event()
    tick = functools.partial(_tick, patience=patience) if sys.stderr.isatty() else _log
    ticker = threading.Thread(target=tick, args=(work, ended, every), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
        with _LOCK:
            _erase()


def _tick(work: Doing, ended: threading.Event, every: float, patience: float) -> None:
    while not ended.wait(every):
        if time.monotonic() - work.began >= patience:
            with _LOCK:
                _show(work)


def _log(work: Doing, ended: threading.Event, every: float) -> None:
    began, due = work.began, SILENCE
    while not ended.wait(every):
        if work.began != began:
            began, due = work.began, SILENCE
        if time.monotonic() - began >= due:
            progress(work.line())
            due += min(due, LONGEST_SILENCE)


def _show(work: Doing) -> None:
    global _shown
    import shutil  # slow to import, and ranks have no terminal

    sys.stderr.write(f"\r{work.line(shutil.get_terminal_size().columns - 1)}\x1b[K")
    sys.stderr.flush()
    _shown = True


def _erase() -> None:
    global _shown
    if _shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
    _shown = False
