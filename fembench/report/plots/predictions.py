"""Predicted times against the number of ranks, with their intervals."""

from collections.abc import Sequence
from pathlib import Path

from fembench.report.plots import canvas


def write_times(points: Sequence[tuple[int, float, float, float]], path: Path, mesh: str) -> None:
    """One point for each (ranks, low, expected, high), seconds of an iteration."""
    ranks, low, expected, high = zip(*sorted(points))
    with canvas.figure(1, columns=1, height=3.8) as (drawn, axes):
        axis = axes[0]
        axis.fill_between(
            ranks, low, high, color=canvas.YELLOW, alpha=0.35, linewidth=0, label="90 % interval"
        )
        axis.plot(ranks, expected, color=canvas.BLUE, marker="o", label="predicted")
        canvas.rank_axis(axis, ranks)
        canvas.plain_log(axis, "y", [*low, *high])
        axis.set_ylabel(f"time of an iteration on {mesh}, s")
        canvas.legend_below(drawn, axis)
        drawn.savefig(path)
