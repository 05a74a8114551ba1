"""A closed form as text and as JSON: intervals, the expression, each resource's term."""

from collections.abc import Sequence
from typing import NamedTuple

from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.model.interval import TimeRange
from fembench.model.workload import Workload
from fembench.studies.pamela.bounds import Compose
from fembench.studies.pamela.fem import FemPrediction


class Answer(NamedTuple):
    """The closed form of one run."""

    work: Workload
    form: FemPrediction
    source: str  # of the number of iterations


def answer_text(answers: Sequence[Answer], compose: Compose) -> str:
    """A row a run; of one run alone also its expression and its terms."""
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
        "decides",
    ]
    rows = [
        [
            a.work.ranks,
            *_three(a.form.iteration),
            seconds(a.form.assembly.middle),
            a.form.iterations,
            *_three(a.form.seconds),
            a.form.bottleneck,
        ]
        for a in answers
    ]
    how = "phase by phase" if compose == "phase" else "of the whole, phases as if they overlapped"
    sources = ", ".join(dict.fromkeys(a.source for a in answers))
    lines = [table(heads, rows, align="r" * (len(heads) - 1) + "l"), ""]
    lines += [f"bounds {how}; number of iterations {sources}"]
    if len(answers) == 1:
        form = answers[0].form
        spent = [[name, *_three(term)] for name, term in form.terms.items()]
        lines += [
            "",
            form.expression,
            "",
            table(["term, of the whole", "middle", "from", "to"], spent, align="lrrr"),
        ]
    return "\n".join(lines)


def _three(interval: TimeRange) -> list[str]:
    return [seconds(interval.middle), seconds(interval.low), seconds(interval.high)]


def answer_tree(answer: Answer, compose: Compose) -> dict[str, object]:
    """What --json prints of one run; seconds."""
    form = answer.form
    return {
        "ranks": answer.work.ranks,
        "mesh": answer.work.mesh_hash,
        "compose": compose,
        "iteration": [form.iteration.low, form.iteration.high],
        "assembly": [form.assembly.low, form.assembly.high],
        "iterations": form.iterations,
        "iterations_from": answer.source,
        "seconds": [form.seconds.low, form.seconds.high],
        "bottleneck": form.bottleneck,
        "terms": {name: [t.low, t.high] for name, t in form.terms.items()},
        "expression": form.expression,
    }
