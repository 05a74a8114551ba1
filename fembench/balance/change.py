"""Emulated speeds that change while a job runs (SYNTHETIC): "100:1,0.33,1,1;300:1,1,1,1"."""

from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.machine.emulate import StretchingTracer, parse_speeds, sleep_until
from fembench.timing.tracer import TracerLike


class Change(NamedTuple):
    """From iteration `at` of every solve on the ranks have these speeds."""

    at: int
    speeds: tuple[float, ...]


def parse_changes(text: str, start: tuple[float, ...]) -> tuple[Change, ...]:
    """The changes by iteration, after the speeds `start`. Raises InputError; no rank may get faster than at
    the start, for its tracer stretches what another one has stretched already."""
    changes = []
    for word in filter(None, text.split(";")):
        at, colon, speeds = word.partition(":")
        if not (colon and at.strip().isdigit()):
            raise InputError(f"emulate_change '{text}': expected ITERATION:SPEEDS, as in 100:1,0.33")
        known = parse_speeds(speeds.strip(), len(start))
        if any(new > old for new, old in zip(known, start)):
            raise InputError(
                f"emulate_change '{text}': a rank gets faster than emulate says; lower its start"
            )
        changes.append(Change(int(at), known))
    if not changes:
        return ()
    return (Change(0, start), *sorted(changes))


class ChangingTracer(StretchingTracer):
    """Stretches compute phases by what holds at this iteration."""

    def __init__(self, tracer: TracerLike, changes: tuple[Change, ...], rank: int, dilate: float) -> None:
        super().__init__(tracer, max(1.0, dilate / changes[0].speeds[rank]), sleep_until)
        self._factors = {c.at: max(1.0, dilate / c.speeds[rank]) for c in changes}

    def at(self, iteration: int) -> None:
        """Iteration `iteration` has been done, the next begins."""
        factor = self._factors.get(iteration)
        if factor is not None:
            self._factor = factor
