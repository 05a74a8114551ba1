"""Tables 12 to 15 and the curves of Gomes (2014): our numbers and the printed ones."""

from math import nan
from statistics import median

from fembench.report.plots.balance import curves
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies.bsp.bsp_job import CellTimes, ProgramTimes
from fembench_studies.charts import Panel, grouped
from fembench_studies.layout import columns, source_table
from fembench_studies.thesis_002.bsp_plan import (
    ALPHAS,
    BANDS,
    GRID,
    SPEEDS,
    STRATEGIES,
    BspScenario,
    scenarios,
    thesis_seconds,
)

Found = dict[BspScenario, ProgramTimes]
NAMES = {policy: name for name, policy in STRATEGIES.items()}


def summary(scenario: BspScenario, times: ProgramTimes) -> str:
    """One line of progress."""
    still, best = _null(times), min(times.cells, key=_seconds)
    return (
        f"table {scenario.table} {scenario.name}: {scenario.program}, {scenario.n_blocks} blocks: "
        f"without moves {_seconds(still):.2f} s, best {best.cell.policy} {_seconds(best):.2f} s"
    )


def saved(seconds: float, without: float) -> float:
    """The time saved, as a fraction of the time without."""
    return 1 - seconds / without


def _seconds(cell: CellTimes) -> float:
    return median(cell.seconds)


def _null(times: ProgramTimes) -> CellTimes:
    return next(c for c in times.cells if c.cell.policy == "none")


def _rows(found: Found) -> list[tuple[BspScenario, CellTimes, float, float | None, float | None]]:
    """(scenario, cell, our gain, thesis seconds, thesis gain), one row per cell."""
    rows = []
    for scenario, times in found.items():
        null, printed = _seconds(_null(times)), thesis_seconds(scenario, "NullLB", 0, 0.0)
        for cell in times.cells:
            name = NAMES.get(cell.cell.policy, "")
            theirs = thesis_seconds(scenario, name, cell.cell.alpha, cell.cell.band) if name else None
            gain = None if theirs is None or printed is None else saved(theirs, printed)
            rows.append((scenario, cell, saved(_seconds(cell), null), theirs, gain))
    return rows


def times_table(found: Found) -> Table:
    """Tables 12 to 15, one row per cell."""
    rows = [
        (
            s.table,
            s.name,
            s.n_blocks // len(SPEEDS),
            NAMES.get(c.cell.policy, "–"),
            c.cell.policy,
            c.cell.alpha,
            f"{c.cell.band:g}",
            _seconds(c),
            theirs,
            gain,
            thesis_gain,
            sum(len(look.moves) for look in c.ledger.looks),
            "yes" if c.agrees else "NO",
        )
        for s, c, gain, theirs, thesis_gain in _rows(found)
    ]
    return Table(
        "thesis002_times",
        "Times (Tables 12 to 15)",
        "Gain is the time saved relative to no balancing, in the thesis and here. Compare gains, not "
        "seconds: here the picture is smaller, the local sort a different one, and processors are faster.",
        columns(
            "table words; scenario words; blocks_per_rank integer V / P; strategy words; policy words; "
            "alpha integer; band words D; ours time; thesis time; gain percent; thesis_gain percent gain, "
            "thesis; moves integer; agrees words same answer as without moves"
        ),
        tuple(rows),
    )


def overhead_table(found: Found) -> Table:
    """SC against NullLB (6.1): smallest and largest overhead over alpha and band."""
    rows = []
    for scenario, times in found.items():
        null = _seconds(_null(times))
        ours = [_seconds(c) / null - 1 for c in times.cells if c.cell.policy == "observe"]
        printed = thesis_seconds(scenario, "NullLB", 0, 0.0)
        cells = [c.cell for c in times.cells if c.cell.policy == "observe"]
        theirs = [thesis_seconds(scenario, "SC", c.alpha, c.band) for c in cells]
        more = [t / printed - 1 for t in theirs if t is not None and printed]
        rows.append((scenario.table, scenario.name, min(ours), max(ours), min(more), max(more)))
    return Table(
        "thesis002_overhead",
        "Overhead of observing without moving (6.1)",
        "Smallest and largest overhead over the values of alpha and D that were run.",
        columns(
            "table words; scenario words; least percent; most percent; thesis_least percent least, thesis; "
            "thesis_most percent most, thesis"
        ),
        tuple(rows),
    )


