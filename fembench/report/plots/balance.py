"""Plots of rebalancing, as in Gomes (2014): times of the ranks at each look, alpha, owner of every block."""

from collections.abc import Sequence

import numpy as np

from fembench.base.units import plural
from fembench.records.ledger import BalanceFacts, Ledger
from fembench.records.record import Record
from fembench.report.balance_tables import counted, spread
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot

MOST = 4  # runs that are drawn


def balance_plots(records: Sequence[Record]) -> list[Plot]:
    """Curves and time line of the runs with the most moves."""
    runs = [(r, r.balance, counted(r.balance)[-1][1]) for r in records if r.balance and r.balance.ledgers]
    runs = [run for run in runs if run[2].looks]
    runs.sort(key=lambda run: -sum(len(look.moves) for look in run[2].looks))
    made = []
    for k, (record, facts, ledger) in enumerate(runs[:MOST], 1):
        blocks_on = f"{plural(len(facts.owner), 'block')} on {plural(record.case.placement.ranks, 'rank')}"
        title = f"{record.case.question.mesh}, {facts.policy}, {blocks_on}"
        made += [curves(k, title, record.case.balancing.band, ledger), blocks(k, title, facts, ledger)]
    return made


def curves(k: int, title: str, band: float, ledger: Ledger) -> Plot:
    """Longest and shortest time of the ranks, mean and deviation, with the band; and alpha."""
    looks = ledger.looks
    at = [look.iteration for look in looks]
    longest, shortest, mean, deviation = (np.array(v) * 1e3 for v in zip(*map(spread, looks)))
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
        )


def blocks(k: int, title: str, facts: BalanceFacts, ledger: Ledger) -> Plot:
    """The owner of every block, iteration by iteration."""
    owner = np.array(facts.owner)
    changes = [(0, owner.copy())]
    for look in ledger.looks:
        if look.moves:
            for move in look.moves:
                owner[move.block] = move.target
            changes.append((look.iteration, owner.copy()))
    ends = [at for at, _ in changes[1:]] + [ledger.iterations]
    n_ranks = max(max(o) for _, o in changes) + 1
    with canvas.figure(1, height=max(2.4, 0.16 * owner.size + 1.4)) as (drawn, (axes,)):
        for rank in range(n_ranks):
            colour = canvas.CYCLE[rank % len(canvas.CYCLE)]
            spans = [
                (block, at, end - at)
                for (at, where), end in zip(changes, ends)
                for block in np.flatnonzero(where == rank)
            ]
            axes.barh(
                [b for b, _, _ in spans],
                [length for _, _, length in spans],
                left=[at for _, at, _ in spans],
                color=colour,
                height=0.86,
                label=f"rank {rank}" if rank < len(canvas.CYCLE) else None,
            )
        axes.set_xlabel("iteration")
        axes.set_ylabel("block")
        axes.invert_yaxis()
        axes.grid(visible=False)
        canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            f"balance_blocks_{k}",
            f"Owners of blocks: {canvas.escaped(title)}",
            "One line per block, coloured by the rank that owns it; a change of colour is a migration.",
        )
