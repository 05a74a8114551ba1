"""Emulated speeds that change while a job runs (SYNTHETIC): "100:1,0.33,1,1;300:1,1,1,1"."""

import re
from typing import NamedTuple

from fembench.base.errors import InputError, shown
from fembench.synthetic.emulate import StretchingTracer, parse_speeds, sleep_until
from fembench.timing.tracer import TracerLike


class Change(NamedTuple):
    """From iteration `at` of every solve on the ranks have these speeds."""

    at: int
    speeds: tuple[float, ...]


def parse_changes(text: str, start: tuple[float, ...]) -> tuple[Change, ...]:
    """The changes by iteration, after the speeds `start`. Raises InputError."""
    changes: list[Change] = []
    for word in filter(None, text.split(";")):
        at, colon, speeds = word.partition(":")
        if not re.fullmatch(r"\s*[0-9]{1,9}\s*", at) or not colon:
            raise InputError(f"emulate_change '{shown(text)}': expected ITERATION:SPEEDS, as in 100:1,0.33")
        if any(change.at == int(at) for change in changes):
            raise InputError(f"emulate_change '{shown(text)}': iteration {int(at)} is given twice")
        changes.append(Change(int(at), parse_speeds(speeds.strip(), len(start))))
    if not changes:
        return ()
    return (Change(0, start), *sorted(changes))


def changing(tracer: TracerLike, changes: tuple[Change, ...]) -> TracerLike:
    """The tracer, where speeds change one that can stretch phases."""
    stretches = isinstance(tracer, StretchingTracer) or not changes
    return tracer if stretches else StretchingTracer(tracer, 1.0, sleep_until)


def follow(tracer: TracerLike, changes: tuple[Change, ...], rank: int, dilate: float, iteration: int) -> None:
    """Iteration `iteration` has been done: the rank goes on at the speed that it has from here on."""
    for change in changes:
        if change.at == iteration and isinstance(tracer, StretchingTracer):
            tracer.slow_down(max(1.0, dilate / change.speeds[rank]))
