"""What no comparison of two sides declares: hosts, timers, meshes,
iterations, weighted parts, slips."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from fembench.report.plots.canvas import Plot
from fembench.report.table import Table, words
from fembench_studies.charts import Panel
from fembench_studies.declared import captions
from fembench_studies.layout import source_table
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.machines import Machines
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import FINER, StudyPlan, Want
from fembench_studies.thesis_004.thesis import EXPECTED, MESHES, number
from fembench_studies.thesis_004.weighted import Weighted, best_rounds

# of an independent solver on the same boxes: metres at the loaded node along the load
DISPLACEMENT = {"m1": -1.355794854e-07, "m2": -1.945452699e-07, "m3": -2.264046862e-07}
TEXTS = captions("thesis_004")
MACHINES = ("machine_1", "machine_2", "machine_3")
OURS_OF = {  # timer in the thesis -> our timer, called from C
    "rdtsc_instruction": "rdtsc",
    "rdtscll": "rdtscp",
    "gettimeofday": "gettimeofday",
    "MPI_Wtime": "MPI_Wtime",
}


def hosts(machines: Machines) -> list[Table]:
    """E0: our hosts, and those of the thesis (Table 5.4)."""
    kinds = [
        (kind, ", ".join(h.name for h in group), group[0].cores, group[0].speed or None)
        for kind, group in (("cluster 1 (fast)", machines.fast), ("cluster 2 (slow)", machines.slow))
    ]
    about = TEXTS.notes["emulated_hosts" if machines.emulated else "real_hosts"]
    ours = TEXTS.table("machines", kinds, note=about.format(dilate=machines.dilate))
    rows = thesis.rows("5_4")
    printed = Table(
        "machines_thesis",
        "Clusters of the thesis (Table 5.4)",
        "node8 is a host of Cluster 1, node00 one of Cluster 2.",
        tuple(words(name.replace("_", " "), name) for name in rows[0]),
        tuple(tuple(v if isinstance(v, str) else f"{v:g}" for v in row.values()) for row in rows),
    )
    return [ours, printed]


def timer_cycles(tree: Mapping[str, Any]) -> dict[str, dict[tuple[str, str], float]]:
    """machine -> (timer, statistic) -> cycles (Table 5.2); 'here' in ticks,
    from `fembench timers --json`."""
    found = {t["timer"]: t for t in tree.get("timers", ()) if t["language"] == "C"}
    rows = {(str(r["timer"]), str(r["statistic_of_100_calls"])): r for r in thesis.rows("5_2")}
    ours = {(name, what): found.get(OURS_OF[name], {}).get(what, nan) for name, what in rows}
    printed = {m: {key: number(row, f"{m}_cycles") for key, row in rows.items()} for m in MACHINES}
    return {"here": ours} | printed


def timer_means(tree: Mapping[str, Any]) -> dict[str, list[float]]:
    """machine -> mean milliseconds of each timer (Table 5.3)."""
    found = {t["timer"]: t["mean_ns"] for t in tree.get("timers", ()) if t["language"] == "C"}
    ours = [1e-6 * found.get(name, nan) for name in OURS_OF.values()]
    return {"here": ours} | {
        f"machine {row['machine']:g}": [number(row, f"{name.lower()}_ms") for name in OURS_OF]
        for row in thesis.rows("5_3")
    }


def timers(tree: Mapping[str, Any]) -> list[Table]:
    """E1: cost of reading a timer (Tables 5.2 and 5.3)."""
    cycles, means = timer_cycles(tree), timer_means(tree)
    calls = ((*key, *(each[key] for each in cycles.values())) for key in cycles["here"])
    return [
        TEXTS.table("timers", calls, megahertz=tree.get("ticks_per_second", 0) / 1e6),
        TEXTS.table("timers_ms", ((machine, *each) for machine, each in means.items())),
    ]


def timer_plots(tree: Mapping[str, Any]) -> list[Plot]:
    """E1: best, mean and worst cost of a call, and the mean."""
    panels = [
        Panel(
            machine.replace("_", " "),
            list(OURS_OF),
            {what: [found[name, what] for name in OURS_OF] for what in ("best", "mean", "worst")},
            "cycles",
            "",
        )
        for machine, found in timer_cycles(tree).items()
    ]
    means = [Panel("", list(OURS_OF), timer_means(tree), "ms", "")]
    return [TEXTS.figure("timers", panels), TEXTS.figure("timers_ms", means)]


def meshes(plan: StudyPlan, found: StudyRecords) -> Table:
    """E2: the meshes (Table 5.5)."""
    names = ("nodes", "elements", "total_dofs", "restrained_dofs", "equations")
    rows = []
    for k, (mesh, row) in enumerate(zip(MESHES, thesis.rows("5_5")), 1):
        record = found.record(plan.sparse(mesh))
        if record:
            m = record.mesh
            ours = [m.n_nodes, m.n_cells, 3 * m.n_nodes, m.n_fixed, m.n_equations]
            rows.append(((k,), ours, [number(row, name) for name in names]))
    return TEXTS.beside("meshes", rows)


def iterations(plan: StudyPlan, found: StudyRecords) -> Table:
    """E6: iterations against equations."""
    wants = [plan.sparse(mesh) for mesh in (*MESHES, *FINER)]
    return TEXTS.table("iterations", (_iteration_row(want, found) for want in wants if found.record(want)))


def _iteration_row(want: Want, found: StudyRecords) -> tuple[object, ...]:
    record = found.pool(want)[0]
    mesh = record.case.question.mesh
    moved, check = record.verification.load_displacement, record.verification
    return (
        *(mesh, record.mesh.n_equations, record.solve.iterations, EXPECTED.get(mesh)),
        *(check.reactions[1], moved[1] if moved else None, DISPLACEMENT.get(mesh)),
    )


def weighted(runs: Sequence[Weighted]) -> Table:
    """E13: unequal parts compared with the best of runs 1 to
    11 and with each host alone."""
    rows = [
        (
            *(w.mesh, w.kind.storage, w.kind.tasks, w.round, 100 * w.share, w.seconds, w.equal),
            f"run {w.kind.run}" if w.kind.run else None,
            *(w.best_seconds, w.best_seconds / w.seconds, w.fast_alone, w.slow_alone, w.fast_best),
            *(w.ideal, w.seconds / w.ideal, 100 * w.communication, w.verdict),
        )
        for w in runs
    ]
    return TEXTS.table("weighted", rows)


def weighted_plot(runs: list[Weighted]) -> Plot:
    """E13: the faster of both rounds."""
    panels = []
    for storage in dict.fromkeys(w.kind.storage for w in runs):
        mine = [w for w in best_rounds(runs) if w.kind.storage == storage]
        series = {
            "weighted": [w.seconds / w.fast_alone for w in mine],
            "equal parts": [w.equal / w.fast_alone for w in mine],
            "best of runs 1–11": [w.best_seconds / w.fast_alone for w in mine],
            "ideal": [w.ideal / w.fast_alone for w in mine],
        }
        names = [f"{w.mesh}: {w.kind.tasks}" for w in mine]
        panels.append(Panel(storage, names, series, "time / node8 alone", "mesh and tasks"))
    return TEXTS.figure("weighted", panels)


def slips() -> Table:
    """Printed numbers that contradict each other (docs/sources.md)."""
    named = ("table", "where", "tasks", "what")
    rows = source_table("thesis_004", "slips")
    return TEXTS.table(
        "slips",
        ((*(row[name] for name in named), float(row["printed"]), float(row["expected"])) for row in rows),
    )
