"""All plots of a campaign, in the order of the page."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fembench.records.contest import PeersRecord
from fembench.report.exports import read_fields
from fembench.report.factors import every_factor
from fembench.report.host_times import host_times
from fembench.report.plots import bars, body, gantt, lines
from fembench.report.plots.balance import balance_plots
from fembench.report.plots.canvas import Plot
from fembench.report.plots.heat_map import heat_map
from fembench.report.plots.roofline import roofline
from fembench.report.results import Result
from fembench.report.roofline import roofline_points
from fembench.report.unequal import unequal_results
from fembench.report.weak import weak_points


def gallery(
    results: Sequence[Result],
    fields: Mapping[str, Path],
    peers: PeersRecord | None = None,
    base: int = 0,
) -> list[Plot]:
    """Every plot for which there is data; `fields` are files by record id, `base` as in `every_table`."""
    timed = [r for r in results if r.pool.status != "INVALID"]
    unequal = unequal_results(timed)
    found: list[Plot | None] = [
        *bars.phases(timed),
        lines.speedups(timed, base),
        lines.factors(every_factor(timed, unequal, base)),
        *bars.unequal_hosts(unequal),
        lines.weak_scaling(weak_points(timed, base)),
        lines.communication(timed),
        bars.rank_by_rank(timed),
        roofline(roofline_points(timed)),
        heat_map(host_times(timed), timed[0].speeds) if timed else None,
        bars.peers(peers) if peers else None,
        *balance_plots([record for r in timed for record in r.pool.records]),
        *gantt.time_lines(timed),
        lines.iterations(timed),
        lines.residuals(results),
        bars.parts(results),
        *bodies(results, fields),
    ]
    return [p for p in found if p is not None]


def bodies(results: Sequence[Result], fields: Mapping[str, Path]) -> list[Plot]:
    """Pictures of one run that wrote fields: that with the most parts of the largest mesh."""
    written = [(r, record.id) for r in results for record in r.pool.records if record.id in fields]
    if not written:
        return []
    result, name = max(written, key=lambda pair: (pair[0].record.mesh.n_equations, pair[0].ranks))
    title = f"{result.mesh}, {result.record.partition.method}"
    solution = read_fields(fields[name])
    return [body.parts_picture(solution, title), body.deformed_picture(solution, result.mesh)]
