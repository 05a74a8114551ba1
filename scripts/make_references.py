"""Make fembench/bench/references.json: python scripts/make_references.py (a minute, on one core)."""

import msgspec
import numpy as np

from fembench.base.files import write_atomic
from fembench.bench.fingerprint import fingerprint
from fembench.bench.measure import control_of
from fembench.bench.prepare import prepare
from fembench.bench.references import FILE, key_of
from fembench.bench.verify import Solved
from fembench.fem.problem import load_problem
from fembench.fem.reference_solve import solve
from fembench.fem.residual import strain_energy
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


def by_cg(mesh: str, problem: str) -> np.ndarray:
    """u (n_nodes, 3) by CG to 1e-13."""
    case = Case.of(mesh=mesh, problem=problem, storage="sym", tolerance=1e-13, tolerance_kind="relative")
    p = prepare(alone(), case, NullTracer())
    A = build_operator("sym", p.sub, p.spec.material.lam, p.spec.material.mu)
    M = make_preconditioner("block-jacobi", A, p.interface, p.sub)
    solver = ConjugateGradients(A, p.interface, M, NullTracer())
    result = solver.solve(p.rhs, control_of(case, p.mesh.n_equations))
    state = Solved(p, A, result.x)
    u = np.empty((p.mesh.n_nodes, 3))
    u[p.sub.global_nodes] = state.u
    return u


def main() -> None:
    table = {}
    for name in DIRECT + ITERATED:
        mesh = resolve(name)
        for problem in PROBLEMS:
            spec = load_problem(problem)
            u = solve(spec, mesh) if name in DIRECT else by_cg(name, problem)
            lam, mu = spec.material.lam, spec.material.mu
            table[key_of(mesh.hash, spec)] = Reference(
                source=f"shipped: {name}, {problem}, {'direct solve' if name in DIRECT else 'CG to 1e-13'}",
                energy=float(strain_energy(mesh.x, mesh.cells, mesh.element, lam, mu, u)),
                iterations=0,
                fingerprint=fingerprint(alone(), np.arange(mesh.n_nodes), u),
                solution_norm=float(np.linalg.norm(u)),
            )
            print(name, problem, table[key_of(mesh.hash, spec)].energy, flush=True)
    write_atomic(FILE, msgspec.json.format(msgspec.json.encode(table), indent=1))


if __name__ == "__main__":
    main()
