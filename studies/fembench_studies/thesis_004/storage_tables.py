"""Sections E12 and E14: parts of Mesh 3; dense and csr storage, or why speedups are super-linear."""

from typing import NamedTuple

import numpy as np

from fembench.report.page import Section
from fembench.report.plots.canvas import Plot
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import beside
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.dense import DenseWork, dense_work, local_equations
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ONE_HOST, StudyPlan, Want
from fembench_studies.thesis_004.thesis import number

EQUATIONS = 5565  # of the thesis' Mesh 3


def parts(plan: StudyPlan, found: StudyRecords, pictures: list[Plot]) -> Section:
    """E12: elements and shared unknowns of every part of Mesh 3."""
    tables = []
    panels = []
    for tasks, name in thesis.PARTS.items():
        record = found.record(plan.here("m3", tasks, "two-cores"))
        printed = thesis.rows(name)
        rows = []
        for p, row in enumerate(printed):
            f = record.partition if record else None
            ours = [f.cells[p], f.shared_dofs_all[p], f.shared_dofs[p]] if f else [np.nan] * 3
            rows.append(((3, tasks, p), ours, [number(row, "elements"), number(row, "shared_dofs"), np.nan]))
        series = {"here": [r[1][1] for r in rows], "thesis": [r[2][1] for r in rows]}
        panels.append(Panel(f"{tasks} parts", [str(p) for p in range(tasks)], series, "shared dofs", "part"))
        tables.append(
            beside(
                f"parts_{tasks}",
                f"Mesh 3 in {tasks} parts (Table {name.replace('_', '.')})",
                f"Here {_sums(rows, 1)}; in the thesis {_sums(rows, 2)}. Shared dofs include restrained "
                "ones, as they may in the thesis; shared free dofs are listed separately.",
                ("mesh", "tasks", "task"),
                ("elements", "shared_dofs", "shared_free_dofs"),
                rows,
            )
        )
    plot = charts.grouped(
        "parts_shared",
        "Shared dofs of the parts of Mesh 3",
        "Unknowns that each task exchanges per iteration. METIS 4, used in the thesis, made interfaces a "
        "third larger.",
        panels,
    )
    return Section("E12 partition of Mesh 3", [plot, *pictures], tables)


def _sums(rows: list, which: int) -> str:
    elements = [row[which][0] for row in rows]
    shared = sum(row[which][1] for row in rows)
    return (
        f"{sum(elements):.0f} elements, largest part {max(elements) * len(rows) / sum(elements):.3f} of "
        f"the mean, {shared:.0f} shared dofs in all"
    )


class DenseSpeedups(NamedTuple):
    """Work of dense parts, and measured speedups; nan if not measured."""

    dense: DenseWork
    one_dense: float
    one_csr: float
    many_dense: float
    many_csr: float


def work_of(plan: StudyPlan, found: StudyRecords) -> dict[int, DenseSpeedups]:
    """tasks -> dense work of Mesh 3, and speedups of CG here."""
    made = {}
    for tasks in ONE_HOST:
        record = found.record(plan.here("m3", tasks, "one-core"))
        if record:
            made[tasks] = DenseSpeedups(
                dense_work(record.partition.dofs, record.mesh.n_equations),
                *(_gain(plan, found, tasks, where, s) for where in ("one", "many") for s in ("dense", "csr")),
            )
    return made


def _want(plan: StudyPlan, tasks: int, where: str, storage: str) -> Want | None:
    if where == "one":
        return plan.here("m3", tasks, "one-core", storage)
    placement = plan.machines.one_each("cluster1", tasks)
    return plan.on_hosts("m3", placement, storage) if placement else None


def _gain(plan: StudyPlan, found: StudyRecords, tasks: int, where: str, storage: str) -> float:
    """Speedup of an iteration of CG over one task."""
    alone, run = (found.phases(_want(plan, p, where, storage)) for p in (1, tasks))
    return alone.iteration / run.iteration


