"""Speedup and efficiency: a run held against its base, the same case on one rank (VALIDITY E1 to E3)."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from fembench.base import units
from fembench.records.compare import base_of, cpu_models
from fembench.records.record import Record
from fembench.report.results import Result

EQUAL_RANKS = 0.25  # ranks count as equal while their measured triads differ by no more
SUPERLINEAR = 1.05


@dataclasses.dataclass(frozen=True, slots=True)
class Speedup:
    """One result held against its base."""

    result: Result
    base: Result | None
    ratio: float = np.nan  # T(1) / T(P), slowest rank
    low: float = np.nan  # from the ends of both intervals: wider than 95 %
    high: float = np.nan
    efficiency: float = np.nan  # T(1) / (P T(P)); nan where ranks are unequal or share cores
    notes: tuple[str, ...] = ()  # why there is no number, or what is odd about it


def speedup(result: Result, everyone: Sequence[Result], quantity: str = "cg") -> Speedup:
    """`result` against the fastest of its bases among `everyone`, by the time named `quantity`."""
    if result.pool.status == "INVALID":
        return Speedup(result, None, notes=("INVALID: not compared",))
    pools, reason = base_of(result.pool, [r.pool for r in everyone])
    bases = [r for r in everyone if r.pool in pools and quantity in r.times]
    mine = result.times.get(quantity)
    if mine is None or not bases:
        return Speedup(result, None, notes=(reason or f"no {quantity} was timed",))
    base = min(bases, key=lambda r: r.times[quantity].median)
    alone = base.times[quantity]
    ratio = alone.median / mine.median
    withheld = unequal_ranks(result.record)
    efficiency = np.nan if withheld else ratio / result.ranks
    return Speedup(
        result=result,
        base=base,
        ratio=ratio,
        low=1.0 if base is result else alone.low / mine.high,
        high=1.0 if base is result else alone.high / mine.low,
        efficiency=efficiency,
        notes=tuple(_notes(result, base, withheld, efficiency)),
    )


def _notes(result: Result, base: Result, withheld: str, efficiency: float) -> list[str]:
    notes = [withheld] if withheld else []
    alone, mine = base.record.solve.iterations, result.record.solve.iterations
    if abs(mine - alone) > max(2, 0.02 * alone):
        notes.append(f"iterations differ: {alone} on one rank, {mine} here")
    if efficiency > SUPERLINEAR:
        notes.append(superlinear(result.record, base.record))
    if "PROVISIONAL" in (result.pool.status, base.pool.status):
        notes.append("PROVISIONAL")
    return notes


def unequal_ranks(record: Record) -> str:
    """Why T1 / (P Tp) means nothing for this run (VALIDITY C4, E2), or ""."""
    environment = record.environment
    if environment.oversubscribed:
        return "OVERSUBSCRIBED: functional only, no efficiency"
    if environment.synthetic:
        return "SYNTHETIC: ranks made unequal, no T1/(P Tp)"
    models = cpu_models(record)
    if len(models) > 1:
        return f"unequal ranks ({len(models)} CPU models), no T1/(P Tp)"
    triad = record.solve.bandwidth
    if triad and min(triad) > 0 and max(triad) / min(triad) - 1 > EQUAL_RANKS:
        return f"unequal ranks (triad differs by {max(triad) / min(triad) - 1:.0%}), no T1/(P Tp)"
    return ""


def superlinear(run: Record, base: Record) -> str:
    """What may explain a speedup beyond the ranks: data that fit a cache now, or work saved."""
    caches = run.environment.hosts[0].caches
    cache = max(caches.values(), default=0)
    note = f"super-linear: a rank touches {units.size(max(run.solve.bytes))} an iteration, alone "
    note += f"{units.size(max(base.solve.bytes))}; largest cache {units.size(cache) if cache else 'unknown'}"
    work = sum(run.solve.flops) / max(sum(base.solve.flops), 1.0)
    return note + (f"; work is {work:.2f} of one rank's" if work < 0.95 else "")
