"""Sentences and tables of comparisons: the verdict first, then what explains it."""

import dataclasses
from collections.abc import Iterator, Sequence
from math import log

from fembench.base.units import digits, few, percent, plural
from fembench.records.compare import environment_differences
from fembench.records.quiet import disturbance, foreign_work
from fembench.records.record import Environment
from fembench.report.comparison import MEAN, SHOWN, CasePair, Compared
from fembench.report.results import CASE, case_of
from fembench.report.table import Rows, Table, declared
from fembench.stats.student import FEWEST, Ratio
from fembench.stats.summary import Interval, ends_of

MOST = 4  # cases, or facts, that a sentence names
TIMES = 2  # ratios from there on are not percentages
OTHER_WORK = "CPU time of other work"


def more(ratio: float) -> str:
    """'5.1 % more' for 1.051, '4.8 % less' for 0.952, '2.3 times as much' for 2.3."""
    if ratio >= TIMES:
        return f"{digits(ratio)} times as much"
    return f"{percent(abs(ratio - 1))} {'more' if ratio >= 1 else 'less'}"


def range_in_words(interval: Interval) -> str:
    """'3.1 to 7.2 % more', '1.2 % less to 1.9 % more'."""
    low, high = interval[:2]
    if (low < 1) != (high < 1):
        return f"{more(low)} to {more(high)}"
    if high >= TIMES:
        return f"{digits(low)} to {more(high)}"
    near, far = sorted((low, high), key=lambda end: abs(end - 1))
    return f"{percent(abs(near - 1)).removesuffix(' %')} to {more(far)}"


def conclusions(found: Sequence[Compared]) -> list[str]:
    """What comparisons show, in sentences: the verdict first, then what explains it."""
    return [line for one in found for line in filter(None, _of_one(one))]


def _of_one(one: Compared) -> Iterator[str]:
    for side, environments in zip((one.base, one.other), _environments(one)):
        disturbed = disturbance(environments, "times", side.name)
        yield disturbed and f"{disturbed}."
    if not one.pairs:
        yield f"No case of {one.other.name} has a ratio to one of {one.base.name}: see Not compared."
        if file := one.base.campaign:
            yield f"To compare, run the same campaign: `fembench sweep {file} --results FOLDER`."
        return
    yield _synthetic(one)
    yield _overall(one)
    yield _by_phase(one)
    yield from _by_case(one)
    yield _machine(one)
    yield _differing(one)
    records = [record for pair in one.pairs for case in (pair.a, pair.b) for record in case.records]
    if n := sum(record.verdict.status == "PROVISIONAL" for record in records):
        yield f"{n} of {plural(len(records), 'run')} PROVISIONAL: `fembench check` says why."
    if one.left:
        yield f"{plural(len(one.left), 'case')} without a ratio: see Not compared."


def _synthetic(one: Compared) -> str:
    """'SYNTHETIC: ranks of new were slowed on purpose in 1 of 3 cases.'"""
    sides = (one.base, [p.a for p in one.pairs]), (one.other, [p.b for p in one.pairs])
    slowed = [(side.name, sum(bool(case.synthetic) for case in cases)) for side, cases in sides]
    of = plural(len(one.pairs), "case")
    told = [f"ranks of {name} were slowed on purpose in {n} of {of}" for name, n in slowed if n]
    return f"SYNTHETIC: {'; '.join(told)}." if told else ""


def _overall(one: Compared) -> str:
    """'new is slower than old: 5.1 % more time (3.1 to 7.2 % more), m · sym, one rank. Of …'."""
    names = f"{one.other.name} and {one.base.name}"
    mean = f"geometric mean of {plural(len(one.counted), 'case')}"
    of = mean if len(one.pairs) > 1 else one.pairs[0].name
    took = f"{more(one.ratio.value)} time"
    than = "as" if one.ratio.value >= TIMES else "than"
    whose = f"{one.other.name} takes {took} {than} {one.base.name}"
    if one.disturbed:
        loud = f"runs of {' and '.join(one.disturbed)} were DISTURBED"
        advice = f"nothing follows about machine or version. {_advice(one, 'quiet runs', one.disturbed)}"
        return f"No verdict on {names}: {whose}, {of}, but {loud}: {advice}"
    if one.ratio.interval is None:
        counts = zip((one.base.name, one.other.name), zip(*(pair.runs for pair in one.pairs)))
        few_runs = [name for name, runs in counts if min(runs) < FEWEST][::-1]
        advice = _advice(one, "runs", few_runs)
        return f"No verdict on {names}: {whose}, {of}; {one.verdict}. {advice}".rstrip()
    ends = f"({range_in_words(one.ratio.interval)}), {of}"
    if one.verdict not in SHOWN:
        return f"No difference shown between {names}: {whose} {ends}."
    name, share = one.carrier
    carried = f"Of the difference, {percent(share, 0)} is in {name}"
    return f"{one.other.name} is {one.verdict} than {one.base.name}: {took} {ends}. {carried}."


