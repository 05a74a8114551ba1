"""Sections E9, E10 and E11: totals of each host alone, runs 1 to 11 on both, pairs of hosts."""

from typing import NamedTuple

import numpy as np

from fembench.report.page import Section
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import beside, count, value
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.machines import speeds
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ONE_HOST, RUNS, StudyPlan
from fembench_studies.thesis_004.split import bottleneck_time, ideal_split
from fembench_studies.thesis_004.thesis import MESHES, number

HOSTS = {"node8": "5_25", "node00": "5_26"}
X_RUNS = "tasks on node00 : node8"
# Tables 5.28 to 5.30, corrected from the other tables of the thesis
CORRECT = ((0.572878, 3.221081, 3.19197), (9.148234, 60.15758, 62.689994), (54.287389, 372.81553, 380.485917))
Totals = dict[int, float]  # tasks -> seconds


def alone(plan: StudyPlan, found: StudyRecords, host: str, mesh: str) -> Totals:
    """tasks -> total of one host alone, seconds."""
    fast = host == "node8"
    return {
        tasks: found.total(
            plan.on_hosts(mesh, plan.machines.mixed(0, tasks) if fast else plan.machines.mixed(tasks, 0))
        )
        for tasks in ONE_HOST
    }


def run_totals(plan: StudyPlan, found: StudyRecords, mesh: str) -> Totals:
    """run -> total, seconds."""
    return {run: found.total(plan.on_hosts(mesh, plan.machines.mixed(a, b))) for run, (a, b) in RUNS.items()}


def totals(plan: StudyPlan, found: StudyRecords) -> Section:
    """E9: Tables 5.25 and 5.26, the slowness of node00, and the weights that follow."""
    mine = {host: [alone(plan, found, host, mesh) for mesh in MESHES] for host in HOSTS}
    printed = {host: [thesis.totals(host, k) for k in (1, 2, 3)] for host in HOSTS}
    columns = [f"mesh_{k}_total_ms" for k in (1, 2, 3)]
    rows = [
        (
            (host, tasks),
            [1e3 * mesh[tasks] for mesh in mine[host]],
            [1e3 * mesh[tasks] for mesh in printed[host]],
        )
        for host in HOSTS
        for tasks in ONE_HOST
    ]
    table = beside(
        "totals",
        "Totals on one host alone (Tables 5.25, 5.26)",
        "Milliseconds for partitioning, assembly and CG together, means over tasks.",
        ("platform", "tasks"),
        columns,
        rows,
    )
    names = [str(p) for p in ONE_HOST]
    panels = [
        Panel(
            f"Mesh {k + 1}",
            names,
            {
                f"{host}, {who}": [times[host][k][p] / times["node8"][k][1] for p in ONE_HOST]
                for who, times in (("here", mine), ("thesis", printed))
                for host in HOSTS
            },
            "time / 1 task on node8",
        )
        for k in range(3)
    ]
    plot = charts.curves(
        "totals",
        "Totals of both hosts by number of tasks (Fig. 5.32)",
        "Relative to one task on node8. Dashed: the thesis.",
        panels,
        log=True,
    )
    tables = [table, _ratios(mine, printed, plan), *repeated(plan, found), _weights(mine, printed)]
    return Section("E9 hosts alone, slowness", [plot], tables)


def repeated(plan: StudyPlan, found: StudyRecords) -> list[Table]:
    """How far apart the ratios of single repetitions are; [] if nothing was repeated."""
    rows = [(tasks, *(apart(plan, found, mesh, tasks).found for mesh in MESHES)) for tasks in ONE_HOST]
    if not np.isfinite([row[1:] for row in rows]).any():
        return []
    columns = (count("tasks"), *(value(f"mesh_{k}_apart_percent") for k in (1, 2, 3)))
    text = (
        "Largest over smallest ratio of single repetitions, minus 1. Ratios that differ by more than 5 % are "
        "too uncertain to derive shares from. The thesis measured one case twice (Mesh 2, one task on "
        "node8): the times are 1.0 % apart."
    )
    return [Table("slowness_repeated", "Slowness of node00 repeated", text, columns, tuple(rows))]


