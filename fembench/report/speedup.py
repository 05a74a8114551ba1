"""Speedup and efficiency: a run compared with its base, the same case on fewer ranks.

P0        ranks of the base: one, or the fewest that were run, or as requested
S         P0 T(P0) / T(P), of one time (cg, assembly, the whole run, …) on the slowest rank
S / P     efficiency, unless ranks are known to be unequal

Tables of speedup and efficiency, with the base of every row."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fembench.base import units
from fembench.base.errors import InputError
from fembench.records.compare import base_of, ranks_in_words
from fembench.records.contest import PeersRecord
from fembench.records.record import Record
from fembench.report.equality import equality, unequal_ranks
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, RUN, SOLVE, VECTORS, Time
from fembench.report.peer_tables import over_peer
from fembench.report.results import Result
from fembench.report.table import Column, Table, case_columns, case_of, integer, ratio, time, words
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


BASE = (
    "Speedup is P0 T(P0) / T(P), with times on the slowest rank. The base is this code on P0 ranks (one "
    "or, if there is no such run, the fewest), with the same mesh, problem, storage, preconditioner, kind "
    "of host, libraries and clock. With three or more runs of the base and of the case, the range is a 95 % "
    "interval over runs; for fewer, it combines the ends of both intervals over sets and says nothing about "
    "other runs. Efficiency is speedup / P. It is left out if ranks share cores or are known to be unequal."
)
AS_BEFORE = "Base, range and efficiency are those of the table of cg."
BY_PHASE = (ASSEMBLY, PRODUCT, VECTORS, CG, SOLVE, RUN)


_RATIOS = (
    ratio("speedup", "speedup"),
    Column("range", "speedup_low speedup_high", lambda v: f"{v[0]:.2f}–{v[1]:.2f}", number=True),
    integer("base runs"),
    integer("runs"),
    ratio("efficiency", "efficiency"),
)
_OVER_PEER = Column(
    "over the best serial peer", "peer_speedup peer peer_of", lambda v: f"{v[0]:.2f} ({v[1]}, {v[2]})"
)
PEER = (
    " The last comparison is with the fastest other program on one rank: the time of its solve to the same "
    "tolerance over cg. If tolerances differ or the number of iterations is fixed, iterations with the same "
    "preconditioner are compared instead."
)


def speedups(found: Iterable[Speedup], quantity: str, peers: PeersRecord | None = None) -> Table:
    """Speedup and efficiency of one time, with the base of every row; with `peers`, also over the best."""
    found = list(found)
    rows = [
        (*case_of(s.result), _base(s, quantity), s.ratio, (s.low, s.high), *_runs(s, quantity), s.efficiency)
        + ((over_peer(peers, s.result),) if peers else ())
        + ("; ".join(filter(None, (*s.notes, s.equal))),)
        for s in found
    ]
    return Table(
        "speedup_" + quantity.replace(" + ", "_"),
        f"Speedup and efficiency of {quantity}{_definition({s.base.ranks for s in found if s.base})}",
        f"{BASE if quantity == CG else AS_BEFORE}{PEER if peers else ''}",
        (*case_columns(), *_speedup_columns(), *((_OVER_PEER,) if peers else ()), words("remarks")),
        tuple(rows),
    )


def no_speedup(found: Sequence[Result], base: int) -> Table:
    """One row that says why there is no speedup, if no run has more ranks than the requested base."""
    none = bool(base and found) and max(r.ranks for r in found) <= base
    why = f"no run has more than {ranks_in_words(base)}, the requested base: choose a smaller --base"
    return Table("speedup_none", "No speedup", "", (words("why"),), ((why,),) if none else ())


def speedups_by_phase(found: Mapping[str, Sequence[Speedup]]) -> Table:
    """Speedup and efficiency of each phase; `found` by phase."""
    rows = [
        (*case_of(s.result), name, _base(s, name), s.result.times[name].median, s.ratio, (s.low, s.high))
        + (*_runs(s, name), s.efficiency)
        for each in zip(*found.values())
        for name, s in zip(found, each)
        if s.base
    ]
    return Table(
        "speedup_phases",
        "Speedup and efficiency by phase",
        f"{AS_BEFORE} Product and vectors are the computing parts of cg. Run is the whole program, including "
        "the work that every rank repeats (start-up) and the work that a single rank does.",
        (*case_columns(), words("phase"), *_speedup_columns(time("T(P)", "run"))),
        tuple(rows),
    )


def speedups_over_hosts(found: Mapping[str, Sequence[Speedup]]) -> Table:
    """Speedup and efficiency of each phase in numbers of hosts; `found` by phase."""
    rows = [
        (*case_of(s.result), hosts_of(s.result), each or None, name, _base_hosts(s, name))
        + (s.result.times[name].median, s.ratio / max(each, 1))
        + ((s.low / max(each, 1), s.high / max(each, 1)), *_runs(s, name), s.efficiency)
        + ("" if s.base else "; ".join(s.notes),)
        for group in zip(*found.values())
        for name, s in zip(found, group)
        for each in (ranks_per_host(s.result),)
        if name in s.result.times and (s.base or name == CG)
    ]
    return Table(
        "speedup_hosts",
        "Speedup and efficiency by hosts",
        "Speedup in numbers of hosts is H0 T(H0) / T(H). The base ran on H0 hosts, the fewest with the same "
        "number of ranks on each. It shows what another host is worth, whatever the ranks on one host gain "
        "over a single rank. Efficiency is speedup / H.",
        (
            *case_columns(),
            integer("hosts"),
            integer("ranks each", "ranks_per_host"),
            words("phase"),
            Column(
                "base",
                "base_s base_hosts base_id",
                lambda v: f"{units.seconds(v[0])} on {units.plural(v[1], 'host')}",
            ),
            time("T(H)", "run"),
            *_RATIOS,
            words("remarks"),
        ),
        tuple(rows),
    )


def _base_hosts(found: Speedup, quantity: str) -> tuple[float, int, str] | None:
    base = found.base
    return (base.times[quantity].median, hosts_of(base), base.record.id) if base else None


def _definition(bases: set[int]) -> str:
    """For a title: the definition of speedup if a base has several ranks."""
    if bases <= {1}:
        return ""
    if len(bases) == 1:
        (p,) = bases
        return f" (speedup = {p} T({p}) / T(P): the base on {p} ranks counts as a speedup of {p})"
    return " (speedup = P0 T(P0) / T(P): a base on P0 ranks counts as a speedup of P0)"


def _speedup_columns(*between: Column) -> tuple[Column, ...]:
    return (
        Column(
            "base", "base_s base_ranks base_id", lambda v: f"{units.seconds(v[0])} on {ranks_in_words(v[1])}"
        ),
        *between,
        *_RATIOS,
    )


def _runs(found: Speedup, quantity: str) -> tuple[int | None, int | None]:
    base = found.base
    return (base.times[quantity].runs, found.result.times[quantity].runs) if base else (None, None)


def _base(found: Speedup, quantity: str) -> tuple[float, int, str] | None:
    base = found.base
    return (base.times[quantity].median, base.ranks, base.record.id) if base else None
