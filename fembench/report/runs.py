"""Tables of runs: overview, reasons why they are not VALID, rules, failures.

The line that summarises a run in the progress of a campaign."""

import re
from collections.abc import Iterable, Sequence
from math import inf, isnan

import numpy as np

from fembench.base import units
from fembench.base.units import few, percent, plural
from fembench.records import phases
from fembench.records.binding import CROWDED, OVERSUBSCRIBED, oversubscribed
from fembench.records.case import FIELDS, Case
from fembench.records.quiet import foreign_work
from fembench.records.record import Failure, Record
from fembench.records.times import times_of
from fembench.records.verdict import Rule, leads_to
from fembench.report.measures import CG, communication
from fembench.report.results import CASE, Result, case_of, crowded, short_shares
from fembench.report.table import Rows, declared

NUMBER = re.compile(r"(?<![\w.-])-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)(?![\w.])")


@declared(
    "overview",
    "Cases",
    "One row per case; repeated runs of a case are pooled. Runs are pooled only if hosts, CPU model, "
    "libraries, mesh, commit and clock agree; otherwise the last column names the field that differs. "
    "The verdict is the worst of the runs. cg is the time on the slowest rank: the median over the "
    "timed sets of a run, then over runs. Remarks say how far repeated runs lie apart: half the range of "
    "their medians; they differ if their sets do not explain it.",
    CASE,
    "verdict; equations; iterations; cg_s; runs; sets; remarks",
)
def overview(results: Iterable[Result]) -> Rows:
    """One row per result, with its verdict."""
    return [
        (
            *case_of(r),
            r.pool.status,
            r.record.mesh.n_equations,
            r.record.solve.iterations,
            cg.median if (cg := r.times.get(CG)) else None,
            len(r.pool.records),
            cg.n if cg else 0,
            "; ".join(_remarks(r)),
        )
        for r in results
    ]


def _remarks(result: Result) -> list[str]:
    environment = result.record.environment
    notes = [f"not pooled: {result.pool.apart} differs"] if result.pool.apart else []
    notes += _spread(result)
    notes += [CROWDED] if crowded(result) else []
    notes += [f"SYNTHETIC: {environment.synthetic}"] if environment.synthetic else []
    return notes + ([f"{environment.kernels} kernels"] if environment.kernels != "compiled" else [])


def _spread(result: Result) -> list[str]:
    """Half the range of the medians of repeated runs, which more sets do not show."""
    cg = result.times.get(CG)
    if cg is None or cg.runs < 2 or not cg.median:
        return []
    half = (max(cg.medians) - min(cg.medians)) / (2 * cg.median)
    return [f"{'runs differ:' if cg.apart else 'runs within'} ± {100 * half:.2g} %"]


@declared(
    "reasons",
    "Why runs are not VALID",
    "One row per rule that some run does not meet, and per remedy, with the worst value found and its note. "
    "INVALID (rules A to C): the numbers are wrong, or are not what they claim to be. PROVISIONAL (C4, rules "
    "D and E, or a rule that is not evaluated): the numbers may be right but are not fit for comparison, for "
    "example because there were too few or unsteady repetitions, other processes on the same cores, "
    "time that the trace does not explain, or sources that cannot be restored.",
    "makes: verdict; rule result: rule | {0} {1}; value threshold: found | {0} (expected {1})",
    "cases which: cases | {1}; note",
)
def reasons(results: Sequence[Result]) -> Rows:
    """Rules that are not met, a row for each remedy, with worst values and cases; INVALID first."""
    broken: dict[tuple[str, str, str], list[Rule]] = {}
    cases: dict[tuple[str, str, str], dict[str, None]] = {}  # in their order, each once
    for r in results:
        for rule, remedy in (one for record in r.pool.records for one in _remedies(record.verdict.rules)):
            key = leads_to(rule), rule.id, remedy
            broken.setdefault(key, []).append(rule)
            cases.setdefault(key, {})[f"{r.mesh} · {r.method} · ranks {r.setting}"] = None
    for key in sorted(cases):
        alike = _by_threshold(broken[key])
        worst = [max(rules, key=_badness) for rules in alike]
        values = [dict.fromkeys([one.value, *(r.value for r in rules)]) for one, rules in zip(worst, alike)]
        states, thresholds, notes = (
            _each(texts) for texts in zip(*((rule.state, rule.threshold, rule.note) for rule in worst))
        )
        names, n = list(cases[key]), len(cases[key])
        which = f"all {n} cases" if n == len(results) > 1 else few(names, 3)
        value = _each(few(list(found), 1) for found in values)
        yield key[0], (worst[0].name, states), (value, thresholds), (n, which), notes


