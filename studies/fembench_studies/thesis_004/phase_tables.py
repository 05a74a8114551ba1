"""Sections E3, E4, E7 and E8: phases of a run and communication inside CG, by number of tasks."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fembench.report.page import Section
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench.weights.scaling import efficiency, speedup
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import beside
from fembench_studies.thesis_004 import thesis
from fembench_studies.thesis_004.phase_means import Phases, StudyRecords
from fembench_studies.thesis_004.plan import StudyPlan, Want
from fembench_studies.thesis_004.plausible import communication_share
from fembench_studies.thesis_004.thesis import MESHES, number

STACK = ("partition", "assembly", "CG")
COLOURS = (canvas.GREY, canvas.GREEN, canvas.BLUE)
FIGURES = {
    "cluster1": "Figs 5.9, 5.11, 5.13",
    "cluster2": "Figs 5.10, 5.12, 5.14",
    "smp": "Figs 5.15a–5.19a",
    "single_cpu": "Figs 5.15b–5.19b",
}
WORDS = {
    "cluster1": "Cluster 1, one task per host",
    "cluster2": "Cluster 2, one task per host",
    "smp": "node8, two processors",
    "single_cpu": "node8, one processor",
}
Wanted = Callable[[str, int], Want | None]


def wanted(plan: StudyPlan, platform: str) -> Wanted:
    """(mesh, tasks) -> the case of a platform, or None."""
    if platform == "smp":
        return lambda mesh, tasks: plan.here(mesh, tasks, "two-cores")
    if platform == "single_cpu":
        return lambda mesh, tasks: plan.here(mesh, tasks, "one-core")

    def on_hosts(mesh: str, tasks: int) -> Want | None:
        placement = plan.machines.one_each(platform, tasks)
        return plan.on_hosts(mesh, placement) if placement else None

    return on_hosts


def separate_hosts(plan: StudyPlan, found: StudyRecords) -> Section:
    """E3: one task per host."""
    return _section("E3 phases, one task per host", plan, found, ("cluster1", "cluster2"))


def one_host(plan: StudyPlan, found: StudyRecords) -> Section:
    """E4: all tasks on one host, with two processors and with one."""
    made = _section("E4 phases, one host", plan, found, ("smp", "single_cpu"))
    return Section(made.title, made.plots, [*made.tables, second_processor(plan, found)])


def second_processor(plan: StudyPlan, found: StudyRecords) -> Table:
    """What the second processor of a host is worth: times on one over times on two."""
    one, two = (thesis.PHASES[platform] for platform in ("single_cpu", "smp"))
    sides = (
        _by_mesh(plan, found, platform, names) for platform, names in (("single_cpu", one), ("smp", two))
    )
    rows = []
    for (k, _, printed, mine), (_, _, printed_two, mine_two) in zip(*sides):
        for tasks, row in printed.items():
            ours = [speedup(getattr(mine[tasks], p), getattr(mine_two[tasks], p)) for p in ("total", "cg")]
            theirs = [speedup(number(row, c), number(printed_two[tasks], c)) for c in ("total_ms", "cg_ms")]
            rows.append(((k, tasks), ours, theirs))
    return beside(
        "second_processor",
        f"Speedup by the second processor ({_tables([*one, *two])})",
        "The time on one processor over the time of as many tasks on two. One task gains nothing: its row "
        "shows how precise the others are.",
        ("mesh", "tasks"),
        ("total_speedup", "cg_speedup"),
        rows,
    )


def _section(title: str, plan: StudyPlan, found: StudyRecords, platforms: Sequence[str]) -> Section:
    made = [_phases(plan, found, platform) for platform in platforms]
    speedups = [_speedups(plan, found, platform) for platform in platforms]
    return Section(title, [p for _, p in made], [t for t, _ in made] + speedups)


def _by_mesh(
    plan: StudyPlan, found: StudyRecords, platform: str, names: Sequence[str]
) -> Iterator[tuple[int, str, dict[int, thesis.Row], dict[int, Phases]]]:
    """(number, mesh, tasks -> row of the printed table, tasks -> our phases); `names`: table per mesh."""
    of = wanted(plan, platform)
    for k, (mesh, name) in enumerate(zip(MESHES, names), 1):
        printed = thesis.by_tasks(name)
        yield k, mesh, printed, {tasks: found.phases(of(mesh, tasks)) for tasks in printed}


def _phases(plan: StudyPlan, found: StudyRecords, platform: str) -> tuple[Table, Plot]:
    rows, ours, theirs = [], [], []
    columns = ("partition_ms", "assembly_ms", "cg_ms", "total_ms")
    for k, mesh, printed, mine in _by_mesh(plan, found, platform, thesis.PHASES[platform]):
        alone, base = mine[1].total, number(printed[1], "total_ms")
        for tasks, row in printed.items():
            m = mine[tasks]
            values = [1e3 * v for v in (m.partition, m.assembly, m.cg, m.total)] + [alone / m.total]
            thesis_values = [number(row, c) for c in columns]
            rows.append(((k, platform, tasks), values, [*thesis_values, base / thesis_values[-1]]))
        ours.append(_panel(f"{mesh}, here", [[m.partition, m.assembly, m.cg] for m in mine.values()], mine))
        printed_phases = [[1e-3 * number(row, c) for c in columns[:3]] for row in printed.values()]
        theirs.append(_panel(f"Mesh {k}, thesis", printed_phases, printed))
    table = beside(
        f"phases_{platform}",
        f"Phases: {WORDS[platform]} ({_tables(thesis.PHASES[platform])})",
        "Milliseconds, means over tasks, as in the thesis. Speedup is relative to one task. With dense "
        "storage it comes mostly from the work saved by splitting (E14), not from parallelism.",
        ("mesh", "platform", "tasks"),
        (*columns, "speedup"),
        rows,
    )
    plot = charts.stacked(
        f"phases_{platform}",
        f"Phases: {WORDS[platform]} ({FIGURES[platform]})",
        "Top: here; bottom: the thesis. Compare how CG falls with the number of tasks, not the absolute "
        "times: the machines are twenty years apart.",
        [*ours, *theirs],
        COLOURS,
    )
    return table, plot


def _speedups(plan: StudyPlan, found: StudyRecords, platform: str) -> Table:
    phases = ("assembly", "cg", "total")
    rows = []
    for k, _, printed, mine in _by_mesh(plan, found, platform, thesis.PHASES[platform]):
        for tasks, row in printed.items():
            ours = [(getattr(mine[1], p), getattr(mine[tasks], p)) for p in phases]
            theirs = [(number(printed[1], f"{p}_ms"), number(row, f"{p}_ms")) for p in phases]
            rows.append(((k, platform, tasks), _gains(ours, tasks), _gains(theirs, tasks)))
    return beside(
        f"speedups_{platform}",
        f"Speedup by phase: {WORDS[platform]} ({_tables(thesis.PHASES[platform])})",
        "Speedup is relative to one task; efficiency is speedup divided by the number of tasks.",
        ("mesh", "platform", "tasks"),
        tuple(f"{what}_{p}" for what in ("speedup", "efficiency") for p in phases),
        rows,
    )


def _gains(pairs: Sequence[tuple[float, float]], tasks: int) -> list[float]:
    """Speedups, then efficiencies; each pair of times is (on one task, on several)."""
    return [speedup(*pair) for pair in pairs] + [efficiency(*pair, tasks) for pair in pairs]


def _panel(title: str, bars: Sequence[Sequence[float]], tasks: object) -> Panel:
    heights = np.array(bars, float)
    sums = np.nansum(heights, axis=1)
    factor, unit = canvas.seconds_scale(float(sums.max()) or 1.0)
    return Panel(title, [str(t) for t in tasks], dict(zip(STACK, factor * heights.T)), unit)  # type: ignore[attr-defined]


def _tables(names: Sequence[str]) -> str:
    return f"Tables {', '.join(n.replace('_', '.') for n in names)}"


def communication(plan: StudyPlan, found: StudyRecords) -> Section:
    """E7: communication inside CG, and its share."""
    tables, plots = [], []
    lines: list[Panel] = []
    columns = ("cg_ms", "communication_ms", "communication_percent")
    for platform, names in thesis.COMMUNICATION.items():
        rows, panels = [], []
        for k, mesh, printed, mine in _by_mesh(plan, found, platform, names):
            share = {t: 100 * communication_share(m.communication, m.cg) for t, m in mine.items()}
            for tasks, row in printed.items():
                values = (1e3 * mine[tasks].cg, 1e3 * mine[tasks].communication, share[tasks])
                rows.append(((k, platform, tasks), values, [number(row, c) for c in columns]))
            names_of = [str(t) for t in printed]
            series = {
                "here": list(share.values()),
                "thesis": [number(r, "communication_percent") for r in printed.values()],
            }
            panels.append(Panel(f"{mesh}, {platform}", names_of, series, "communication / CG, %"))
            lines.append(
                Panel(
                    f"{mesh}, {platform}",
                    names_of,
                    {
                        "here": [m.communication / mine[2].cg for m in mine.values()],
                        "thesis": [
                            number(r, "communication_ms") / number(printed[2], "cg_ms")
                            for r in printed.values()
                        ],
                    },
                    "communication / CG on 2 tasks",
                )
            )
        tables.append(
            beside(
                f"communication_{platform}",
                f"CG and communication: {WORDS[platform]} ({_tables(names)})",
                "Milliseconds, means over tasks. Communication is send, receive (with waiting) and "
                "all-reduce. The thesis' values of Meshes 2 and 3 on 5 and 6 hosts of Cluster 1 are too "
                "large: they leave less computing time than splitting a dense matrix can explain.",
                ("mesh", "platform", "tasks"),
                columns,
                rows,
            )
        )
        figures = "Figs 5.23, 5.25, 5.27" if platform == "cluster1" else "Figs 5.24, 5.26, 5.28"
        plots.append(
            charts.grouped(
                f"share_{platform}",
                f"Share of communication in CG: {WORDS[platform]} ({figures})",
                "In the thesis the share grows with the number of tasks and is largest for Mesh 1.",
                panels,
            )
        )
    plots.append(
        charts.grouped(
            "communication_tasks",
            "Communication by number of tasks (Figs 5.29, 5.30)",
            "Relative to CG on two tasks, so that machines of different speeds can be compared.",
            lines,
        )
    )
    return Section("E7 communication inside CG", plots, tables)


def send_receive(plan: StudyPlan, found: StudyRecords) -> Section:
    """E8: point-to-point messages inside one host, Mesh 2."""
    printed = thesis.by_tasks("5_24")
    mine = {tasks: found.phases(plan.here("m2", tasks, "two-cores")) for tasks in printed}
    columns = ("send_ms", "receive_ms", "send_plus_receive_ms")
    rows = [
        (
            (2, "node8", tasks),
            (1e3 * m.send, 1e3 * m.receive, 1e3 * (m.send + m.receive), m.receive / m.send),
            [
                *(number(printed[tasks], c) for c in columns),
                number(printed[tasks], "receive_ms") / number(printed[tasks], "send_ms"),
            ],
        )
        for tasks, m in mine.items()
    ]
    table = beside(
        "point_to_point",
        "Send and receive inside one host, Mesh 2 (Table 5.24)",
        "Milliseconds per solve, means over tasks. Receive includes waiting for the partner and is many "
        "times longer than send, here and in the thesis.",
        ("mesh", "platform", "tasks"),
        (*columns, "receive_over_send"),
        rows,
    )
    names = [str(t) for t in printed]
    panels = [
        Panel(
            "m2, here",
            names,
            {
                "send": [1e3 * m.send for m in mine.values()],
                "receive": [1e3 * m.receive for m in mine.values()],
            },
            "ms",
        ),
        Panel(
            "Mesh 2, thesis",
            names,
            {
                "send": [number(r, "send_ms") for r in printed.values()],
                "receive": [number(r, "receive_ms") for r in printed.values()],
            },
            "ms",
        ),
    ]
    plot = charts.grouped(
        "point_to_point",
        "Send and receive inside one host (Fig. 5.31)",
        "With more tasks than cores, a receive also waits for its partner to get a core.",
        panels,
        colours=(canvas.ORANGE, canvas.VERMILION),
        columns=2,
    )
    return Section("E8 send and receive", [plot], [table])
