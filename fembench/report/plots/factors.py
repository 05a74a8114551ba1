"""Efficiency factors against ranks, one panel per mesh and method."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fembench.report.factors import EfficiencyFactors
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot

PANELS = 4  # in one figure
LINES: dict[str, tuple[str, dict[str, Any]]] = {  # label -> (attribute, look)
    "global": ("overall", {"color": canvas.BLACK, "marker": "o", "linewidth": 2.6}),
    "parallel": ("parallel", {"color": canvas.BLUE, "marker": "s"}),
    "load balance": ("load_balance", {"color": canvas.GREEN, "marker": "^", "linestyle": "--"}),
    "serialization": ("serialization", {"color": canvas.VERMILION, "marker": "v", "linestyle": "--"}),
    "transfer": ("transfer", {"color": canvas.ORANGE, "marker": "D", "linestyle": "--"}),
    "computation scaling": ("scaling", {"color": canvas.PINK, "marker": "P", "linestyle": ":"}),
}


def factors(found: Sequence[EfficiencyFactors]) -> Plot | None:
    """The largest meshes that ran on several numbers of ranks, shares left at their default."""
    series: dict[str, list[EfficiencyFactors]] = {}
    for f in found:
        if not f.result.placement and np.isfinite(f.parallel):
            series.setdefault(" · ".join(f.result.series), []).append(f)
    shown = dict([item for item in series.items() if len(item[1]) > 1][-PANELS:])
    if not shown:
        return None
    with canvas.figure(len(shown), height=3.6, width=min(canvas.WIDTH, 3.0 + 3.0 * len(shown))) as (
        drawn,
        panels,
    ):
        for axes, (name, group) in zip(panels, shown.items()):
            _panel(axes, group)
            axes.set_title(canvas.escaped(name))
        canvas.legend_below(drawn, panels[0])
        return canvas.plot(
            drawn,
            "speedup_factors",
            "Efficiency factors against ranks",
            "The factors of the POP methodology; 1 is perfect, and the lowest line shows where efficiency is "
            "lost. Global (black) is parallel x computation scaling; parallel (blue) is load balance x "
            "serialization x transfer. Lines of serialization and transfer are missing where a run was not "
            "traced, and that of computation scaling where ranks are unequal.",
        )


def _panel(axes: Axes, group: Sequence[EfficiencyFactors]) -> None:
    axes.axhline(1.0, color=canvas.GREY, linestyle="--", linewidth=1.0)
    ranks = [f.result.ranks for f in group]
    highest = 1.0
    for label, (name, look) in LINES.items():
        values = np.array([getattr(f, name) for f in group])
        axes.plot(ranks, values, label=label, **look)
        highest = max(highest, float(np.nanmax(values, initial=1.0)))
    canvas.rank_axis(axes, ranks)
    axes.set_ylim(0, 1.05 * highest)
    axes.set_ylabel("efficiency")
