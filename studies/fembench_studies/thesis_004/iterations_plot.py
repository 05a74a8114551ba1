"""Iterations against equations, as in Ferreira (2006), beside the
growth that theory expects."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fembench.report.plots import canvas, lines
from fembench.report.plots.canvas import Plot
from fembench_studies.layout import figure_of


def iterations(results: Sequence[Any]) -> Plot | None:
    """Iterations against equations of runs to a tolerance;
    None for fewer than two sizes."""
    solved = [r for r in results if not r.pool.case.stop.iterations and r.record.solve.converged]
    if len({r.record.mesh.n_equations for r in solved}) < 2:
        return None
    curves: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for r in solved:
        points = curves.setdefault((r.record.mesh.element, r.method), set())
        points |= {(p.mesh.n_equations, p.solve.iterations) for p in r.pool.records}
    everything = np.array(sorted(set().union(*curves.values())), dtype=float)
    with canvas.figure(1, height=4.0) as (drawn, (axes,)):
        looks = lines.curve_looks([(" · ".join(key), "") for key in curves])
        for i, (look, points) in enumerate(zip(looks, curves.values())):
            x, y = np.array(sorted(points)).T
            size = 7.0 + 4 * i  # concentric rings if curves coincide
            axes.plot(x, y, **look, markersize=size, markerfacecolor="none", markeredgewidth=1.8)
        _cube_root(axes, everything)
        canvas.plain_log(axes, "x", everything[:, 0])
        canvas.plain_log(axes, "y", everything[:, 1])
        axes.set_xlabel("equations")
        axes.set_ylabel("iterations of CG")
        canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            "iterations",
            "Iterations against equations",
            "Iterations to reach the tolerance. Runs of one system coincide for any number of ranks, because "
            "the partition must not change the count. Without a preconditioner, the points follow the dashed "
            "line: the cube root of the number of equations.",
            _finding(everything),
        )


def _finding(points: np.ndarray) -> str:
    """How the iterations grow from the smallest to the largest system."""
    (least, few), (most, many) = points[0], points[-1]
    root = (most / least) ** (1 / 3)
    sizes = f"From {figure_of(least)} to {figure_of(most)} equations"
    grown = f"iterations grow {many / few:.2f} times"
    return f"{sizes}, {grown}; the cube root of the equations grows {root:.2f} times."


def _cube_root(axes: canvas.Axes, points: np.ndarray) -> None:
    """A dashed line of slope 1/3 through the first point."""
    x = np.array([points[:, 0].min(), points[:, 0].max()])
    start = points[np.argmin(points[:, 0]), 1]
    axes.plot(
        x, start * (x / x[0]) ** (1 / 3), "--", color=canvas.GREY, linewidth=1.2, label="∝ equations$^{1/3}$"
    )
