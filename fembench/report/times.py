"""Tables of times: phases, the source thesis' view, speedup, communication, rates."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fembench.base import units
from fembench.records.compare import ranks_in_words
from fembench.records.validity import product_bandwidth
from fembench.report import measures
from fembench.report.results import Result
from fembench.report.speedup import Speedup
from fembench.report.table import (
    Column,
    Table,
    case_columns,
    case_of,
    integer,
    interval,
    percent,
    ratio,
    size,
    time,
    words,
)
from fembench.timing import phases as ph

# Every name in `Result.times`, in the order in which a run passes through them
ORDER = (
    *ph.NAMES[: ph.CG + 1],
    *(ph.NAMES[i] for i in ph.CG_PARTS),
    measures.LOOP,
    measures.SOLVE,
    *(p.name for p in ph.PHASES if p.number > max(ph.CG_PARTS)),
    measures.SET,
    measures.RUN,
    measures.REST,
)


def phases(results: Iterable[Result]) -> Table:
    """Every phase of every result."""
    rows = [
        (*case_of(r), name, t.median, (t.low, t.high), t.n, t.minimum, t.mean, (t.rank, t.host))
        for r in results
        for name in ORDER
        if (t := r.times.get(name)) is not None
    ]
    return Table(
        "phases",
        "Phases by ranks",
        "A phase of the job lasts as long as on its slowest rank, which is named: the median over n timed "
        "sets of that maximum, with the 95 % interval of the median. What happens once a run (set-up, "
        "verify, output) has one sample a run. Smallest and mean are over ranks. Rows cg.… are parts of cg; "
        "cg.loop is what they leave over.",
        (
            *case_columns(),
            words("phase"),
            time("time", "median"),
            interval("median"),
            integer("n"),
            time("smallest", "min_rank"),
            time("mean", "mean_rank"),
            Column("slowest", "slowest_rank slowest_host", lambda v: f"rank {v[0]} on {v[1]}"),
        ),
        tuple(rows),
    )


def summary(results: Iterable[Result]) -> Table:
    """The times that matter most, one row a result."""
    names = ("partition", "assembly", "cg")
    rows = [
        (
            *case_of(r),
            *(_median(r, n) for n in names),
            (r.times["cg"].low, r.times["cg"].high) if "cg" in r.times else None,
            r.times["cg"].n if "cg" in r.times else 0,
            _median(r, measures.RUN),
        )
        for r in results
    ]
    return Table(
        "summary",
        "Times",
        "Slowest rank, median over timed sets; the interval and n are those of cg. Run is the whole program, "
        "from its first line to the end of its output.",
        (
            *case_columns(),
            *(time(n, n) for n in names),
            interval("cg"),
            integer("n"),
            time("run", "run"),
        ),
        tuple(rows),
    )


def thesis(results: Iterable[Result]) -> Table:
    """Phases as the source thesis prints them: the mean over all tasks, in milliseconds."""
    rows = []
    for r in results:
        mean = {n: 1e3 * r.times[n].mean if n in r.times else 0.0 for n in ("partition", "assembly", "cg")}
        rows.append((*case_of(r), *mean.values(), sum(mean.values())))
    return Table(
        "thesis_phases",
        "Phases, mean over tasks",
        "The layout of the source thesis (its Tables 5.6 to 5.17): every value is the mean over all tasks, "
        "and total is partition + assembly + CG, without start-up, reading and output. Only for comparison "
        "with it: a job waits for its slowest task, not for the mean.",
        (
            *case_columns(),
            *(ratio(f"{n} / ms", f"{n}_ms", 3) for n in ("partition", "assembly", "cg", "total")),
        ),
        tuple(rows),
    )


def speedups(found: Iterable[Speedup], quantity: str) -> Table:
    """Speedup and efficiency of one time, with the base of every row."""
    rows = [
        (*case_of(s.result), _base(s, quantity), s.ratio, (s.low, s.high), s.efficiency)
        + ("; ".join(filter(None, (*s.notes, s.equal))),)
        for s in found
    ]
    return Table(
        "speedup_" + quantity.replace(" + ", "_"),
        f"Speedup and efficiency of {quantity}",
        f"{BASE} Efficiency is speedup / P, given only where ranks have a core each and are not known to be "
        "unequal.",
        (*case_columns(), *_speedup_columns(), words("remarks")),
        tuple(rows),
    )


BASE = (
    "Speedup is P0 T(P0) / T(P), by the slowest rank. The base, this code on P0 ranks (one or, without "
    "such a run, the fewest), has the same mesh, problem, storage and preconditioner, the same kind of host, "
    "libraries and clock. The range follows from the ends of both 95 % intervals."
)
BY_PHASE = ("assembly", measures.PRODUCT, measures.VECTORS, "cg", measures.SOLVE, measures.RUN)


def speedups_by_phase(found: Mapping[str, Sequence[Speedup]]) -> Table:
    """Speedup and efficiency of each phase; `found` by phase."""
    rows = [
        (*case_of(s.result), name, _base(s, name), s.result.times[name].median, s.ratio, (s.low, s.high))
        + (s.efficiency,)
        for each in zip(*found.values())
        for name, s in zip(found, each)
        if s.base
    ]
    return Table(
        "speedup_phases",
        "Speedup and efficiency by phase",
        f"{BASE} Product and vectors are parts of cg; what they gain, communication takes. Run is the whole "
        "program, with what every rank does alike (start-up) or what only one does.",
        (*case_columns(), words("phase"), *_speedup_columns(time("T(P)", "run"))),
        tuple(rows),
    )


def _speedup_columns(*between: Column) -> tuple[Column, ...]:
    return (
        Column(
            "base", "base_s base_ranks base_id", lambda v: f"{units.seconds(v[0])} on {ranks_in_words(v[1])}"
        ),
        *between,
        ratio("speedup", "speedup"),
        Column("range", "speedup_low speedup_high", lambda v: f"{v[0]:.2f}–{v[1]:.2f}", number=True),
        ratio("efficiency", "efficiency"),
    )


def communication(results: Iterable[Result]) -> Table:
    """Communication inside CG, and its share."""
    rows = []
    for r in (r for r in results if "cg" in r.samples):
        share = measures.communication_share(r.samples)
        spent = float(np.median((share * r.samples["cg"]).mean(axis=1)))
        by_rank = np.median(share, axis=0)
        ends = float(by_rank.min()), float(by_rank.max())
        rows.append((*case_of(r), r.times["cg"].mean, spent, measures.mean_share(r.samples), ends))
    return Table(
        "communication",
        "Communication inside CG",
        "Send, wait, unpack and all-reduce together, as a mean over ranks, and their share of the CG time of "
        "the same ranks (the ratio of the source thesis). Waiting for a slower rank counts as "
        "communication: the range over ranks tells it from the cost of the network.",
        (
            *case_columns(),
            time("cg, mean", "cg_mean"),
            time("communication, mean", "communication_mean"),
            percent("share", "share"),
            Column("over ranks", "share_min share_max", lambda v: f"{v[0]:.1%} – {v[1]:.1%}", number=True),
        ),
        tuple(rows),
    )


def send_receive(results: Iterable[Result]) -> Table:
    """Point-to-point messages and all-reduces inside CG, apart."""
    rows = []
    for r in (r for r in results if "cg" in r.times and r.ranks > 1):
        send, wait, unpack, reduce = (_mean(r, f"cg.{n}") for n in ("send", "wait", "unpack", "allreduce"))
        receive = wait + unpack
        solve = r.record.solve
        each = solve.message_bytes / solve.messages if solve.messages else None
        over = receive / send if send else None
        rows.append((*case_of(r), send, wait, unpack, over, reduce, solve.messages, each))
    return Table(
        "send_receive",
        "Send, receive and all-reduce inside CG",
        "Means over ranks of one set. Receive is wait + unpack; wait includes waiting for a partner that is "
        "not there yet, so receive / send is large where the load is uneven. Messages are counted by the "
        "trace, over all ranks.",
        (
            *case_columns(),
            time("send", "send"),
            time("wait", "wait"),
            time("unpack", "unpack"),
            ratio("receive / send", "receive_over_send", 1),
            time("all-reduce", "allreduce"),
            integer("messages / iteration", "messages_per_iteration"),
            size("mean message", "mean_message"),
        ),
        tuple(rows),
    )


def rates(results: Iterable[Result]) -> Table:
    """What CG achieves: time an iteration, flops and bytes from the arrays touched, memory."""
    rows = []
    for r in (r for r in results if "cg" in r.times and r.record.solve.iterations):
        solve = r.record.solve
        iteration = r.times["cg"].median / solve.iterations
        product = product_bandwidth(r.record)
        roof = max(a / b for a, b in zip(product, solve.bandwidth)) if solve.bandwidth else None
        memory = max((m for record in r.pool.records for m in record.peak_memory), default=0)
        work = r.record.mesh.n_equations / iteration
        rows.append(
            (*case_of(r), iteration, work / 1e6, sum(solve.flops) / iteration / 1e9, sum(product) / 1e9, roof)
            + (max(solve.matrix_bytes), max(solve.bytes), memory or None)
        )
    return Table(
        "rates",
        "Rates of CG",
        "An iteration on the slowest rank; equations and flops an iteration over all ranks. Product: bytes "
        "of the matrix over the time of the matrix-vector product. Of roof: that of the worst rank beside "
        "the triad measured in the same run on the same cores; small matrices stay in a cache and may pass "
        "100 %. The last three columns are the largest of any rank.",
        (
            *case_columns(),
            time("iteration", "iteration"),
            ratio("Mequations/s", "million_equations_per_s", 1),
            ratio("Gflop/s", "gflop_per_s"),
            ratio("product GB/s", "product_gb_per_s"),
            percent("of roof", "of_roof"),
            size("matrix", "matrix"),
            size("touched / iteration", "touched"),
            size("peak memory", "peak_memory"),
        ),
        tuple(rows),
    )


def _median(result: Result, name: str) -> float | None:
    return result.times[name].median if name in result.times else None


def _mean(result: Result, name: str) -> float:
    return result.times[name].mean if name in result.times else 0.0


def _base(found: Speedup, quantity: str) -> tuple[float, int, str] | None:
    base = found.base
    return (base.times[quantity].median, base.ranks, base.record.id) if base else None
