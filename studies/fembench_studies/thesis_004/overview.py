"""Sections E0, E1, E2, E5 and E6: hosts, timers, meshes, time lines, iterations."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fembench.records.record import Record
from fembench.report import origin
from fembench.report.page import Section
from fembench.report.plots import gantt, lines
from fembench.report.plots.canvas import Plot
from fembench.report.results import results
from fembench.report.table import Table, words
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import beside, columns, count, value
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.machines import Machines
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import FINER, StudyPlan, Want
from fembench_studies.thesis_004.thesis import MESHES, number

OURS_OF = {  # timer in the thesis -> our timer, called from C
    "rdtsc_instruction": "rdtsc",
    "rdtscll": "rdtscp",
    "gettimeofday": "gettimeofday",
    "MPI_Wtime": "MPI_Wtime",
}
# of an independent solver on the same boxes: iterations, and metres at the loaded node along the load
EXPECTED = {"m1": 211, "m2": 328, "m3": 428}
DISPLACEMENT = {"m1": -1.355794854e-07, "m2": -1.945452699e-07, "m3": -2.264046862e-07}
LOAD = (0.0, 500.0, 0.0)  # newton, that the supports bear
MACHINES = ("machine_1", "machine_2", "machine_3")


def hosts(machines: Machines, records: Sequence[Record]) -> Section:
    """E0: our hosts, and those of the thesis."""
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
        (words("kind"), words("hosts"), count("processors"), value("speed")),
        tuple(kinds),
    )
    columns = list(thesis.rows("5_4")[0])
    printed = Table(
        "machines_thesis",
        "Clusters of the thesis (Table 5.4)",
        "node8 is a host of Cluster 1, node00 one of Cluster 2.",
        tuple(words(c.replace("_", " "), c) for c in columns),
        tuple(tuple(_plain(v) for v in row.values()) for row in thesis.rows("5_4")),
    )
    return Section("E0 hosts", [], [ours, origin.hosts(records), printed])


def _plain(v: float | str) -> str:
    return v if isinstance(v, str) else f"{v:g}"


def timers(tree: Mapping[str, Any]) -> Section:
    """E1: cost of reading a timer (Tables 5.2 and 5.3)."""
    found = {t["timer"]: t for t in tree.get("timers", ()) if t["language"] == "C"}
    ours = {thesis_name: found.get(name, {}) for thesis_name, name in OURS_OF.items()}
    columns = ["here_cycles", *(f"{m}_cycles" for m in MACHINES)]
    rows = [
        (
            row["timer"],
            row["statistic_of_100_calls"],
            ours[str(row["timer"])].get(str(row["statistic_of_100_calls"]), math.nan),
            *(number(row, f"{m}_cycles") for m in MACHINES),
        )
        for row in thesis.rows("5_2")
    ]
    cycles = Table(
        "timers",
        "Cost of a call, cycles (Table 5.2)",
        "100 calls from C; here in ticks of the time-stamp counter "
        f"({tree.get('ticks_per_second', 0) / 1e6:.0f} MHz). rdtscll is compared with our rdtscp.",
        (words("timer"), words("statistic", "statistic_of_100_calls"), *(value(c) for c in columns)),
        tuple(rows),
    )
    names = {"rdtsc_instruction_ms": "rdtsc_instruction", "rdtscll_ms": "rdtscll",
             "gettimeofday_ms": "gettimeofday", "mpi_wtime_ms": "MPI_Wtime"}  # fmt: skip
    here = tuple(1e-6 * ours[t].get("mean_ns", math.nan) for t in names.values())
    printed = thesis.rows("5_3")
    means = Table(
        "timers_ms",
        "Mean cost of a call, milliseconds (Table 5.3)",
        "In the thesis, rdtsc on machines 1 and 3 and rdtscll on machine 3 do not follow from Table 5.2.",
        (words("machine"), *(value(n) for n in names)),
        (("here", *here), *((_plain(r["machine"]), *(number(r, n) for n in names)) for r in printed)),
    )
    return Section("E1 timers", [_bars(ours), _means(here, names, printed)], [cycles, means])


def _bars(ours: Mapping[str, Mapping[str, float]]) -> Plot:
    statistics = ("best", "mean", "worst")
    panels = [
        Panel(
            "here",
            list(ours),
            {s: [t.get(s, math.nan) for t in ours.values()] for s in statistics},
            "cycles",
            "",
        )
    ]
    for k, machine in enumerate(MACHINES):
        table = {
            (r["timer"], r["statistic_of_100_calls"]): number(r, f"{machine}_cycles")
            for r in thesis.rows("5_2")
        }
        series = {s: [table[t, s] for t in ours] for s in statistics}
        panels.append(Panel(f"thesis, machine {k + 1}", list(ours), series, "cycles", ""))
    return charts.grouped(
        "timers",
        "Cost of a timer call (Figs 5.1, 5.2, 5.3)",
        "Cycles per call, logarithmic scale; 100 calls. rdtsc is cheapest on every machine.",
        panels,
        log=True,
        columns=2,
    )


def _means(here: Sequence[float], names: Mapping[str, str], printed: Sequence[thesis.Row]) -> Plot:
    series = {"here": here} | {
        f"thesis, machine {_plain(r['machine'])}": [number(r, n) for n in names] for r in printed
    }
    return charts.grouped(
        "timers_ms",
        "Mean cost of a timer call (Fig. 5.4)",
        "Milliseconds, logarithmic scale.",
        [Panel("", list(names.values()), series, "ms", "")],
        log=True,
    )


def meshes(plan: StudyPlan, found: StudyRecords, pictures: list[Plot]) -> Section:
    """E2: the meshes (Table 5.5; Figs 5.7, 5.8)."""
    columns = ("nodes", "elements", "total_dofs", "restrained_dofs", "equations")
    rows = []
    for k, (mesh, row) in enumerate(zip(MESHES, thesis.rows("5_5"))):
        record = found.record(plan.sparse(mesh))
        if record:
            m = record.mesh
            ours = [m.n_nodes, m.n_cells, 3 * m.n_nodes, m.n_fixed, m.n_equations]
            rows.append(((k + 1,), ours, [number(row, c) for c in columns]))
    table = beside(
        "meshes",
        "Meshes (Table 5.5)",
        "The meshes of the thesis are lost. Ours divide the same solid (1 x 0.5 x 1 m, clamped at x = 0, "
        "500 N at a corner) into Kuhn tetrahedra, with about as many equations.",
        ("mesh",),
        columns,
        rows,
    )
    return Section("E2 meshes", pictures, [table])


def time_lines(plan: StudyPlan, found: StudyRecords) -> Section:
    """E5: Mesh 1, two tasks on one host, with two processors and with one."""
    plots = []
    for where, figure, words_ in (
        ("two-cores", "Fig. 5.20", "two processors: the tasks overlap."),
        ("one-core", "Fig. 5.21", "one processor: one task computes while the other waits for its message."),
    ):
        record = found.record(plan.here("m1", 2, where))  # type: ignore[arg-type]
        for plot in gantt.time_lines(results([record])) if record else ():
            renamed = dataclasses.replace(
                plot,
                name=f"time_line-{where}",
                title=f"Two tasks on {where.replace('-', ' ')}, Mesh 1 ({figure})",
                caption=f"Two tasks on {words_} {plot.caption}",
            )
            plots.append(renamed)
    return Section("E5 time lines", plots, [])


def iterations(plan: StudyPlan, found: StudyRecords) -> Section:
    """E6: iterations against equations."""
    wanted = [plan.sparse(mesh) for mesh in (*MESHES, *FINER)]
    records = [r for w in wanted if (r := found.record(w))]
    rows = [_iteration_row(w, found) for w in wanted if found.record(w)]
    table = Table(
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
        tuple(rows),
    )
    plot = lines.iterations(results(records))
    return Section("E6 iterations", [plot] if plot else [], [table])


def _iteration_row(want: Want, found: StudyRecords) -> tuple[object, ...]:
    record = found.pool(want)[0]
    mesh = record.case.question.mesh
    moved, check = record.verification.load_displacement, record.verification
    return (
        *(mesh, record.mesh.n_equations, record.solve.iterations, EXPECTED.get(mesh)),
        *(check.reactions[1], moved[1] if moved else None, DISPLACEMENT.get(mesh)),
    )