def _advice(one: Compared, runs: str, names: Sequence[str]) -> str:
    """How many runs of which results are needed; nobody can make more runs of a single record."""
    records = [side.name for side in (one.other, one.base) if side.record and side.name in names]
    several = [name for name in names if name not in records]
    said = [f"Make {FEWEST} {runs} of {' and '.join(several)}, better 5."] if several else []
    how = f"compare a folder of {FEWEST} {runs} instead, better 5."
    return " ".join([*said, *(f"{name} is a single run: {how}" for name in records)])


def _by_phase(one: Compared) -> str:
    """The phases that differ, if they are not all alike."""
    if one.disturbed:
        return "`--all` prints the times of the phases, of which none has a verdict."
    named = [
        f"{n} takes {more(r.value)} time ({range_in_words(r.interval)})"
        for n, r in one.parts.items()
        if r.interval and one.said(r) in SHOWN
    ]
    return f"By phase: {'; '.join(named)}." if named else ""


def _by_case(one: Compared) -> Iterator[str]:
    """The cases that differ, the worst first, if there are several cases."""
    for kind in SHOWN if len(one.pairs) > 1 else ():
        pairs = [p for p in one.pairs if p.verdict == kind]
        pairs.sort(key=lambda p: -abs(log(p.ratio.value)))
        if pairs:
            named = [f"{p.name} ({more(p.ratio.value)} time, mostly in {p.carrier[0]})" for p in pairs]
            yield f"{kind.capitalize()} in {len(pairs)} of {len(one.pairs)} cases: {few(named, MOST)}."


def _machine(one: Compared) -> str:
    """That the memory of the hosts differs in the same direction as the times."""
    ends = one.bandwidth.interval
    if one.verdict not in SHOWN or ends is None or 1 in ends:
        return ""
    if (one.bandwidth.value < 1) != (one.ratio.value > 1):
        return ""
    return (
        f"The memory bandwidth measured beside the runs differs, too: {more(one.bandwidth.value)} "
        f"({range_in_words(ends)}). So hosts or their state explain the times, at least in part."
    )


def _differing(one: Compared) -> str:
    found = [name for name, *_ in _differences(one)]
    if not found:
        return "Commit, hosts and libraries are the same on both sides."
    return f"What differs: {few(found, MOST)}."


def _differences(one: Compared) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    a, b = _environments(one)
    took = [(foreign_work(side) or "none",) for side in (a, b)]
    work = [(OTHER_WORK, took[0], took[1])] if took[0] != took[1] else []
    return work + environment_differences(a, b)


def _environments(one: Compared) -> tuple[list[Environment], list[Environment]]:
    """Those of all runs that count, of both sides."""
    a = [record.environment for pair in one.pairs for record in pair.a.records]
    return a, [record.environment for pair in one.pairs for record in pair.b.records]


@declared(
    "comparison",
    "Comparison",
    "Time of assembly and cg on the slowest rank: the median over the sets of a run, then over runs. The "
    "ratio is that of the other results over the first ones: above 1, the other ones are slower. The runs "
    "are the samples (Welch's interval, on logarithms; three or more of each). All intervals hold together "
    "with 95 %, whatever the number of cases. 'slower' and 'faster': the interval excludes 1. The geometric "
    "mean takes the k-th runs of all cases as one sample, because they may share the state of the hosts. "
    "'Mostly in' names the part of the time that makes most of the difference, on the rank that computes "
    "longest, and its share of the difference. INVALID runs do not count, nor do DISTURBED ones, if three "
    "others are left; if not, there is no verdict, as the other work may be all that differs.",
    "?other: compared",
    CASE,
    "base_s: first; other_s: other; ratio | .3f; low high: 95 % interval | >{0:.3f}–{1:.3f}",
    "runs other_runs: runs | >{0}, {1}; verdict; ?carrier share: mostly in | {0} ({1:fraction})",
    "remarks",
)
def comparison_table(found: Sequence[Compared]) -> Rows:
    """A row per case, and one of the geometric mean, of every comparison."""
    for one in found:
        other = one.other.name if len(found) > 1 else None
        for p in one.pairs:
            yield (
                *(other, *_case_of(p), p.whole.a, p.whole.b),
                *_judged(p.ratio, p.runs, p.verdict, p.carrier),
                _remarks(p, one),
            )
        if len(one.pairs) > 1:
            mean = plural(len(one.counted), "case"), MEAN, (None, None), None, None
            yield (other, *mean, *_judged(one.ratio, (None, None), one.verdict, one.carrier), "")


