"""Rings, forks and joins with real messages, compared with their
predictions (`real_messages`).

A core may run at another speed than when the profile was measured, and a run is over before
its speed changes again (docs/decisions/0014). So each run times round trips and tasks just
before and just after itself, and the prediction is brought to that state: its messages in
proportion to the round trips, its computing to the tasks.
It is compared with the median of the repetitions and its 95 % interval. If that interval is too wide, the run
does not test the prediction. Neither does a run in which messages hardly count.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.tables import table
from fembench.base.units import plural, seconds, size
from fembench.errors import InputError
from fembench.records.prediction import MEASURED_NETWORK
from fembench.records.profile import Profile, network_disturbed
from fembench.stats.summary import median_interval
from fembench_studies.programs.graphs import ROUND
from fembench_studies.programs.partners import AROUND, TRIP, ends_of
from fembench_studies.programs.real_messages import EXPECTED, computing, error_percent
from fembench_studies.programs.record import AppRecord, Samples, unfit

LIMIT = 5.0  # per cent: largest good error of the time of tasks
MESSAGES = 15.0  # per cent: largest good error of the time due to messages
SHARE = (20.0, 80.0)  # per cent of the makespan that is due to messages, in a run that tests them
SHORT = 2e-5  # seconds: in a shorter message, the interpreter's loop counts, 1.5 to 4 µs per message
NINE_IN_TEN = (0.05, 0.95)  # quantiles
FARTHEST = 1.5  # times that the machine may be slower or faster than expected: as much as its cores differ


class Refused(str):
    """Why messages cannot be predicted: always, or with the machine as it is."""


class ComparedTime(NamedTuple):
    """A predicted and a measured time, in seconds. Errors are in per
    cent of the measured time."""

    what: str  # "makespan" or "messages"
    written: float  # predicted before the run
    predicted: float  # the same in the machine's state around the run
    measured: float  # median of the repetitions
    low: float  # its 95 % interval; nan: too few repetitions
    high: float
    reason: str  # why the run does not test the prediction; "": it does
    limit: float = LIMIT  # largest good error, per cent

    @property
    def error(self) -> float:
        """The absolute error, per cent."""
        return error_percent(self.measured, self.predicted)

    @property
    def signed(self) -> float:
        """The error, per cent; positive if the prediction is too long."""
        return 100 * (self.predicted / self.measured - 1) if self.measured else math.nan

    @property
    def between(self) -> tuple[float, float]:
        """(low, high) signed errors, per cent, at the ends of the median's interval."""
        ends = [100 * (self.predicted / t - 1) for t in (self.high, self.low)]
        return ends[0], ends[1]

    @property
    def verdict(self) -> str:
        """'within 5 %', 'off by more than 5 %', or 'INVALID' with the reason."""
        if self.reason:
            return f"INVALID: {self.reason}"
        return f"within {self.limit:.3g} %" if self.kept else f"off by more than {self.limit:.3g} %"

    @property
    def kept(self) -> bool:
        """Whether the run tests the prediction, and confirms it."""
        return not self.reason and self.error <= self.limit


class State(NamedTuple):
    """Times just before and just after a run, relative to those that its prediction expects."""

    messages: tuple[float, float] = (1.0, 1.0)
    computing: tuple[float, float] = (1.0, 1.0)


_EXPECTED = f"expected {SHARE[0]:g} to {SHARE[1]:g} %; without a size, tasks are as long as their messages"


