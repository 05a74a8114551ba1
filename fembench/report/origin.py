"""Tables of provenance: hosts, meshes, clocks, software, and kinds of measurement that must not be mixed."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fembench.base import units
from fembench.records.compare import cpu_models, host_names
from fembench.records.record import HostFacts, Record
from fembench.report.results import kind_difference, kind_letter, kinds_of
from fembench.report.table import Column, Table, integer, percent, ratio, size, time, words

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
