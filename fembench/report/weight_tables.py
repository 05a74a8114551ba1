"""Tables of weights: those that would balance each case, and one with its origin."""

from collections.abc import Iterable

from fembench.base.tables import table
from fembench.base.units import plural, seconds
from fembench.records.record import now_utc
from fembench.records.weights import RankShare, Weights, age_seconds, loud_notes
from fembench.report.measures import CG
from fembench.report.results import CASE, Result, case_of
from fembench.report.table import Rows, declared
from fembench.weights.make import by_time


@declared(
    "weights",
    "Weights",
    "The share of the cells with which all ranks would finish together. It follows from the time per "
    "cell on each rank (assembly and the computing in cg). The interval is taken over runs if there "
    "are at least three, or over the sets of a single run.",
    CASE,
    "rank; host; share | .4f; share_low share_high: 95 % interval | .4f",
    "cost_per_cell_s: time per cell",
)
def weights_table(results: Iterable[Result]) -> Rows:
    """Weights by the rule `time`, one row per rank of every valid case on several ranks."""
    return [
        (*case_of(result), rank, one.host, one.share, (one.low, one.high), one.cost)
        for result in results
        if result.ranks > 1 and result.pool.status != "INVALID" and CG in result.times
        for rank, one in enumerate(by_time(result.pool.records).ranks)
    ]


def as_table(weights: Weights) -> str:
    """Rank, host, share with its interval, cost; then rule, source and age."""
    rows = [
        [p, r.host, f"{r.share:.4f}", _interval(r), seconds(r.cost) if r.cost else None, f"{k:.3g}"]
        for p, (r, k) in enumerate(zip(weights.ranks, _relative(weights)))
    ]
    heads = ["rank", "host", "share", "95 % interval", "time per cell", "relative speed"]
    hours = age_seconds(weights, now_utc()) / 3600
    age = f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"
    count = plural(len(weights.source), "record")
    origin = f"{count} of {weights.mesh}" if weights.mesh else "a machine profile"
    head = f"rule {weights.rule}, from {origin}, measured {age} ago"
    label = [f"SYNTHETIC: {weights.synthetic}"] if weights.synthetic else []
    tasks = [f"equal tasks: {', '.join(f'{h} {k}' for h, k in weights.tasks)}"] if weights.tasks else []
    body = table(heads, rows, align="rlrrrr")
    loud = loud_notes(weights)
    others = [note for note in weights.notes if note not in loud]
    return "\n".join([head, *label, *loud, "", body, "", *tasks, *others])


def _interval(rank: RankShare) -> str | None:
    return None if rank.low is None else f"{rank.low:.4f} – {rank.high:.4f}"


def _relative(weights: Weights) -> list[float]:
    """Speeds of the ranks, relative to the fastest; their shares if no costs are known."""
    speeds = [1 / r.cost if r.cost else r.share for r in weights.ranks]
    return [s / max(speeds) for s in speeds]
