"""What to do with measured weights: use them, ignore them, or leave a host out."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.base.units import percent, plural
from fembench.stats.compare import (
    FEWEST_NOISE,
    Comparison,
    compare_paired,
    compare_unpaired,
    median_ratio,
    noise_of_series,
)
from fembench.stats.summary import LEVEL, Interval, Samples, fewest_for, median

DECIDE = "run more --pairs, on quieter hosts or with longer runs (--seconds)"
LEAST_GAIN = 0.02  # of the time; a host that saves less is better left out


KINDS = ("use", "no gain", "not proven", "leave out", "none", "too short", "disturbed")
BOTH = "use both"
ON_DEVICES = "device alone"
ON_CORES = "CPU alone"


class Advice(NamedTuple):
    """The verdict, with the numbers behind it."""

    kind: str  # of KINDS, or for mixed lists of devices one of BOTH, ON_DEVICES, ON_CORES
    text: str  # one line for people
    comparison: Comparison  # equal over weighted: above 1, the weights are faster
    leave_out: tuple[tuple[str, float], ...] = ()  # (host, the largest gain from adding it), smallest first


def largest_gains(shares: Sequence[float], owners: Sequence[str]) -> dict[str, float]:
    """owner (host or rank) -> its ideal share, the most of the others' time that it saves.

    Without X, T = W / (S - s_X); with it, T = W / S at best. The gain is s_X / S.
    """
    if len(shares) != len(owners):
        raise InputError(
            f"{plural(len(shares), 'share')} and {plural(len(owners), 'owner')}; expected one per rank"
        )
    total = sum(shares)
    gains: dict[str, float] = {}
    for share, owner in zip(shares, owners):
        gains[owner] = gains.get(owner, 0.0) + share / total
    return gains


def advise(
    equal: Samples,
    weighted: Samples,
    shares: Sequence[float],
    owners: Sequence[str],
    *,
    noise: float | None = None,
    without: Mapping[str, Samples] | None = None,
    captured: float = math.nan,
    disturbed: str = "",
    level: float = LEVEL,
) -> Advice:
    """The verdict on weights, from the same number of equal and weighted runs timed in turns.

    "no gain": the interval does not show a gain, or the noise exceeds it. "none": a
    single turn, whose noise is unknown. "not proven": too few turns for an interval;
    the text says what was observed and what to do next. It names `captured`, the
    captured gain, only if that is positive: it is computed at the speeds of each run,
    so it may be negative although the time is less.

    "disturbed": nothing follows from runs beside foreign work,
    if `disturbed` says by what, as does the line above the verdict.

    `shares` follow from the speeds of the ranks. `owners` names for each rank what
    could be left out: its host, or the rank itself if all are on one host. `noise` is
    the A/A noise of the session (default: that of the two series). `without` maps an
    owner to the times of runs without it. Raises InputError if that owner has no rank.
    """
    noise = max(noise_of_series(equal), noise_of_series(weighted)) if noise is None else noise
    comparison = compare_paired(equal, weighted, noise=noise, level=level)
    if disturbed:
        text = "none: DISTURBED: nothing follows from these runs; repeat them on idle hosts"
        return Advice("disturbed", text, comparison)
    gains = largest_gains(shares, owners)
    useless = {o: g for o, g in gains.items() if g < LEAST_GAIN} if len(gains) > 1 else {}
    for owner, times in (without or {}).items():
        if owner not in gains:
            raise InputError(f"times without '{owner}': it has no rank; expected one of {sorted(gains)}")
        in_turns = len(weighted) == len(times)
        compare = compare_paired if in_turns else compare_unpaired
        if compare(weighted, times, noise=noise).verdict == "slower":
            useless[owner] = gains[owner]
    measured = _measured(weighted, without or {})
    if useless:
        order = tuple(sorted(useless.items(), key=lambda item: item[1]))
        return Advice("leave out", _leave_out(order, measured), comparison, order)
    if comparison.verdict == "slower":
        saved = 1 - 1 / comparison.ratio
        words = [f"use these weights: {percent(saved)} less time", *_doubts(measured)]
        return Advice("use", "; ".join(words), comparison)
    if comparison.noise == math.inf:
        unknown = f"noise unknown (needs at least {FEWEST_NOISE} pairs)"
        return Advice("none", f"none: {unknown}; repeat with --pairs {fewest_for(level)}", comparison)
    if comparison.interval is None:
        words = [f"not proven: {_seen(comparison, captured)}", _missing(comparison), *_doubts(measured)]
        return Advice("not proven", "; ".join(words), comparison)
    words = [f"no detectable gain ({_why_none(comparison, comparison.interval)})", *_doubts(measured)]
    return Advice("no gain", "; ".join(words), comparison)


def choose_kind(times: Mapping[str, Samples]) -> Advice:
    """Which of BOTH, ON_DEVICES and ON_CORES is fastest, from runs timed in turns.

    The gain is that over the second fastest, with its interval. If it is not proven, the
    verdict says so and names no choice.
    """
    best, second, *_ = sorted(times, key=lambda name: median(times[name]))
    noise = max(map(noise_of_series, times.values()))
    found = compare_paired(times[second], times[best], noise=noise)
    saved = percent(abs(1 - 1 / found.ratio))
    others = [
        f"{percent(abs(1 - _ratio(times[best], times[name])))} less than {name}"
        for name in times
        if name not in (best, second)
    ]
    ends = [percent(1 - 1 / end) for end in found.interval[:2]] if found.interval else []
    bounds = f"{percent(LEVEL, 0)}: {ends[0]} to {ends[1]}" if ends else f"n = {found.n}"
    if found.verdict == "slower":
        return Advice(
            best, "; ".join([f"{best}: {saved} less time than {second} ({bounds})", *others]), found
        )
    few = f"repeat with --pairs {fewest_for(LEVEL)}" if found.interval is None else DECIDE
    seen = f"{best} took {saved} less time than {second} ({bounds}, A/A noise {percent(found.noise)})"
    kind = "not proven" if found.interval is None else "no gain"
    return Advice(kind, f"{best} or {second}: not proven: {'; '.join([seen, *others])}; {few}", found)


def _ratio(a: Samples, b: Samples) -> float:
    """Of the times of `a` to those of `b`: the median over pairs, as for every gain."""
    return median_ratio(a, b) if len(a) == len(b) else median(a) / median(b)


def _seen(comparison: Comparison, captured: float = math.nan) -> str:
    """'weighted was faster in 4 of 4 turns (51.2 % less time, captured gain 0.94)'."""
    saved = 1 - 1 / comparison.ratio
    words = [f"{percent(abs(saved))} {'less' if saved >= 0 else 'more'} time"]
    words += [f"captured gain {captured:.2f}"] if saved > 0 and captured > 0 else []
    turns = f"{comparison.in_favour} of {plural(comparison.n, 'turn')}"
    return f"weighted was faster in {turns} ({', '.join(words)})"


def _missing(c: Comparison) -> str:
    able = "prove it" if c.ratio > 1 else "decide"
    few = f"{plural(c.n, 'turn')} cannot {able} at {percent(LEVEL, 0)}"
    repeat = f"repeat with --pairs {fewest_for(LEVEL)}"
    if not abs(1 - 1 / c.ratio) <= c.noise:
        return f"{few}: {repeat}"
    more = f"more turns alone may not, with an A/A noise of {percent(c.noise)}"
    return f"{few}, and {more}: {repeat} on quieter hosts or with longer runs (--seconds)"


def _why_none(comparison: Comparison, interval: Interval) -> str:
    if comparison.verdict == "faster":
        return f"equal shares take {percent(1 - comparison.ratio)} less time, n = {comparison.n}"
    low, high = (1 - 1 / end for end in interval[:2])
    ends = f"{percent(LEVEL, 0)}: {percent(low)} to {percent(high)}"
    seen = f"{_seen(comparison)}, {ends}, A/A noise {percent(comparison.noise)}"
    if comparison.ratio - 1 > comparison.noise:
        return f"{seen}; run more --pairs to decide"
    return seen


def _measured(weighted: Samples, without: Mapping[str, Samples]) -> dict[str, str]:
    """owner -> what the runs without it showed."""
    changes = {owner: _ratio(times, weighted) - 1 for owner, times in without.items()}
    return {
        owner: f"without {owner} {percent(abs(change))} {'more' if change > 0 else 'less'} time"
        " than with these"
        for owner, change in changes.items()
    }


def _doubts(measured: Mapping[str, str]) -> list[str]:
    """The result of the runs without an owner, for a verdict that they did not decide."""
    return [
        f"{text}, but not beyond the noise; to decide whether to leave {owner} out, {DECIDE}"
        if "less time" in text
        else text
        for owner, text in measured.items()
    ]


def _leave_out(hosts: Sequence[tuple[str, float]], measured: Mapping[str, str]) -> str:
    words = []
    for host, gain in hosts:
        text = f"leave {host} out: adding it can gain at most {100 * gain:.2g} %"
        words.append(f"{text} ({measured[host]})" if host in measured else text)
    return "; ".join(words)
