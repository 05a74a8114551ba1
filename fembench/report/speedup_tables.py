"""Tables of speedup and efficiency, with the base of every row."""

from collections.abc import Iterable, Mapping, Sequence

from fembench.base import units
from fembench.records.compare import ranks_in_words
from fembench.records.contest import PeersRecord
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, RUN, SOLVE, VECTORS
from fembench.report.peer_tables import over_peer
from fembench.report.results import Result
from fembench.report.speedup import Speedup, hosts_of, ranks_per_host
from fembench.report.table import Column, Table, case_columns, case_of, integer, ratio, time, words

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
