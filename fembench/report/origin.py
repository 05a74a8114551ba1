"""Tables of provenance: hosts, meshes, clocks, software, kinds of measurement.

Table of rank placement: the host of every rank, and the CPUs that it was allowed to use there."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fembench.base import units
from fembench.records.compare import cpu_models
from fembench.records.record import ClockCertificate, DeviceFacts, HostFacts, Record
from fembench.report.results import kind_difference, kind_letter, kinds_of, mesh_name
from fembench.report.table import Rows, Table, declared
from fembench.report.work import cpu_ranges

NOT_MEASURED = -1.0
CHOICE = "; cheapest of "  # precedes the costs of reading in a clock's reason


@declared(
    "hosts",
    "Hosts",
    "Cores are those that the run was allowed to use. 'Others' is the share of the ranks' CPU time "
    "that other processes used during the timed sets, in the worst run.",
    "host; cpu_model: CPU; cores; memory_bytes; caches; governor; others_fraction; kernel",
)
def hosts(records: Iterable[Record]) -> Rows:
    """Every host on which ranks ran."""
    found: dict[str, HostFacts] = {}
    others: dict[str, float] = {}
    for record in records:
        used = set(record.environment.host_of_rank)
        for host in (h for h in record.environment.hosts if h.name in used):
            found[host.name] = host
            others[host.name] = max(host.others_percent, others.get(host.name, NOT_MEASURED))
    return [
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


@declared(
    "kinds",
    "Kinds of measurement",
    "These records were made under different conditions. They are never pooled or compared with each other.",
    "kind; runs; differs_in: differs from A in; cpu_model: CPU; clock; commit; versions",
)
def kinds(records: Sequence[Record]) -> Rows:
    """Kinds of measurement that are not compared with each other; empty if all are alike."""
    found = kinds_of(records)
    return [
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


@declared(
    "meshes",
    "Meshes",
    "Equations are the free unknowns; restrained unknowns are fixed by the supports. Quality is that of "
    "the worst cell: 1 is regular, 0 is flat. The hash identifies coordinates and cells.",
    "mesh; element; nodes; cells; equations; restrained; min_quality: quality; hash",
)
def meshes(records: Iterable[Record]) -> Rows:
    """Every mesh (as in Ferreira 2006, Table 5.5)."""
    found = {r.mesh.hash: (r.mesh, mesh_name(r.case.question.mesh)) for r in records}
    return [
        (
            f"{asked} = {m.name}" if m.name.startswith("box:") and m.name != asked else asked,
            m.element,
            m.n_nodes,
            m.n_cells,
            m.n_equations,
            m.n_fixed,
            m.min_quality or None,
            m.hash[:12],
        )
        for m, asked in sorted(found.values(), key=lambda one: (one[0].n_equations, one[0].name))
    ]


@declared(
    "software",
    "Software, clocks and settings",
    "Every value that occurs, with the number of runs that have it. Of each clock, the worst over all runs: "
    "its drift, which is the change of ticks per second against CLOCK_MONOTONIC_RAW during a run, and the "
    "cost of one reading, the smallest difference and the cost of one recorded span.",
    "what; value; runs",
)
def software(records: Sequence[Record]) -> Rows:
    """Software, clocks and settings: every value that occurs, with the number of runs."""
    counts: Counter[tuple[str, str]] = Counter()
    for r in records:
        counts.update(_software(r))
    for name in {r.clock.name for r in records}:
        worst = _worst([r.clock for r in records if r.clock.name == name])
        counts[f"clock {name}, at worst", worst] = sum(r.clock.name == name for r in records)
    return sorted((name, value, n) for (name, value), n in counts.items())


def _worst(clocks: Sequence[ClockCertificate]) -> str:
    names = {"read_ns": "reading", "quantum_ns": "quantum", "span_ns": "span"}
    costs = {said: 1e-9 * max(getattr(c, field) for c in clocks) for field, said in names.items()}
    shown = ", ".join(f"{name} {units.seconds(cost)}" for name, cost in costs.items())
    return f"drift {max(abs(c.drift) for c in clocks):.1e}, {shown}"


def _software(record: Record) -> set[tuple[str, str]]:
    e, clock = record.environment, record.clock
    why = clock.reason.partition(CHOICE)[0]  # without the costs of reading, which differ between runs
    pairs = {
        ("BLAS threads", str(e.blas_threads)),
        ("MPI", e.mpi),
        (f"clock {clock.name}", f"{'' if clock.certified else 'not '}certified: {why}"),
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


@declared(
    "rank_places",
    "Rank placement",
    "Where the ranks of each distinct placement ran. CPUs are those that the launcher allowed the rank "
    "to use: a single CPU, or the hardware threads of one core, means that the rank is bound. The NUMA "
    "node is left out if the CPUs belong to several, or if the record does not name it. Not available: "
    "the CPU that a rank really ran on.",
    "placement; runs; ranks; rank; host; cpus: CPUs; numa: NUMA node; remarks",
)
def places(records: Sequence[Record]) -> Rows:
    """One row per rank of every distinct placement of several ranks."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for r in (r for r in records if r.case.placement.ranks > 1):
        names = r.environment.host_of_rank
        groups.setdefault((names, r.environment.affinity, r.environment.numa), []).append(r)
    return [
        (
            number,
            len(group),
            r.case.placement.ranks,
            rank,
            name,
            _where(r, rank),
            _numa(r, rank),
            _remark(r, rank, users),
        )
        for number, group in enumerate(sorted(groups.values(), key=_ranks), 1)
        for r in group[:1]
        for users in (_users(r),)
        for rank, name in enumerate(r.environment.host_of_rank)
    ]


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


@declared(
    "devices",
    "Devices",
    "What ranks computed on in place of cores. Memory is that of the whole device.",
    "device; memory_bytes; host; ranks; remarks",
)
def devices(records: Iterable[Record]) -> Rows:
    """Every device on which ranks computed, with their numbers."""
    found: dict[tuple[str, DeviceFacts], set[int]] = {}
    for environment in (record.environment for record in records):
        for rank, key in enumerate(zip(environment.host_of_rank, environment.devices)):
            found.setdefault(key, set()).add(rank)
    for (host, one), ranks in found.items():
        if one.name:
            said = f"{one.driver}, {one.compiler}"
            yield one.name, one.memory_bytes, host, cpu_ranges([*ranks]), said


def every(records: Sequence[Record]) -> list[Table]:
    """Hosts, places of ranks, devices, meshes and software."""
    return [hosts(records), places(records), devices(records), meshes(records), software(records)]
