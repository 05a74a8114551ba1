"""How many CG iterations a run will take."""

import math
from collections.abc import Sequence

import numpy as np

from fembench.base.errors import InputError
from fembench.model.workload import Workload
from fembench.records.record import Record

MOST = 10  # iterations allowed per equation, if the case sets no maximum


def expected_iterations(given: int, work: Workload, records: Sequence[Record]) -> tuple[int, str]:
    """(iterations, source of the number): as given; else the median of runs on the same mesh; else a law
    fitted to runs on at least two coarser meshes; else the maximum allowed, an upper bound."""
    if given:
        return given, "as given"
    case = work.case
    known = [
        r
        for r in records
        if r.solve.converged
        and not r.case.stop.iterations
        and (r.case.question.problem, r.case.method.precond, r.case.stop.tolerance)
        == (case.question.problem, case.method.precond, case.stop.tolerance)
    ]
    same = [r.solve.iterations for r in known if r.mesh.hash == work.mesh_hash]
    if same:
        return round(float(np.median(same))), "the median of runs on this mesh"
    coarser = {r.mesh.n_equations: r.solve.iterations for r in known if r.mesh.n_equations < work.n_equations}
    if len(coarser) > 1:
        fitted = fitted_iterations(sorted(coarser.items()), work.n_equations)
        return fitted, f"fitted to {len(coarser)} coarser meshes"
    return case.stop.max_iterations or MOST * work.n_equations, "the maximum allowed, an upper bound"


def fitted_iterations(known: Sequence[tuple[int, int]], equations: int) -> int:
    """Iterations on a mesh from those on coarser ones, (equations, iterations): a n^b, by least squares in
    logarithms. Raises InputError for fewer than two different meshes."""
    if len({n for n, _ in known}) < 2 or min(min(pair) for pair in known) < 1:
        raise InputError(
            f"iterations on {len(known)} meshes; expected at least two different meshes, all numbers above 0"
        )
    x, y = np.log(np.array(known, float)).T
    b, a = np.polyfit(x, y, 1)
    return round(math.exp(a + b * math.log(equations)))
