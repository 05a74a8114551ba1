"""Findings: statements of the thesis with its numbers and ours."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from fembench.report.page import Section
from fembench_studies.declared import captions
from fembench_studies.study import wanted
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.machines import speeds
from fembench_studies.thesis_004.plan import ALL, StudyPlan
from fembench_studies.thesis_004.quantities import ONE_HOST, Side
from fembench_studies.thesis_004.thesis import RUNS, number
from fembench_studies.thesis_004.weighted import Weighted, best_rounds

NOT_MEASURED = "not measured"
OURS = (630.0, 2592.0, 5460.0)  # equations of our meshes
Row = tuple[str, str, str, str]  # experiment, statement, thesis, here


def findings(
    plan: StudyPlan, here: Side, runs: list[Weighted], notes: str, only: Sequence[str] = ()
) -> Section:
    """The first section of the page: findings of the
    experiments in `only`; () means all."""
    texts = captions("thesis_004")
    rows = [
        (
            experiment,
            statement.format(ratios=set_ratios(plan)),
            _told(told, thesis.printed()).replace(NOT_MEASURED, "–"),
            _told(told, here),
        )
        for experiment, statement, told in texts.statements
    ]
    rows = [row for row in (*rows, *_weighted(runs)) if wanted(row[0], only)]
    made = texts.table("findings", rows or [("", "see the tables below", "", "")], note=notes)
    return Section("Findings", [], [made])


def _told(text: str, side: Side) -> str:
    """What a side has to say: an expression of a file of this package, evaluated."""
    told: str = eval(text, {**NAMES, "side": side})
    return told


def set_ratios(plan: StudyPlan) -> str:
    """The ratios that an emulation sets, which say nothing about the
    source; "" for real hosts."""
    m = plan.machines
    if not m.emulated:
        return ""
    each = [speeds(m.mixed(0, p))[0] / speeds(m.mixed(p, 0))[0] for p in ONE_HOST]
    return f". Ratios of computing speed set by the emulation: {listed(each, '.1f')}."


def growth_exponents(sizes: Sequence[float], times: Sequence[float]) -> np.ndarray:
    """(n - 1,) exponents k of T ~ n^k between consecutive sizes."""
    return np.asarray(np.diff(np.log(times)) / np.diff(np.log(sizes)))


def growth(side: Side) -> str:
    """Exponents between successive meshes, one task."""
    ours = side is not thesis.printed()
    sizes = OURS if ours else [number(row, "equations") for row in thesis.rows("5_5")]
    times = [side.at("single_cpu" if ours else "cluster1", k, 1).iteration for k in ALL]
    known = all(map(np.isfinite, times))
    return listed(growth_exponents(sizes, times), ".2f") if known else NOT_MEASURED


def faster(side: Side, host: str) -> str:
    """How many runs are faster than one task on a host; of
    those measured, if not all are."""
    pairs = [(side.total("run", k, run), side.total(host, k, 1)) for k in ALL for run in RUNS]
    known = [(run, task) for run, task in pairs if np.isfinite(run + task)]
    if not known:
        return NOT_MEASURED
    count = sum(run < task for run, task in known)
    return str(count) if len(known) == len(pairs) else f"{count} of {len(known)} measured"


def least(side: Side, platform: str, mesh: int, tasks: Iterable[int]) -> float:
    """The shortest of the measured times; nan if there is none."""
    times = (side.total(platform, mesh, t) for t in tasks)
    return min((t for t in times if np.isfinite(t)), default=np.nan)


def fastest(side: Side) -> str:
    """The fastest of runs 1 to 11 on each mesh, with its tasks."""
    each = []
    for k in ALL:
        known = {run: t for run in RUNS if np.isfinite(t := side.total("run", k, run))}
        run = min(known, key=lambda r: known[r]) if known else 0
        each.append("run {} ({}:{})".format(run, *RUNS[run]) if run else NOT_MEASURED)
    return ", ".join(each)


def model_error(side: Side, mesh: int) -> float:
    """Mean |error| of the bottleneck model over runs 1 to 11, per cent."""
    errors = [side.bottleneck(mesh, *tasks) / side.total("run", mesh, run) - 1 for run, tasks in RUNS.items()]
    return 100 * float(np.mean(np.abs(errors)))


def listed(values: Iterable[float], form: str) -> str:
    """Numbers, separated by commas."""
    return ", ".join(shown(value, form) for value in values)


def shown(value: float, form: str) -> str:
    """A number, or that it is not known."""
    return f"{value:{form}}" if np.isfinite(value) else NOT_MEASURED


NAMES: dict[str, object] = {
    f.__name__: f for f in (growth, faster, least, fastest, model_error, listed, shown)
}
NAMES |= {"ALL": ALL, "ONE_HOST": ONE_HOST, "RUNS": RUNS}


def _weighted(runs: list[Weighted]) -> Iterator[Row]:
    for storage in ("dense", "csr"):
        each = [w for w in best_rounds(runs) if w.kind.storage == storage]
        if not each:
            continue
        tasks = ", ".join(dict.fromkeys(w.kind.tasks for w in each)) + " tasks"
        if storage == "dense":
            gains = listed((w.best_seconds / w.seconds for w in each), ".2f")
            yield "E13", f"weighted, dense, {tasks}: speedup over the best of runs 1 to 11", "–", gains
        ideal = listed((w.seconds / w.ideal for w in each), ".2f")
        yield "E13", f"weighted, {storage}, {tasks}: time / time of the ideal split", "–", ideal
        yield (
            "E13",
            f"weighted, {storage}, {tasks}: compared with node8 alone with as many tasks",
            "–",
            "; ".join(f"{w.mesh}: {w.verdict}" for w in each),
        )