class Apart(NamedTuple):
    """Largest over smallest ratio of single repetitions, minus 1, in per cent; nan: not repeated."""

    found: float
    low: float  # what the sets of these runs leave open; nan: too few sets
    high: float


def apart(plan: StudyPlan, found: StudyRecords, mesh: str, tasks: int) -> Apart:
    """How far apart the ratios of the two hosts are."""
    slow, fast = (plan.on_hosts(mesh, plan.machines.mixed(*pair)) for pair in ((tasks, 0), (0, tasks)))
    ratios = np.log([s / f for s, f in zip(found.totals(slow), found.totals(fast))])
    if len(ratios) < 2:
        return Apart(np.nan, np.nan, np.nan)
    most, least = int(np.argmax(ratios)), int(np.argmin(ratios))
    open_ = [found.scatter(want)[k] for want in (slow, fast) for k in (most, least)]
    far, half = ratios[most] - ratios[least], float(np.linalg.norm(open_))
    return Apart(*(100 * float(np.expm1(x)) for x in (far, far - half, far + half)))


def set_ratios(plan: StudyPlan) -> str:
    """The ratios that an emulation sets, which say nothing about the source."""
    each = [speeds(plan.machines.mixed(0, p))[0] / speeds(plan.machines.mixed(p, 0))[0] for p in ONE_HOST]
    return f"Ratios of computing speed set by the emulation: {', '.join(f'{r:.1f}' for r in each)}."


def _ratios(mine: dict[str, list[Totals]], printed: dict[str, list[Totals]], plan: StudyPlan) -> Table:
    rows = []
    for tasks in ONE_HOST:
        values = []
        for times in (mine, printed):
            each = [s[tasks] / f[tasks] for s, f in zip(times["node00"], times["node8"])]
            values.append([*each, float(np.mean(each))])
        rows.append(((tasks,), values[0], values[1]))
    return beside(
        "slowness",
        "Slowness of node00 relative to node8",
        "The thesis uses 7.7 (one task) and gives node8 seven of eight tasks. That overloads node00: with "
        "both processors of node8 busy, the ratio is about twice as large."
        + (f" {set_ratios(plan)}" if plan.machines.emulated else ""),
        ("tasks",),
        ("mesh_1_ratio", "mesh_2_ratio", "mesh_3_ratio", "mean_ratio"),
        rows,
    )


def _weights(mine: dict[str, list[Totals]], printed: dict[str, list[Totals]]) -> Table:
    rows = []
    for k in range(3):
        for tasks in ONE_HOST:
            ours, theirs = (
                ideal_split([t["node00"][k][tasks], t["node8"][k][tasks]])
                if np.isfinite(t["node00"][k][tasks] + t["node8"][k][tasks])
                else None
                for t in (mine, printed)
            )
            rows.append(
                (
                    (k + 1, tasks),
                    [100 * ours.shares[0], ours.seconds] if ours else [np.nan] * 2,
                    [100 * theirs.shares[0], theirs.seconds] if theirs else [np.nan] * 2,
                )
            )
    return beside(
        "weights",
        "Weights: the share of node00 with which both hosts finish together",
        "From the totals of each host alone, with equal numbers of tasks. Adding node00 can save at most "
        "this share of node8's time.",
        ("mesh", "tasks"),
        ("share_of_node00_percent", "ideal_s"),
        rows,
    )


