"""Two campaigns compared, case by case: ratios of times, verdicts, and what explains them.

A sample is one run: the sets of a run share the state of the hosts. A ratio is a time of
the other campaign over that of the first, so a ratio above 1 is slower. All intervals of a
comparison (of its cases, their mean, and its phases) hold together with 95 %, so equal
campaigns get a false verdict in at most one comparison of twenty, however many cases
they have.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log, nan
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.compare import Question, question, same_kind
from fembench.records.phases import ASSEMBLY, CG
from fembench.records.quiet import foreign_work
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.report.measures import PARTS, REMAINDER, SOLVE, parts_of_solve
from fembench.report.results import Result, crowded, results
from fembench.stats.compare import Comparison
from fembench.stats.outliers import joint_level
from fembench.stats.student import FEWEST, Ratio, ratio_unpaired
from fembench.stats.summary import median

SHOWN = ("slower", "faster")  # verdicts that are a difference
NONE = "no verdict: DISTURBED"
NEAR = 2  # fields in which a case may differ from another to be named beside it
PARTS_OF_SOLVE = (*PARTS, REMAINDER)
MEAN = "geometric mean"
SMALL = 0.01  # of the time: a smaller part is not judged
WORK = {"mesh", "problem", "ranks"}  # fields of a question; the others say how it is solved
BOTH = "; run both in one campaign: `fembench report --all` shows their times"


class SideRuns(NamedTuple):
    """A campaign to compare."""

    name: str
    records: Sequence[Record]
    campaign: str = ""  # the file of the campaign, if there is one
    record: bool = False  # whether it is the file of one record


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CaseRuns:
    """One case of a campaign, and its runs that count."""

    result: Result  # by which it is named
    asked: Question
    records: tuple[Record, ...]  # by date; (): none counts
    seconds: Mapping[str, F64]  # SOLVE and its parts: (n_runs,)
    notes: tuple[str, ...]
    disturbed: bool  # whether other work took CPU time in a run that counts

    @property
    def name(self) -> str:
        """'m · sym, 2 ranks'."""
        return f"{self.result.mesh} · {self.result.method}, {self.result.in_words}"

    @property
    def synthetic(self) -> str:
        """How its ranks were slowed on purpose; "" if they were not."""
        return self.records[-1].environment.synthetic if self.records else ""


class Part(NamedTuple):
    """A part of SOLVE on both sides."""

    name: str
    a: float  # seconds, median over runs
    b: float


class CasePair(NamedTuple):
    """One case in both campaigns."""

    a: CaseRuns
    b: CaseRuns
    ratio: Ratio  # b over a
    whole: Part  # SOLVE
    parts: tuple[Part, ...]

    @property
    def synthetic(self) -> bool:
        """Whether the other side alone is SYNTHETIC, which `a.name` does not say."""
        return bool(self.b.synthetic and not self.a.synthetic)

    @property
    def name(self) -> str:
        """'m · sym, 2 ranks', 'm · sym, 2 ranks, SYNTHETIC'."""
        return f"{self.a.name}, SYNTHETIC" if self.synthetic else self.a.name

    @property
    def runs(self) -> tuple[int, int]:
        return len(self.a.records), len(self.b.records)

    @property
    def verdict(self) -> str:
        """'slower', 'faster', 'no difference shown', or why there is none."""
        return NONE if self.disturbed else verdict(self.ratio, *self.runs)

    @property
    def disturbed(self) -> bool:
        """Whether nothing follows from the runs of a side."""
        return self.a.disturbed or self.b.disturbed

    @property
    def carrier(self) -> tuple[str, float]:
        """The part that makes most of the difference, and its share of it."""
        return _carrier({p.name: p.b - p.a for p in self.parts})


class Left(NamedTuple):
    """A case without a ratio."""

    where: str  # the campaigns that have it
    case: CaseRuns
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """A campaign compared with a base."""

    base: SideRuns
    other: SideRuns
    pairs: tuple[CasePair, ...]
    left: tuple[Left, ...]
    counted: tuple[CasePair, ...]  # those with an interval; all, if none has
    ratio: Ratio  # geometric mean of the counted cases
    parts: Mapping[str, Ratio]  # the same of each part of the time
    bandwidth: Ratio  # of the memory, measured beside the runs

    @property
    def verdict(self) -> str:
        """That of the geometric mean."""
        return self.said(self.ratio)

    def said(self, ratio: Ratio) -> str:
        """What a mean over the counted cases shows."""
        if self.disturbed:
            return NONE
        runs = [n for pair in self.counted for n in pair.runs]
        return verdict(ratio, min(runs, default=0), max(runs, default=0))

    @property
    def disturbed(self) -> list[str]:
        """The sides whose runs were DISTURBED in a counted case."""
        loud = (self.other, [p.b for p in self.counted]), (self.base, [p.a for p in self.counted])
        return [side.name for side, cases in loud if any(case.disturbed for case in cases)]

    @property
    def carrier(self) -> tuple[str, float]:
        """The part that makes most of the difference, all cases with equal weights."""
        found: dict[str, float] = {}
        for pair in self.counted:
            for part in pair.parts:
                found[part.name] = found.get(part.name, 0) + (part.b - part.a) / pair.whole.a
        return _carrier(found)

    @property
    def judged(self) -> list[tuple[str, Ratio, str]]:
        """(name, ratio, verdict) of each case, and of the geometric mean of several."""
        found = [(pair.name, pair.ratio, pair.verdict) for pair in self.pairs]
        return found + [(MEAN, self.ratio, self.verdict)] * (len(found) > 1)


def verdict(ratio: Ratio, *runs: int) -> str:
    """What a ratio shows, from these numbers of runs."""
    if ratio.interval:
        return Comparison(ratio.value, ratio.interval, min(runs), 0.0).verdict
    if max(runs) == 1:
        return "one run each: no interval over runs"
    return f"no interval: fewer than {FEWEST} runs" if min(runs) < FEWEST else "no interval: identical runs"


def _carrier(differences: Mapping[str, float]) -> tuple[str, float]:
    """The largest difference in the direction of their sum, and its share of the sum."""
    whole = sum(differences.values())
    if not whole:
        return "", nan
    name = max(differences, key=lambda name: differences[name] / whole)
    return name, differences[name] / whole


def compared(base: SideRuns, other: SideRuns) -> Compared:
    """Every case of `base` that `other` has, too; commits, hosts and libraries may differ."""
    mine, theirs = ({case.asked: case for case in cases(side)} for side in (base, other))
    both = [(a, theirs[q]) for q, a in mine.items() if q in theirs]
    used = [(a, b) for a, b in both if a.records and b.records]
    judged = [pair for pair in used if all(map(_enough, pair))] or used
    large = [name for name in PARTS_OF_SOLVE if _share(name, judged) >= SMALL]
    level = joint_level(len(judged) + (len(judged) > 1) + len(large))
    pairs = tuple(_pair(a, b, level) for a, b in used)
    left = []
    for a, b in both:
        if empty := [side.name for side, case in ((base, a), (other, b)) if not case.records]:
            left.append(Left(", ".join(empty), a, _none_counts(b if a.records else a)))
    for here, cases_here, there in ((base, mine, theirs), (other, theirs, mine)):
        alone = [case for q, case in cases_here.items() if q not in there]
        left += [Left(here.name, case, _reason(case, there.values())) for case in alone]
    loud = any(case.disturbed for pair in judged for case in pair)

    def mean(of: Callable[[CaseRuns], F64]) -> Ratio:
        found = mean_ratio([(of(a), of(b)) for a, b in judged], level)
        return Ratio(found.value, None) if loud else found

    def phase(name: str) -> Ratio:
        return mean(lambda case: case.seconds[name])

    return Compared(
        base,
        other,
        pairs,
        tuple(left),
        tuple(pair for pair in pairs if (pair.a, pair.b) in judged),
        phase(SOLVE),
        {name: phase(name) for name in large},
        mean(_bandwidths),
    )


def _enough(case: CaseRuns) -> bool:
    """Whether its runs are enough for an interval, and quiet."""
    return len(case.records) >= FEWEST and not case.disturbed


def _share(name: str, cases: Iterable[tuple[CaseRuns, CaseRuns]]) -> float:
    """The least part of the time that `name` takes in a case, on either side."""
    both = [case.seconds for pair in cases for case in pair]
    return min((median(s[name]) / median(s[SOLVE]) for s in both), default=0.0)


def _none_counts(case: CaseRuns) -> str:
    """Why no run of a case counts."""
    return "all runs INVALID" if case.result.pool.status == "INVALID" else "no run has timed sets"


def _pair(a: CaseRuns, b: CaseRuns, level: float) -> CasePair:
    whole, *parts = (Part(name, median(a.seconds[name]), median(b.seconds[name])) for name in a.seconds)
    ratio = ratio_unpaired(b.seconds[SOLVE], a.seconds[SOLVE], level)
    if a.disturbed or b.disturbed:  # its scatter is that of the other work
        ratio = Ratio(ratio.value, None)
    return CasePair(a, b, ratio, whole, tuple(part for part in parts if part.a or part.b))


def _bandwidths(case: CaseRuns) -> F64:
    """(n,) bytes/s of all ranks together, of the runs that measured it."""
    return np.array([sum(r.solve.bandwidth) for r in case.records if r.solve.bandwidth])


def mean_ratio(cases: Sequence[tuple[F64, F64]], level: float) -> Ratio:
    """The geometric mean of b over a, from (runs of a, runs of b) of each case.

    Runs of different cases that were made in one round of a campaign share the state of
    the hosts. So the k-th runs of all cases count as one sample, their geometric mean.
    """
    if not cases or not all(len(runs) and runs.min() > 0 for pair in cases for runs in pair):
        return Ratio(nan, None)
    value = exp(sum(log(median(b) / median(a)) for a, b in cases) / len(cases))
    rounds = []
    for side in zip(*cases):
        n = min(map(len, side))
        rounds.append(np.exp(np.mean([np.log(runs[:n]) for runs in side], axis=0)))
    found = ratio_unpaired(rounds[1], rounds[0], level).interval
    return Ratio(value, found and found._replace(low=min(found.low, value), high=max(found.high, value)))


def cases(side: SideRuns) -> list[CaseRuns]:
    """The cases of a campaign, named as in its report, by size of mesh. Raises InputError."""
    groups: dict[Question, list[Record]] = {}
    for record in sorted(side.records, key=lambda r: (r.created, r.id)):
        groups.setdefault(_asked(record), []).append(record)
    newest = [max(group[::-1], key=lambda r: r.verdict.status != "INVALID") for group in groups.values()]
    try:
        found = results(newest)
    except InputError as error:  # which names the run alone
        raise InputError(f"{side.name}: {error}") from error
    named = [dataclasses.replace(r, disturbed=False) for r in found]  # notes say it of each run
    return [_case(r, asked := _asked(r.record), groups[asked]) for r in named]


def _asked(record: Record) -> Question:
    return question(record.case, record.mesh.hash, record.problem)


def _case(result: Result, asked: Question, records: Sequence[Record]) -> CaseRuns:
    parts = {id(r): _parts(r) for r in records}
    kept, notes = [r for r in records if parts[id(r)]], []
    invalid = sum(r.verdict.status == "INVALID" for r in records)
    if invalid:
        notes.append(f"{plural(invalid, 'run')} INVALID, left out")
    if n := len(records) - len(kept) - invalid:
        notes.append(f"{plural(n, 'run')} without timed sets, left out")
    if older := [why for r in kept if (why := _apart(kept[-1], r))]:
        notes.append(f"{plural(len(older), 'older run')} left out: {older[-1]} differs")
        kept = [r for r in kept if not _apart(kept[-1], r)]
    quiet = [r for r in kept if not foreign_work([r.environment])]
    if n := len(kept) - len(quiet):
        enough = len(quiet) >= FEWEST
        notes.append(f"{plural(n, 'run')} DISTURBED{', left out' * enough}")
        kept = quiet if enough else kept
    notes += ["PROVISIONAL"] if any(r.verdict.status == "PROVISIONAL" for r in kept) else []
    notes += ["OVERSUBSCRIBED"] if crowded(result) else []
    notes += [f"SYNTHETIC: {synthetic}"] if kept and (synthetic := kept[-1].environment.synthetic) else []
    seconds = {name: np.array([parts[id(r)][name] for r in kept]) for name in (SOLVE, *PARTS_OF_SOLVE)}
    return CaseRuns(result, asked, tuple(kept), seconds, tuple(notes), len(quiet) < len(kept))


def _parts(record: Record) -> dict[str, float]:
    """Seconds of SOLVE and its parts; {} if a run is INVALID, or not all of its timed sets took time."""
    if record.verdict.status == "INVALID" or not record.solve.iterations:
        return {}
    times = times_of(record)
    walls = times.seconds(ASSEMBLY, CG)
    return parts_of_solve(times) if len(walls) and walls.max(axis=1).min() > 0 else {}


def _apart(newest: Record, run: Record) -> str | None:
    """In what a run of the same side is no repetition of the newest; the hosts of a job may differ."""
    if newest.case.output.label != run.case.output.label:
        return "label"
    return same_kind(newest, run, but=("host set",))


def _reason(case: CaseRuns, others: Iterable[CaseRuns]) -> str:
    """Why a case has no ratio: what its nearest relative asks instead, or that it has none."""
    mine = dict(case.asked)
    differ = [[name for name, value in other.asked if mine[name] != value] for other in others]
    nearest = min(differ, key=len, default=[])
    if not 0 < len(nearest) <= NEAR:
        return "no such case on the other side"
    how = "" if WORK & set(nearest) else BOTH
    if nearest == ["shares"]:
        how = "; `fembench report` of a folder with both says the gain"
    return f"no ratio: {' and '.join(map(_plural, nearest))}{how}"


def _plural(field: str) -> str:
    """'different meshes'."""
    named = {"mesh": "meshes", "problem": "problems", "ranks": "numbers of ranks", "shares": "shares"}
    return f"different {named[field]}" if field in named else f"different values of {field}"
