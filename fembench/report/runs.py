"""Tables about runs: overview with verdicts, rules, failures, hosts, clocks, kinds."""

from collections.abc import Iterable, Sequence

from fembench.base import units
from fembench.records.case import Case
from fembench.records.compare import cpu_models, host_names
from fembench.records.record import Failure, HostFacts, Record, Rule
from fembench.report.results import Result, kind_difference, kind_letter, kinds_of
from fembench.report.table import (
    Column,
    Table,
    case_columns,
    case_of,
    integer,
    size,
    time,
    words,
)

SHOWN = {True: "met", False: "NOT MET", None: "not judged"}


def overview(results: Iterable[Result]) -> Table:
    """One row a result, with its verdict."""
    rows = [
        (
            *case_of(r),
            r.record.mesh.n_equations,
            r.record.solve.iterations,
            r.times["cg"].median if "cg" in r.times else None,
            len(r.pool.records),
            r.times["cg"].n if "cg" in r.times else 0,
            r.pool.status,
            f"not pooled: other {r.pool.apart}" if r.pool.apart else "",
        )
        for r in results
    ]
    return Table(
        "overview",
        "Cases",
        "Runs of one case are pooled only if host set, CPU model, libraries, mesh, commit and clock are the "
        "same; the last column names the field that kept runs apart. The verdict is the worst of the runs; "
        "cg is the median over timed sets of the slowest rank.",
        (
            *case_columns(),
            integer("equations"),
            integer("iterations"),
            time("cg", "cg"),
            integer("runs"),
            integer("sets"),
            words("verdict"),
            words("remarks"),
        ),
        tuple(rows),
    )


def reasons(results: Sequence[Result]) -> Table:
    """Rules that are not met, each once, with the cases that it concerns; what makes INVALID first."""
    values: dict[tuple[str, ...], list[str]] = {}
    cases: dict[tuple[str, ...], list[str]] = {}
    for r in results:
        for rule in (rule for record in r.pool.records for rule in record.verdict.rules if not rule.ok):
            key = makes(rule), rule.id, SHOWN[rule.ok], rule.threshold
            _add(values.setdefault(key, []), rule.value)
            _add(cases.setdefault(key, []), f"{r.mesh} · {r.variant} · ranks {r.setting}")
    rows = [
        (*key[:3], _few(values[key], 1), key[3], len(cases[key]), _few(cases[key], 3))
        for key in sorted(cases)
    ]
    return Table(
        "reasons",
        "Why runs are not VALID",
        "INVALID (a rule A to C is broken): the numbers are wrong or not what they claim to be. PROVISIONAL: "
        "too few or too unsteady repetitions, or something that a comparison needs cannot be judged; such "
        "results are shown, not to be compared.",
        (
            words("makes"),
            words("rule"),
            words("result"),
            words("value"),
            words("expected", "threshold"),
            integer("cases"),
            words("which"),
        ),
        tuple(rows),
    )


def makes(rule: Rule) -> str:
    """The verdict that a rule leads to."""
    if rule.ok:
        return "VALID"
    return "INVALID" if rule.ok is False and rule.id[:1] in "ABC" else "PROVISIONAL"


def _add(items: list[str], item: str) -> None:
    if item not in items:
        items.append(item)


def rules(records: Iterable[Record]) -> Table:
    """Every rule of every run: value beside threshold."""
    rows = [
        (r.id, rule.id, SHOWN[rule.ok], rule.value, rule.threshold, rule.note)
        for r in records
        for rule in r.verdict.rules
    ]
    return Table(
        "rules",
        "Rules",
        "Every rule of validity with its measured value and its threshold, run by run.",
        tuple(words(n) for n in ("run", "rule", "result", "value", "threshold", "note")),
        tuple(rows),
    )


