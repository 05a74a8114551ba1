"""Tables of work: partitions of the meshes, and iterations of CG."""

from collections.abc import Iterable, Sequence

from fembench.base.units import plural
from fembench.records.record import Record
from fembench.report.results import Result
from fembench.report.table import Rows, declared


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
        p, hosts = r.record.partition, r.record.environment.host_of_rank
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
        pairs, whole = sum(len(n) for n in p.neighbours) // 2, max(sum(p.cells), 1)
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
