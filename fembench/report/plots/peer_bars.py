"""One bar per peer: set-up and solve of the same system."""

import numpy as np

from fembench.base import units
from fembench.records.contest import PeersRecord
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot
from fembench.stats.summary import median


def peers(record: PeersRecord) -> Plot | None:
    """Time to the solution of all peers that have one, the fastest on top."""
    timed = sorted((r for r in record.runs if r.status == "timed"), key=lambda r: -r.to_solution)
    if not timed:
        return None
    with canvas.figure(1, height=1.4 + 0.27 * len(timed)) as (drawn, (axes,)):
        factor, unit = canvas.seconds_scale(timed[0].to_solution)
        rows = np.arange(len(timed))
        setup = factor * np.array([median(r.setup) for r in timed])
        solve = factor * np.array([r.solve for r in timed])
        colours = [canvas.BLUE if r.own else canvas.ORANGE for r in timed]
        axes.barh(rows, setup, 0.75, color=canvas.GREY)
        axes.barh(rows, solve, 0.75, setup, color=colours)
        for row, total in zip(rows, setup + solve):
            axes.annotate(
                units.digits(total), (total, row), (3, 0), textcoords="offset points", va="center", size=9
            )
        names = [f"{r.peer} {r.precond}" + (f", {r.ranks} ranks" if r.ranks > 1 else "") for r in timed]
        axes.set_yticks(rows, [canvas.escaped(n) for n in names])
        axes.set_ylim(-0.6, len(timed) - 0.4)
        axes.set_xlim(0, 1.08 * float((setup + solve).max()))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(unit)
        axes.set_title(
            canvas.escaped(f"{record.case.question.mesh}: {units.count(record.mesh.n_equations)} equations")
        )
        canvas.colour_legend(
            drawn, {"set-up": canvas.GREY, "solve, fembench": canvas.BLUE, "solve, peer": canvas.ORANGE}
        )
        return canvas.plot(
            drawn,
            "peers",
            "The same system, solved by other programs",
            f"Set-up and solve to |r|/|f| = {record.case.stop.tolerance:g}: medians over one session in "
            "which all programs took turns. Assembly is not included. Every solution shown agrees with the "
            "reference.",
        )
