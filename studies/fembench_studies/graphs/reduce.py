"""Smaller graphs of the same job (the reductions of Calzeta and de Souza 2008, 3.4, applied to events).

level 1   adjacent computing of one phase becomes one event          all times are preserved
level 2   also, exact repetitions become a loop                      all times are preserved
level 3   also, repetitions with different durations, as means       sums are preserved, single turns are not
"""

from collections.abc import Hashable, Iterator, Sequence
from statistics import fmean

import msgspec

from fembench.errors import InputError
from fembench.model.graph import Compute, Event, ExecutionGraph, Loop

LEVELS = (0, 1, 2, 3)


def reduced(graph: ExecutionGraph, level: int) -> ExecutionGraph:
    """The graph reduced to a level, 0 to 3. Raises InputError."""
    if level not in LEVELS:
        raise InputError(f"level {level}; expected 0 to 3")
    programs = [list(program) for program in graph.programs]
    if level >= 1:
        programs = [list(merged(program)) for program in programs]
    if level >= 2:
        programs = [fold(program, exact=level == 2) for program in programs]
    return msgspec.structs.replace(graph, programs=tuple(map(tuple, programs)))


def merged(program: Sequence[Event]) -> Iterator[Event]:
    """The program with adjacent computing of the same phase and unit merged."""
    open_event: Compute | None = None
    for event in program:
        if isinstance(event, Loop):
            event = Loop(event.turns, tuple(merged(event.body)))
        if isinstance(event, Compute) and open_event is not None and _alike(event, open_event):
            open_event = _sum(open_event, event)
            continue
        if open_event is not None:
            yield open_event
        open_event = event if isinstance(event, Compute) else None
        if open_event is None:
            yield event
    if open_event is not None:
        yield open_event


def _alike(a: Compute, b: Compute) -> bool:
    return (a.phase, a.unit) == (b.phase, b.unit)


def _sum(a: Compute, b: Compute) -> Compute:
    return Compute(a.phase, a.seconds + b.seconds, a.unit, a.work + b.work)


def fold(program: Sequence[Event], *, exact: bool) -> list[Event]:
    """The program with consecutive repetitions as loops, from left to right, the longest repetition first."""
    events = [Loop(e.turns, tuple(fold(e.body, exact=exact))) if isinstance(e, Loop) else e for e in program]
    keys = [_key(e, exact) for e in events]
    numbers = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    word = [numbers[key] for key in keys]
    out: list[Event] = []
    i = 0
    while i < len(events):
        period, repeats = _longest(word, i)
        if repeats < 2:
            out.append(events[i])
            i += 1
            continue
        turns = [events[i + k * period : i + (k + 1) * period] for k in range(repeats)]
        body = fold([_mean(column) for column in zip(*turns)], exact=exact)
        out.append(Loop(repeats, tuple(body)))
        i += repeats * period
    return out


def _longest(word: Sequence[int], i: int) -> tuple[int, int]:
    """(period, repeats) at i that cover the most events; (0, 0) without repetition."""
    best, covered = (0, 0), 0
    for period in range(1, (len(word) - i) // 2 + 1):
        if word[i] != word[i + period]:
            continue
        repeats = 1
        while word[i : i + period] == word[i + repeats * period : i + (repeats + 1) * period]:
            repeats += 1
        if repeats > 1 and repeats * period > covered:
            best, covered = (period, repeats), repeats * period
    return best


def _key(event: Event, exact: bool) -> Hashable:
    if exact:
        return event
    if isinstance(event, Compute):
        return "compute", event.phase, event.unit
    if isinstance(event, Loop):
        return "loop", event.turns, tuple(_key(e, exact) for e in event.body)
    return event


def _mean(events: Sequence[Event]) -> Event:
    """One event with the mean durations of these."""
    first = events[0]
    if all(e == first for e in events):
        return first
    if isinstance(first, Loop):
        bodies = [e.body for e in events if isinstance(e, Loop)]
        return Loop(first.turns, tuple(_mean(column) for column in zip(*bodies)))
    same = [e for e in events if isinstance(e, Compute)]
    return Compute(first.phase, fmean(e.seconds for e in same), same[0].unit, fmean(e.work for e in same))
