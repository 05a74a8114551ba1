"""Speedup and efficiency: a run compared with its base, the same case on fewer ranks.

P0        ranks of the base: one, or the fewest that were run, or as requested
S         P0 T(P0) / T(P), of one time (cg, assembly, the whole run, …) on the slowest rank
S / P     efficiency, unless ranks are known to be unequal
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence

import numpy as np

from fembench.base import units
from fembench.base.errors import InputError
from fembench.records.compare import base_of, ranks_in_words
from fembench.records.record import Record
from fembench.report.equality import equality, unequal_ranks
from fembench.report.measures import CG, Time
from fembench.report.results import Result
from fembench.stats.student import ratio_unpaired

SUPERLINEAR = 1.05
SLOWER = "slower than on "  # begins the note of a run that takes longer than one on fewer ranks


@dataclasses.dataclass(frozen=True, slots=True)
class Speedup:
    """One result compared with its base."""

    result: Result
    base: Result | None
    ratio: float = np.nan  # P0 T(P0) / T(P)
    low: float = np.nan  # 95 % interval over runs; for fewer than three runs, from the ends of both intervals
    high: float = np.nan
    efficiency: float = np.nan  # ratio / P; nan if ranks are unequal or share cores
    notes: tuple[str, ...] = ()  # why there is no number, or caveats about it
    equal: str = ""  # why it is not known that the ranks are equally fast, as the efficiency assumes


def speedup(
    result: Result,
    everyone: Sequence[Result],
    quantity: str = CG,
    base: int = 0,
    among: Sequence[Result] | None = None,
) -> Speedup:
    """The speedup of `result` over the fastest of its bases, in the time named `quantity`.

    `base`: ranks of the base; 0: one or, without such a run, the fewest. `among`: the results that may be the
    base; everyone by default.
    """
    if result.pool.status == "INVALID":
        return Speedup(result, None, notes=("INVALID: not compared",))
    candidates = everyone if among is None else among
    pools, reason = base_of(result.pool, [r.pool for r in candidates], base)
    bases = [r for r in candidates if r.pool in pools and _timed(r, quantity)]
    if not bases or not _timed(result, quantity):
        return Speedup(result, None, notes=(reason or f"no time of {quantity}",))
    return _against(result, min(bases, key=lambda r: r.times[quantity].median), everyone, quantity)


def all_speedups(found: Sequence[Result], quantity: str = CG, base: int = 0) -> list[Speedup]:
    """The speedup of every result on more than `base` ranks. Raises InputError if no run has `base` ranks."""
    counts = sorted({r.ranks for r in found})
    if base and base not in counts:
        raise InputError(f"--base {base}: no run on {ranks_in_words(base)}; runs are on {counts} ranks")
    return [speedup(r, found, quantity, base) for r in found if r.ranks > max(base, 1)]


def speedups_by_hosts(found: Sequence[Result], quantity: str = CG) -> list[Speedup]:
    """Every result on several hosts against the fewest hosts that have as many ranks each."""
    return [_over_hosts(r, found, quantity) for r in found if hosts_of(r) > 1]


def _over_hosts(result: Result, found: Sequence[Result], quantity: str) -> Speedup:
    each = ranks_per_host(result)
    if not each:
        return Speedup(result, None, notes=("not available: hosts have different numbers of ranks",))
    alike = [r for r in found if r.mesh == result.mesh and ranks_per_host(r) == each]
    fewer = sorted({r.ranks for r in alike if r.ranks < result.ranks})
    if not fewer:
        why = f"not available: no run on fewer hosts with {ranks_in_words(each)} on each"
        return Speedup(result, None, notes=(why,))
    tried = [speedup(result, found, quantity, ranks, alike) for ranks in fewer]
    return next((s for s in tried if s.base), tried[0])


def hosts_of(result: Result) -> int:
    """Number of hosts that the ranks ran on."""
    return len(set(result.record.environment.rank_host))


def ranks_per_host(result: Result) -> int:
    """Ranks on each host; 0 where hosts have different numbers."""
    counts = set(Counter(result.record.environment.rank_host).values())
    return counts.pop() if len(counts) == 1 else 0


def _timed(result: Result, quantity: str) -> bool:
    return quantity in result.times and result.times[quantity].median > 0


def _against(result: Result, base: Result, everyone: Sequence[Result], quantity: str) -> Speedup:
    mine, alone = result.times[quantity], base.times[quantity]
    ratio = base.ranks * alone.median / mine.median
    withheld = unequal_ranks(result.record, everyone)
    efficiency = np.nan if withheld else ratio / result.ranks
    low, high = (1.0, 1.0) if base is result else ratio_range(alone, mine)
    return Speedup(
        result=result,
        base=base,
        ratio=ratio,
        low=base.ranks * low,
        high=base.ranks * high,
        efficiency=efficiency,
        notes=tuple(_notes(result, base, withheld, efficiency)) + _slower(result, everyone, quantity),
        equal="" if withheld else equality(result.record, everyone).remark,
    )


def _slower(result: Result, everyone: Sequence[Result], quantity: str) -> tuple[str, ...]:
    """A note if the same case takes longer than on fewer ranks, with the number of ranks to use."""
    fewer: list[Result] = []
    for n in sorted({r.ranks for r in everyone if r.ranks < result.ranks}):
        pools, _ = base_of(result.pool, [r.pool for r in everyone], n)
        fewer += [r for r in everyone if r.pool in pools and _timed(r, quantity)]
    best = min(fewer, key=lambda r: r.times[quantity].median, default=result)
    longer = best.times[quantity].median < result.times[quantity].median
    if not longer or ratio_range(best.times[quantity], result.times[quantity])[1] >= 1:
        return ()
    ranks = ranks_in_words(best.ranks)
    return (f"{SLOWER}{ranks}: use {ranks}",)


def ratio_range(alone: Time, mine: Time) -> tuple[float, float]:
    """The range of alone / mine: 95 % over runs if both have three, else from the ends of both intervals."""
    interval = ratio_unpaired(alone.medians, mine.medians).interval
    return (interval.low, interval.high) if interval else (alone.low / mine.high, alone.high / mine.low)


def _notes(result: Result, base: Result, withheld: str, efficiency: float) -> list[str]:
    notes = [withheld] if withheld else []
    alone, mine = base.record.solve.iterations, result.record.solve.iterations
    if abs(mine - alone) > max(2, 0.02 * alone):
        notes.append(f"iterations differ: {alone} on {ranks_in_words(base.ranks)}, {mine} here")
    if efficiency > SUPERLINEAR:
        notes.append(superlinear(result.record, base.record))
    if any(t.apart for r in (result, base) if (t := r.times.get(CG))):
        notes.append("runs differ")
    if "PROVISIONAL" in (result.pool.status, base.pool.status):
        notes.append("PROVISIONAL")
    return notes


def superlinear(run: Record, base: Record) -> str:
    """Possible explanations of a super-linear speedup: data that now fit in a cache, or saved work."""
    mine, alone = max(run.solve.bytes), max(base.solve.bytes)
    note = f"super-linear: a rank touches {units.size(mine)} per iteration, {units.size(alone)} on "
    note += f"{ranks_in_words(base.case.placement.ranks)}; "
    note += _by_cache(mine, alone, run.environment.hosts[0].caches)
    work = sum(run.solve.flops) / max(sum(base.solve.flops), 1.0)
    return note + (
        f"; work is {work:.2f} of that of {ranks_in_words(base.case.placement.ranks)}" if work < 0.95 else ""
    )


def _by_cache(mine: float, alone: float, caches: dict[str, int]) -> str:
    """A sentence on which cache, if any, holds the data of a rank here but not those of the base."""
    if not caches:
        return "cache sizes are unknown"
    by_size = sorted(caches.items(), key=lambda item: item[1])
    for level, size in by_size:
        if mine <= size < alone:
            return f"the former fits in {level} ({units.size(size)} per cache), the latter does not"
    sizes = ", ".join(f"{level} {units.size(size)}" for level, size in by_size)
    return f"caches do not explain it: none holds only the former ({sizes})"
