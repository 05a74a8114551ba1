"""What no comparison of two sides declares: hosts, timers, meshes, iterations, weighted parts, slips."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from fembench.report.plots.canvas import Plot
from fembench.report.table import Table, words
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import beside, columns, source_table, value
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.machines import Machines
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import FINER, StudyPlan, Want
from fembench_studies.thesis_004.thesis import EXPECTED, MESHES, number
from fembench_studies.thesis_004.weighted import Weighted, best_rounds

# of an independent solver on the same boxes: metres at the loaded node along the load
DISPLACEMENT = {"m1": -1.355794854e-07, "m2": -1.945452699e-07, "m3": -2.264046862e-07}
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
    ours = Table(
        "machines",
        "Hosts of the experiments",
        "Emulated: a task sleeps after each phase, so that it computes at the speed of its host. Speeds are "
        f"per processor. All hosts are dilated {machines.dilate:g} times so that they fit on this machine."
        if machines.emulated
        else "Real hosts, as given. Tasks are confined to the listed number of processors.",
        columns("kind words; hosts words; processors count; speed"),
        tuple(kinds),
    )
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
    """machine -> (timer, statistic) -> cycles (Table 5.2); 'here' in ticks, from `fembench timers --json`."""
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
    of_call = Table(
        "timers",
        "Cost of a call, cycles (Table 5.2)",
        "100 calls from C; here in ticks of the time-stamp counter "
        f"({tree.get('ticks_per_second', 0) / 1e6:.0f} MHz). rdtscll is compared with our rdtscp.",
        (words("timer"), words("statistic"), *(value(f"{machine}_cycles") for machine in cycles)),
        tuple((*key, *(each[key] for each in cycles.values())) for key in cycles["here"]),
    )
    mean = Table(
        "timers_ms",
        "Mean cost of a call, milliseconds (Table 5.3)",
        "In the thesis, rdtsc on machines 1 and 3 and rdtscll on machine 3 do not follow from Table 5.2.",
        (words("machine"), *(value(f"{name}_ms") for name in OURS_OF)),
        tuple((machine, *each) for machine, each in means.items()),
    )
    return [of_call, mean]


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
    cycles = charts.grouped(
        "timers",
        "Cost of a timer call (Figs 5.1, 5.2, 5.3)",
        "Cycles per call, logarithmic scale; 100 calls. rdtsc is cheapest on every machine.",
        panels,
        log=True,
        columns=2,
    )
    means = charts.grouped(
        "timers_ms",
        "Mean cost of a timer call (Fig. 5.4)",
        "Milliseconds, logarithmic scale.",
        [Panel("", list(OURS_OF), timer_means(tree), "ms", "")],
        log=True,
    )
    return [cycles, means]


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
    return beside(
        "meshes",
        "Meshes (Table 5.5)",
        "The meshes of the thesis are lost. Ours divide the same solid (1 x 0.5 x 1 m, clamped at x = 0, "
        "500 N at a corner) into Kuhn tetrahedra, with about as many equations.",
        ("mesh",),
        names,
        rows,
    )


def iterations(plan: StudyPlan, found: StudyRecords) -> Table:
    """E6: iterations against equations."""
    wants = [plan.sparse(mesh) for mesh in (*MESHES, *FINER)]
    return Table(
        "iterations",
        "Iterations and equations (Fig. 5.22)",
        "Iterations to ‖r‖ ≤ 1e-6 N without a preconditioner, on one rank. The thesis gives its values only "
        "in a figure, which is lost. 'Expected' comes from an independent solver on the same boxes, whose "
        "displacement of the loaded node, along the load, is the last column. Reactions are those along y, "
        "summed over the supports.",
        columns(
            "mesh words; equations count; iterations count; expected count; reaction_n; displacement_m; "
            "expected_displacement_m"
        ),
        tuple(_iteration_row(want, found) for want in wants if found.record(want)),
    )


def _iteration_row(want: Want, found: StudyRecords) -> tuple[object, ...]:
    record = found.pool(want)[0]
    mesh = record.case.question.mesh
    moved, check = record.verification.load_displacement, record.verification
    return (
        *(mesh, record.mesh.n_equations, record.solve.iterations, EXPECTED.get(mesh)),
        *(check.reactions[1], moved[1] if moved else None, DISPLACEMENT.get(mesh)),
    )


def weighted(runs: Sequence[Weighted]) -> Table:
    """E13: unequal parts compared with the best of runs 1 to 11 and with each host alone."""
    rows = [
        (
            *(w.mesh, w.kind.storage, w.kind.tasks, w.round, 100 * w.share, w.seconds, w.equal),
            f"run {w.kind.run}" if w.kind.run else None,
            *(w.best_seconds, w.best_seconds / w.seconds, w.fast_alone, w.slow_alone, w.fast_best),
            *(w.ideal, w.seconds / w.ideal, 100 * w.communication, w.verdict),
        )
        for w in runs
    ]
    return Table(
        "weighted",
        "Weighted partition (the thesis' future work)",
        "Seconds. Tasks are those on node00 + those on node8. Round 1 takes its shares from the totals of "
        "each host alone (E9), round 2 from the computing time of each task in round 1. Dense uses the tasks "
        "of the best of runs 1 to 11. Each host alone runs the same number of tasks (dense) or one task per "
        "processor (csr); ideal is 1 / (1/T + 1/T) of those two times. Gain is the speedup over the best of "
        "runs 1 to 11. In the thesis no run was faster than node8 alone: the best took 2.14, 1.76 and 2.04 "
        "times as long.",
        columns(
            "mesh words; storage words; tasks words; round count; share_of_node00_percent value share of "
            "node00, %; weighted_s; equal_s value equal parts s; best_run words; best_run_s; gain value "
            "gain over best run; node8_alone_s; node00_alone_s; best_node8_alone_s; ideal_s; "
            "weighted_over_ideal value weighted / ideal; communication_percent value communication, % of "
            "CG; verdict words"
        ),
        tuple(rows),
    )


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
    return charts.grouped(
        "weighted",
        "Weighted partition against equal parts",
        "Faster of both rounds, relative to node8 alone with as many tasks (dashed line). Below the line the "
        "slow host helps.",
        panels,
        line=1.0,
        columns=2,
    )


def slips() -> Table:
    """Printed numbers that contradict each other (docs/sources.md)."""
    rows = source_table("thesis_004", "slips")
    return Table(
        "slips",
        "Slips in the thesis' tables",
        "Printed numbers that violate one of three rules: phases add up to the total within 1e-4; computing "
        "(CG minus communication) falls at most by the square of the number of tasks, which is what "
        "splitting dense matrices can save; times of timers equal cycles / clock within 1 %. Other tables "
        "of this page keep the printed numbers.",
        columns(
            "table words; where words; tasks words; what words; printed; expected value expected "
            "(computing: at most)"
        ),
        tuple(
            (
                *(row[name] for name in ("table", "where", "tasks", "what")),
                *map(float, (row["printed"], row["expected"])),
            )
            for row in rows
        ),
    )
