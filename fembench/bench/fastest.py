"""`precond = "auto"`: the preconditioner that is expected to reach the solution first.

Expected are set-up and iterations, whose cost the methods declare. Rates are stated, as
for runs without records (duration.py).
"""

from collections.abc import Iterable, Sequence

from fembench.base.units import plural
from fembench.bench.duration import bytes_moved, equations_of, iterations_of, stated_rate
from fembench.methods.lookup import AUTO, preconds
from fembench.methods.recipe import recipe
from fembench.records.case import Case
from fembench.records.record import Record

MESSAGE = 1e-5  # seconds of a neighbour sum or of an all-reduce
STANDS_FOR = "precond auto: "  # begins the reason in a label
CERTAIN = "multigrid"  # for meshes of unknown size: its iterations hardly depend on it


def settled(case: Case, records: Sequence[Record] = ()) -> Case:
    """The case with what `auto` stands for, and why in its label; others unchanged."""
    if case.method.precond != AUTO:
        return case
    name, why = _chosen(case, equations_of(case, records))
    label = f"{case.output.label}; " if case.output.label else ""
    return case.with_(precond=name, label=f"{label}{STANDS_FOR}{name}, {why}")


def reasons(cases: Iterable[Case]) -> list[str]:
    """What `auto` stands for and why, one line for each settled case that had it."""
    found = []
    for case in cases:
        _, mark, why = case.output.label.rpartition(STANDS_FOR)
        ranks = plural(case.placement.ranks, "rank")
        found += [f"{case.question.mesh} on {ranks}: {mark}{why}"] if mark else []
    return list(dict.fromkeys(found))


def _chosen(case: Case, n: int | None) -> tuple[str, str]:
    """(name, why)."""
    if case.stop.iterations:
        return "none", "since fixed iterations reach no solution"
    able = [case.with_(precond=p.name) for p in preconds("own") if _fits(case, p.name)]
    if n is None:
        sure = next((c for c in able if c.method.precond == CERTAIN), case.with_(precond="none"))
        return sure.method.precond, "since the mesh is read only by the run, and its size decides the others"
    times = sorted((solution_seconds(one, n), one.method.precond) for one in able)
    (first, name), *others = times
    beside = f", {others[0][1]} {others[0][0]:.2g} s" if others else ""
    return name, f"expected to solve {n} equations in {first:.2g} s{beside}"


def _fits(case: Case, name: str) -> bool:
    """Whether the other fields of the case allow it."""
    try:
        case.with_(precond=name)
    except ValueError:
        return False
    return True


def solution_seconds(case: Case, n: int) -> float:
    """Seconds of set-up and iterations, for n equations."""
    one, ranks = recipe(case.method), case.placement.ranks
    below, grids = one.precond.grids, len(one.grids(n, n)[0])
    messages = one.exchanges * (1 + grids) + len(one.reductions) + 2 * bool(below) + (one.gathered > 0)
    iteration = bytes_moved(case, n) / stated_rate(case, n) + (MESSAGE * messages if ranks > 1 else 0.0)
    start, more = one.precond.set_up
    return start + (more + iterations_of(case, n)) * iteration
