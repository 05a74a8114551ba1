"""All plots of a campaign, in the order of the page."""

from collections.abc import Sequence

from fembench.report.factors import every_factor
from fembench.report.plots import bars, gantt, lines
from fembench.report.plots.canvas import Plot
from fembench.report.plots.gantt import roofline
from fembench.report.results import Result
from fembench.report.roofline import roofline_points
from fembench.report.unequal import unequal_results
from fembench.report.weak import weak_points


def gallery(
    results: Sequence[Result],
    base: int = 0,
) -> list[Plot]:
    """Every plot for which there is data; `base` as in `every_table`."""
    timed = [r for r in results if r.pool.status != "INVALID"]
    unequal = unequal_results(results)
    found: list[Plot | None] = [
        *bars.phases(timed),
        lines.speedups(timed, base),
        lines.factors(every_factor(results, unequal, base)),
        *bars.unequal_hosts(unequal),
        lines.weak_scaling(weak_points(timed, base)),
        lines.communication(timed),
        bars.rank_by_rank(timed),
        roofline(roofline_points(timed)),
        *gantt.time_lines(timed),
        lines.residuals(results),
    ]
    return [p for p in found if p is not None]