def together(plan: StudyPlan, found: StudyRecords) -> Section:
    """E10: runs 1 to 11, their speedup and efficiency, and the bottleneck model."""
    mine = {mesh: run_totals(plan, found, mesh) for mesh in MESHES}
    printed = {mesh: thesis.run_seconds(k) for k, mesh in enumerate(MESHES, 1)}
    rows = [
        ((run, a, b), [mine[m][run] for m in MESHES], [printed[m][run] for m in MESHES])
        for run, (a, b) in RUNS.items()
    ]
    table = beside(
        "runs",
        "Runs 1 to 11: tasks on node00 and node8 (Table 5.27)",
        "Seconds. Parts are equal, as in the thesis: only the number of tasks per host balances the load.",
        ("run", "tasks_on_node00", "tasks_on_node8"),
        [f"mesh_{k}_total_s" for k in (1, 2, 3)],
        rows,
    )
    details = [_detail(plan, found, k, mesh, mine[mesh]) for k, mesh in enumerate(MESHES)]
    plots = [_times_plot(mine, printed, plan, found), *_speedup_plots(mine, printed, plan, found)]
    return Section("E10 runs 1 to 11", plots, [table, *details])


def _detail(plan: StudyPlan, found: StudyRecords, k: int, mesh: str, runs: Totals) -> Table:
    hosts = {h: alone(plan, found, h, mesh) for h in HOSTS}
    printed_hosts = {h: thesis.totals(h, k + 1) for h in HOSTS}
    printed_runs = thesis.run_seconds(k + 1)
    rows = []
    for run, (a, b) in RUNS.items():
        ours = _against(hosts, runs[run], a, b)
        theirs = _against(printed_hosts, printed_runs[run], a, b)
        rows.append(((run, a, b), ours, theirs))
    return beside(
        f"speedup_m{k + 1}",
        f"Speedup and efficiency of the runs, Mesh {k + 1}",
        "Relative to one task on each host; efficiency is speedup per task. The model takes the host that "
        "finishes last, T = max(a/p T_node00(p), b/p T_node8(p)); its error is in per cent of the run.",
        ("run", "tasks_on_node00", "tasks_on_node8"),
        (
            "speedup_vs_node8",
            "efficiency_vs_node8",
            "speedup_vs_node00",
            "efficiency_vs_node00",
            "model_s",
            "model_error_percent",
        ),
        rows,
    )


def _against(hosts: dict[str, Totals], seconds: float, a: int, b: int) -> list[float]:
    tasks = a + b
    model = bottleneck_time((a, b), (hosts["node00"][tasks], hosts["node8"][tasks]))
    fast, slow = hosts["node8"][1] / seconds, hosts["node00"][1] / seconds
    return [fast, fast / tasks, slow, slow / tasks, model, 100 * (model / seconds - 1)]


def _names() -> list[str]:
    return [f"{a}:{b}" for a, b in RUNS.values()]


def _times_plot(
    mine: dict[str, Totals], printed: dict[str, Totals], plan: StudyPlan, found: StudyRecords
) -> Plot:
    panels = []
    for k, mesh in enumerate(MESHES):
        base, theirs = alone(plan, found, "node8", mesh), thesis.totals("node8", k + 1)
        series = {
            "here": [t / base[1] for t in mine[mesh].values()],
            "thesis": [t / theirs[1] for t in printed[mesh].values()],
        }
        panels.append(Panel(f"Mesh {k + 1}", _names(), series, "time / 1 task on node8", X_RUNS))
    return charts.grouped(
        "runs",
        "Time of the runs (Figs 5.33, 5.34, 5.35)",
        "Runs 1 to 11 by tasks on node00 and node8, relative to one task on node8 (dashed line). The more "
        "tasks the slow host has, the longer the others wait for it.",
        panels,
        line=1.0,
        columns=1,
        height=2.6,
    )


