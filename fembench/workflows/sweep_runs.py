"""The runs of one sweep: which come, in which order, and a line of progress for each."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fembench.base.errors import InputError
from fembench.base.progress import Doing, progress, working
from fembench.base.units import clock, plural
from fembench.bench.campaign import Done, execute
from fembench.bench.campaign_file import CampaignRun, run_id
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.duration import Expectations
from fembench.bench.schedule import InOrder, RunOrder, WithinTime
from fembench.records.case import Case
from fembench.records.quiet import disturbance
from fembench.records.record import Record
from fembench.records.weights import Weights, weights_in
from fembench.report.runs import case_name, summary_line
from fembench.workflows.cases import weighted
from fembench.workflows.sweep_plan import cores_of
from fembench.workflows.sweep_source import SweepSource, made, nodes_in, say_unequal, speeds_from
from fembench.workflows.sweep_state import Counts

REPORT = 8.0  # seconds that tables and page take
LEFT_OUT = "left out (no time)"


@dataclass(frozen=True)
class Minutes:
    """The time given to a sweep; false: it may take as long as it likes."""

    minutes: float
    begin: float  # monotonic seconds
    report: bool  # made within this time

    def __bool__(self) -> bool:
        return self.minutes > 0

    def left(self, first: float = 0.0) -> float:
        """Seconds left for runs after `first` seconds. Raises InputError if none are."""
        report = REPORT if self.report else 0.0
        left = 60 * self.minutes - report - first - (time.monotonic() - self.begin)
        if left <= 0:
            raise InputError(
                f"minutes = {self.minutes:g}: no time for a run; expected more than {report:g} seconds, "
                "which the report takes"
            )
        return left

    def overrun(self) -> str:
        """A line on the seconds beyond the minutes, if there are any."""
        late = time.monotonic() - self.begin - 60 * self.minutes
        return (
            f"sweep: ended {late:.0f} s late ({self.minutes:g} min were given)"
            if self and late >= 0.5
            else ""
        )


@dataclass
class Sweep:
    """One campaign, on the hosts of the job."""

    source: SweepSource
    folder: Folder
    there: CampaignHosts
    limit: Minutes
    weights: Weights | Path | str | None  # the shares of all cases with its number of ranks
    command: str  # what the records say was typed
    order: RunOrder = field(init=False)
    kept: list[CampaignRun] = field(init=False)  # with a record
    records: list[Record] = field(init=False)  # all in the folder; those made are added
    measured: list[Record] = field(default_factory=list)  # of the runs of the campaign
    failed: int = 0  # runs without a record
    tell: Callable[[Counts], None] = lambda _: None  # is told how many runs are done

    def runs(self) -> tuple[list[CampaignRun], list[CampaignRun]]:
        """(runs of the campaign, those kept); with --minutes, per case."""
        if not self.limit:
            runs = weighted_runs(self.source.runs, self.weights)
            return runs, [run for run in runs if self.folder.record(run) is not None]
        runs = weighted_runs(self.source.first_runs, self.weights)
        return runs, [run for first in runs for run in _recorded(first.case, self.folder)]

    def prepare(self, first: float = 0.0) -> None:
        """Order the runs, `first` seconds of something else before them. Raises InputError."""
        self.records = self.folder.records()
        runs, self.kept = self.runs()
        expected = Expectations(self.records, cores_of(self.there), self.source.campaign.timeout)
        self.order = InOrder(runs, self.kept, expected)
        if self.limit:
            self.order = WithinTime(runs, self.kept, expected, self.limit.left(first))

    def execute(self) -> None:
        """Run everything, with a line per run."""
        self._say_what_comes()
        equal = self.source.equal(self.there)
        with working("sweep: starting") as now:
            done_runs = execute(
                self.source.campaign,
                self._coming(now),
                self.folder,
                command=self.command,
                hostfile=self.there.hostfile,
                limit=lambda: self.order.limit,
                tell=now.tell,
            )
            for k, done in enumerate(done_runs, 1):
                self.order.ended(
                    done.run, ran=done.outcome is not None, recorded=done.record is not None, cut=done.cut
                )
                self.measured += [done.record] if done.record else []
                if done.outcome is None:
                    continue
                self.records += [done.record] if done.record else []
                if done.record and done.run == equal:
                    self._learn(done.record)
                self._say(k, done)
                self.failed += done.record is None and not done.cut
            self._count()
        self.folder.leave_out(self.order.left_out, f"no time within {self.limit.minutes:g} minutes")

    def _count(self) -> None:
        """Tell how many runs are done."""
        counts = Counts(
            runs=len(self.order.planned()),
            verdicts=Counter(record.verdict.status for record in self.measured),
            failed=self.failed,
            left=self.order.seconds_left,
            disturbed=disturbance([record.environment for record in self.measured], "times"),
        )
        self.tell(counts)

    def _say_what_comes(self) -> None:
        """How many runs, and how long they take."""
        kept = len(self.kept)
        runs = len(self.order.planned())
        if kept:
            of = plural(kept, "run") if self.limit else f"{kept} of {runs} runs"
            progress(f"{of} already {'has' if of == '1 run' else 'have'} a record")
        if self.order.seconds_left and not self.limit:
            left = clock(self.order.seconds_left)
            progress(f"sweep: {plural(runs - kept, 'run')} to come, in about {left}")

    def _coming(self, now: Doing) -> Iterator[CampaignRun]:
        """The runs, each announced when its turn comes."""
        kept = set(self.kept)
        for k, run in enumerate(self.order, 1):
            now.text = f"sweep: {self.order.place(k)}: {case_name(run.case)}"
            expected = self.order.seconds_of(run)
            now.tell(f"about {clock(expected)} in all" if expected else "")
            if run not in kept:
                self._count()
            yield run

    def _say(self, k: int, done: Done) -> None:
        time_left = self.order.seconds_left
        left = "" if time_left is None else f", {clock(time_left)} left" if time_left else ", done"
        why = done.outcome.message if done.outcome else ""
        failure = f"{done.run.id}: {LEFT_OUT if done.cut else 'FAILED'}: {why}"
        progress(f"[{self.order.place(k)}{left}] {summary_line(done.record) if done.record else failure}")

    def _learn(self, equal: Record) -> None:
        """Make the default campaign again now that a run shows the speeds of the hosts."""
        learned = speeds_from(equal, self.there, nodes_in(self.folder, self.there))
        new = made(self.there, self.limit.minutes, learned)
        if learned is None or len(new.cases) == len(self.source.cases):
            return
        say_unequal(learned)
        self.source = new
        self.folder.write(new.text)
        self.order.renew(new.first_runs if self.limit else new.runs)

    @property
    def left_out(self) -> list[str]:
        """Names of the cases without a record for lack of time."""
        return [case_name(case) for case in self.order.left_out]


def _recorded(case: Case, folder: Folder) -> Iterator[CampaignRun]:
    """The runs of a case that have a record, without gaps."""
    run = CampaignRun(run_id(case, 1), case, 1)
    while folder.record(run) is not None:
        yield run
        run = CampaignRun(run_id(case, run.repetition + 1), case, run.repetition + 1)


def weighted_runs(runs: Sequence[CampaignRun], given: Weights | Path | str | None) -> list[CampaignRun]:
    """The runs, with shares where the weights fit. Raises InputError if they fit no run."""
    if not given:
        return list(runs)
    ranks = len(weights_in(given).ranks)
    fits = [run.case.placement.ranks == ranks and not run.case.placement.shares for run in runs]
    if not any(fits):
        raise InputError(f"{given}: weights of {plural(ranks, 'rank')} fit no case of the campaign")
    cases = [weighted(run.case, given) if fit else run.case for run, fit in zip(runs, fits)]
    return [CampaignRun(run_id(case, run.repetition), case, run.repetition) for case, run in zip(cases, runs)]
