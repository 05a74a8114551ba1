"""The curves of Gomes (2014): times of the ranks at each look, and alpha."""

from statistics import fmean, pstdev

import numpy as np

from fembench.records.ledger import Ledger
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot


def curves(k: int, title: str, band: float, ledger: Ledger) -> Plot:
    """Longest and shortest time of the ranks, mean and
    deviation, with the band; and alpha."""
    looks = ledger.looks
    at = [look.iteration for look in looks]
    times = [look.rank_time for look in looks]
    longest, shortest, mean, deviation = (
        1e3 * np.array([of(seconds) for seconds in times]) for of in (max, min, fmean, pstdev)
    )
    with canvas.figure(2, columns=2, height=3.8) as (drawn, (left, right)):
        left.fill_between(
            at,
            mean * (1 - band),
            mean * (1 + band),
            color=canvas.YELLOW,
            alpha=0.25,
            linewidth=0,
            label="band",
        )
        for values, colour, name in (
            (longest, canvas.VERMILION, "longest"),
            (shortest, canvas.BLUE, "shortest"),
            (mean, canvas.BLACK, "mean"),
            (deviation, canvas.GREEN, "deviation"),
        ):
            left.plot(at, values, color=colour, marker="o", markersize=3.5, label=name)
        for look in looks:
            if look.moves:
                left.axvline(look.iteration, color=canvas.PALE, linewidth=1.0, zorder=0)
        left.set_xlabel("iteration")
        left.set_ylabel("computing, ms per iteration")
        left.set_ylim(bottom=0)
        canvas.legend_below(drawn, left)
        right.step(at, [look.next_alpha for look in looks], where="post", color=canvas.PINK, marker="o")
        right.set_yscale("log", base=2)
        right.set_xlabel("iteration")
        right.set_ylabel("alpha: calls until the next look")
        return canvas.plot(
            drawn,
            f"balance_{k}",
            f"Rebalancing: {canvas.escaped(title)}",
            "Left: computing time of the ranks in one iteration, at each look of the last set, and the "
            f"band within which the load counts as balanced; {canvas.NAMED[canvas.PALE]} lines mark looks "
            "that moved blocks. Right: alpha, the number of calls until the next look. It doubles when the "
            "load is balanced and falls to 1 when it is not.",
            _finding(ledger),
        )


def _finding(ledger: Ledger) -> str:
    """How unequal the ranks are at the first and at the last look."""
    first, last = (
        max(look.rank_time) / fmean(look.rank_time) for look in (ledger.looks[0], ledger.looks[-1])
    )
    moved = sum(bool(look.moves) for look in ledger.looks)
    return (
        f"The slowest rank takes {first:.2f} times the mean at the first look, and {last:.2f} times at the "
        f"last; {moved} of {len(ledger.looks)} looks moved blocks."
    )
