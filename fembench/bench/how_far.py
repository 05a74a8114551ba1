"""How far a run is: which set comes next, of about how many, and the time that is left.

Between sets, in lines; inside a set, on the page of the job (launch/shared_page.py),
where the solver of rank 0 shows its iteration.
"""

import math
import time
from collections.abc import Sequence

from fembench.base.units import clock
from fembench.launch.job import Tell
from fembench.launch.shared_page import page_of
from fembench.records.case_fields import CaseEffort
from fembench.stats.summary import precision

EVERY = 1.0  # seconds between two lines, at least
MOST_ADDED = 10_000  # timed sets, unless more are asked for by number: a record holds every set


def silent(line: str) -> None:
    """Tell nobody."""


class HowFar:
    """Tells how far the sets are, now and then, and shows it on the page of the job."""

    def __init__(self, effort: CaseEffort, tell: Tell, iterations: int = 0) -> None:
        """`iterations`: of a set; 0: not known."""
        self._effort, self._tell, self.page = effort, tell, page_of(tell)
        self._about = bool(effort.seconds or effort.precision)
        self._begin = self._told = time.monotonic()
        self.page.expect(effort.warmups + expected_sets(effort, ()), self._about, self._begin)
        self.page.turn_to(1, iterations)

    def end(self) -> None:
        """No set comes any more."""
        self.page.turn_to(0, 0)

    def say(self, done: int, spent: Sequence[float], residual: float, iterations: int = 0) -> None:
        """Tell it after `done` sets, of which the timed ones spent these seconds in CG.

        `iterations`: of each set.
        """
        now, effort = time.monotonic(), self._effort
        self.page.turn_to(done + 1, iterations)
        if now < self._told + EVERY:
            return
        self._told = now
        total = max(done + 1, effort.warmups + expected_sets(effort, spent))
        self.page.expect(total, self._about, self._begin)
        about = "about " if self._about else ""
        left = clock((total - done) * (now - self._begin) / done)
        self._tell(f"set {done + 1} of {about}{total}, residual {residual:.1e}, {left} left")


def expected_sets(effort: CaseEffort, spent: Sequence[float]) -> int:
    """How many timed sets there will be, from the seconds of CG in the first of them.

    The interval of a median shrinks as the square root of their number.
    """
    least = max(effort.sets, 1)
    if not sum(spent) or not (effort.seconds or effort.precision):
        return least
    each = sum(spent) / len(spent)
    needed = max(least, math.ceil(effort.seconds / each))
    reached = 100 * precision(spent) / effort.precision if effort.precision else 0.0
    if math.isfinite(reached):
        most = max(needed, math.ceil(effort.max_seconds / each))
        needed = min(most, max(needed, math.ceil(len(spent) * reached**2)))
    return max(least, min(needed, MOST_ADDED))
