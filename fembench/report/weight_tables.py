"""Table of weights: the shares that would balance each case, from its own runs."""

from collections.abc import Iterable

from fembench.report.measures import CG
from fembench.report.results import Result
from fembench.report.table import Column, Table, case_columns, case_of, integer, ratio, time, words
from fembench.weights.make import by_time


def weights_table(results: Iterable[Result]) -> Table:
    """Weights by the rule `time`, one row per rank of every valid case on several ranks."""
    rows = [
        (*case_of(result), rank, one.host, one.share, (one.low, one.high), one.cost)
        for result in results
        if result.ranks > 1 and result.pool.status != "INVALID" and CG in result.times
        for rank, one in enumerate(by_time(result.pool.records).ranks)
    ]
    return Table(
        "weights",
        "Weights",
        "The share of the cells with which all ranks would finish together. It follows from the time per "
        "cell on each rank (assembly and the computing in cg). The interval is taken over runs if there "
        "are at least three, or over the sets of a single run.",
        (
            *case_columns(),
            integer("rank"),
            words("host"),
            ratio("share", "share", 4),
            Column("95 % interval", "share_low share_high", lambda v: f"{v[0]:.4f}–{v[1]:.4f}", number=True),
            time("time per cell", "cost_per_cell"),
        ),
        tuple(rows),
    )
