"""Make fembench/bench/references.json: python scripts/make_references.py (four minutes, on one core)."""

import msgspec
import numpy as np

from fembench.base.files import write_atomic
from fembench.bench.case_run import FILE, key_of
from fembench.bench.measure import control_of
from fembench.bench.prepare import prepare
from fembench.bench.verify import SENSITIVE, Solved, fingerprint
from fembench.fem.parts import solve
from fembench.fem.problem import ProblemSpec, load_problem
from fembench.fem.residual import internal_force
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.ranks.comm import alone
from fembench.records.case import Case
from fembench.records.record import Reference
from fembench.solve.cg import ConjugateGradients
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import NullTracer

DIRECT = ("m1", "m2", "m3")
ITERATED = ("s", "m", "l")
PROBLEMS = ("corner-load", "cantilever")
FIXED = (25, 50, 100, 200)  # iterations


def by_cg(mesh: str, problem: str) -> np.ndarray:
    """u (n_nodes, 3) by CG to 1e-13."""
    case = Case.of(mesh=mesh, problem=problem, precond="block-jacobi", tolerance=1e-13)
    return solved(case.with_(tolerance_kind="relative"))


def after(iterations: int, mesh: str, problem: str) -> np.ndarray | None:
    """u (n_nodes, 3) after this number of iterations without preconditioner, element by element.

    None if rounding decides it: another storage gives another solution.
    """
    case = Case.of(mesh=mesh, problem=problem, iterations=iterations)
    u, other = (solved(case.with_(storage=storage)) for storage in ("ebe", "sym"))
    return u if np.linalg.norm(u - other) <= SENSITIVE * np.linalg.norm(u) else None


def solved(case: Case) -> np.ndarray:
    """u (n_nodes, 3) of a case on one rank."""
    p = prepare(alone(), case, NullTracer())
    A = build_operator(case.method.storage, p.sub, p.spec.material.lam, p.spec.material.mu)
    M = make_preconditioner(case.method.precond, A, p.interface, p.sub)
    solver = ConjugateGradients(A, p.interface, M, NullTracer())
    result = solver.solve(p.rhs, control_of(case, p.mesh.n_equations))
    state = Solved(p, A, result.x)
    u = np.empty((p.mesh.n_nodes, 3))
    u[p.sub.global_nodes] = state.u
    return u


def reference(mesh: Mesh, spec: ProblemSpec, u: np.ndarray, of: str, iterations: int = 0) -> Reference:
    """What fembench ships of a solution u (n_nodes, 3)."""
    lam, mu = spec.material.lam, spec.material.mu
    energy = 0.5 * float(np.vdot(u, internal_force(mesh.x, mesh.cells, mesh.element, lam, mu, u)))
    print(of, energy, flush=True)
    return Reference(
        source=f"shipped: {of}",
        energy=energy,
        iterations=iterations,
        fingerprint=fingerprint(alone(), np.arange(mesh.n_nodes), u),
        solution_norm=float(np.linalg.norm(u)),
    )


def main() -> None:
    table = {}
    for name in DIRECT + ITERATED:
        mesh = resolve(name)
        for problem in PROBLEMS:
            spec = load_problem(problem)
            u = solve(spec, mesh) if name in DIRECT else by_cg(name, problem)
            how = "direct solve" if name in DIRECT else "CG to 1e-13"
            table[key_of(mesh.hash, spec)] = reference(mesh, spec, u, f"{name}, {problem}, {how}")
            for n in () if name in DIRECT else FIXED:
                of, reached = f"{name}, {problem}, {n} iterations", after(n, name, problem)
                if reached is not None:
                    table[key_of(mesh.hash, spec, n)] = reference(mesh, spec, reached, of, n)
    write_atomic(FILE, msgspec.json.format(msgspec.json.encode(table), indent=1))


if __name__ == "__main__":
    main()
