"""Tables of a comparison with peers, and the base of an honest speedup."""

import math
from typing import NamedTuple

from fembench.base import units
from fembench.records.compare import cpu_models
from fembench.records.contest import PeerRun, PeersRecord, best_serial
from fembench.report.measures import CG
from fembench.report.results import Result
from fembench.report.table import Column, Table, integer, percent, ratio, time, words
from fembench.stats.summary import median, summarize

QUARTILES = 4  # repetitions below which there are no quartiles


class OverPeer(NamedTuple):
    """A time of the fastest serial peer over ours."""

    ratio: float  # above 1: we are faster
    peer: str  # and its preconditioner
    of: str  # "solve": to the same tolerance; "iteration": with the same preconditioner


def over_peer(record: PeersRecord, result: Result) -> OverPeer | None:
    """CG of `result` held against the best serial peer; None where it solved another system or elsewhere.

    By the solve where both went to the same tolerance, else by the iteration.
    """
    mine, theirs = result.record, record.case
    same_system = (mine.mesh.hash, mine.case.question.problem) == (record.mesh.hash, theirs.question.problem)
    same_cpu = set(cpu_models(mine)) <= {h.cpu_model for h in record.environment.hosts}
    if not (same_system and same_cpu and CG in result.times):
        return None
    cg, iterations = result.times[CG].median, max(mine.solve.iterations, 1)
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


def peers_tables(record: PeersRecord) -> list[Table]:
    """Every table that has rows."""
    return [t for t in (_race(record), _base(record), _absent(record)) if t.rows]


def own_best(record: PeersRecord, ranks: int) -> PeerRun | None:
    """Our own run that is first at the solution on so many ranks."""
    ours = [r for r in record.runs if r.own and r.solves and r.ranks == ranks]
    return min(ours, key=lambda r: r.to_solution, default=None)


def own_twin(record: PeersRecord, run: PeerRun) -> PeerRun | None:
    """Our own run with the same preconditioner and ranks."""
    same = (r for r in record.runs if r.status == "timed" and r.peer == "own-sym")
    return next((r for r in same if (r.precond, r.ranks) == (run.precond, run.ranks)), None)


def _race(record: PeersRecord) -> Table:
    columns = (
        words("peer"),
        words("preconditioner"),
        Column("ranks", "ranks", number=True),
        integer("iterations"),
        time("an iteration", "iteration"),
        percent("spread", "iteration_spread"),
        ratio("× own-sym", "iteration_over_own_ratio"),
        time("solve", "solve"),
        time("set-up", "setup"),
        time("assembly", "assembly"),
        ratio("× own best", "solution_over_own_ratio"),
        Column("difference of u", "difference", lambda v: f"{v:.0e}", number=True),
        words("library"),
    )
    timed = [r for r in record.runs if r.status == "timed"]
    return Table(
        name="peers",
        title=f"Peers on {record.case.question.mesh}: {units.count(record.mesh.n_equations)} equations, "
        "one system",
        note=f"Medians; 'spread' is the interquartile range over the median. {_parity(record)} '× own-sym' "
        "is the time of an iteration over ours with the same preconditioner and ranks; '× own best' is "
        "set-up + solve over our fastest on as many ranks. Assembly leads from cells to the matrix; "
        "PETSc assembles the element matrices of our kernels. A dash means that the matrix was given. "
        + _load(record),
        columns=columns,
        rows=tuple(_row(record, r) for r in timed),
    )


def _parity(record: PeersRecord) -> str:
    """Who has a time."""
    if record.parity == "iterate":
        return "Only those have a time whose last iterate is that of numpy's CG on the exported system."
    return (
        f"All stop at the same |r|/|f| ({record.case.stop.tolerance:g}, unpreconditioned), and only those "
        "have a time whose solution is the exported one."
    )


def _load(record: PeersRecord) -> str:
    """How busy the machine was before, for that decides how much a small difference means."""
    busy = max(record.environment.hosts, key=lambda h: h.load_average / h.cores)
    others = " (others were at work: expect noise)" if busy.load_average > 0.25 * busy.cores + 0.25 else ""
    crowded = " More ranks than cores: times on many ranks say nothing."
    load = f"Load before the session: {busy.load_average:.2f} on {busy.cores} cores{others}."
    return load + (crowded if record.environment.oversubscribed else "")


def _row(record: PeersRecord, run: PeerRun) -> tuple[object, ...]:
    twin, best = own_twin(record, run), own_best(record, run.ranks)
    return (
        run.peer,
        run.precond,
        run.ranks,
        run.iterations,
        run.iteration,
        summarize(run.per_iteration).spread if len(run.per_iteration) >= QUARTILES else None,
        run.iteration / twin.iteration if twin else None,
        run.solve,
        median(run.setup),
        median(run.assembly),
        run.to_solution / best.to_solution if best else None,
        run.difference,
        run.library,
    )


def _base(record: PeersRecord) -> Table:
    """Speedup of our best over ourselves on one rank and over the best serial peer."""
    base, alone = best_serial(record), own_best(record, 1)
    columns = (
        Column("ranks", "ranks", number=True),
        words("our fastest"),
        time("set-up + solve", "to_solution"),
        ratio("over ourselves on one rank", "speedup_own"),
        ratio("over the best serial peer", "speedup_peer"),
        words("best serial peer", "base"),
        time("its set-up + solve", "base_to_solution"),
    )
    rows = []
    for ranks in sorted({1, record.case.placement.ranks}):
        best = own_best(record, ranks)
        if best is None or base is None:
            continue
        rows.append(
            (
                ranks,
                f"{best.peer} {best.precond}",
                best.to_solution,
                alone.to_solution / best.to_solution if alone else math.nan,
                base.to_solution / best.to_solution,
                f"{base.peer} {base.precond}",
                base.to_solution,
            )
        )
    return Table(
        name="peers_base",
        title="Speedup over the best serial peer",
        note="A slow program scales well. Our time to solution is therefore compared with the fastest "
        "serial peer as well as with our own on one rank; below 1 the peer is faster.",
        columns=columns,
        rows=tuple(rows),
    )


def _absent(record: PeersRecord) -> Table:
    return Table(
        name="peers_missing",
        title="Peers without a time",
        note="These peers are not installed, failed, or found a solution other than the reference.",
        columns=(
            words("peer"),
            words("preconditioner"),
            words("status"),
            words("why, or how to get it", "note"),
        ),
        rows=tuple((r.peer, r.precond, r.status, r.note) for r in record.runs if r.status != "timed"),
    )