def compared(record: AppRecord, profile: Profile | None = None) -> list[ComparedTime]:
    """Makespan and the part due to messages, with their errors;
    `profile`: that of the prediction.
    The limit of the makespan is that of its two parts."""
    terms, state = _terms(record), state_of(record)
    alone, makespan = _alone(record), np.array(record.seconds)
    wrong = _unlike(record, profile) or lasting(record) or _changed(record, state)
    due = makespan - alone
    share = 100 * float(np.median(due) / np.median(makespan))
    few = "" if SHARE[0] <= share <= SHARE[1] else f"they take {share:.2g} % of the run: {_EXPECTED}"
    part = min(max(share / 100, 0.0), 1.0)
    sent = terms["messages"][0] * float(np.mean(state.messages))
    whole = terms["computing"][0] * float(np.mean(state.computing)) + sent
    limit = LIMIT + part * (MESSAGES - LIMIT)
    return [
        _compared("makespan", terms["makespan"][0], whole, makespan, wrong, limit),
        _compared("messages", terms["messages"][0], sent, due, wrong or few, MESSAGES),
    ]


def _alone(record: AppRecord) -> np.ndarray:
    """[repetition] seconds of the makespan in which a rank computes and all others wait for it."""
    busy = np.array(record.busy)
    return busy.sum(axis=0) if record.case.program == "ring" else busy[0]


def judged(passes: Sequence[ComparedTime]) -> ComparedTime:
    """The one with the median error of those that test the prediction; of two in the middle, the worse.

    If none does, one that was not refused, if there is one.
    """
    tested = sorted((one for one in passes if not one.reason), key=lambda one: one.signed)
    if not tested:
        return min(passes, key=lambda one: isinstance(one.reason, Refused))
    half = len(tested) // 2
    return max(tested[half], tested[-1 - half], key=lambda one: one.error)


def _terms(record: AppRecord) -> dict[str, tuple[float, float]]:
    """Those of its prediction."""
    if record.predicted is None or record.predicted.method != MEASURED_NETWORK:
        raise InputError(f"{record.id}: not predicted from a measured network")
    return record.predicted.terms


def lasting(record: AppRecord) -> str:
    """Why such messages cannot be predicted, however often they are sent; "" if they can."""
    case = record.case
    each = _terms(record)["messages"][0] / len(ends_of(case))
    if each >= SHORT:
        return _uncached(record)
    return Refused(
        f"refused: a message takes {seconds(each)}; the program's own loop, 1.5 to 4 µs per message, is "
        f"not predicted (expected messages of {seconds(SHORT)} or more)"
    )


def _uncached(record: AppRecord) -> str:
    """Why a message inside a host is too long to be predicted; "" if it is not."""
    m, placed = record.case.n_bytes, record.environment.rank_host
    inside = [placed[q] for p, q in ends_of(record.case) if placed[p] == placed[q]]
    caches = [record.environment.hosts[k].caches.get("L2", 0) for k in inside]
    least = min(filter(None, caches), default=m)
    if m <= least:
        return ""
    return Refused(
        f"refused: a message of {size(m)} does not fit in an L2 cache of {size(least)}; its time depends "
        "on where its buffers lie in memory"
    )


def _changed(record: AppRecord, state: State) -> str:
    """Why the machine's state in a run is not known, or too far from the
    expected one; "" if neither."""
    what = size(record.case.n_bytes)
    low, high = scattered(record.samples)
    if high - low > MESSAGES / 100 * (high + low):
        return Refused(
            f"refused: round trips of {what} around the run took {low:.2f} to {high:.2f} times their "
            "median, depending on where their buffers lay in memory"
        )
    for name, pair in zip((f"round trips of {what}", "computing"), state):
        middle = float(np.mean(pair))
        if max(pair) - min(pair) > MESSAGES / 100 * middle:
            return Refused(
                f"refused: {name} took {pair[0]:.2f} times as long as expected before the run, "
                f"{pair[1]:.2f} times after it: the machine changed meanwhile"
            )
        if not 1 / FARTHEST <= middle <= FARTHEST:
            return Refused(
                f"refused: {name} took {middle:.2f} times as long as expected: the machine is not as it "
                "was; repeat `characterize --network`"
            )
    return _other_speed(record, state)


