"""Rounding errors of fused inner products and of iterates, compared with those of numpy and PETSc.

    python benchmarks/accuracy.py [--mesh m] [--iterations 50] [--draws 20] [--loads 5] [--json]

The error of an inner product is its difference from an exact sum (error-free products, math.fsum); the table
shows it relative to the error of numpy's pairwise sum of the same numbers, as root mean squares over the
draws. The error of an iterate is |x - x_ref| / |x_ref| after the given iterations, where x_ref comes from the
same algorithm in long doubles on the same matrix; root mean square over random loads.
"""

import argparse
import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fembench.base.tables import table
from fembench.bench.prepare import Prepared, prepare
from fembench.kernels.backend import kernels
from fembench.peers.catalog import ENTRIES, Entry, missing
from fembench.peers.solvers import make_parallel
from fembench.peers.system import System, make_system
from fembench.ranks.comm import alone
from fembench.records.case import Case
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import build_operator
from fembench.timing.tracer import NullTracer

F64 = NDArray[np.float64]
SPLIT = 2.0**27 + 1  # Dekker's constant: halves of 26 bits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", default="m")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--draws", type=int, default=20, help="random vectors for each inner product")
    parser.add_argument("--loads", type=int, default=5, help="random loads for the iterates")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    options = parser.parse_args()
    system = make_system(prepare(alone(), Case.of(mesh=options.mesh), NullTracer()))
    result = {
        "mesh": options.mesh,
        "equations": system.prepared.mesh.n_equations,
        "iterations": options.iterations,
        "dots": dots(system.prepared, options.draws),
        "iterates": iterates(system, options.iterations, options.loads),
    }
    print(json.dumps(result, indent=1) if options.json else report(result))


def report(result: dict) -> str:
    """Two tables."""
    head = f"{result['mesh']}: {result['equations']} equations"
    first = table(["inner product", "error over numpy's"], list(result["dots"].items()), digits=3)
    rows = [[precond, *row] for precond, errors in result["iterates"].items() for row in errors.items()]
    second = table(["preconditioner", "solver", "error of x"], rows, digits=3)
    return f"{head}\n\n{first}\n\nafter {result['iterations']} iterations\n\n{second}"


def dots(prepared: Prepared, draws: int) -> dict[str, float]:
    """Error of each fused inner product over that of numpy's."""
    n, rng = 3 * prepared.sub.n_active, np.random.default_rng(0)
    errors: dict[str, list[tuple[float, ...]]] = {}
    for _ in range(draws):
        x, r, d, q, inverse = (kernels.empty(n) for _ in range(5))
        for v in (x, r, d, q):
            v[:] = rng.standard_normal(n)
        inverse[:] = rng.uniform(0.5, 2.0, n)
        for name, (found, a, b) in draw(prepared, x, r, d, q, inverse).items():
            errors.setdefault(name, []).append(errors_of((found, float(np.add.reduce(a * b))), a, b))
    return {name: rms([e[0] for e in es]) / rms([e[1] for e in es]) for name, es in errors.items()}


def draw(
    prepared: Prepared, x: F64, r: F64, d: F64, q: F64, inverse: F64
) -> dict[str, tuple[float, F64, F64]]:
    """name -> (a . b as the kernel computes it, a, b)"""
    none = np.empty(0)
    found = {"d.q": (kernels.Dot(d, q, none).run(), d.copy(), q.copy())}
    plain = kernels.CGVectors(x, r, d, q, r, none)
    rr = plain.step(0.7)
    found["r.r of the step"] = (rr, r.copy(), r.copy())
    rr, rz = kernels.CGVectors(x, r, d, q, r, none, inverse).step_jacobi(0.3)
    found["r.r of the step with Jacobi"] = (rr, r.copy(), r.copy())
    found["r.z of the step with Jacobi"] = (rz, r.copy(), inverse * r)
    for storage in ("sym", "bsr"):
        product = build_operator(storage, prepared.sub, *prepared.lame).bind(d, q)
        parts = product.interface(), product.interior()
        found[f"d.q of the product, {storage}"] = (sum(p or 0.0 for p in parts), d.copy(), q.copy())
    return found


def errors_of(values: tuple[float, ...], a: F64, b: F64) -> tuple[float, ...]:
    """The error of each value of a . b: products as sums of two doubles (Dekker 1971), added by math.fsum."""
    p = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    rest = a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)
    terms = np.concatenate([p, rest]).tolist()
    return tuple(-math.fsum([*terms, -value]) for value in values)


def halves(a: F64) -> tuple[F64, F64]:
    c = SPLIT * a
    high = c - (c - a)
    return high, a - high


def rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def iterates(system: System, iterations: int, loads: int) -> dict[str, dict[str, float]]:
    """preconditioner -> solver -> error of x after the iterations, root mean square over random loads."""
    found: dict[str, dict[str, list[float]]] = {}
    for f in random_loads(system, loads):
        prepared = msgspec.structs.replace(system.prepared, rhs=f)
        for precond in ("none", "jacobi"):
            reference = long_double(system.K, f, precond, iterations)
            norm = float(np.linalg.norm(reference.astype(float)))
            for entry in ENTRIES:
                ours = entry.peer.startswith(("own", "petsc"))
                if entry.precond == precond and ours and not missing(entry):
                    x = after(entry, prepared, iterations)
                    error = float(np.linalg.norm((x - reference).astype(float))) / norm
                    found.setdefault(precond, {}).setdefault(entry.peer, []).append(error)
    return {precond: {name: rms(e) for name, e in errors.items()} for precond, errors in found.items()}


def random_loads(system: System, n: int) -> Iterator[F64]:
    """Loads on all free dofs: every entry of the matrix takes part from the first iteration on."""
    rng = np.random.default_rng(1)
    for _ in range(n):
        yield np.where(system.prepared.sub.fixed, 0.0, rng.standard_normal(system.f.size))


def after(entry: Entry, prepared: Prepared, iterations: int) -> F64:
    peer = make_parallel(entry, prepared)
    x = peer.solve(StoppingCriterion(fixed=iterations)).x.copy()
    peer.close()
    return x


def long_double(K: Any, f: F64, precond: str, iterations: int) -> NDArray[np.longdouble]:
    """x from the textbook algorithm in long doubles."""
    data, starts = K.data.astype(np.longdouble), K.indptr[:-1]
    inverse = 1 / K.diagonal().astype(np.longdouble) if precond == "jacobi" else np.longdouble(1)
    x, r = np.zeros(f.size, np.longdouble), f.astype(np.longdouble)
    d = inverse * r
    rz = r @ d
    for _ in range(iterations):
        q = np.add.reduceat(data * d[K.indices], starts)
        alpha = rz / (d @ q)
        x += alpha * d
        r -= alpha * q
        z = inverse * r
        old, rz = rz, r @ z
        d = z + (rz / old) * d
    return x


if __name__ == "__main__":
    main()
