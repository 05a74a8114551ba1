"""Rings, forks and joins with real messages, compared with their
predictions (`real_messages`).

The prediction is compared with the median of the repetitions and its 95 % interval. If
that interval is too wide, the run does not test the prediction. Neither does a run in
which messages hardly count.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.tables import table
from fembench.base.units import plural, seconds, size
from fembench.errors import InputError
from fembench.records.prediction import MEASURED_NETWORK
from fembench.records.profile import Profile, host_names, network_disturbed
from fembench.stats.summary import median_interval
from fembench_studies.programs.partners import TRIP, ends_of
from fembench_studies.programs.real_messages import EXPECTED, VARIED, error_percent
from fembench_studies.programs.record import AppRecord, unfit

LIMIT = 5.0  # per cent: largest good error of the time of tasks
MESSAGES = 15.0  # per cent: largest good error of the time due to messages
SHARE = (20.0, 80.0)  # per cent of the makespan that is due to messages, in a run that tests them
SHORT = 12e-6  # seconds: in a shorter message, the interpreter's loop counts, about 1 µs per task
REFUSED = "refused"  # begins the reason why messages of a size cannot be predicted


class ComparedTime(NamedTuple):
    """A predicted and a measured time, in seconds. Errors are in per
    cent of the measured time."""

    what: str  # "makespan" or "messages"
    predicted: float
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


_EXPECTED = f"expected {SHARE[0]:g} to {SHARE[1]:g} %; without a size, tasks are as long as their messages"


def compared(record: AppRecord, profile: Profile | None = None) -> list[ComparedTime]:
    """Makespan and the part due to messages, with their errors;
    `profile`: that of the prediction.
    The limit of the makespan is that of its two parts."""
    if record.predicted is None or record.predicted.method != MEASURED_NETWORK:
        raise InputError(f"{record.id}: not predicted from a measured network")
    terms = record.predicted.terms
    busy = np.array(record.busy)
    alone = busy.sum(axis=0) if record.case.program == "ring" else busy[0]
    wrong = _unlike(record, profile) or _refused(record, terms["messages"][0])
    makespan = np.array(record.seconds)
    due = makespan - alone
    share = 100 * float(np.median(due) / np.median(makespan))
    few = "" if SHARE[0] <= share <= SHARE[1] else f"they take {share:.2g} % of the run: {_EXPECTED}"
    part = min(max(share / 100, 0.0), 1.0)
    return [
        _compared("makespan", terms, makespan, wrong, LIMIT + part * (MESSAGES - LIMIT)),
        _compared("messages", terms, due, wrong or few, MESSAGES),
    ]


def _refused(record: AppRecord, messages: float) -> str:
    """Why messages that take so long in all cannot be predicted; "" if they can."""
    case = record.case
    each = messages / len(ends_of(case))
    if each >= SHORT:
        return _uncached(record) or _scattered(record)
    return (
        f"{REFUSED}: a message takes {seconds(each)}; the program's own loop, about 1 µs per task, is not "
        f"predicted (expected messages of {seconds(SHORT)} or more)"
    )


def _uncached(record: AppRecord) -> str:
    """Why messages inside a host are too long to be predicted; "" if they are not. A
    rank writes one buffer, and reads one of each rank that sends to it."""
    m, placed, case = record.case.n_bytes, record.environment.rank_host, record.case
    inside = {(p, q) for p, q in ends_of(case) if placed[p] == placed[q]}
    caches = [record.environment.hosts[placed[q]].caches.get("L2", 0) for _, q in inside]
    least = min(filter(None, caches), default=0)
    buffers = 1 + max(Counter(q for _, q in inside).values(), default=1)
    if not least or buffers * m < least:
        return ""
    return (
        f"{REFUSED}: {buffers} buffers of {size(m)} do not fit in an L2 cache of {size(least)}; the time of "
        "such a message depends on where its buffers lie in memory"
    )


def _scattered(record: AppRecord) -> str:
    """Why messages vary too much to be predicted; "" if they do not, or it is unknown."""
    bytes_ = size(record.case.n_bytes)
    terms = record.predicted.terms if record.predicted else {}
    causes = {
        TRIP: (f"round trips of {bytes_} just before", "depending on where their buffers lay in memory"),
        VARIED: (
            f"messages like those of {bytes_}",
            "in parts of the profile's measurement, each as long as a run",
        ),
    }
    for term, (what, where) in causes.items():
        low, high = terms.get(term, (0.0, 0.0))
        if high - low > MESSAGES / 100 * (high + low):
            return f"{REFUSED}: {what} took {seconds(low)} to {seconds(high)}, {where}"
    now, then = sum(terms.get(TRIP, (0.0, 0.0))) / 2, terms.get(EXPECTED, (0.0, 0.0))[0]
    if abs(now - then) > MESSAGES / 100 * then:
        return (
            f"{REFUSED}: round trips of {bytes_} just before took {seconds(now)}, and {seconds(then)} by the "
            "profile: the machine is not as it was; repeat `characterize --network`"
        )
    return ""


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
        return f"the profile is PROVISIONAL: {disturbed[0]}"
    ran = tuple(environment.hosts[k].name for k in environment.rank_host)
    hosts = host_names(profile)
    if ran != hosts[: len(ran)]:
        return f"ran on {', '.join(ran)}; the profile is for {', '.join(hosts[: len(ran)])}"
    return ""


def _compared(
    what: str, terms: dict[str, tuple[float, float]], times: np.ndarray, wrong: str, limit: float
) -> ComparedTime:
    middle, interval = float(np.median(times)), median_interval(times.tolist())
    low, high = (interval.low, interval.high) if interval else (math.nan, math.nan)
    half = 50 * (high - low) / middle if middle > 0 else math.inf
    if not wrong and interval is None:
        wrong = f"{len(times)} repetitions: expected six or more"
    if not wrong and half > limit:
        wrong = f"too noisy: the median is known to ± {half:.0f} % (at most {limit:.3g} %)"
    return ComparedTime(what, terms[what][0], middle, low, high, wrong, limit)


def as_text(record: AppRecord, found: Sequence[ComparedTime]) -> str:
    """A table of predicted and measured times, and the error of
    the median with its interval."""
    rows = [
        [
            one.what,
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
    heads = ["", "predicted", "measured", "error", "its 95 % interval", "verdict"]
    return f"{title}\n\n{table(heads, rows, align='lrrrrl')}"
