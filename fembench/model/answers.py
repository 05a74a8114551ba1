"""The answers of `fembench predict` about several runs: predictions, or bounds in
closed form, and how many iterations and seconds a solution takes; as text and as JSON.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.mesh.mesh import Mesh
from fembench.model.closed_form import ClosedForm, TimeRange
from fembench.model.closed_form_prices import bounded, learn_closed_form
from fembench.model.forecast import forecast_text, smallest
from fembench.model.predictor import Predictor, bound_of, prediction_of
from fembench.model.workload import Workload
from fembench.records.case import Case
from fembench.records.prediction import Prediction
from fembench.records.quiet import foreign_work
from fembench.records.record import Record


class BoundedRun(NamedTuple):
    """The closed form of one run."""

    work: Workload
    form: ClosedForm
    source: str  # of the number of iterations


def bounds_text(runs: Sequence[BoundedRun], synthetic: str = "") -> str:
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
    lines.append(f"bounded phase by phase; iterations: {sources}")
    if len(runs) == 1:
        lines += ["", *_terms(runs[0].form)]
    return "\n".join(lines)


def _terms(form: ClosedForm) -> list[str]:
    rows = [[name, seconds(term.low), seconds(term.high)] for name, term in form.terms.items()]
    return [form.expression, "", table(["term, whole run", "from", "to"], rows, align="lrr")]


def _three(expected: float, interval: TimeRange) -> list[str]:
    return [seconds(expected), seconds(interval.low), seconds(interval.high)]


def bounds_tree(run: BoundedRun) -> dict[str, object]:
    """One run in the format of --json, in seconds."""
    form = run.form
    return {
        "ranks": run.work.ranks,
        "mesh": run.work.mesh_hash,
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


@dataclass(frozen=True, repr=False)
class Answers:
    """What `predict` found, a sequence of predictions; each list has one entry per run."""

    predictions: list[Prediction]
    latest: list[float]  # upper end of a solution's seconds; nan: number of iterations unknown
    beyond: list[str]  # warnings: parts larger than the profile covers, devices with one cell
    text: str  # tables, for a terminal
    tree: list[dict[str, object]]  # for --json

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.predictions)

    def __len__(self) -> int:
        return len(self.predictions)

    def __getitem__(self, index: int) -> Prediction:
        return self.predictions[index]

    def __repr__(self) -> str:
        return self.text


def simulated_answers(study: Predictor, cases: Sequence[Case], mesh: Mesh, iterations: int = 0) -> Answers:
    """Predictions by simulation; `iterations` of a solution; 0: unknown. Raises InputError."""
    found = [study.predict(case, mesh) for case in cases]
    said = [prediction_of(study, each) for each in found]
    return Answers(
        predictions=said,
        latest=[each.total(iterations)[2] if iterations else math.nan for each in found],
        beyond=[line for each in found for line in study.beyond(each.work)],
        text=forecast_text(
            found,
            iterations,
            study.profile.environment.synthetic,
            [bool(foreign_work([one])) for one in study.environments],
            doubtful=bool(said[0].predicted.provisional),
        ),
        tree=[msgspec.to_builtins(each) for each in said],
    )


def bounded_answers(
    study: Predictor,
    cases: Sequence[Case],
    mesh: Mesh,
    iterations: int = 0,
    learned: Sequence[Record] = (),
) -> Answers:
    """Predictions in closed form; `iterations` in all, 0: estimated. Raises InputError."""
    correction = learn_closed_form(dataclasses.replace(study, edits=(), factor=1.0), learned)
    found = []
    for case in cases:
        work = study.workload(case, mesh)
        count, source = expected_iterations(iterations, work, learned)
        found.append(BoundedRun(work, bounded(study, work, count, correction), source))
    return Answers(
        predictions=[bound_of(study, each.work, each.form, learned) for each in found],
        latest=[each.form.seconds.high for each in found],
        beyond=[line for each in found for line in study.beyond(each.work)],
        text=bounds_text(found, study.profile.environment.synthetic),
        tree=list(map(bounds_tree, found)),
    )


def fewest_ranks(answers: Answers, deadline: float) -> int:
    """The fewest ranks whose time is within the deadline up to the upper end of its
    interval. Raises InputError if no number does."""
    ranks = [one.predicted.case.placement.ranks for one in answers]
    return smallest(ranks, answers.latest, deadline)


MOST = 10  # iterations allowed per equation, if the case sets no maximum


def expected_iterations(given: int, work: Workload, records: Sequence[Record]) -> tuple[int, str]:
    """(iterations, source of the number): as given; else the median of runs on the
    same mesh; else a law fitted to runs on at least two coarser meshes; else the
    maximum allowed, an upper bound."""
    if given:
        return given, "as given"
    case = work.case
    known = [
        r
        for r in records
        if r.solve.converged
        and not r.case.stop.iterations
        and (r.case.question.problem, r.case.method.precond, r.case.stop.tolerance)
        == (case.question.problem, case.method.precond, case.stop.tolerance)
    ]
    same = [r.solve.iterations for r in known if r.mesh.hash == work.mesh_hash]
    if same:
        return round(float(np.median(same))), "the median of runs on this mesh"
    coarser = {r.mesh.n_equations: r.solve.iterations for r in known if r.mesh.n_equations < work.n_equations}
    if len(coarser) > 1:
        fitted = fitted_iterations(sorted(coarser.items()), work.n_equations)
        return fitted, f"fitted to {len(coarser)} coarser meshes"
    return case.stop.max_iterations or MOST * work.n_equations, "the maximum allowed, an upper bound"


def fitted_iterations(known: Sequence[tuple[int, int]], equations: int) -> int:
    """Iterations on a mesh from those on coarser ones, (equations, iterations): a n^b,
    fitted in logarithms. Raises InputError for fewer than two different meshes."""
    if len({n for n, _ in known}) < 2 or min(min(pair) for pair in known) < 1:
        raise InputError(
            f"iterations on {len(known)} meshes; expected at least two different meshes, all numbers above 0"
        )
    x, y = np.log(np.array(known, float)).T
    b, a = np.polyfit(x, y, 1)
    return round(math.exp(a + b * math.log(equations)))