def failures(found: Iterable[Failure]) -> Table:
    """Runs that left no record."""
    return Table(
        "failures",
        "Failed runs",
        "These runs ended without a record and enter no number of this report.",
        (words("case"), words("what"), words("message"), integer("exit status"), words("run")),
        tuple((case_name(f.case), f.kind, f.message, f.exit_status, f.id) for f in found),
    )


def hosts(records: Iterable[Record]) -> Table:
    """Every machine that ran a rank."""
    found: dict[str, HostFacts] = {}
    for record in records:
        used = {record.environment.hosts[i].name for i in record.environment.rank_host}
        found |= {h.name: h for h in record.environment.hosts if h.name in used}
    rows = [
        (h.name, h.cpu_model, h.cores, h.memory_bytes or None, _caches(h.caches), h.governor, h.kernel)
        for h in found.values()
    ]
    return Table(
        "hosts",
        "Hosts",
        "Cores are those that the run was allowed to use.",
        (
            words("host"),
            words("CPU", "cpu_model"),
            integer("cores"),
            size("memory", "memory"),
            words("caches"),
            words("governor"),
            words("kernel"),
        ),
        tuple(rows),
    )


def clocks(records: Iterable[Record]) -> Table:
    """The clocks used, with the worst of their properties over all runs."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        key = ", ".join(host_names(r)), r.clock.name, r.clock.certified, r.clock.reason
        groups.setdefault(key, []).append(r)
    rows = []
    for (names, clock, certified, reason), group in groups.items():
        c = [r.clock for r in group]
        drift = max((abs(x.drift) for x in c), default=0.0)
        costs = [1e-9 * max(getattr(x, field) for x in c) for field in ("read_ns", "quantum_ns", "span_ns")]
        rows.append((names, clock, len(group), "yes" if certified else "no", drift, *costs, reason))
    return Table(
        "clocks",
        "Clocks",
        "The worst of all runs. Drift is the change of ticks per second against CLOCK_MONOTONIC_RAW during a "
        "run; one recorded span costs what the column says.",
        (
            words("hosts"),
            words("clock"),
            integer("runs"),
            words("certified"),
            Column("drift", "drift", lambda v: f"{v:.1e}", number=True),
            time("reading", "reading"),
            time("quantum", "quantum"),
            time("span", "span"),
            words("why", "reason"),
        ),
        tuple(rows),
    )


def kinds(records: Sequence[Record]) -> Table:
    """Kinds of measurement that are not held against each other; empty if there is one kind."""
    found = kinds_of(records)
    rows = [
        (
            kind_letter(kind, found),
            sum(kind_letter(r, found) == kind_letter(kind, found) for r in records),
            kind_difference(found[0], kind) or "",
            ", ".join(cpu_models(kind)),
            kind.clock.name,
            f"{kind.environment.commit}{' (changed)' if kind.environment.dirty else ''}",
            ", ".join(f"{k} {v}" for k, v in sorted(kind.environment.versions.items())),
        )
        for kind in (found if len(found) > 1 else [])
    ]
    return Table(
        "kinds",
        "Kinds of measurement",
        "These records were made under different conditions and are never pooled or held against each other.",
        (
            words("kind"),
            integer("runs"),
            words("differs from A in", "differs_in"),
            words("CPU", "cpu_model"),
            words("clock"),
            words("commit"),
            words("versions"),
        ),
        tuple(rows),
    )


def case_name(case: Case) -> str:
    """A case in a few words, for lists."""
    defaults = Case()
    words = [case.mesh, case.storage, f"{case.ranks} ranks" if case.ranks != 1 else "1 rank"]
    for field in ("problem", "shares", "partitioner", "precond", "variant", "iterations", "label"):
        value = getattr(case, field)
        if value != getattr(defaults, field):
            words.append(value if isinstance(value, str) else f"{field} {value}")
    return " · ".join(words)


def _few(names: Sequence[str], limit: int) -> str:
    rest = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _caches(caches: dict[str, int]) -> str:
    return ", ".join(f"{level} {units.size(n)}" for level, n in caches.items())
