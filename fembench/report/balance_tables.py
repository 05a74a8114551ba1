"""Tables of rebalancing: cost and gain of moving blocks, look by look."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median, pstdev

import msgspec

from fembench.base.units import few
from fembench.records.compare import Pool, pools, same_kind
from fembench.records.ledger import BalanceFacts, Ledger, Look, accounts, bill
from fembench.records.record import Record
from fembench.report.table import Column, Table, integer, percent, size, time, words
from fembench.stats.student import ratio_unpaired

SHOWN = 40  # looks of one run in a table


def counted(facts: BalanceFacts) -> list[tuple[int, Ledger]]:
    """(set, ledger) of the sets that are not warm-ups; of all sets if there are only warm-ups."""
    numbered = list(enumerate(facts.ledgers, 1))
    return [(k, one) for k, one in numbered if not one.warmup] or numbered


def prediction_errors(ledger: Ledger) -> list[float]:
    """|predicted - measured| / measured, for every look that is followed by a window."""
    return [abs(k.predicted - k.measured) / k.measured for k in ledger.looks if k.measured > 0]


def balance_runs(records: Iterable[Record]) -> Table:
    """One row per set."""
    rows = []
    for record, facts in _with(records):
        for k, ledger in counted(facts):
            billed = bill(ledger)
            errors = prediction_errors(ledger)
            moves = [move for look in ledger.looks for move in look.moves]
            rows.append(
                (
                    record.id,
                    facts.policy,
                    len(facts.owner),
                    k,
                    ledger.seconds,
                    ledger.iterations,
                    len(ledger.looks),
                    len(moves),
                    sum(move.bytes for move in moves),
                    billed.cost,
                    billed.gain,
                    billed.net,
                    billed.paid_back,
                    median(errors) if errors else None,
                )
            )
    return Table(
        "balance",
        "Rebalancing: cost and gain",
        "Cost is the time of all looks and moves. Gain is the time that the moves saved, compared with every "
        "block staying where it began, at the speeds measured between two looks; net is gain minus cost, and "
        "moves are paid back if it is positive.",
        (
            words("run"),
            words("policy"),
            integer("blocks"),
            integer("set"),
            time("cg", "cg"),
            integer("iterations"),
            integer("looks"),
            integer("moves"),
            size("moved", "moved"),
            time("cost", "cost"),
            time("gain", "gain"),
            time("net", "net"),
            words("paid back", "paid_back"),
            percent("prediction error, median", "prediction_error"),
        ),
        tuple(rows),
    )


def balance_looks(records: Iterable[Record]) -> Table:
    """One row per look of the last set of each run."""
    rows = []
    for record, facts in _with(records):
        _, ledger = counted(facts)[-1]
        paid = {a.iteration: a for a in accounts(ledger)}
        for look in ledger.looks[:SHOWN]:
            account = paid.get(look.iteration)
            rows.append(
                (
                    record.id,
                    look.iteration,
                    f"{look.alpha} → {look.next_alpha}",
                    *spread(look),
                    _state(look),
                    look.n_candidates,
                    look.candidates[0].potential if look.candidates else None,
                    moves_text(look),
                    look.bytes,
                    look.superstep,
                    look.bound if look.bound >= 0 else None,
                    look.predicted,
                    look.measured if look.measured >= 0 else None,
                    look.cost,
                    None if account is None or account.break_even < 0 else account.break_even,
                )
            )
    return Table(
        "balance_looks",
        "Rebalancing: every look",
        "At each look, the balancer compares the computing times of the ranks in one iteration. 'Out of "
        "reach' means that no assignment of these blocks was found that meets the balance criterion; 'best "
        "with whole blocks' is the iteration time of the best assignment found. The table shows the first "
        f"{SHOWN} looks of the last set of each run.",
        (
            words("run"),
            integer("iteration"),
            words("alpha"),
            time("longest", "rank_max"),
            time("shortest", "rank_min"),
            time("mean", "rank_mean"),
            time("deviation", "rank_deviation"),
            words("state"),
            integer("candidates"),
            time("best potential", "potential"),
            words("moves"),
            size("moved", "moved"),
            time("iteration before", "before"),
            time("best with whole blocks", "bound"),
            time("predicted", "predicted"),
            time("measured", "measured"),
            time("cost", "cost"),
            integer("breaks even after", "break_even"),
        ),
        tuple(rows),
    )


def balance_gain(records: Sequence[Record]) -> Table:
    """Every policy compared with `none`, with the same blocks or others: medians of cg."""
    found = [p for p in pools(r for r, _ in _with(records)) if p.status != "INVALID"]
    rows = []
    for pool in found:
        base = next((p for p in found if p is not pool and _still(p, pool)), None)
        if base is None:
            continue
        mine, theirs = _run_seconds(pool), _run_seconds(base)
        ratio = ratio_unpaired(mine, theirs)
        ends = (1 - ratio.interval.high, 1 - ratio.interval.low) if ratio.interval else None
        case = pool.case
        rows.append(
            (
                pool.first.id,
                case.balancing.balance,
                case.balancing.blocks_per_rank,
                median(mine),
                median(theirs),
            )
            + ((len(theirs), len(mine)), 1 - ratio.value, ends)
        )
    return Table(
        "balance_gain",
        "Rebalancing: gain over no moves",
        "The cg time (median over the sets of a run, then over runs, including looks and moves), compared "
        "with that of runs with policy 'none' and otherwise the same case. The 95 % interval is taken over "
        "runs and needs three of each; the gain of single runs may be chance.",
        (
            words("run"),
            words("policy"),
            integer("blocks per rank"),
            time("cg", "cg"),
            time("cg without moves", "cg_none"),
            Column("runs", "runs_none runs", lambda v: f"{v[0]} / {v[1]}", number=True),
            percent("gain", "gain"),
            Column(
                "95 % interval",
                "gain_low_fraction gain_high_fraction",
                lambda v: f"{v[0]:.1%} – {v[1]:.1%}",
                number=True,
            ),
        ),
        tuple(rows),
    )


def _run_seconds(pool: Pool) -> list[float]:
    """The median cg time over the sets of each run."""
    return [median(one.seconds for _, one in counted(facts)) for _, facts in _with(pool.records)]


def _still(base: Pool, run: Pool) -> bool:
    """Whether `base` is the case of `run` without moves, measured under the same conditions."""
    same = msgspec.structs.replace(base.case.balancing, blocks_per_rank=run.case.balancing.blocks_per_rank)
    alike = msgspec.structs.replace(run.case, balancing=same) == base.case
    return base.case.balancing.balance == "none" and alike and same_kind(base.first, run.first) is None


def spread(look: Look) -> tuple[float, float, float, float]:
    """(max, min, mean, standard deviation) of the ranks' times."""
    t = look.rank_time
    return max(t), min(t), fmean(t), pstdev(t)


def moves_text(look: Look, most: int = 4) -> str:
    """'3: 0 → 2, 1: 0 → 3'"""
    return few([f"{m.block}: {m.source} → {m.target}" for m in look.moves], most)


def _state(look: Look) -> str:
    if look.balanced:
        return "balanced"
    return "unbalanced" if look.reachable else "unbalanced, out of reach"


def _with(records: Iterable[Record]) -> Iterator[tuple[Record, BalanceFacts]]:
    return ((r, r.balance) for r in records if r.balance is not None and r.balance.ledgers)


def balance_tables(records: Sequence[Record]) -> list[Table]:
    """All tables of rebalancing, including those without rows."""
    return [
        balance_runs(records),
        balance_gain(records),
        balance_looks(records),
    ]