def _judged(
    ratio: Ratio, runs: tuple[int | None, int | None], said: str, carrier: tuple[str, float]
) -> tuple[object, ...]:
    return ratio.value, ends_of(ratio.interval), runs, said, carrier if said in SHOWN else None


def _case_of(pair: CasePair) -> tuple[object, ...]:
    """Values of the columns CASE, SYNTHETIC if either side is."""
    mesh, method, ranks = case_of(pair.a.result)
    return mesh, f"{method} · SYNTHETIC" if pair.synthetic else method, ranks


def _remarks(pair: CasePair, one: Compared) -> str:
    """Notes of both sides; one that only one side has, with its name. Different iterations."""
    a, b = pair.a.notes, pair.b.notes
    notes = [note for note in a if note in b]
    for side, mine, theirs in ((one.base, a, b), (one.other, b, a)):
        notes += [f"{side.name}: {note}" for note in mine if note not in theirs]
    counts = [case.records[-1].solve.iterations for case in (pair.a, pair.b)]
    notes += [f"{counts[0]} and {counts[1]} iterations"] if counts[0] != counts[1] else []
    return "; ".join(notes)


@declared(
    "compared_phases",
    "Phases",
    "The parts of assembly and cg, on the rank that computes longest; each is a median of its own, so their "
    "sum may differ from the whole time. First the geometric mean over cases of each part that takes 1 % of "
    "the time or more, then the cases; the last column is the part of their difference that the phase makes. "
    "'product' is cg.spmv_interior and cg.spmv_interface, 'vectors' cg.dot and cg.axpy, "
    "'preconditioner' cg.precond; 'messages' is packing, sending and unpacking, 'waiting' for other ranks, "
    "'loop' the rest of cg.",
    "?other: compared",
    CASE,
    "phase; base_s: first; other_s: other; ratio | .3f; low high: 95 % interval | >{0:.3f}–{1:.3f}",
    "?verdict; ?change_fraction: of the difference",
)
def phase_table(found: Sequence[Compared]) -> Rows:
    """A row per phase of all cases, with its verdict; then one per phase of each case."""
    for one in found:
        other = one.other.name if len(found) > 1 else None
        mean = plural(len(one.counted), "case"), MEAN, (None, None)
        for name, ratio in one.parts.items():
            said = one.said(ratio)
            yield other, *mean, name, None, None, ratio.value, ends_of(ratio.interval), said, None
        for p in one.pairs:
            whole = sum(part.b - part.a for part in p.parts)
            for name, a, b in p.parts:
                ratio_of = b / a if a else None
                share = (b - a) / whole if whole and p.verdict in SHOWN else None
                yield other, *_case_of(p), name, a, b, ratio_of, ends_of(None), None, share


@declared(
    "differences",
    "What differs",
    "What the records state of commits, hosts, libraries and settings, where the two sides differ.",
    "?compared; what; base: first; other",
)
def difference_table(found: Sequence[Compared]) -> Rows:
    """A row per fact that differs."""
    for one in found:
        for name, a, b in _differences(one):
            values = ("; ".join(value or "–" for value in side[:3]) for side in (a, b))
            yield one.other.name if len(found) > 1 else None, name, *values


@declared(
    "not_compared",
    "Not compared",
    "Cases without a ratio, and why. Only cases of the same mesh, problem, method and ranks are compared.",
    "where: results",
    CASE,
    "reason",
)
def left_table(found: Sequence[Compared]) -> Rows:
    """A row per case without a ratio."""
    return [(one.where, *case_of(one.case.result), one.reason) for c in found for one in c.left]


def comparison_tables(found: Sequence[Compared]) -> list[Table]:
    """All tables, that of the cases first; the names of the results are heads of their columns."""
    heads = {"first": found[0].base.name}
    heads |= {"other": found[0].other.name} if len(found) == 1 else {}
    made = []
    for table in (f(found) for f in (comparison_table, difference_table, left_table, phase_table)):
        named = (dataclasses.replace(c, head=heads.get(c.head, c.head)) for c in table.columns)
        made.append(dataclasses.replace(table, columns=tuple(named)))
    return made