def best_table(found: Found) -> Table:
    """The best gain of MigBSP, MigBSP++ and RefineComm over their runs, and that of the amortised policy."""
    rows = []
    for scenario in found:
        mine = _rows({scenario: found[scenario]})
        line: list[object] = [scenario.table, scenario.name, scenario.n_blocks // len(SPEEDS)]
        for name in (*GRID[1:], "RefineCommLB"):
            group = [r for r in mine if NAMES.get(r[1].cell.policy) == name]
            printed = [r[4] for r in group if r[4] is not None]
            line += [max(r[2] for r in group), max(printed) if printed else None]
        line.append(next(r[2] for r in mine if r[1].cell.policy == "amortised"))
        rows.append(tuple(line))
    return Table(
        "thesis002_gains",
        "Best gain over no balancing",
        "Best over alpha and D. A is MigBSP (one move, detection per process), B is MigBSP++ as printed. "
        "'amortised' is fembench's default, run only with alpha 2 and D 0.3; the thesis lacks it.",
        columns(
            "table words; scenario words; blocks_per_rank integer V / P; a percent A; thesis_a percent A, "
            "thesis; b percent B; thesis_b percent B, thesis; refine percent RefineComm; thesis_refine "
            "percent RefineComm, thesis; amortised percent"
        ),
        tuple(rows),
    )


def text_table(found: Found) -> Table:
    """Statements of the text on gains, beside what its tables and our runs give."""
    rows = []
    for said in source_table("thesis_002", "claims"):
        scenario = next(s for s in scenarios() if (s.table, s.name) == (said["table"], said["scenario"]))
        names = said["strategy"], said["against"]
        printed = (min(_printed(scenario, name)) for name in names)
        ours = [_best(found.get(scenario), STRATEGIES[name]) for name in names]
        here = None if None in ours else saved(*(t for t in ours if t is not None))
        claimed = float(said["claimed_percent"]) / 100
        rows.append((said["table"], said["scenario"], *names, claimed, saved(*printed), here))
    return Table(
        "thesis002_text",
        "Gains stated in the text (Section 6)",
        "Time saved by a strategy over another, each at its best alpha and D. Three statements contradict "
        "the tables: 15 vi, 15 iii over RefineCommLB, and 13 x.",
        columns(
            "table words; scenario words; strategy words; against words; stated percent; printed percent "
            "from the tables; here percent"
        ),
        tuple(rows),
    )


def _printed(scenario: BspScenario, name: str) -> list[float]:
    """The printed times of a strategy over all alpha and D."""
    times = (thesis_seconds(scenario, name, alpha, band) for alpha in ALPHAS for band in BANDS)
    return [t for t in times if t is not None]


def _best(times: ProgramTimes | None, policy: str) -> float | None:
    """Our best time of a policy; None if it was not run."""
    cells = [c for c in times.cells if c.cell.policy == policy] if times else []
    return min(map(_seconds, cells), default=None)


def plots(found: Found) -> list[Plot]:
    """Figures 44 to 65: bars. Figures 48 to 69: times per rank at every look, for A, B and amortised at
    alpha 2, D 0.3."""
    made = [bars(found)] if found else []
    for scenario, times in found.items():
        for cell in times.cells:
            if cell.cell.policy in ("migbsp", "migbsp++", "amortised") and usual(cell) and cell.ledger.looks:
                title = f"table {scenario.table} {scenario.name}, {cell.cell.policy}"
                made.append(curves(len(made), title, cell.cell.band, cell.ledger))
    return made


def bars(found: Found) -> Plot:
    """Figures 44 to 65: time of every strategy at alpha 2 and D 0.3, over that without balancing."""
    panels = [panel_of(scenario, times) for scenario, times in found.items()]
    return grouped(
        "strategies",
        "Time over that without balancing (Figs 44 to 65)",
        "alpha 2, D 0.3 where a strategy has them; observe: looks without moves. Below the line: time saved.",
        panels,
        line=1.0,
    )


def panel_of(scenario: BspScenario, times: ProgramTimes) -> Panel:
    """Our and the printed times of a scenario's strategies, over those without balancing."""
    null, printed = _seconds(_null(times)), thesis_seconds(scenario, "NullLB", 0, 0.0)
    cells = [c for c in times.cells if usual(c)]
    theirs = [
        thesis_seconds(scenario, NAMES.get(c.cell.policy, ""), c.cell.alpha, c.cell.band)
        if c.cell.policy in NAMES
        else None
        for c in cells
    ]
    series = {
        "here": [_seconds(c) / null for c in cells],
        "thesis": [nan if t is None or printed is None else t / printed for t in theirs],
    }
    names = [c.cell.policy for c in cells]
    return Panel(f"table {scenario.table} {scenario.name}", names, series, "time / without", "strategy")


def usual(cell: CellTimes) -> bool:
    """Whether alpha and D are those of most figures."""
    return (cell.cell.alpha, cell.cell.band) == (2, 0.3)
