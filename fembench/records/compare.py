"""Which records are of one kind, and which are repetitions that may be pooled.

Times on different hosts, libraries, meshes or clocks are different quantities.
Comparability does not depend on times; the result is None (comparable) or the name of
the first field that differs.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable

from fembench.records.case import Case
from fembench.records.record import Record

_KIND: tuple[tuple[str, Callable[[Record], object]], ...] = (
    ("host set", lambda r: host_names(r)),
    ("CPU model", lambda r: cpu_models(r)),
    ("MPI library", lambda r: r.environment.mpi),
    ("kernels", lambda r: r.environment.kernels),
    ("commit", lambda r: r.environment.commit),
    ("sources", lambda r: r.environment.sources),
    ("mesh hash", lambda r: r.mesh.hash),
    ("problem", lambda r: r.problem),
    ("clock", lambda r: r.clock.name),
    ("emulated slowness", lambda r: r.environment.synthetic),
)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Runs of one case that are repetitions of each other."""

    case: Case
    records: tuple[Record, ...]  # at least one, by date
    apart: str = ""  # the field in which it differs from an earlier pool of the same case

    @property
    def first(self) -> Record:
        """The record that represents the pool in everything but times."""
        return self.records[0]

    @property
    def status(self) -> str:
        """The worst verdict of its runs."""
        found = {r.verdict.status for r in self.records}
        return next(s for s in ("INVALID", "PROVISIONAL", "VALID") if s in found)


def host_names(record: Record) -> tuple[str, ...]:
    """Names of the hosts that the ranks ran on, sorted."""
    return tuple(sorted(set(record.environment.host_of_rank)))


def cpu_models(record: Record) -> tuple[str, ...]:
    """CPU models that the ranks ran on, sorted."""
    hosts = record.environment.hosts
    return tuple(sorted({hosts[i].cpu_model for i in record.environment.rank_host}))


def same_kind(a: Record, b: Record, *, but: Collection[str] = ()) -> str | None:
    """The first field in which two records are different kinds of measurement, or None.

    Only records without such a field are pooled (docs/validity.md). `but`: may differ.
    """
    for name, facet in _KIND:
        if name not in but and facet(a) != facet(b):
            return name
    mine, theirs = a.environment.versions, b.environment.versions
    changed = sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k))
    return f"version of {changed[0]}" if changed else None


def pools(records: Iterable[Record]) -> list[Pool]:
    """Pools of repetitions, in the order of their first record; INVALID runs apart.

    Records of one case but different kinds form pools; `apart` names the difference.
    """
    groups: dict[Case, list[list[Record]]] = {}
    for record in sorted(records, key=lambda r: (r.created, r.id)):
        siblings = groups.setdefault(record.case, [])
        home = next((g for g in siblings if _apart(g[0], record) is None), None)
        if home is None:
            siblings.append([record])
        else:
            home.append(record)
    return [
        Pool(case, tuple(group), (_apart(siblings[0][0], group[0]) or "") if i else "")
        for case, siblings in groups.items()
        for i, group in enumerate(siblings)
    ]


def ranks_in_words(ranks: int) -> str:
    """'one rank', '4 ranks'."""
    return f"{ranks} ranks" if ranks > 1 else "one rank"


def _apart(a: Record, b: Record) -> str | None:
    if (a.verdict.status == "INVALID") != (b.verdict.status == "INVALID"):
        return "verdict"
    return same_kind(a, b)
