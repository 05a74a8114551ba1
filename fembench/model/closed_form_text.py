"""The closed form as text and as JSON: intervals, the expression, the term of each resource."""

from collections.abc import Sequence
from typing import NamedTuple

from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.model.closed_form import ClosedForm, Compose
from fembench.model.interval import TimeRange
from fembench.model.workload import Workload

COMPOSED = {
    "phase": "bounded phase by phase",
    "global": "bounded as a whole, as if all phases could overlap",
}


class BoundedRun(NamedTuple):
    """The closed form of one run."""

    work: Workload
    form: ClosedForm
    source: str  # of the number of iterations


def bounds_text(runs: Sequence[BoundedRun], compose: Compose, synthetic: str = "") -> str:
    """One row per run; for a single run, also its expression and its terms."""
    heads = [
        "ranks",
        "iteration",
        "from",
        "to",
        "assembly",
        "iterations",
        "solution",
        "from",
        "to",
        "bound by",
    ]
    rows = [
        [
            a.work.ranks,
            *_three(a.form.expected.iteration, a.form.iteration),
            seconds(a.form.expected.assembly),
            a.form.iterations,
            *_three(a.form.expected.seconds, a.form.seconds),
            a.form.bottleneck,
        ]
        for a in runs
    ]
    sources = ", ".join(dict.fromkeys(a.source for a in runs))
    lines = [f"SYNTHETIC: {synthetic}"] if synthetic else []
    lines += [table(heads, rows, align="r" * (len(heads) - 1) + "l"), ""]
    lines.append(f"{COMPOSED[compose]}; iterations: {sources}")
    if len(runs) == 1:
        lines += ["", *_terms(runs[0].form)]
    return "\n".join(lines)


def _terms(form: ClosedForm) -> list[str]:
    rows = [[name, *_three(term.middle, term)] for name, term in form.terms.items()]
    return [form.expression, "", table(["term, whole run", "middle", "from", "to"], rows, align="lrrr")]


def _three(expected: float, interval: TimeRange) -> list[str]:
    return [seconds(expected), seconds(interval.low), seconds(interval.high)]


def bounds_tree(run: BoundedRun, compose: Compose) -> dict[str, object]:
    """One run in the format of --json, in seconds."""
    form = run.form
    return {
        "ranks": run.work.ranks,
        "mesh": run.work.mesh_hash,
        "compose": compose,
        "expected": form.expected._asdict(),
        "iteration": [form.iteration.low, form.iteration.high],
        "assembly": [form.assembly.low, form.assembly.high],
        "iterations": form.iterations,
        "iterations_from": run.source,
        "seconds": [form.seconds.low, form.seconds.high],
        "bottleneck": form.bottleneck,
        "terms": {name: [t.low, t.high] for name, t in form.terms.items()},
        "expression": form.expression,
    }
