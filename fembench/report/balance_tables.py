"""Tables of rebalancing: cost and gain of moving blocks, look by look."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median, pstdev

from fembench.base.units import few
from fembench.records.ledger import BalanceFacts, Ledger, Look, accounts, bill
from fembench.records.record import Record
from fembench.report.bases import MOVES, bases
from fembench.report.results import Result, results
from fembench.report.table import Rows, Table, declared
from fembench.stats.student import ratio_unpaired

SHOWN = 40  # looks of one run in a table


def counted(facts: BalanceFacts) -> list[tuple[int, Ledger]]:
    """(set, ledger) of the sets that are not warm-ups; of all if there are no others."""
    numbered = list(enumerate(facts.ledgers, 1))
    return [(k, one) for k, one in numbered if not one.warmup] or numbered


def prediction_errors(ledger: Ledger) -> list[float]:
    """|predicted - measured| / measured, for every look that is followed by a window."""
    return [abs(k.predicted - k.measured) / k.measured for k in ledger.looks if k.measured > 0]


@declared(
    "balance",
    "Rebalancing: cost and gain",
    "Cost is the time of all looks and moves. Gain is the time that the moves saved, compared with every "
    "block staying where it began, at the speeds measured between two looks; net is gain minus cost, and "
    "moves are paid back if it is positive.",
    "run; policy; blocks; set; cg_s; iterations; looks; moves; moved_bytes; cost_s; gain_s; net_s",
    "paid_back; prediction_error_fraction: prediction error, median",
)
def balance_runs(records: Iterable[Record]) -> Rows:
    """One row per set."""
    for record, facts in _with(records):
        for k, ledger in counted(facts):
            billed = bill(ledger)
            errors = prediction_errors(ledger)
            moves = [move for look in ledger.looks for move in look.moves]
            work = ledger.seconds, ledger.iterations, len(ledger.looks), len(moves)
            paid = billed.cost, billed.gain, billed.net, billed.paid_back
            yield (
                (record.id, facts.policy, len(facts.owner), k, *work, sum(move.bytes for move in moves))
                + (*paid, median(errors) if errors else None)
            )


@declared(
    "balance_looks",
    "Rebalancing: every look",
    "At each look, the balancer compares the computing times of the ranks in one iteration. 'Out of "
    "reach' means that no assignment of these blocks was found that meets the balance criterion; 'best "
    "with whole blocks' is the iteration time of the best assignment found. The table shows the first "
    f"{SHOWN} looks of the last set of each run.",
    "run; iteration; alpha; rank_max_s: longest; rank_min_s: shortest; rank_mean_s: mean",
    "rank_deviation_s: deviation; state; candidates; potential_s: best potential; moves; moved_bytes",
    "before_s: iteration before; bound_s: best with whole blocks; predicted_s; measured_s; cost_s",
    "break_even: breaks even after",
)
def balance_looks(records: Iterable[Record]) -> Rows:
    """One row per look of the last set of each run."""
    for record, facts in _with(records):
        _, ledger = counted(facts)[-1]
        paid = {a.iteration: a for a in accounts(ledger)}
        for look in ledger.looks[:SHOWN]:
            account = paid.get(look.iteration)
            after = None if account is None or account.break_even < 0 else account.break_even
            potential = look.candidates[0].potential if look.candidates else None
            bound = look.bound if look.bound >= 0 else None
            measured = look.measured if look.measured >= 0 else None
            yield (
                (record.id, look.iteration, f"{look.alpha} → {look.next_alpha}", *spread(look), _state(look))
                + (look.n_candidates, potential, moves_text(look), look.bytes)
                + (look.superstep, bound, look.predicted, measured, look.cost, after)
            )


@declared(
    "balance_gain",
    "Rebalancing: gain over no moves",
    "The cg time (median over the sets of a run, then over runs, including looks and moves), compared "
    "with that of runs with policy 'none' and otherwise the same case. The 95 % interval is taken over "
    "runs and needs three of each; the gain of single runs may be chance.",
    "run; policy; blocks_per_rank; cg_s; cg_none_s: cg without moves; runs_none runs | >{0} / {1}",
    "gain_fraction; gain_low_fraction gain_high_fraction: 95 % interval",
)
def balance_gain(records: Sequence[Record]) -> Rows:
    """Every policy compared with `none`, with the same blocks: medians of cg."""
    found = results([r for r, _ in _with(records)])
    still = [r for r in found if r.pool.case.balancing.balance == "none"]
    for result in found:
        base = next((r for r in bases(result, still, MOVES) if r is not result), None)
        if base is None or result.pool.status == "INVALID":
            continue
        mine = _run_seconds(result)
        theirs = _run_seconds(base)
        ratio = ratio_unpaired(mine, theirs)
        ends = (1 - ratio.interval.high, 1 - ratio.interval.low) if ratio.interval else None
        case = result.pool.case.balancing
        yield (
            (result.record.id, case.balance, case.blocks_per_rank, median(mine), median(theirs))
            + ((len(theirs), len(mine)), 1 - ratio.value, ends)
        )


def _run_seconds(result: Result) -> list[float]:
    """The median cg time over the sets of each run."""
    return [median(one.seconds for _, one in counted(facts)) for _, facts in _with(result.pool.records)]


def spread(look: Look) -> tuple[float, float, float, float]:
    """(max, min, mean, standard deviation) of the ranks' times."""
    t = look.rank_time
    return max(t), min(t), fmean(t), pstdev(t)


def moves_text(look: Look) -> str:
    """'3: 0 → 2, 1: 0 → 3'"""
    return few([f"{m.block}: {m.source} → {m.target}" for m in look.moves], 4)


def _state(look: Look) -> str:
    if look.balanced:
        return "balanced"
    return "unbalanced" if look.reachable else "unbalanced, out of reach"


def _with(records: Iterable[Record]) -> Iterator[tuple[Record, BalanceFacts]]:
    return ((r, r.balance) for r in records if r.balance is not None and r.balance.ledgers)


def balance_tables(records: Sequence[Record]) -> list[Table]:
    """All tables of rebalancing, including those without rows."""
    return [balance_runs(records), balance_gain(records), balance_looks(records)]
