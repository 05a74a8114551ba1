"""Tables of times: phases, their means over ranks, communication, rates."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from fembench.base.units import percent
from fembench.records import phases as ph
from fembench.records.record import Record
from fembench.records.schema import numbers
from fembench.records.validity import product_bandwidth
from fembench.report import measures
from fembench.report.measures import ASSEMBLY, CG, PARTITION
from fembench.report.results import CASE, Result, case_of
from fembench.report.table import Rows, Table, declared

# Every name in `Result.times`, in the order of a run
ORDER = (
    *ph.NAMES[: ph.CG + 1],
    *(ph.NAMES[i] for i in ph.CG_PARTS),
    measures.LOOP,
    measures.SOLVE,
    *ph.NAMES[max(ph.CG_PARTS) + 1 :],
    measures.SET,
    measures.RUN,
    measures.REST,
)


INTERVAL = (
    "The 95 % interval is that of the median over runs; it needs three or more runs, because the sets of "
    "one run are not independent samples. For a single run, it is the interval over its sets (six or more) "
    "and says nothing about other runs."
)


@declared(
    "phases",
    "Every phase",
    "A phase lasts as long as on its slowest rank. 'Time' is that maximum over ranks: the median over "
    f"the timed sets of a run, then over runs. {INTERVAL} Phases that occur once per run "
    "(set-up, verify, output) have one sample per run. 'Smallest' and 'mean' are taken over ranks; the "
    "last column names the slowest rank. Rows cg.… are parts of cg; cg.loop is the rest of cg, the "
    "cost of the loop itself. Product is cg.spmv_interior and cg.spmv_interface, vectors is cg.dot, cg.axpy "
    "and cg.precond, messages is cg.send and cg.unpack, waiting is cg.wait and cg.allreduce.",
    CASE,
    "phase; median_s: time; median_low_s median_high_s: 95 % interval; runs; n: sets",
    "min_rank_s: smallest; mean_rank_s: mean; slowest_rank slowest_host: slowest | rank {0} on {1}",
)
def phases(results: Iterable[Result]) -> Rows:
    """Every phase of every result."""
    return [
        (*case_of(r), name, t.median, (t.low, t.high), t.runs, t.n, t.minimum, t.mean, (t.rank, t.host))
        for r in results
        for name in ORDER
        if (t := r.times.get(name)) is not None
    ]


VISIBLE = 0.02  # of a time


def noted(table: Table, results: Iterable[Result]) -> Table:
    """The table of these results, which begins its note with it if parts do not add up to the whole."""
    timed = [r.times for r in results if {ASSEMBLY, CG, measures.SOLVE} <= r.times.keys()]
    off = [(t[ASSEMBLY].median + t[CG].median) / t[measures.SOLVE].median - 1 for t in timed]
    most = max(map(abs, off), default=0.0)
    if not most > VISIBLE:
        return table
    why = f"Assembly and cg add up to the whole only within {percent(most)}: each is a median of its own."
    return dataclasses.replace(table, note=f"{why} {table.note}")


@declared(
    "summary",
    "Times",
    "Time on the slowest rank: the median over the timed sets of a run, then over runs. The interval "
    f"and the number of sets are those of cg. {INTERVAL} 'Run' is the whole program, from its first line "
    "to the end of its output.",
    CASE,
    "assembly_s; cg_s; cg_low_s cg_high_s: 95 % interval; runs; n: sets; run_s",
)
def summary(results: Iterable[Result]) -> Rows:
    """The most important times, one row per result."""
    names = (ASSEMBLY, CG)
    return [
        (
            *case_of(r),
            *(_median(r, n) for n in names),
            (r.times[CG].low, r.times[CG].high) if CG in r.times else None,
            len(r.pool.records),
            r.times[CG].n if CG in r.times else 0,
            _median(r, measures.RUN),
        )
        for r in results
    ]


@declared(
    "runs_apart",
    "Runs that disagree",
    "Repeated runs of one case whose times differ by more than their sets scatter: the runs' own 95 % "
    "intervals do not overlap. Something changed between these runs, for example the clock speed, the "
    "placement of data in memory or other load. To narrow the interval, add runs rather than sets.",
    CASE,
    "phase; run; median_s: all runs; run_median_s: this run; run_low_s run_high_s: 95 % interval",
)
def apart(results: Iterable[Result]) -> Rows:
    """Runs of one case that differ by more than their sets scatter."""
    return [
        (*case_of(r), name, record.id, r.times[name].median, median, ends)
        for r in results
        for name in (ASSEMBLY, CG)
        if name in r.times and r.times[name].apart
        for record, median, ends in zip(_with_sets(r), r.times[name].medians, r.times[name].within)
    ]


def _with_sets(result: Result) -> list[Record]:
    return [record for record, one in zip(result.pool.records, result.runs) if len(one.timed)]


@declared(
    "mean_phases",
    "Phases, mean over ranks",
    "The layout of Ferreira (2006), Tables 5.6 to 5.17, for comparison with that work only. Every "
    "value is the mean over ranks; the total is partition + assembly + CG, without start-up, reading "
    "and output. A job waits for its slowest rank, so the tables above use the maximum instead.",
    CASE,
    "partition_ms: partition / ms | .3f; assembly_ms: assembly / ms | .3f; cg_ms: cg / ms | .3f",
    "total_ms: total / ms | .3f",
)
def mean_phases(results: Iterable[Result]) -> Rows:
    """Phases as in Ferreira (2006): the mean over all ranks, in milliseconds."""
    for r in results:
        mean = {n: 1e3 * r.times[n].mean if n in r.times else 0.0 for n in (PARTITION, ASSEMBLY, CG)}
        yield *case_of(r), *mean.values(), sum(mean.values())


@declared(
    "communication",
    "Communication inside CG",
    "Communication is messages (send, unpack) and waiting (wait, all-reduce) together. Both times are means "
    "over ranks; for each rank, the median over the sets of a run, then over runs. 'Share' is "
    "communication / CG; 'over ranks' gives the smallest and largest share of a single rank. Waiting for a "
    "slower rank counts as communication, so a wide range indicates uneven load, a narrow one the network.",
    CASE,
    "cg_mean_s: cg, mean; communication_mean_s: communication, mean; share_fraction",
    "share_min share_max: over ranks | fraction",
)
def communication(results: Iterable[Result]) -> Rows:
    """Communication inside CG, and its share of the time."""
    for r in (r for r in results if CG in r.times):
        found = measures.communication(r.runs)
        ends = float(found.by_rank.min()), float(found.by_rank.max())
        yield *case_of(r), float(found.cg.mean()), float(found.spent.mean()), found.share, ends


@declared(
    "send_receive",
    "Send, receive and all-reduce inside CG",
    "Times are per set, means over ranks; each is a median of its own, so they need not add up to "
    "'communication, mean'. Receive is wait + unpack. Wait includes the time until a late "
    "partner has sent its message, so a large receive / send means uneven load. Messages are counted "
    "in the trace, over all ranks.",
    CASE,
    "send_s; wait_s; unpack_s; receive_over_send: receive / send | .1f; allreduce_s: all-reduce",
    "messages_per_iteration: messages / iteration; mean_message_bytes",
)
def send_receive(results: Iterable[Result]) -> Rows:
    """Point-to-point messages and all-reduces inside CG, separately."""
    for r in (r for r in results if CG in r.times and r.ranks > 1):
        send, wait, unpack, reduce = (_mean(r, ph.NAMES[k]) for k in ph.COMMUNICATION)
        receive = wait + unpack
        solve = r.record.solve
        each = solve.message_bytes / solve.messages if solve.messages else None
        over = receive / send if send else None
        yield *case_of(r), send, wait, unpack, over, reduce, solve.messages, each


@declared(
    "levels",
    "Levels of multigrid",
    "Times are per iteration: the median over the sets of a run, then over runs. Computing, on the slowest "
    "rank, is the smoothing and the transfers of a level; that of the last level is the solution of all "
    "small grids on rank 0, for which the others wait. Messages (packing, sending, summing) and waiting "
    "are means over ranks. 'Of cg' adds the means of all three.",
    CASE,
    "level; nodes; computing_s; messages_s; waiting_s; of_cg_fraction",
)
def levels(results: Iterable[Result]) -> Rows:
    """Where multigrid spends its time, level by level."""
    for r in results:
        records = [record for record in r.pool.records if record.solve.levels]
        for k, level in enumerate(records[0].solve.levels if records else ()):
            ran = [record.solve.levels[k] for record in records]
            each = [[numbers(v) for v in (one.computing, one.messages, one.waiting)] for one in ran]
            computing, messages, waiting = np.median(each, axis=0)
            spent = float(computing.mean() + messages.mean() + waiting.mean())
            part = spent * r.record.solve.iterations / r.times[CG].mean
            last = k + 1 == len(records[0].solve.levels)
            grid = "rank 0" if last else f"grid {k}"
            named = grid if k else "mesh"
            means = float(computing.max()), float(messages.mean()), float(waiting.mean())
            yield *case_of(r), named, level.nodes, *means, part


@declared(
    "solutions",
    "Time to the solution",
    "Runs that iterated until the residual met the tolerance. Set-up is assembly with the set-up of the "
    f"preconditioner; the whole is set-up and cg together, on the slowest rank. {INTERVAL}",
    CASE,
    "equations; iterations; setup_s: set-up; cg_s; whole_s; whole_low_s whole_high_s: 95 % interval",
    "million_equations_per_s: Mequations/s | .2f; million_equations_per_s_and_rank: per rank",
)
def solutions(results: Sequence[Result]) -> Rows:
    """Equations solved per second, if multigrid is among the methods."""
    for r in results if any(r.record.solve.levels for r in results) else ():
        if r.solved and measures.SOLVE in r.times:
            n = r.record.mesh.n_equations
            took = r.times[measures.SOLVE]
            parts = _median(r, ASSEMBLY), _median(r, CG), took.median, (took.low, took.high)
            rate = n / took.median / 1e6
            yield *case_of(r), n, r.record.solve.iterations, *parts, rate, rate / r.ranks


@declared(
    "energy",
    "Energy",
    "Energy of one set (assembly and cg, with the pause since the set before) on all machines: the mean "
    "over the timed sets of a run, the median over runs; the interval needs three or more runs. J/MDOF is "
    "the energy per million equations solved, only of runs that iterated until the residual met the "
    "tolerance. The energy-delay product is the energy times the seconds of the set. What is counted "
    "includes all work on the machines, and their idle parts. 'Error': counters are up to one update old.",
    CASE,
    "joules: J | digits; joules_low joules_high: 95 % interval | digits",
    "watts: W | digits; joules_per_million_equations: J/MDOF | digits",
    "joule_seconds: energy-delay product, J s | digits; error_fraction: error, up to; counted",
)
def energies(results: Iterable[Result]) -> Rows:
    """Energy to the solution, where it was measured."""
    for r in results:
        one = measures.energy(r.runs, r.pool.records)
        if one is not None:
            equations = r.record.mesh.n_equations / 1e6
            each = one.joules / equations if r.solved else None
            watts = one.joules / one.seconds
            delay = one.joules * one.seconds
            ends = (one.low, one.high)
            yield *case_of(r), one.joules, ends, watts, each, delay, one.error, one.counted


@declared(
    "rates",
    "Rates of CG",
    "'Of its core's roof' takes the matrix alone, on the rank closest to its limit; headline and roofline "
    "take all arrays of the product, on all ranks together. "
    "'Iteration' is the time of one CG iteration on the slowest rank; equations and flops per second "
    "are sums over ranks. 'Product GB/s' is the size of the matrix over the time of one matrix-vector "
    "product; the roof of a core is the speed at which it read as many bytes in the same run. Both are "
    "medians over runs. The last three columns are the maximum over ranks.",
    CASE,
    "iteration_s; million_equations_per_s: Mequations/s | .1f; gflop_per_s: Gflop/s | .2f",
    "product_gb_per_s: product GB/s | .2f; of_roof_fraction: of its core's roof; matrix_bytes",
    "touched_bytes: touched / iteration; peak_memory_bytes",
)
def rates(results: Iterable[Result]) -> Rows:
    """Rates of CG: time per iteration, flops and bytes (from the arrays touched), memory."""
    for r in (r for r in results if CG in r.times and r.record.solve.iterations):
        solve = r.record.solve
        iteration = r.times[CG].median / solve.iterations
        product = np.median([product_bandwidth(record) for record in r.pool.records], axis=0)
        roofs = [worst for record in r.pool.records if (worst := _of_roof(record)) is not None]
        roof = float(np.median(roofs)) if roofs else None
        memory = max((m for record in r.pool.records for m in record.peak_memory), default=0)
        work = r.record.mesh.n_equations / iteration
        yield (
            (*case_of(r), iteration, work / 1e6, sum(solve.flops) / iteration / 1e9)
            + (float(product.sum()) / 1e9, roof, max(solve.matrix_bytes), max(solve.bytes), memory or None)
        )


def _of_roof(record: Record) -> float | None:
    """The largest fraction of its roof that a rank's product reaches; None without a roof."""
    roofs = record.solve.bandwidth
    return max(a / b for a, b in zip(product_bandwidth(record), roofs)) if roofs else None


def _median(result: Result, name: str) -> float | None:
    return result.times[name].median if name in result.times else None


def _mean(result: Result, name: str) -> float:
    return result.times[name].mean if name in result.times else 0.0
