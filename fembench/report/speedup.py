"""Speedup and efficiency: a run compared with its base, the same case on fewer ranks.

P0        ranks of the base: one, or the fewest that were run, or as requested
S         P0 T(P0) / T(P), of one time (cg, assembly, the whole run, …) on the slowest rank
S / P     efficiency, unless ranks are known to be unequal

Tables of speedup and efficiency, with the base of every row."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fembench.base import units
from fembench.base.errors import InputError
from fembench.records.compare import ranks_in_words
from fembench.records.contest import PeersRecord
from fembench.report.bases import RANGE, RANKS, base_of, bases, caveats, fastest, ratio_range
from fembench.report.equality import equality, unequal_ranks
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, RUN, SOLVE, VECTORS
from fembench.report.peer_tables import over_peer
from fembench.report.results import CASE, Result, case_of, unfit
from fembench.report.table import Rows, Table, declared

SUPERLINEAR = 1.05
SLOWER = "slower than on "  # begins the note of a run that takes longer than one on fewer ranks


@dataclasses.dataclass(frozen=True, slots=True)
class Speedup:
    """One result compared with its base."""

    result: Result
    base: Result | None
    ratio: float = np.nan  # P0 T(P0) / T(P)
    low: float = np.nan  # 95 % interval over runs; of fewer than three, from both intervals' ends
    high: float = np.nan
    efficiency: float = np.nan  # ratio / P; nan if ranks are unequal or share cores
    notes: tuple[str, ...] = ()  # why there is no number, or caveats about it
    equal: str = ""  # why it is not known that the ranks are equally fast, as the efficiency assumes


def speedup(result: Result, everyone: Sequence[Result], quantity: str = CG, base: int = 0) -> Speedup:
    """The speedup of `result` over the fastest of its bases, in the time named `quantity`.

    `base`: ranks of the base; 0: one or, without such a run, the fewest.
    """
    if result.pool.status == "INVALID":
        return Speedup(result, None, notes=("INVALID: not compared",))
    found, reason = base_of(result, everyone, quantity, base)
    if found is None or quantity not in result.times or not result.times[quantity].median:
        return Speedup(result, None, notes=(reason or f"no time of {quantity}",))
    if quantity == RUN and len({len(one.all_sets) for one in (*result.runs, *found.runs)}) > 1:
        return Speedup(result, None, notes=("not the same work: numbers of sets differ",))
    return _against(result, found, everyone, quantity)


def all_speedups(found: Sequence[Result], quantity: str = CG, base: int = 0) -> list[Speedup]:
    """The speedup of each result on more than `base` ranks. Raises InputError without it."""
    counts = sorted({r.ranks for r in found})
    if base and base not in counts:
        raise InputError(f"--base {base}: no run on {ranks_in_words(base)}; runs are on {counts} ranks")
    return [speedup(r, found, quantity, base) for r in found if r.ranks > max(base, 1)]


def _against(result: Result, base: Result, everyone: Sequence[Result], quantity: str) -> Speedup:
    mine = result.times[quantity]
    alone = base.times[quantity]
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
        notes=(*_notes(result, base, withheld, efficiency), *_slower(result, everyone, quantity)),
        equal="" if withheld else equality(result.record, everyone).remark,
    )


def _slower(result: Result, everyone: Sequence[Result], quantity: str) -> list[str]:
    """A note if the case is faster on fewer ranks, with the number to use, or why none follows."""
    fewer = (r for r in everyone if r.mesh == result.mesh and r.ranks < result.ranks)
    best = fastest(bases(result, fewer, RANKS), quantity)
    mine = result.times[quantity]
    if best is None or ratio_range(best.times[quantity], mine)[1] >= 1:
        return []
    if best.times[quantity].median >= mine.median:
        return []
    ranks = ranks_in_words(best.ranks)
    why = " and ".join(unfit(best, result))
    return [f"{SLOWER}{ranks}{f', but {why}: no advice follows' if why else f': use {ranks}'}"]


def _notes(result: Result, base: Result, withheld: str, efficiency: float) -> list[str]:
    notes = [withheld] if withheld else []
    alone = base.record.solve.iterations
    mine = result.record.solve.iterations
    if abs(mine - alone) > max(2, 0.02 * alone):
        notes.append(f"iterations differ: {alone} on {ranks_in_words(base.ranks)}, {mine} here")
    if efficiency > SUPERLINEAR:
        notes.append(superlinear(result, base))
    return notes + caveats(result, base)


def superlinear(result: Result, base: Result) -> str:
    """What may explain a super-linear speedup: data that now fit in a cache, saved work.

    Nothing is looked for if one of the two is DISTURBED: that may explain it.
    """
    if result.disturbed or base.disturbed:
        return "super-linear"
    run, one = result.record, base.record
    mine, alone = max(run.solve.bytes), max(one.solve.bytes)
    fewer = ranks_in_words(base.ranks)
    note = f"super-linear: a rank touches {units.size(mine)} per iteration, {units.size(alone)} on {fewer}; "
    note += _by_cache(mine, alone, run.environment.hosts[0].caches)
    work = sum(run.solve.flops) / max(sum(one.solve.flops), 1.0)
    return note + (f"; work is {work:.2f} of that of {fewer}" if work < 0.95 else "")


def _by_cache(mine: float, alone: float, caches: dict[str, int]) -> str:
    """Which cache, if any, holds the data of a rank here but not those of the base."""
    if not caches:
        return "cache sizes are unknown"
    by_size = sorted(caches.items(), key=lambda item: item[1])
    for level, size in by_size:
        if mine <= size < alone:
            return f"the former fits in {level} ({units.size(size)} per cache), the latter does not"
    sizes = ", ".join(f"{level} {units.size(size)}" for level, size in by_size)
    return f"caches do not explain it: none holds only the former ({sizes})"


BASE = (
    "Speedup is P0 T(P0) / T(P), with times on the slowest rank. The base is this code on P0 ranks (one "
    "or, if there is no such run, the fewest), with the same mesh, problem, storage, preconditioner, kind "
    f"of host, libraries and clock. {RANGE}"
    "Efficiency is speedup / P. It is left out if ranks share cores or are known to be unequal."
)
AS_BEFORE = "Base, range and efficiency are those of the table of cg."
BY_PHASE = (ASSEMBLY, PRODUCT, VECTORS, CG, SOLVE, RUN)
PEER = (
    " The last comparison is with the fastest other program on one rank: the time of its solve to the same "
    "tolerance over cg. If tolerances differ or the number of iterations is fixed, iterations with the same "
    "preconditioner are compared instead."
)
OF_BASE = "base_s base_ranks base_id: base | {0:s} on {1:on_ranks}"
RATIOS = "speedup; speedup_low speedup_high: range; base_runs; runs; efficiency"


@declared(
    "speedup",
    "Speedup and efficiency",
    BASE,
    CASE,
    OF_BASE,
    RATIOS,
    "?peer_speedup peer peer_of: over the best serial peer | {0:.2f} ({1}, {2}); remarks",
)
def _speedups(found: Iterable[Speedup], quantity: str, peers: PeersRecord | None) -> Rows:
    for s in found:
        peer = over_peer(peers, s.result) if peers else None
        yield *case_of(s.result), *_ratios(s, quantity), peer, "; ".join(filter(None, (*s.notes, s.equal)))


def speedups(found: Sequence[Speedup], quantity: str, peers: PeersRecord | None = None) -> Table:
    """Speedup and efficiency of one time, with their base; with `peers`, over the best."""
    return dataclasses.replace(
        _speedups(found, quantity, peers),
        name="speedup_" + quantity.replace(" + ", "_"),
        title=f"Speedup and efficiency of {quantity}{_definition({s.base.ranks for s in found if s.base})}",
        note=f"{BASE if quantity == CG else AS_BEFORE}{PEER if peers else ''}",
    )


@declared(
    "speedup_phases",
    "Speedup and efficiency by phase",
    f"{AS_BEFORE} Product and vectors are the computing parts of cg. Run is the whole program, including "
    "the work that every rank repeats (start-up) and the work that a single rank does; it is left out if "
    "numbers of sets differ, as they do if sets repeat until the time is precise.",
    CASE,
    "phase; run_s: T(P)",
    OF_BASE,
    RATIOS,
)
def speedups_by_phase(found: Mapping[str, Sequence[Speedup]]) -> Rows:
    """Speedup and efficiency of each phase; `found` by phase."""
    for each in zip(*found.values()):
        for name, s in zip(found, each):
            if s.base:
                yield *case_of(s.result), name, s.result.times[name].median, *_ratios(s, name)


def _ratios(s: Speedup, quantity: str) -> tuple[object, ...]:
    """Values of OF_BASE and RATIOS."""
    if s.base is None:
        return (None,) * 5 + (np.nan,)
    mine = s.result.times[quantity]
    alone = s.base.times[quantity]
    base = alone.median, s.base.ranks, s.base.record.id
    return base, s.ratio, (s.low, s.high), alone.runs, mine.runs, s.efficiency


def _definition(bases: set[int]) -> str:
    """For a title: the definition of speedup if a base has several ranks."""
    if bases <= {1}:
        return ""
    if len(bases) == 1:
        (p,) = bases
        return f" (speedup = {p} T({p}) / T(P): the base on {p} ranks counts as a speedup of {p})"
    return " (speedup = P0 T(P0) / T(P): a base on P0 ranks counts as a speedup of P0)"
