"""Tables of work: partitions of the meshes, iterations of CG, and weights.

Weights are those that would balance each case, or one with its origin.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from fembench.base.tables import table
from fembench.base.units import plural, seconds, span
from fembench.records.case import FIELDS
from fembench.records.record import Record, now_utc
from fembench.records.weights import RankShare, Weights, age_seconds, loud_notes
from fembench.report.measures import ASSEMBLY, CG, SOLVE
from fembench.report.results import CASE, Result, case_of, unfit
from fembench.report.table import Rows, Table, declared
from fembench.weights.make import by_time


def partitions(results: Iterable[Result]) -> list[Result]:
    """One result per distinct partition into more than one part."""
    found: dict[tuple[object, ...], Result] = {}
    for r in results:
        facts = r.record.partition
        if r.ranks > 1:
            found.setdefault((r.mesh, facts.method, facts.targets, facts.seed, facts.cells), r)
    return list(found.values())


@declared(
    "parts",
    "Parts",
    "The part of the mesh that each rank received. Target and share are fractions of the cells. Dofs "
    "are the free unknowns of the part; shared dofs also belong to other parts ('all' includes "
    "restrained ones). CPUs are those that the rank was allowed to use.",
    "mesh; partitioner; parts; rank; host; target_fraction; share_fraction; cells; dofs; blocks; shared_dofs",
    "shared_dofs_all: shared, all; neighbours; cpus: CPUs",
)
def parts(results: Iterable[Result]) -> Rows:
    """One row per part."""
    for r in partitions(results):
        p = r.record.partition
        hosts = r.record.environment.host_of_rank
        whole = max(sum(p.cells), 1)
        for rank in range(r.ranks):
            yield (
                (r.mesh, p.method, r.ranks, rank, hosts[rank], p.targets[rank])
                + (p.cells[rank] / whole, p.cells[rank], p.dofs[rank], p.blocks[rank])
                + (p.shared_dofs[rank], p.shared_dofs_all[rank], len(p.neighbours[rank]))
                + (cpu_ranges(r.record.environment.affinity[rank]),)
            )


@declared(
    "partitions",
    "Partitions",
    "Imbalance is the largest part over its fair share; 1 is perfect. The fair share follows the "
    "targets for cells and matrix blocks, and is the mean for shared dofs. 'Off target' is the largest "
    "relative difference between an achieved share and its target; above 5 % the run is INVALID: shares "
    "as requested (B4).",
    "mesh; partitioner; ranks setting: parts | {1}; imbalance_cells: cells | .3f",
    "imbalance_blocks: blocks | .3f; imbalance_shared_dofs: shared dofs | .3f; miss_fraction: off target",
    "cut: cut facets; shared_dofs_sum: shared dofs, sum; neighbour_pairs",
)
def balance(results: Iterable[Result]) -> Rows:
    """One row per partition: how even it is, and the size of its interface."""
    for r in partitions(results):
        p = r.record.partition
        pairs = sum(len(n) for n in p.neighbours) // 2
        whole = max(sum(p.cells), 1)
        miss = max(abs(c / whole / t - 1) if t else 0.0 for c, t in zip(p.cells, p.targets))
        yield (
            (r.mesh, p.method, (r.ranks, r.setting), _imbalance(p.cells, p.targets))
            + (_imbalance(p.blocks, p.targets), _imbalance(p.shared_dofs, (1,) * r.ranks), miss)
            + (p.cut, sum(p.shared_dofs), pairs)
        )


@declared(
    "iterations",
    "Iterations and equations",
    "The number of iterations may depend on the number of ranks only through rounding (by up to 2 "
    "iterations or 2 %), unless the preconditioner is built from the parts. Without a preconditioner "
    "it grows roughly as the cube root of the number of equations.",
    "mesh; method; element; equations; preconditioner; goal",
    "iterations_min iterations_max: iterations; ranks: on ranks",
)
def iterations(results: Sequence[Result]) -> Rows:
    """Iterations and equations, over all runs of one system and tolerance."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for r in results:
        groups.setdefault(r.series, []).extend(r.pool.records)
    for (mesh, method), records in groups.items():
        found = [r.solve.iterations for r in records]
        ranks = sorted({r.case.placement.ranks for r in records})
        goal = _goal(records[0])
        yield (
            (
                mesh,
                method,
                records[0].mesh.element,
                records[0].mesh.n_equations,
                records[0].case.method.precond,
            )
            + (goal, (min(found), max(found)), " ".join(map(str, ranks)))
        )


def cpu_ranges(cpus: Sequence[int]) -> str:
    """'0-3 8': CPU numbers, with consecutive ones as ranges."""
    starts = sorted(c for c in cpus if c - 1 not in cpus)
    ends = sorted(c for c in cpus if c + 1 not in cpus)
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends))


def _goal(record: Record) -> str:
    case = record.case
    if case.stop.iterations:
        return plural(case.stop.iterations, "iteration")
    return f"‖r‖ ≤ {case.stop.tolerance:g}" + (" N" if case.stop.tolerance_kind == "absolute" else " ‖f‖")


def _imbalance(values: Sequence[float], targets: Sequence[float]) -> float:
    """The largest value over its fair share; 1 if there is nothing to share."""
    total, weight = sum(values), sum(targets)
    return max((v / (total * t / weight) for v, t in zip(values, targets) if total and t), default=1.0)


