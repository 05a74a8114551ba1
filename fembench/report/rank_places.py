"""Table of rank placement: the host of every rank, and the CPUs that it was allowed to use there."""

from collections import Counter
from collections.abc import Sequence

from fembench.base import units
from fembench.records.record import Record
from fembench.report.measures import host_of
from fembench.report.table import Table, integer, words
from fembench.report.work import cpu_ranges


def places(records: Sequence[Record]) -> Table:
    """One row per rank of every distinct placement of several ranks."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for r in (r for r in records if r.case.placement.ranks > 1):
        names = tuple(host_of(r, rank) for rank in range(r.case.placement.ranks))
        groups.setdefault((names, r.environment.affinity, r.environment.numa), []).append(r)
    rows = [
        (
            number,
            len(group),
            r.case.placement.ranks,
            rank,
            host_of(r, rank),
            _where(r, rank),
            _numa(r, rank),
            _remark(r, rank, users),
        )
        for number, group in enumerate(sorted(groups.values(), key=_ranks), 1)
        for r in group[:1]
        for users in (_users(r),)
        for rank in range(r.case.placement.ranks)
    ]
    return Table(
        "rank_places",
        "Rank placement",
        "Where the ranks of each distinct placement ran. CPUs are those that the launcher allowed the rank "
        "to use: a single CPU, or the hardware threads of one core, means that the rank is bound. The NUMA "
        "node is left out if the CPUs belong to several, or if the record does not name it. Not available: "
        "the CPU that a rank really ran on.",
        (
            integer("placement"),
            integer("runs"),
            integer("ranks"),
            integer("rank"),
            words("host"),
            words("CPUs", "cpus"),
            integer("NUMA node", "numa"),
            words("remarks"),
        ),
        tuple(rows),
    )


def _ranks(group: Sequence[Record]) -> int:
    return group[0].case.placement.ranks


def _where(record: Record, rank: int) -> str:
    cpus = record.environment.affinity
    return cpu_ranges(cpus[rank]) if rank < len(cpus) and cpus[rank] else "not available"


def _numa(record: Record, rank: int) -> int | None:
    numa = record.environment.numa
    return numa[rank] if rank < len(numa) and numa[rank] >= 0 else None


def _users(record: Record) -> Counter[tuple[int, int]]:
    """(host, CPU) -> ranks that may use it."""
    environment = record.environment
    return Counter(
        (host, cpu) for host, cpus in zip(environment.rank_host, environment.affinity) for cpu in set(cpus)
    )


def _remark(record: Record, rank: int, users: Counter[tuple[int, int]]) -> str:
    """Whether other ranks of the host may use the same CPUs."""
    environment = record.environment
    cpus = environment.affinity[rank] if rank < len(environment.affinity) else ()
    shared = max((users[environment.rank_host[rank], cpu] for cpu in cpus), default=1) - 1
    if not shared:
        return ""
    return f"may share CPUs with {units.plural(shared, 'other rank')}"
