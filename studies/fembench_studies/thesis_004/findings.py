"""Findings: statements of the thesis with its numbers and ours."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from fembench.report.page import Section
from fembench.report.table import Table, words
from fembench_studies.study import wanted
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.machines import speeds
from fembench_studies.thesis_004.plan import ALL, StudyPlan
from fembench_studies.thesis_004.quantities import HOSTS, ONE_HOST, Side
from fembench_studies.thesis_004.thesis import RUNS, number
from fembench_studies.thesis_004.weighted import Weighted, best_rounds

NOT_MEASURED = "not measured"
OURS = (630.0, 2592.0, 5460.0)  # equations of our meshes
Row = tuple[str, str, str, str]  # experiment, statement, thesis, here


def findings(
    plan: StudyPlan, here: Side, runs: list[Weighted], notes: str, only: Sequence[str] = ()
) -> Section:
    """The first section of the page: findings of the experiments in `only`; () means all."""
    rows = [
        (experiment, statement, told(thesis.printed()).replace(NOT_MEASURED, "–"), told(here))
        for experiment, statement, told in _statements(plan)
    ]
    rows = [row for row in (*rows, *_weighted(runs)) if wanted(row[0], only)]
    heads = (words("experiment"), words("statement"), words("thesis"), words("here"))
    made = tuple(rows or [("", "see the tables below", "", "")])
    return Section("Findings", [], [Table("findings", "Findings", notes, heads, made)])


def _statements(plan: StudyPlan) -> Iterator[tuple[str, str, Callable[[Side], str]]]:
    """(experiment, statement, what a side has to say)."""
    yield (
        "E9",
        f"slowness of node00 relative to node8, mean over meshes; 1, 2, 4 and 8 tasks{set_ratios(plan)}",
        lambda side: _listed((side.mean_slowness(p) for p in ONE_HOST), ".1f"),
    )
    yield (
        "E3",
        "time per iteration grows as a power of the equations (dense: 2, less if a cache helps; sparse: 1)",
        _growth,
    )
    yield "E10", "fastest of runs 1 to 11 on Meshes 1, 2 and 3", _fastest
    for host in HOSTS:
        yield (
            "E10",
            f"runs, out of 33, that are faster than one task on {host}",
            partial(_faster, host=host),
        )
    yield "E10", "time of the fastest run / best time of node8 alone", lambda side: _listed(
        (_least(side, "run", k, RUNS) / _least(side, "node8", k, ONE_HOST) for k in ALL), ".2f"
    )  # fmt: skip
    yield "E10", "mean error of the bottleneck model over the 11 runs, %", lambda side: _listed(
        (model_error(side, k) for k in ALL), ".1f"
    )  # fmt: skip
    yield (
        "E14",
        "Mesh 3, dense, 8 tasks on one core: speedup of CG (in brackets: predicted from the work saved)",
        lambda side: f"{_known(side.gain('single_cpu', 8), '.2f')} ({_known(1 / side.work(8).total, '.2f')})",
    )
    yield (
        "E14",
        "the same with csr, where no work is saved",
        lambda side: _known(side.gain("single_cpu csr", 8), ".2f"),
    )


def set_ratios(plan: StudyPlan) -> str:
    """The ratios that an emulation sets, which say nothing about the source; "" for real hosts."""
    m = plan.machines
    if not m.emulated:
        return ""
    each = [speeds(m.mixed(0, p))[0] / speeds(m.mixed(p, 0))[0] for p in ONE_HOST]
    return f". Ratios of computing speed set by the emulation: {_listed(each, '.1f')}."


def growth_exponents(sizes: Sequence[float], times: Sequence[float]) -> np.ndarray:
    """(n - 1,) exponents k of T ~ n^k between consecutive sizes."""
    return np.asarray(np.diff(np.log(times)) / np.diff(np.log(sizes)))


def _growth(side: Side) -> str:
    """Exponents between successive meshes, one task."""
    ours = side is not thesis.printed()
    sizes = OURS if ours else [number(row, "equations") for row in thesis.rows("5_5")]
    times = [side.at("single_cpu" if ours else "cluster1", k, 1).iteration for k in ALL]
    known = all(map(np.isfinite, times))
    return _listed(growth_exponents(sizes, times), ".2f") if known else NOT_MEASURED


def _faster(side: Side, host: str) -> str:
    """How many runs are faster than one task on a host; of those measured, if not all are."""
    pairs = [(side.total("run", k, run), side.total(host, k, 1)) for k in ALL for run in RUNS]
    known = [(run, task) for run, task in pairs if np.isfinite(run + task)]
    if not known:
        return NOT_MEASURED
    count = sum(run < task for run, task in known)
    return str(count) if len(known) == len(pairs) else f"{count} of {len(known)} measured"


def _least(side: Side, platform: str, mesh: int, tasks: Iterable[int]) -> float:
    """The shortest of the measured times; nan if there is none."""
    times = (side.total(platform, mesh, t) for t in tasks)
    return min((t for t in times if np.isfinite(t)), default=np.nan)


def _fastest(side: Side) -> str:
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


def _listed(values: Iterable[float], form: str) -> str:
    return ", ".join(_known(value, form) for value in values)


def _known(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else NOT_MEASURED


def _weighted(runs: list[Weighted]) -> Iterator[Row]:
    for storage in ("dense", "csr"):
        each = [w for w in best_rounds(runs) if w.kind.storage == storage]
        if not each:
            continue
        tasks = ", ".join(dict.fromkeys(w.kind.tasks for w in each)) + " tasks"
        if storage == "dense":
            gains = _listed((w.best_seconds / w.seconds for w in each), ".2f")
            yield "E13", f"weighted, dense, {tasks}: speedup over the best of runs 1 to 11", "–", gains
        ideal = _listed((w.seconds / w.ideal for w in each), ".2f")
        yield "E13", f"weighted, {storage}, {tasks}: time / time of the ideal split", "–", ideal
        yield (
            "E13",
            f"weighted, {storage}, {tasks}: compared with node8 alone with as many tasks",
            "–",
            "; ".join(f"{w.mesh}: {w.verdict}" for w in each),
        )
