"""Which records are of one kind, and which are repetitions that may be pooled.

Times on different hosts, libraries, meshes or clocks are different quantities.
Comparability does not depend on times; the result is None (comparable) or the name of
the first field that differs.

Whether two runs ask the same question, whatever computes the answer; what else differs.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping

from fembench.base.config import encode
from fembench.base.units import few
from fembench.records.case import Case, fields_of
from fembench.records.record import Environment, Record

_OF_JOBS = ("FEMBENCH_STARTER", "SLURM_JOB_ID", "SLURM_JOB_NODELIST")  # they name a job
# fields of a case that decide what is computed; not the names of mesh and problem, nor hosts
_ASKED = [n for n in fields_of("question", "method", "placement") if n not in ("mesh", "problem", "hosts")]

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
    mine = a.environment.versions
    theirs = b.environment.versions
    changed = sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k))
    return f"version of {changed[0]}" if changed else None


Question = tuple[tuple[str, object], ...]


def question(case: Case, mesh_hash: str, problem: Mapping[str, object]) -> Question:
    """What a run asks: mesh, problem, method, ranks and how they share the mesh, by name.

    Hosts, libraries and commit may differ, emulated slowness and the number of sets, too.
    """
    values = case.flat()
    solved = {"mesh": mesh_hash, "problem": encode(dict(sorted(problem.items())))}
    return tuple((solved | {name: values[name] for name in _ASKED}).items())


def environment_facts(e: Environment) -> dict[str, str]:
    """What may make a run faster or slower than another: hosts, libraries, settings."""
    hosts = [e.hosts[i] for i in sorted(set(e.rank_host))]
    facts = {
        "commit": f"{e.commit[:12]}{' (changed)' if e.dirty else ''}",
        "hosts": few(sorted(host.name for host in hosts), 3),
        "CPU": ", ".join(sorted({host.cpu_model for host in hosts})),
        "kernel": ", ".join(sorted({host.kernel for host in hosts})),
        "governor": ", ".join(sorted({host.governor for host in hosts})),
        "MPI library": e.mpi,
        "kernels of fembench": e.kernels,
        "emulated": e.synthetic,
    }
    facts |= {f"version of {name}": version for name, version in e.versions.items()}
    return facts | {f"variable {n}": value for n, value in e.variables.items() if n not in _OF_JOBS}


def environment_differences(
    a: Iterable[Environment], b: Iterable[Environment]
) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """(what, its values in a, in b) of all facts that differ; each value once."""
    mine, theirs = ([environment_facts(e) for e in side] for side in (a, b))
    names = dict.fromkeys(name for facts in (*mine, *theirs) for name in facts)
    values = [(name, _values(name, mine), _values(name, theirs)) for name in names]
    return [(name, x, y) for name, x, y in values if x != y]


def _values(name: str, facts: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(sorted({found.get(name, "") for found in facts}))


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
