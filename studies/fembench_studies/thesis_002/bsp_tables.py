"""Tables 12 to 15 and the curves of Gomes (2014), ours beside the printed
ones, and what we claim of ours."""

from collections.abc import Iterator, Sequence
from math import nan
from statistics import median

from fembench.report.balance_tables import prediction_errors
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies.bsp.bsp_job import CellTimes, ProgramTimes
from fembench_studies.charts import Panel
from fembench_studies.claims import StudyClaim, error_claim, most_claim
from fembench_studies.declared import captions
from fembench_studies.layout import source_table
from fembench_studies.programs.record import used_by_others
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
from fembench_studies.thesis_002.looks_plot import curves

Found = dict[BspScenario, ProgramTimes]
TEXTS = captions("thesis_002")
NAMES = {policy: name for name, policy in STRATEGIES.items()}
OVERHEAD, HARM = 1.05, 1.05  # times over that without balancing
PREDICTED = 10.0  # per cent: median error of the predicted superstep


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
    return TEXTS.table("thesis002_times", rows)


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
    return TEXTS.table("thesis002_overhead", rows)


def best_table(found: Found) -> Table:
    """The best gain of MigBSP, MigBSP++ and RefineComm over their runs, and
    that of the amortised policy."""
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
    return TEXTS.table("thesis002_gains", rows)


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
    return TEXTS.table("thesis002_text", rows)


def _printed(scenario: BspScenario, name: str) -> list[float]:
    """The printed times of a strategy over all alpha and D."""
    times = (thesis_seconds(scenario, name, alpha, band) for alpha in ALPHAS for band in BANDS)
    return [t for t in times if t is not None]


def _best(times: ProgramTimes | None, policy: str) -> float | None:
    """Our best time of a policy; None if it was not run."""
    cells = [c for c in times.cells if c.cell.policy == policy] if times else []
    return min(map(_seconds, cells), default=None)


def plots(found: Found) -> list[Plot]:
    """Figures 44 to 65: bars. Figures 48 to 69: times per rank at every look, for A, B
    and amortised at alpha 2, D 0.3."""
    made = [bars(found)] if found else []
    for scenario, times in found.items():
        for cell in times.cells:
            if cell.cell.policy in ("migbsp", "migbsp++", "amortised") and usual(cell) and cell.ledger.looks:
                title = f"table {scenario.table} {scenario.name}, {cell.cell.policy}"
                made.append(curves(len(made), title, cell.cell.band, cell.ledger))
    return made


def bars(found: Found) -> Plot:
    """Figures 44 to 65: time of every strategy at alpha 2 and D 0.3,
    over that without balancing."""
    return TEXTS.figure("strategies", [panel_of(scenario, times) for scenario, times in found.items()])


def panel_of(scenario: BspScenario, times: ProgramTimes) -> Panel:
    """Our and the printed times of a scenario's strategies,
    over those without balancing."""
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


def claims(found: Found) -> list[StudyClaim]:
    """The claims of each scenario, with intervals over its
    repetitions, which are interleaved."""
    return [claim for scenario, times in found.items() for claim in _claims_of(scenario, times)]


def _claims_of(scenario: BspScenario, times: ProgramTimes) -> Iterator[StudyClaim]:
    cells = {c.cell.policy: c for c in times.cells if usual(c)}
    reason, name = (
        used_by_others(*times.others, "the busiest machine"),
        f"table {scenario.table}, {scenario.name}",
    )
    for policy, limit in (("observe", OVERHEAD), ("amortised", HARM)):
        ratios = _ratios(cells[policy], cells["none"])
        yield most_claim(f"{name}: time with '{policy}' over that without", limit, ratios, reason, unit="")
    errors = _errors(cells["amortised"])
    if errors:
        wrong = reason or _unsteady(cells["observe"])
        yield error_claim(f"{name}: predicted superstep after a look", PREDICTED, errors, wrong)


def _errors(cell: CellTimes) -> list[float]:
    """Errors of the superstep that each look predicts, per cent."""
    return [100 * e for e in prediction_errors(cell.ledger)]


def _unsteady(still: CellTimes) -> str:
    """Why no prediction of a superstep can be judged: it is off as much where nothing moves."""
    errors = _errors(still)
    if not errors or median(errors) <= PREDICTED:
        return ""
    return f"from look to look, supersteps differ by {median(errors):.0f} % where nothing moves"


def _ratios(cell: CellTimes, without: CellTimes) -> Sequence[float]:
    return [a / b for a, b in zip(cell.seconds, without.seconds)]