def _remedies(rules: Iterable[Rule]) -> list[tuple[Rule, str]]:
    """The rules that a run does not meet, each with its note, or else that of its other part.

    The notes are without numbers, and without the first of several parts: "reference: m-p1".
    """
    broken = [rule for rule in rules if not rule.ok]
    notes = {rule.id: rule.note for rule in broken if rule.note}
    found = [rule.note or notes.get(rule.id, "") for rule in broken]
    return [(rule, NUMBER.sub("", note.partition("; ")[2] or note)) for rule, note in zip(broken, found)]


def _by_threshold(rules: Iterable[Rule]) -> list[list[Rule]]:
    """The rules of each threshold, without single runs' exceptions."""
    found: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        found.setdefault((rule.state, rule.threshold.partition(", or ")[0]), []).append(rule)
    return list(found.values())


def _each(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))


def _badness(rule: Rule) -> list[float]:
    """The numbers in a value, signed so that the worst is the largest; nan is worst."""
    too_few = ">" in rule.threshold or rule.id == "B1"  # B1: fewer iterations than requested
    numbers = [float(n) for n in NUMBER.findall(rule.value.rpartition(" = ")[2])]
    return [inf if isnan(n) else -n if too_few else n for n in numbers]


@declared(
    "rules",
    "Rules",
    "Every rule of validity for every run, with the measured value and its threshold.",
    "run; rule; result; value; threshold; note",
)
def rules(records: Iterable[Record]) -> Rows:
    """Every rule of every run, with value and threshold."""
    return [
        (r.id, rule.name, rule.state, rule.value, rule.threshold, rule.note)
        for r in records
        for rule in sorted(r.verdict.rules, key=lambda rule: rule.id)
    ]


@declared(
    "failures",
    "Failed runs",
    "These runs ended without a record. No number in this report includes them.",
    "case; what: kind; message; exit_status; run",
)
def failures(found: Iterable[Failure]) -> Rows:
    """Runs that left no record."""
    return tuple((case_name(f.case), f.kind, f.message, f.exit_status, f.id) for f in found)


@declared(
    "left_out",
    "Left out (no time)",
    "The time given with --minutes was over before a run of these cases had ended. The same command with "
    "more minutes continues the campaign.",
    "case; message; run",
)
def left_out(found: Iterable[Failure]) -> Rows:
    """Cases that there was no time for."""
    return tuple((case_name(f.case), f.message, f.id) for f in found)


def case_name(case: Case) -> str:
    """A short name of a case: the fields that users vary on purpose."""
    words = [case.question.mesh, case.method.storage, plural(case.placement.ranks, "rank")]
    for name, value in case.said().items():
        purpose = FIELDS[name].option.varied or FIELDS[name].role == "text"
        if purpose and name not in ("mesh", "storage", "ranks"):
            words.append(FIELDS[name].shown(short_shares(value) if name == "shares" else value))
    return " · ".join(words)


def summary_line(record: Record) -> str:
    """Verdict, disturbance, case, equations, iterations, longest CG time, share of communication."""
    times = times_of(record)
    cg = times.slowest(phases.CG)
    words = [
        f"{units.count(record.mesh.n_equations)} equations",
        units.plural(record.solve.iterations, "iteration"),
    ]
    if not record.solve.converged and not record.case.stop.iterations:
        words[-1] += " without convergence"
    if cg.any():
        words.append(f"cg {units.seconds(float(np.median(cg)))} ({units.plural(len(cg), 'set')})")
        if record.case.placement.ranks > 1:
            words.append(f"{percent(communication([times]).share, 0)} communication")
    verdict = record.verdict
    broken = [
        f"{r.name}: {r.value}, expected {r.threshold}" for r in verdict.rules if leads_to(r) == "INVALID"
    ]
    reason = f" [{broken[0]}]" if broken else ""
    labels = {
        f"{OVERSUBSCRIBED} ": oversubscribed(record.environment, record.case.synthetic.dilate),
        "SYNTHETIC ": bool(record.environment.synthetic),
    }
    label = "".join(text for text, holds in labels.items() if holds)
    status = verdict.status + ", DISTURBED" * bool(foreign_work([record.environment]))
    return f"{status:<11} {label}{case_name(record.case)}: {', '.join(words)}{reason}"