@declared(
    "layouts",
    "Ranks and threads",
    "The same case with its cores used by different numbers of ranks and threads per rank. 'Cores' is "
    "ranks times threads. Time is that of assembly and CG on the slowest rank; only CG uses the threads. "
    "'Over the fastest' compares layouts of the same number of cores.",
    "mesh; method; cores; ranks; threads; solve_s: assembly and CG; cg_s; assembly_s",
    "over_fastest_fraction: over the fastest",
)
def layouts(results: Iterable[Result]) -> Rows:
    """One row per layout of cases that were run with several layouts of the same cores."""
    groups: dict[tuple[str, str, int], list[Result]] = {}
    for r in results:
        if SOLVE in r.times and r.pool.status != "INVALID":
            groups.setdefault((r.mesh, _but_threads(r), r.ranks * _threads(r)), []).append(r)
    for (mesh, method, cores), group in groups.items():
        if len({_threads(r) for r in group}) < 2:
            continue
        best = min(r.times[SOLVE].median for r in group)
        for r in sorted(group, key=lambda r: (_threads(r), r.placement)):
            solve, cg, assembly = (r.times[name].median for name in (SOLVE, CG, ASSEMBLY))
            named = " · ".join(filter(None, [method, r.placement, *unfit(r)]))
            yield (mesh, named, cores, r.ranks, _threads(r), solve, cg, assembly, solve / best - 1)


def _threads(result: Result) -> int:
    return result.pool.case.placement.threads


def _but_threads(result: Result) -> str:
    """The method of a result, whatever the number of its threads."""
    said = FIELDS["threads"].shown(_threads(result))
    return " · ".join(word for word in result.method.split(" · ") if word != said)


@declared(
    "threads",
    "Threads",
    "How evenly the threads of a rank share its work. Busiest and mean are the time that threads spent in "
    "kernels, over all sets, on the rank where they differ most. The rank waits for the busiest thread after "
    "every pass; what it computes outside of these passes, one thread computes.",
    CASE,
    "threads; rank; busiest_s; mean_s; imbalance_fraction",
)
def threads(results: Iterable[Result]) -> Rows:
    """One row per case whose ranks have several threads."""
    for r in results:
        spent = np.array(r.record.solve.thread_seconds)
        if not spent.size or not spent.all():
            continue
        imbalance = spent.max(axis=1) / spent.mean(axis=1) - 1
        rank = int(imbalance.argmax())
        busiest = float(spent[rank].max())
        mean = float(spent[rank].mean())
        yield (*case_of(r), spent.shape[1], rank, busiest, mean, float(imbalance[rank]))


@declared(
    "weights",
    "Weights",
    "The share of the cells with which all ranks would finish together. It follows from the time per "
    "cell on each rank (assembly and the computing in cg). The interval is taken over runs if there "
    "are at least three, or over the sets of a single run.",
    CASE,
    "rank; host; share | .4f; share_low share_high: 95 % interval | .4f",
    "cost_per_cell_s: time per cell",
)
def weights_table(results: Iterable[Result]) -> Rows:
    """Weights by the rule `time`, one row per rank of every valid case on several ranks."""
    return [
        (*case_of(result), rank, one.host, one.share, (one.low, one.high), one.cost)
        for result in results
        if result.ranks > 1 and result.pool.status != "INVALID" and CG in result.times
        for rank, one in enumerate(by_time(result.pool.records).ranks)
    ]


def as_table(weights: Weights) -> str:
    """Rank, host, share with its interval, cost; then rule, source and age."""
    rows = [
        [p, r.host, f"{r.share:.4f}", _interval(r), seconds(r.cost) if r.cost else None, f"{k:.3g}"]
        for p, (r, k) in enumerate(zip(weights.ranks, _relative(weights)))
    ]
    heads = ["rank", "host", "share", "95 % interval", "time per cell", "relative speed"]
    count = plural(len(weights.source), "record")
    origin = f"{count} of {weights.mesh}" if weights.mesh else "a machine profile"
    head = f"rule {weights.rule}, from {origin}, measured {span(age_seconds(weights, now_utc()))} ago"
    label = [f"SYNTHETIC: {weights.synthetic}"] if weights.synthetic else []
    tasks = [f"equal tasks: {', '.join(f'{h} {k}' for h, k in weights.tasks)}"] if weights.tasks else []
    body = table(heads, rows, align="rlrrrr")
    loud = loud_notes(weights)
    others = [note for note in weights.notes if note not in loud]
    return "\n".join([head, *label, *loud, "", body, "", *tasks, *others])


def _interval(rank: RankShare) -> str | None:
    return None if rank.low is None else f"{rank.low:.4f} – {rank.high:.4f}"


def _relative(weights: Weights) -> list[float]:
    """Speeds of the ranks, relative to the fastest; their shares if no costs are known."""
    speeds = [1 / r.cost if r.cost else r.share for r in weights.ranks]
    return [s / max(speeds) for s in speeds]


def tables(found: Sequence[Result]) -> list[Table]:
    """How the work is divided among ranks and threads."""
    return [make(found) for make in (balance, parts, iterations, layouts, threads)]
