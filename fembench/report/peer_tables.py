"""Tables of a comparison with peers, and the base of an honest speedup."""

import dataclasses
import math
from typing import NamedTuple

from fembench.base import units
from fembench.records.compare import cpu_models
from fembench.records.contest import PeerRun, PeersRecord, best_serial
from fembench.records.quiet import disturbance
from fembench.report.measures import CG
from fembench.report.results import Result
from fembench.report.table import Rows, Table, declared
from fembench.stats.summary import median, quartile_spread

QUARTILES = 4  # repetitions needed for quartiles


class OverPeer(NamedTuple):
    """The time of the fastest serial peer over that of fembench."""

    ratio: float  # above 1: fembench is faster
    peer: str  # name and preconditioner
    of: str  # "solve": to the same tolerance; "iteration": with the same preconditioner


def over_peer(record: PeersRecord, result: Result) -> OverPeer | None:
    """CG of `result` compared with the best serial peer; None if system or CPU model differ.

    Compares whole solves if both stop at the same tolerance, otherwise single iterations.
    """
    mine, theirs = result.record, record.case
    same_system = (mine.mesh.hash, mine.case.question.problem) == (record.mesh.hash, theirs.question.problem)
    same_cpu = set(cpu_models(mine)) <= {h.cpu_model for h in record.environment.hosts}
    if not (same_system and same_cpu and CG in result.times):
        return None
    cg = result.times[CG].median
    iterations = max(mine.solve.iterations, 1)
    others = [r for r in record.runs if r.status == "timed" and not r.own and r.ranks == 1]
    goal = (mine.case.stop.tolerance, mine.case.stop.tolerance_kind, mine.case.stop.iterations)
    if goal == (theirs.stop.tolerance, theirs.stop.tolerance_kind, 0):
        timed = {f"{r.peer} {r.precond}": r.solve / cg for r in others if r.solves}
        of = "solve"
    else:
        alike = [r for r in others if r.precond == mine.case.method.precond and r.per_iteration]
        timed = {f"{r.peer} {r.precond}": r.iteration / (cg / iterations) for r in alike}
        of = "iteration"
    best = min(timed, key=lambda name: timed[name], default=None)
    return OverPeer(timed[best], best, of) if best else None


def own_best(record: PeersRecord, ranks: int) -> PeerRun | None:
    """The run of fembench on `ranks` ranks that reaches the solution first."""
    ours = [r for r in record.runs if r.own and r.solves and r.ranks == ranks]
    return min(ours, key=lambda r: r.to_solution, default=None)


def own_twin(record: PeersRecord, run: PeerRun) -> PeerRun | None:
    """The run of own-sym with the same preconditioner and ranks."""
    same = (r for r in record.runs if r.status == "timed" and r.peer == "own-sym")
    return next((r for r in same if (r.precond, r.ranks) == (run.precond, run.ranks)), None)


@declared(
    "peers",
    "Peers",
    "Medians; 'spread' is the interquartile range over the median. '× own-sym' is the time "
    "of an iteration over that of fembench (own-sym) with the same preconditioner and ranks; "
    "'× own best' is set-up + solve over that of the fastest solver of fembench on as many ranks. "
    "Assembly computes the matrix from the cells; PETSc assembles the element matrices of fembench's "
    "kernels. A dash means that the peer was given the matrix. ",
    "peer; preconditioner; ranks; iterations; iteration_s: per iteration; iteration_spread_fraction: spread",
    "iteration_over_own_ratio: × own-sym; solve_s; setup_s: set-up; assembly_s",
    "solution_over_own_ratio: × own best; difference: difference of u | .0e; library",
)
def _race(record: PeersRecord) -> Rows:
    for run in (r for r in record.runs if r.status == "timed"):
        twin = own_twin(record, run)
        best = own_best(record, run.ranks)
        spread = quartile_spread(run.per_iteration) if len(run.per_iteration) >= QUARTILES else None
        yield (
            (run.peer, run.precond, run.ranks, run.iterations, run.iteration, spread)
            + (run.iteration / twin.iteration if twin else None, run.solve)
            + (median(run.setup), median(run.assembly))
            + (run.to_solution / best.to_solution if best else None, run.difference, run.library)
        )


def peers_tables(record: PeersRecord) -> list[Table]:
    """Every table that has rows."""
    raced = _race(record)
    system = f"{record.case.question.mesh}: {units.count(record.mesh.n_equations)} equations, one system"
    disturbed = disturbance([record.environment], "times")
    note = f"{disturbed}{'. ' * bool(disturbed)}{raced.note}{_parity(record)} {_load(record)}"
    raced = dataclasses.replace(raced, title=f"Peers on {system}", note=note)
    return [t for t in (raced, _base(record), _absent(record)) if t.rows]


def _parity(record: PeersRecord) -> str:
    """A sentence on which runs have a time."""
    if record.parity == "iterate":
        return "Only runs whose last iterate equals that of numpy's CG on the exported system have a time."
    return (
        f"All stop at the same |r|/|f| ({record.case.stop.tolerance:g}, unpreconditioned). Only runs that "
        "find the reference solution have a time."
    )


def _load(record: PeersRecord) -> str:
    """A sentence on the load before the session, which limits what difference counts."""
    busy = max(record.environment.hosts, key=lambda h: h.load_average / h.cores)
    others = " (the host was busy: expect noise)" if busy.load_average > 0.25 * busy.cores + 0.25 else ""
    crowded = " There were more ranks than cores: ignore times on several ranks."
    load = f"Load before the session: {busy.load_average:.2f} on {units.plural(busy.cores, 'core')}{others}."
    return load + (crowded if record.environment.oversubscribed else "")


@declared(
    "peers_base",
    "Speedup over the best serial peer",
    "A slow program scales well. The time to solution of fembench is therefore compared with the "
    "fastest serial peer as well as with fembench on one rank; below 1, the peer is faster.",
    "ranks; our_fastest: fastest of fembench; to_solution_s: set-up + solve",
    "speedup_own: over fembench on one rank; speedup_peer: over the best serial peer",
    "base: best serial peer; base_to_solution_s: its set-up + solve",
)
def _base(record: PeersRecord) -> Rows:
    """Speedup of our fastest solver over one rank of it, and over the best serial peer."""
    base, alone = best_serial(record), own_best(record, 1)
    for ranks in sorted({1, record.case.placement.ranks}):
        best = own_best(record, ranks)
        if best is None or base is None:
            continue
        own = alone.to_solution / best.to_solution if alone else math.nan
        yield (
            (ranks, f"{best.peer} {best.precond}", best.to_solution, own)
            + (base.to_solution / best.to_solution, f"{base.peer} {base.precond}", base.to_solution)
        )


@declared(
    "peers_missing",
    "Peers without a time",
    "These peers failed, or found a solution other than the reference; those that are not here share a line.",
    "peer; preconditioner; status; note: why, or how to get it",
)
def _absent(record: PeersRecord) -> Rows:
    absent = [r for r in record.runs if r.status == "missing"]
    names, hints = (dict.fromkeys(texts) for texts in ((r.peer for r in absent), (r.note for r in absent)))
    failed = [r for r in record.runs if r.status not in ("timed", "missing")]
    yield from ((r.peer, r.precond, r.status, r.note) for r in failed)
    if absent:
        yield ", ".join(names), None, "missing", "; ".join(hints)
