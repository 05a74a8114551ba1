"""Which records are comparable: repetitions that may be pooled, and runs that may be compared.

Times on different hosts, libraries, meshes or clocks are different quantities. Comparability does not depend
on times; the result is None (comparable) or the name of the first field that differs.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

from fembench.records.case import FIELDS, Case, fields_of
from fembench.records.record import Record

# Fields without effect on one rank, or without any effect: they may differ between a run and its base.
_UNLIKE_BASE = fields_of("placement", "text")

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
    hosts = record.environment.hosts
    return tuple(sorted({hosts[i].name for i in record.environment.rank_host}))


def cpu_models(record: Record) -> tuple[str, ...]:
    """CPU models that the ranks ran on, sorted."""
    hosts = record.environment.hosts
    return tuple(sorted({hosts[i].cpu_model for i in record.environment.rank_host}))


def same_kind(a: Record, b: Record, *, but: Collection[str] = ()) -> str | None:
    """The first field in which two records are different kinds of measurement, or None.

    Only records without such a field may be pooled (docs/validity.md). `but`: fields that may differ.
    """
    for name, facet in _KIND:
        if name not in but and facet(a) != facet(b):
            return name
    mine, theirs = a.environment.versions, b.environment.versions
    changed = sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k))
    return f"version of {changed[0]}" if changed else None


def base_mismatch(base: Record, run: Record, ranks: int = 1) -> str | None:
    """The first field that prevents `base` from being the base of `run` on `ranks` ranks, or None.

    They must agree in everything but ranks, shares and their consequences. A base on one host is valid for a
    run that also uses other hosts of the same CPU model.
    """
    if base.case.placement.ranks != ranks:
        return "ranks of the base"
    theirs = base.case.flat()
    for name, value in run.case.flat().items():
        if name not in _UNLIKE_BASE and theirs[name] != value:
            return name
    if not set(host_names(base)) <= set(host_names(run)):
        return "host set"
    return same_kind(base, run, but=("host set",))


def pools(records: Iterable[Record]) -> list[Pool]:
    """Pools of repetitions, in the order of their first record; INVALID runs are kept apart.

    Records of one case but of different kinds form several pools; `apart` names the difference.
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


def base_of(pool: Pool, candidates: Sequence[Pool], ranks: int = 0) -> tuple[list[Pool], str]:
    """(pools that can be the base of `pool`, run on `ranks` ranks; the reason if there are none).

    `ranks` 0: one rank or, without such a run, the fewest.
    """
    fewer = sorted(
        {1}
        | {p.case.placement.ranks for p in candidates if p.case.placement.ranks < pool.case.placement.ranks}
    )
    tried = [_bases(pool, candidates, n) for n in ([ranks] if ranks else fewer)]
    return next((found for found in tried if found[0]), tried[0])


def _bases(pool: Pool, candidates: Sequence[Pool], ranks: int) -> tuple[list[Pool], str]:
    same = [
        p
        for p in candidates
        if p.case.placement.ranks == ranks and p.case.question.mesh == pool.case.question.mesh
    ]
    usable = [p for p in same if p.status != "INVALID"]
    reasons = [base_mismatch(p.first, pool.first, ranks) for p in usable]
    found = [p for p, reason in zip(usable, reasons) if reason is None]
    if found:
        return found, ""
    if not same:
        return [], f"no run on {ranks_in_words(ranks)}"
    nearest = next((r for r in reasons if r not in FIELDS), reasons[0] if reasons else None)
    return [], f"base differs in {nearest}" if nearest else "base is INVALID"


def ranks_in_words(ranks: int) -> str:
    """'one rank', '4 ranks'."""
    return f"{ranks} ranks" if ranks > 1 else "one rank"


def _apart(a: Record, b: Record) -> str | None:
    if (a.verdict.status == "INVALID") != (b.verdict.status == "INVALID"):
        return "verdict"
    return same_kind(a, b)
