"""Progress on stderr: lines that stay, and on a terminal one line that says what takes its time.

with working("tune: equal shares") as now:      # a terminal shows it after two seconds, with its time
    progress("[1/40] m1: 2.1 s")                # a line that stays, on a terminal or in a file
    now.text = "tune: weighted shares"
"""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator

PATIENCE = 2.0  # seconds of work before its line is shown
EVERY = 1.0  # seconds between two looks at the clock
_LOCK = threading.RLock()
_shown = False  # whether a line stands on the terminal that is not to stay


def progress(text: str) -> None:
    """One line of progress on stderr, at once."""
    if sys.stderr:
        with _LOCK:
            _erase()
            print(text, file=sys.stderr, flush=True)


class Doing:
    """The current activity; a new text restarts its clock."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def text(self) -> str:
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text, self.began = text, time.monotonic()


@contextlib.contextmanager
def working(text: str, *, patience: float = PATIENCE, every: float = EVERY) -> Iterator[Doing]:
    """Show on a terminal what has taken over `patience` seconds, and its time; erased at the end."""
    work = Doing(text)
    if not (sys.stderr and sys.stderr.isatty()):
        yield work
        return
    ended = threading.Event()
    ticker = threading.Thread(target=_tick, args=(work, ended, patience, every), daemon=True)
    ticker.start()
    try:
        yield work
    finally:
        ended.set()
        ticker.join()
        with _LOCK:
            _erase()


def _tick(work: Doing, ended: threading.Event, patience: float, every: float) -> None:
    while not ended.wait(every):
        passed = time.monotonic() - work.began
        if passed >= patience:
            with _LOCK:
                _show(f"{work.text} … {int(passed) // 60}:{int(passed) % 60:02d}")


def _show(text: str) -> None:
    global _shown
    sys.stderr.write(f"\r{text[: shutil.get_terminal_size().columns - 1]}\x1b[K")
    sys.stderr.flush()
    _shown = True


def _erase() -> None:
    global _shown
    if _shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
    _shown = False
