"""Which run of a campaign comes next, with a limit of time or without.

Without a limit, each run comes once, in the order of the campaign. With one, the next
run is that of the case that has run least often; of several, the most important one;
and only if it is expected to end in time. So the least important cases are left out if
time is short, and all are repeated if there is plenty. How long a case takes is known
from its own runs, or else expected from those of others (`duration.py`), corrected by
how far off this was so far.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median

from fembench.bench.campaign_file import CampaignRun, run_id
from fembench.records.case import Case

CUT = 0.05  # of the time given: a run may take this much longer
QUICKEST = 1.0  # seconds: no run takes less
Clock = Callable[[], float]
Expected = Callable[[Sequence[Case]], list[float | None]]  # seconds of each case; None: not known


class Durations:
    """What runs took, and what others are expected to take."""

    def __init__(self, expected: Expected, clock: Clock) -> None:
        self._expected = expected
        self._clock = clock
        self._took: dict[Case, list[float]] = {}
        self._begun = clock()

    def begin(self) -> None:
        """A run begins."""
        self._begun = self._clock()

    def end(self, case: Case) -> None:
        """It was of this case, and has ended."""
        self._took.setdefault(case, []).append(self._clock() - self._begun)

    def count(self, case: Case) -> int:
        """How often a case has run."""
        return len(self._took.get(case, ()))

    def of(self, cases: Sequence[Case]) -> list[float]:
        """Seconds of a run of each case."""
        return forecast(self._expected(cases), [self._took.get(case, []) for case in cases])

    def known(self, cases: Sequence[Case]) -> bool:
        """Whether something says how long each takes."""
        return all(e is not None or self.count(case) for case, e in zip(cases, self._expected(cases)))

    def of_one(self, case: Case, among: Sequence[Case]) -> float | None:
        """Seconds of a run of this case, judged by those of others; None if nothing says it."""
        return self.of([case, *among])[0] if self.known([case]) else None


class InOrder:
    """Every run once, in the order given; has all that WithinTime has."""

    def __init__(
        self,
        runs: Sequence[CampaignRun],
        kept: Sequence[CampaignRun],
        expected: Expected,
        clock: Clock = time.monotonic,
    ) -> None:
        """`kept`: those that have a record and take no time."""
        self._runs = list(runs)
        self._durations = Durations(expected, clock)
        self._to_do = {run: None for run in runs if run not in kept}
        self.limit = math.inf
        self.left_out = list[Case]()

    def __iter__(self) -> Iterator[CampaignRun]:
        k = 0
        while k < len(self._runs):  # it may grow
            self._durations.begin()
            yield self._runs[k]
            k += 1

    def ended(self, run: CampaignRun, *, ran: bool, recorded: bool, cut: bool = False) -> None:
        self._to_do.pop(run, None)
        if ran:
            self._durations.end(run.case)

    def planned(self) -> list[CampaignRun]:
        return self._runs

    def renew(self, runs: Sequence[CampaignRun]) -> None:
        new = [run for run in runs if run not in self._runs]
        self._runs += new
        self._to_do |= dict.fromkeys(new)

    def place(self, k: int) -> str:
        """'3/20': where the k-th run stands."""
        return f"{k}/{len(self._runs)}"

    def seconds_of(self, run: CampaignRun) -> float | None:
        """What a run is expected to take; None if nothing says it."""
        return self._durations.of_one(run.case, [other.case for other in self._runs])

    @property
    def seconds_left(self) -> float | None:
        """Until all are done; 0: nothing is left to do; None: not known yet."""
        cases = [run.case for run in self._runs]
        if not self._durations.known([run.case for run in self._to_do]):
            return None
        each = zip(self._runs, self._durations.of(cases))
        return sum(seconds for run, seconds in each if run in self._to_do)


class WithinTime:
    """Cases in the order of their importance, each as often as the time given allows.

    The next run is chosen after the last has ended.
    """

    def __init__(
        self,
        runs: Sequence[CampaignRun],
        kept: Sequence[CampaignRun],
        expected: Expected,
        seconds: float,
        clock: Clock = time.monotonic,
    ) -> None:
        """`runs`: one of each case; `kept`: all runs with a record; `seconds`: from now."""
        self._cases = [run.case for run in runs]
        self._kept = list(kept)
        self._clock = clock
        self._durations = Durations(expected, clock)
        self._given = seconds
        self._begin = clock()
        self._not_again: set[Case] = set()
        self._cut: set[Case] = set()  # without a record

    def __iter__(self) -> Iterator[CampaignRun]:
        yield from list(self._kept)
        while (k := self._next()) is not None:
            case = self._cases[k]
            self._durations.begin()
            repetition = self._repetitions()[k] + 1
            yield CampaignRun(run_id(case, repetition), case, repetition)

    def _next(self) -> int | None:
        return next_case(self._seconds(), self._repetitions(), self._left)

    def ended(self, run: CampaignRun, *, ran: bool, recorded: bool, cut: bool = False) -> None:
        """Tell whether the last run was started, has a record, and was ended at its limit."""
        if not ran:
            self._kept += [run] if run not in self._kept else []
            return
        self._durations.end(run.case)
        if not recorded:
            self._not_again.add(run.case)
        if cut and run.repetition == 1:
            self._cut.add(run.case)

    def renew(self, runs: Sequence[CampaignRun]) -> None:
        """The runs of the campaign as it is now, which has all cases that it had before."""
        self._cases = [run.case for run in runs]

    @property
    def left_out(self) -> list[Case]:
        """Cases without a record, for which there is no time."""
        done = self._repetitions()
        coming = set(foreseen(self._seconds(), done, self._left))
        never = {c for k, c in enumerate(self._cases) if not done[k] and k not in coming}
        return [c for c in self._cases if c in self._cut or c in never - self._not_again]

    def planned(self) -> list[CampaignRun]:
        """Before the first: runs with a record, and those to come if all go as expected."""
        done, found = self._repetitions(), list(self._kept)
        for k in foreseen(self._seconds(), list(done), self._left):
            done[k] += 1
            found.append(CampaignRun(run_id(self._cases[k], done[k]), self._cases[k], done[k]))
        return found

    def place(self, k: int) -> str:
        """'run 3': how many follow depends on how long they take."""
        return f"run {k}"

    def seconds_of(self, run: CampaignRun) -> float | None:
        """What a run is expected to take; None if nothing says it."""
        return self._durations.of_one(run.case, self._cases)

    @property
    def seconds_left(self) -> float | None:
        """Until all are done; 0: nothing is left to do; None: not known yet."""
        return max(0.0, self._begin + self._given - self._clock()) if self._next() is not None else 0.0

    @property
    def limit(self) -> float:
        """Seconds after which the next run must be ended; inf: none."""
        return max(QUICKEST, self._begin + (1 + CUT) * self._given - self._clock())

    @property
    def _left(self) -> float:
        """Seconds within which a run has to be expected to end."""
        return self._begin + self._given - self._clock()

    def _repetitions(self) -> list[int]:
        """How often each case has run."""
        count = dict.fromkeys(self._cases, 0)
        for run in self._kept:
            count[run.case] = max(count.get(run.case, 0), run.repetition)
        return [count[case] + self._durations.count(case) for case in self._cases]

    def _seconds(self) -> list[float]:
        """What each case is expected to take; inf if it has failed or was cut."""
        found = self._durations.of(self._cases)
        return [math.inf if case in self._not_again else s for case, s in zip(self._cases, found)]


RunOrder = InOrder | WithinTime


def forecast(expected: Sequence[float | None], took: Sequence[Sequence[float]]) -> list[float]:
    """Seconds of a run of each case, from what was expected and what its runs took."""
    known = [(mean(done), e) for done, e in zip(took, expected) if done and e]
    factor = median(t / e for t, e in known) if known else 1.0
    guesses = [mean(done) if done else e and factor * e for done, e in zip(took, expected)]
    typical = mean(found) if (found := [g for g in guesses if g]) else QUICKEST
    return [max(QUICKEST, guess or typical) for guess in guesses]


def next_case(seconds: Sequence[float], done: Sequence[int], left: float) -> int | None:
    """The case to run next, of cases by importance; None if none ends in time.

    The first of all may be expected to end too late: only a run
    shows the machine's speed.
    """
    order = sorted(range(len(seconds)), key=lambda k: (done[k], k))
    found = next((k for k in order if seconds[k] <= left), None)
    if found is None and not any(done) and math.isfinite(least := min(seconds, default=math.inf)):
        return list(seconds).index(least)
    return found


def foreseen(seconds: Sequence[float], done: Sequence[int], left: float) -> list[int]:
    """The cases that would run, one after another, if all took as long as expected."""
    count, found = list(done), []
    while (k := next_case(seconds, count, left)) is not None:
        found.append(k)
        count[k] += 1
        left -= max(seconds[k], QUICKEST)
    return found
