"""How far a run is: which set comes next, of about how many, and the time that is left."""

import math
import time
from collections.abc import Sequence

from fembench.base.units import clock
from fembench.launch.job import Tell
from fembench.records.case_fields import CaseEffort
from fembench.stats.summary import precision

EVERY = 1.0  # seconds between two lines, at least
MOST_ADDED = 10_000  # timed sets, unless more are asked for by number: a record holds every set


def silent(line: str) -> None:
    """Tell nobody."""


class HowFar:
    """Tells how far the sets are, now and then."""

    def __init__(self, effort: CaseEffort, tell: Tell) -> None:
        self._effort, self._tell = effort, tell
        self._begin = self._told = time.monotonic()

    def say(self, done: int, spent: Sequence[float], residual: float) -> None:
        """Tell it after `done` sets, of which the timed ones spent these seconds in CG."""
        now, effort = time.monotonic(), self._effort
        if now < self._told + EVERY:
            return
        self._told = now
        total = max(done + 1, effort.warmups + expected_sets(effort, spent))
        about = "about " if effort.seconds or effort.precision else ""
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
