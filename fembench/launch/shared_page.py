"""A page of memory by which rank 0 shows how far it is inside a set, while its clock runs.

The loop of its solver leaves iteration and residual there; the process that started the
job looks once a second. Nothing is printed or sent inside a timed span, and a solve of
minutes shows its progress from the first second.

The page is a file in memory (memfd), found through /proc, so nothing of it stays. On
another host, or where ranks see other process numbers, there is none: then progress
comes between sets alone (bench/measure.py).
"""

import contextlib
import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fembench.base.units import clock
from fembench.launch.job import PAGE, Tell

LENGTH = mmap.PAGESIZE
NUMBER, ITERATIONS, SETS, ABOUT, BEGIN, WARMUPS = range(
    3, 9
)  # words; iteration, residual and target come first


class PageAddress(msgspec.Struct, frozen=True):
    """Where the page of a job is."""

    process: int  # that started the job
    file: int  # of that process
    name: str  # of the file: no other has it


class Page:
    """Numbers in memory that two processes may share."""

    def __init__(self, memory: mmap.mmap | None = None) -> None:
        """Without `memory`: nobody looks."""
        self.shared = memory is not None
        self.words = memoryview(memory or bytearray(LENGTH)).cast("d")

    def show(self, iteration: int, residual: float, target: float) -> None:
        """How far the solve of the set is; iteration -1: it does not run."""
        self.words[0], self.words[1], self.words[2] = iteration, residual, target

    def turn_to(self, number: int, iterations: int) -> None:
        """Show that a set begins: its number (0: none is left) and its iterations (0: not known)."""
        self.words[ITERATIONS] = iterations
        self.words[NUMBER] = number

    def expect(self, sets: int, about: bool, begin: float, warmups: int = 0) -> None:
        """So many sets with warm-ups, or `about` as many, since a moment of time.monotonic()."""
        for word, value in ((SETS, sets), (ABOUT, about), (BEGIN, begin), (WARMUPS, warmups)):
            self.words[word] = value

    def line(self) -> str:
        """'set 2 of 12, 1:05 left, iteration 340 of 900; residual 3.1e-04'; "" outside the sets."""
        iteration, residual, target, number, iterations, sets, about, begin, warmups = map(
            float, self.words[:9]
        )
        if not number:
            return ""
        said = place(number, max(sets, number), warmups, bool(about))
        done = number - 1
        if iteration > 0 and iterations:
            done += min(1.0, iteration / iterations)
        if done > 0:
            said += f", {clock((max(sets, number) - done) * (time.monotonic() - begin) / done)} left"
        if iteration > 0:
            said += f", iteration {iteration:.0f}" + (f" of {iterations:.0f}" if iterations else "")
            said += f"; residual {residual:.1e}" + (f" (ends at {target:.1e})" if target else "")
        return said


def place(number: float, sets: float, warmups: float, about: bool) -> str:
    """'warm-up 2 of 2', then 'set 1 of about 10': of 12 sets in all."""
    if number <= warmups:
        return f"warm-up {number:.0f} of {warmups:.0f}"
    return f"set {number - warmups:.0f} of {'about ' if about else ''}{sets - warmups:.0f}"


class Teller:
    """Appends lines of progress to a file of the job, and has its page."""

    def __init__(self, file: Path, page: Page) -> None:
        self._file, self.page = file, page

    def __call__(self, line: str) -> None:
        with open(self._file, "a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")


def page_of(tell: Tell) -> Page:
    """The page that comes with `tell`, or one at which nobody looks."""
    return tell.page if isinstance(tell, Teller) else Page()


@contextlib.contextmanager
def shared_page(folder: Path) -> Iterator[Page]:
    """A page for the job in this folder; at which nobody looks where that is impossible."""
    name = f"fembench-{os.urandom(8).hex()}"
    try:
        file = os.memfd_create(name)  # Linux
    except (AttributeError, OSError):
        yield Page()
        return
    try:
        os.ftruncate(file, LENGTH)
        page = Page(mmap.mmap(file, LENGTH))
        (folder / PAGE).write_bytes(msgspec.json.encode(PageAddress(os.getpid(), file, name)))
        yield page
    finally:
        os.close(file)


def page_in(folder: Path) -> Page:
    """The page of the job in this folder, if this process can have it."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        at = msgspec.json.decode((folder / PAGE).read_bytes(), type=PageAddress)
        path = f"/proc/{at.process}/fd/{at.file}"
        if at.name in os.readlink(path):  # not a file of another process with this number
            file = os.open(path, os.O_RDWR)
            try:
                return Page(mmap.mmap(file, LENGTH))
            finally:
                os.close(file)
    return Page()