def _other_speed(record: AppRecord, state: State) -> str:
    """Why tasks say that cores had another speed in a run than just before and just after it; "" if not."""
    around = state.computing
    meanwhile = float(np.median(_alone(record))) / _terms(record)["computing"][0]
    every = (*around, meanwhile)
    if max(every) - min(every) <= MESSAGES / 100 * float(np.mean(every)):
        return ""
    return Refused(
        f"refused: computing took {meanwhile:.2f} times as long as expected during the run, "
        f"{around[0]:.2f} times before it, {around[1]:.2f} times after it: the machine changed meanwhile"
    )


def state_of(record: AppRecord) -> State:
    """That of a run; as expected if the record does not know it."""
    found, names = record.samples, (TRIP, ROUND)
    if record.predicted is None or not all(name + when in found for name in names for when in AROUND):
        return State()
    terms = record.predicted.terms
    trips, rounds = ([found[name + when] for when in AROUND] for name in names)
    (a, b), (c, d) = (_trip(one) for one in trips), (computing(record.case, one) for one in rounds)
    trip, work = terms[EXPECTED][0], terms["computing"][0]
    return State((a / trip, b / trip), (c / work, d / work))


def _trip(trips: Sequence[Sequence[float]]) -> float:
    """Seconds of a round trip, on average over the pairs; `trips`: [rank]."""
    return float(np.mean([np.median(one) for one in trips if one]))


def scattered(samples: Samples) -> tuple[float, float]:
    """(low, high) of nine in ten round trips, each in other buffers, relative to the
    median of their pair before or after the run; (1, 1): there are none."""
    each = [one for when in AROUND for one in samples.get(TRIP + when, ()) if one]
    if not each:
        return 1.0, 1.0
    low, high = np.quantile(np.concatenate([np.array(one) / np.median(one) for one in each]), NINE_IN_TEN)
    return float(low), float(high)


def _unlike(record: AppRecord, profile: Profile | None) -> str:
    """Why the profile does not apply to the run; "" if it does."""
    environment = record.environment
    if environment.oversubscribed:
        return "more ranks than cores: waiting ranks keep others from computing"
    if wrong := unfit(record):
        return wrong
    if profile is None:
        return ""
    if disturbed := network_disturbed(profile):
        return f"the profile is {disturbed}"
    ran, hosts = environment.host_of_rank, profile.environment.host_of_rank
    if ran != hosts[: len(ran)]:
        return f"ran on {', '.join(ran)}; the profile is for {', '.join(hosts[: len(ran)])}"
    return ""


def _compared(
    what: str, written: float, predicted: float, times: np.ndarray, wrong: str, limit: float
) -> ComparedTime:
    middle, interval = float(np.median(times)), median_interval(times.tolist())
    low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
    half = 50 * (high - low) / middle if middle > 0 else math.inf
    if not wrong and interval is None:
        wrong = f"{len(times)} repetitions: expected six or more"
    if not wrong and half > limit:
        wrong = f"too noisy: the median is known to ± {half:.0f} % (at most {limit:.3g} %)"
    return ComparedTime(what, written, predicted, middle, low, high, wrong, limit)


def as_text(record: AppRecord, found: Sequence[ComparedTime]) -> str:
    """A table of predicted and measured times, and the error of
    the median with its interval."""
    rows = [
        [
            one.what,
            seconds(one.written),
            seconds(one.predicted),
            seconds(one.measured),
            f"{one.signed:+.1f} %",
            "{:+.1f} to {:+.1f} %".format(*one.between),
            one.verdict,
        ]
        for one in found
    ]
    case = record.case
    title = (
        f"{case.program} of {case.tasks} tasks on {plural(case.ranks, 'rank')}, messages of "
        f"{size(case.n_bytes)} by MPI_{case.calls.capitalize()}, medians of {plural(case.repetitions, 'run')}"
    )
    heads = ["", "predicted", "in its state", "measured", "error", "its 95 % interval", "verdict"]
    return f"{title}\n\n{table(heads, rows, align='lrrrrrl')}"
