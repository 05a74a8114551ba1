"""Tables of provenance: hosts, meshes, clocks, software, and kinds of measurement that must not be mixed.

Table of rank placement: the host of every rank, and the CPUs that it was allowed to use there."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fembench.base import units
from fembench.records.compare import cpu_models, host_names
from fembench.records.record import HostFacts, Record
from fembench.report.measures import host_of
from fembench.report.results import kind_difference, kind_letter, kinds_of
from fembench.report.table import Column, Table, integer, percent, ratio, size, time, words
from fembench.report.work import cpu_ranges

NOT_MEASURED = -1.0
CHOICE = "; cheapest of "  # precedes the costs of reading in a clock's reason


def hosts(records: Iterable[Record]) -> Table:
    """Every host on which ranks ran."""
    found: dict[str, HostFacts] = {}
    others: dict[str, float] = {}
    for record in records:
        used = {record.environment.hosts[i].name for i in record.environment.rank_host}
        for host in (h for h in record.environment.hosts if h.name in used):
            found[host.name] = host
            others[host.name] = max(host.others_percent, others.get(host.name, NOT_MEASURED))
    rows = [
        (
            h.name,
            h.cpu_model,
            h.cores,
            h.memory_bytes or None,
            _caches(h.caches),
            h.governor,
            others[h.name] / 100 if others[h.name] >= 0 else None,
            h.kernel,
        )
        for h in found.values()
    ]
    return Table(
        "hosts",
        "Hosts",
        "Cores are those that the run was allowed to use. 'Others' is the share of the ranks' CPU time "
        "that other processes used during the timed sets, in the worst run.",
        (
            words("host"),
            words("CPU", "cpu_model"),
            integer("cores"),
            size("memory", "memory"),
            words("caches"),
            words("governor"),
            percent("others", "others"),
            words("kernel"),
        ),
        tuple(rows),
    )


def clocks(records: Iterable[Record]) -> Table:
    """The clocks used, with their worst properties over all runs."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        why = r.clock.reason.partition(CHOICE)[0]  # without the costs of reading, which differ between runs
        key = ", ".join(host_names(r)), r.clock.name, r.clock.certified, why
        groups.setdefault(key, []).append(r)
    rows = []
    for (names, clock, certified, reason), group in groups.items():
        c = [r.clock for r in group]
        drift = max((abs(x.drift) for x in c), default=0.0)
        costs = [1e-9 * max(getattr(x, field) for x in c) for field in ("read_ns", "quantum_ns", "span_ns")]
        rows.append((names, clock, len(group), "yes" if certified else "no", drift, *costs, reason))
    return Table(
        "clocks",
        "Clocks",
        "The worst values over all runs. Drift is the change of ticks per second against "
        "CLOCK_MONOTONIC_RAW during a run. Reading, quantum and span are the cost of one reading, the "
        "smallest difference, and the cost of one recorded span.",
        (
            words("hosts"),
            words("clock"),
            integer("runs"),
            words("certified"),
            Column("drift", "drift", lambda v: f"{v:.1e}", number=True),
            time("reading", "reading"),
            time("quantum", "quantum"),
            time("span", "span"),
            words("why", "reason"),
        ),
        tuple(rows),
    )


def kinds(records: Sequence[Record]) -> Table:
    """Kinds of measurement that are not compared with each other; empty if there is only one kind."""
    found = kinds_of(records)
    rows = [
        (
            kind_letter(kind, found),
            sum(kind_letter(r, found) == kind_letter(kind, found) for r in records),
            kind_difference(found[0], kind) or "",
            ", ".join(cpu_models(kind)),
            kind.clock.name,
            f"{kind.environment.commit}{' (changed)' if kind.environment.dirty else ''}",
            ", ".join(f"{k} {v}" for k, v in sorted(kind.environment.versions.items())),
        )
        for kind in (found if len(found) > 1 else [])
    ]
    return Table(
        "kinds",
        "Kinds of measurement",
        "These records were made under different conditions. They are never pooled or compared with each "
        "other.",
        (
            words("kind"),
            integer("runs"),
            words("differs from A in", "differs_in"),
            words("CPU", "cpu_model"),
            words("clock"),
            words("commit"),
            words("versions"),
        ),
        tuple(rows),
    )


def meshes(records: Iterable[Record]) -> Table:
    """Every mesh (as in Ferreira 2006, Table 5.5)."""
    found = {r.mesh.hash: r.mesh for r in records}
    rows = [
        (
            m.name,
            m.element,
            m.n_nodes,
            m.n_cells,
            m.n_equations,
            m.n_fixed,
            m.min_quality or None,
            m.hash[:12],
        )
        for m in sorted(found.values(), key=lambda m: (m.n_equations, m.name))
    ]
    return Table(
        "meshes",
        "Meshes",
        "Equations are the free unknowns; restrained unknowns are fixed by the supports. Quality is that of "
        "the worst cell: 1 is regular, 0 is flat. The hash identifies coordinates and cells.",
        (
            words("mesh"),
            words("element"),
            integer("nodes"),
            integer("cells"),
            integer("equations"),
            integer("restrained"),
            ratio("quality", "min_quality"),
            words("hash"),
        ),
        tuple(rows),
    )


def software(records: Sequence[Record]) -> Table:
    """Software and settings: every value that occurs, with the number of runs."""
    counts: Counter[tuple[str, str]] = Counter()
    for r in records:
        counts.update(_software(r))
    return Table(
        "software",
        "Software and settings",
        "Every value that occurs, with the number of runs that have it.",
        (words("what"), words("value"), integer("runs")),
        tuple((name, value, n) for (name, value), n in sorted(counts.items(), key=lambda item: item[0])),
    )


def _software(record: Record) -> set[tuple[str, str]]:
    e = record.environment
    pairs = {
        ("BLAS threads", str(e.blas_threads)),
        ("MPI", e.mpi),
        ("command", e.command),
        ("commit", e.commit + (" with changes" if e.dirty else "")),
        ("kernels", e.kernels),
        ("seed", str(record.case.placement.seed)),
    }
    pairs |= {("SYNTHETIC", e.synthetic)} if e.synthetic else set()
    pairs |= {("sources", e.sources[:12])} if e.sources else set()
    pairs |= {(f"version of {name}", version) for name, version in e.versions.items()}
    return pairs | {(f"variable {name}", value) for name, value in e.variables.items()}


def _caches(caches: dict[str, int]) -> str:
    return ", ".join(f"{level} {units.size(n)}" for level, n in caches.items())


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