def gains_of(plan: StudyPlan, found: StudyRecords, tasks: int, storage: str) -> list[float]:
    """Speedup of an iteration of CG over one task, all on one core; one per repetition."""
    alone, run = (found.iterations_of(_want(plan, p, "one", storage)) for p in (1, tasks))
    return [a / b for a, b in zip(alone, run)]


def printed_work() -> dict[int, DenseSpeedups]:
    """The same from Tables 5.31 to 5.33, 5.17 and 5.10 of the thesis."""
    made = {}
    for tasks in ONE_HOST:
        local = np.array([float(EQUATIONS)])
        if tasks > 1:
            rows = thesis.rows(thesis.PARTS[tasks])
            local = local_equations(
                [int(number(r, "elements")) for r in rows],
                [int(number(r, "shared_dofs")) for r in rows],
                EQUATIONS,
            )
        gains = []
        for platform in ("single_cpu", "cluster1"):
            times = thesis.by_tasks(thesis.PHASES[platform][2])
            gain = number(times[1], "cg_ms") / number(times[tasks], "cg_ms") if tasks in times else np.nan
            gains += [gain, np.nan]
        made[tasks] = DenseSpeedups(dense_work(local, EQUATIONS), *gains)
    return made


def storage(plan: StudyPlan, found: StudyRecords) -> Section:
    """E14: dense and csr storage, on one core and with one core per task."""
    mine, printed = work_of(plan, found), printed_work()
    rows = []
    for tasks in mine:
        a, b = mine[tasks], printed[tasks]
        rows.append(((3, tasks), _row(a), _row(b)))
    table = beside(
        "storage",
        "Why the speedups are super-linear: dense work of Mesh 3",
        "The relative work of task i is n_i² / n², where n_i counts the equations that it touches. On one "
        "core the sum over tasks counts, with one core per task the largest. Splitting a dense matrix "
        "reduces the sum without any parallelism, so the predicted gain on one core is 1 / sum. Sparse "
        "storage (csr) saves and gains nothing there. Gains are speedups of CG over one task; they exceed "
        "the prediction if smaller blocks fit into a cache.",
        ("mesh", "tasks"),
        (
            "dense_work_sum",
            "dense_work_largest",
            "predicted_gain_one_core",
            "dense_gain_one_core",
            "csr_gain_one_core",
            "predicted_gain_core_each",
            "dense_gain_core_each",
            "csr_gain_core_each",
        ),
        rows,
    )
    return Section("E14 dense and csr", [_plot(mine, printed)] if mine else [], [table])


def _row(w: DenseSpeedups) -> list[float]:
    d = w.dense
    return [
        d.total, d.largest, d.gain_on_one, w.one_dense, w.one_csr, d.gain_on_many, w.many_dense, w.many_csr,
    ]  # fmt: skip


def _plot(mine: dict[int, DenseSpeedups], printed: dict[int, DenseSpeedups]) -> Plot:
    names = [str(t) for t in mine]
    panels = []
    for title, k, predicted in (
        ("all tasks on one core", 0, lambda w: w.dense.gain_on_one),
        ("one core per task", 2, lambda w: w.dense.gain_on_many),
    ):
        series = {
            "dense, here": [w[1 + k] for w in mine.values()],
            "dense, predicted here": [predicted(w) for w in mine.values()],
            "csr, here": [w[2 + k] for w in mine.values()],
            "dense, thesis": [printed[t][1 + k] for t in mine],
            "dense, predicted for the thesis": [predicted(printed[t]) for t in mine],
        }
        panels.append(Panel(title, names, series, "speedup of CG"))
    return charts.curves(
        "storage",
        "Speedup of CG on Mesh 3, dense and csr",
        "On the left nothing runs in parallel; dense storage still gains, because splitting saves work. "
        "Dashed lines follow from the sizes of the parts alone.",
        panels,
        log=True,
        dashed="predicted",
        columns=2,
    )