def _speedup_plots(
    mine: dict[str, Totals], printed: dict[str, Totals], plan: StudyPlan, found: StudyRecords
) -> list[Plot]:
    plots = []
    for what, title, figures in (
        ("speedup", "Speedup", "Figs 5.37, 5.38, 5.39"),
        ("efficiency", "Efficiency", "Figs 5.40, 5.41, 5.42"),
    ):
        panels = []
        for k, mesh in enumerate(MESHES):
            for host in HOSTS:
                base, theirs = alone(plan, found, host, mesh)[1], thesis.totals(host, k + 1)[1]
                per = {r: (1 if what == "speedup" else a + b) for r, (a, b) in RUNS.items()}
                series = {
                    "here": [base / mine[mesh][r] / per[r] for r in RUNS],
                    "thesis": [theirs / printed[mesh][r] / per[r] for r in RUNS],
                }
                panels.append(Panel(f"Mesh {k + 1}, against {host}", _names(), series, what, X_RUNS))
        plots.append(
            charts.grouped(
                f"{what}_runs",
                f"{title} of the runs ({figures})",
                "Relative to one task on node8 (left) and on node00 (right). Runs below the line are slower "
                "than that host alone; the thesis leaves them out."
                if what == "speedup"
                else "Speedup divided by the number of tasks, as in the thesis. It exceeds 1, as splitting "
                "saves dense work (E14).",
                panels,
                line=1.0,
                columns=2,
                height=2.5,
            )
        )
    return plots


def pairs(plan: StudyPlan, found: StudyRecords) -> Section:
    """E11: two tasks on two fast hosts, on a fast and a slow one, on two slow ones."""
    m = plan.machines
    columns = ("cluster_1_total_s", "heterogeneous_total_s", "cluster_2_total_s")
    rows, panels = [], []
    for k, (mesh, name) in enumerate(zip(MESHES, thesis.PAIRS)):
        placements = (m.one_each("cluster1", 2), m.mixed(1, 1), m.one_each("cluster2", 2))
        ours = [found.total(plan.on_hosts(mesh, p) if p else None) for p in placements]
        row = thesis.rows(name)[0]
        theirs = [number(row, c) for c in columns]
        rows.append(((k + 1, 2, 2), ours, theirs))
        series = {"here": [t / ours[1] for t in ours], "thesis": [t / CORRECT[k][1] for t in CORRECT[k]]}
        panels.append(Panel(f"Mesh {k + 1}", ["2 fast", "mixed", "2 slow"], series, "time / mixed pair", ""))
    table = beside(
        "pairs",
        "Two tasks on two hosts (Tables 5.28, 5.29, 5.30)",
        "Seconds. Table 5.28 of the thesis is shifted by one column (its values should be 0.57, 3.22 and "
        "3.29 s); in Table 5.30, 382.81 should be 372.82, and 389.48 probably 380.49. This table shows the "
        "printed values, the figure the corrected ones.",
        ("mesh", "tasks", "machines"),
        columns,
        rows,
    )
    plot = charts.grouped(
        "pairs",
        "Pairs of hosts (Fig. 5.36)",
        "Relative to the mixed pair. With equal parts, a mixed pair is hardly faster than two slow hosts.",
        panels,
    )
    return Section("E11 pairs of hosts", [plot], [table, _one_or_two_hosts(plan, found)])


def _one_or_two_hosts(plan: StudyPlan, found: StudyRecords) -> Table:
    """Two tasks on the two processors of one host, and on one processor each of two hosts."""
    rows = []
    for k, mesh in enumerate(MESHES):
        places = (plan.machines.mixed(0, 2), plan.machines.one_each("cluster1", 2))
        ours = [found.total(plan.on_hosts(mesh, place) if place else None) for place in places]
        theirs = [thesis.totals("node8", k + 1)[2], CORRECT[k][0]]
        rows.append(((k + 1, 2), [*ours, ours[0] / ours[1]], [*theirs, theirs[0] / theirs[1]]))
    return beside(
        "one_or_two_hosts",
        "Two tasks on one fast host, and on two (Tables 5.25, 5.28 to 5.30)",
        "Seconds, and their ratio. One host saves the network, two have a memory bus each.",
        ("mesh", "tasks"),
        ("one_host_s", "two_hosts_s", "one_over_two"),
        rows,
    )
