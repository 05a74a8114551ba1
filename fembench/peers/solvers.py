"""The peers: numpy, scipy, cupyx, scikit-fem with pyamg; our own solver and PETSc's.

The last two run on any number of ranks, with the same subdomains; the others on one rank.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import fembench.solve.petsc as petsc
from fembench.base.arrays import F64
from fembench.bench.describe import device_of
from fembench.bench.prepare import Prepared
from fembench.fem.extent import rigid_modes
from fembench.methods.lookup import Combination
from fembench.peers.catalog import CUSPARSE, Entry, Peer, Sample
from fembench.peers.system import System
from fembench.records.phases import CG
from fembench.solve.cg import ConjugateGradients
from fembench.solve.from_names import load_builders, operator_on
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import RankDevice
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import make_tracer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


FOREIGN_ERRORS = (  # exceptions that other packages have been seen to raise
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def make_serial(entry: Entry, system: System) -> Peer:
    """The serial peer of this name."""
    if entry.peer == "scikit-fem":
        return SkfemPyamg(system)
    kinds: dict[str, Callable[[System, str], Peer]] = {"numpy": Numpy, "scipy": Scipy, "cupyx": Cupyx}
    return kinds[entry.peer](system, entry.precond)


def version_of(*packages: str) -> str:
    """'scipy 1.17.1, pyamg 5.4.1'."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def _inverse_diagonal(K: csr_matrix, precond: str) -> F64 | None:
    return 1.0 / K.diagonal() if precond == "jacobi" else None


class Numpy:
    """Textbook conjugate gradients in plain numpy, with scipy's CSR product."""

    assembly: float | None = None

    def __init__(self, system: System, precond: str) -> None:
        self.library = version_of("numpy", "scipy")
        begin = time.perf_counter()
        self._K = system.K
        self._f = system.f
        self._inverse = _inverse_diagonal(system.K, precond)
        self.setup = time.perf_counter() - begin

    def solve(self, control: StoppingCriterion) -> Sample:
        begin = time.perf_counter()
        x, iterations = conjugate_gradients(self._K, self._f, self._inverse, control)
        return Sample(time.perf_counter() - begin, iterations, x)

    def close(self) -> None: ...


def conjugate_gradients(K: Any, f: F64, inverse: F64 | None, control: StoppingCriterion) -> tuple[F64, int]:
    """(x, iterations) by algorithm 9.1 of Saad, Iterative Methods; inverse (n,) or None."""
    x, r = np.zeros_like(f), f.copy()
    z = r if inverse is None else inverse * r
    d = z.copy()
    rz = r @ z
    target = control.target(float(np.linalg.norm(f)))
    for k in range(control.limit):
        q = K @ d
        alpha = rz / (d @ q)
        x += alpha * d
        r -= alpha * q
        if np.linalg.norm(r) <= target:
            return x, k + 1
        z = r if inverse is None else inverse * r
        old, rz = rz, r @ z
        d = z + (rz / old) * d
    return x, control.limit


class Scipy:
    """scipy.sparse.linalg.cg."""

    assembly: float | None = None

    def __init__(self, system: System, precond: str) -> None:
        from scipy.sparse.linalg import LinearOperator

        self.library = version_of("scipy")
        begin = time.perf_counter()
        self._K = system.K
        self._f = system.f
        self._M = None
        inverse = _inverse_diagonal(system.K, precond)
        if inverse is not None:
            self._M = LinearOperator(system.K.shape, matvec=lambda r: inverse * r, dtype=np.float64)
        self.setup = time.perf_counter() - begin

    def solve(self, control: StoppingCriterion) -> Sample:
        from scipy.sparse.linalg import cg

        done = 0

        def count(_: F64) -> None:
            nonlocal done
            done += 1

        rtol = 0.0 if control.fixed else control.tolerance
        begin = time.perf_counter()
        x, _ = cg(self._K, self._f, rtol=rtol, atol=0.0, maxiter=control.limit, M=self._M, callback=count)
        return Sample(time.perf_counter() - begin, done, x)

    def close(self) -> None: ...


class Cupyx:
    """cupyx.scipy.sparse.linalg.cg on a GPU of NVIDIA."""

    assembly: float | None = None

    def __init__(self, system: System, precond: str) -> None:
        from fembench.device.cuda import SparseCG

        begin = time.perf_counter()
        self._solver = SparseCG(system.K, system.f, _inverse_diagonal(system.K, precond))
        self.setup = time.perf_counter() - begin
        self.library = self._solver.library

    def solve(self, control: StoppingCriterion) -> Sample:
        begin = time.perf_counter()
        x, iterations = self._solver.solve(0.0 if control.fixed else control.tolerance, control.limit)
        return Sample(time.perf_counter() - begin, iterations, x.get())

    def close(self) -> None:
        del self._solver


class SkfemPyamg:
    """scikit-fem assembles the same mesh; pyamg's smoothed aggregation solves."""

    def __init__(self, system: System) -> None:
        from pyamg import smoothed_aggregation_solver

        self.library = version_of("scikit-fem", "pyamg")
        sub = system.prepared.sub
        begin = time.perf_counter()
        A = skfem_stiffness(system)
        middle = time.perf_counter()
        modes = rigid_modes(sub.x[: sub.n_active]).reshape(-1, 6)
        modes[sub.fixed] = 0.0
        self._solver = smoothed_aggregation_solver(A.tobsr((3, 3)), B=modes)
        self._f = system.f
        self._x0 = np.zeros_like(system.f)
        self.assembly: float | None = middle - begin
        self.setup = time.perf_counter() - middle

    def solve(self, control: StoppingCriterion) -> Sample:
        residuals: list[float] = []
        tolerance = 0.0 if control.fixed else control.tolerance
        begin = time.perf_counter()
        x = self._solver.solve(
            self._f, x0=self._x0, tol=tolerance, maxiter=control.limit, accel="cg", residuals=residuals
        )
        return Sample(time.perf_counter() - begin, len(residuals) - 1, x)

    def close(self) -> None:
        del self._solver


def skfem_stiffness(system: System) -> csr_matrix:
    """The same K assembled by scikit-fem, with the fewest points that are exact."""
    import skfem
    from scipy.sparse import diags
    from skfem.io.meshio import HEX_MAPPING
    from skfem.models.elasticity import linear_elasticity

    sub = system.prepared.sub
    lam, mu = (
        modulus if isinstance(modulus, float) else modulus[:, None] for modulus in system.prepared.lame
    )
    x = np.ascontiguousarray(sub.x.T)
    cells = sub.cells.astype(np.int64).T
    if sub.element == "tet4":
        mesh = skfem.MeshTet1(x, np.ascontiguousarray(cells))
        element = skfem.ElementTetP1()
        order = 1
    else:
        to_skfem = [HEX_MAPPING[:8].index(i) for i in range(8)]
        mesh, element, order = (
            skfem.MeshHex1(x, np.ascontiguousarray(cells[to_skfem])),
            skfem.ElementHex1(),
            3,
        )
    basis = skfem.Basis(mesh, skfem.ElementVector(element), intorder=order)
    K = linear_elasticity(lam, mu).assemble(basis).tocsr()
    n = 3 * sub.n_active
    K = K[:n, :n]
    if not sub.fixed.any():
        return K
    free = diags((~sub.fixed).astype(float))
    return (free @ K @ free + diags(sub.fixed.astype(float))).tocsr()


def make_parallel(entry: Entry, prepared: Prepared) -> Peer:
    """fembench's own peer, or PETSc's, by name. Collective."""
    owner, storage = entry.peer.split("-")
    if owner == "petsc":
        return Petsc(prepared, storage, entry.precond)
    comm = prepared.interface.comm
    device = device_of(comm, [entry.device] * comm.size) if entry.device else None
    return Own(prepared, "sym" if device else storage, entry.precond, device)


class Own:
    """fembench itself, tracing included, as `fembench run` runs it."""

    def __init__(
        self,
        prepared: Prepared,
        storage: str,
        precond: str,
        device: RankDevice | None,
    ) -> None:
        self.library = f"fembench, {device.said[0] if device else 'compiled kernels'}"
        self._rhs = prepared.rhs
        self._tracer = make_tracer()
        load_builders(Combination(storage=storage, precond=precond))
        begin = time.perf_counter()
        A = operator_on(device, storage, prepared.sub, prepared.lame)
        middle = time.perf_counter()
        M = make_preconditioner(precond, A, prepared.interface, prepared.sub, self._tracer)
        self._solver = ConjugateGradients(A, prepared.interface, M, self._tracer)
        self.assembly: float | None = middle - begin
        self.setup = time.perf_counter() - middle

    def solve(self, control: StoppingCriterion) -> Sample:
        """Collective."""
        self._tracer.reset()
        result = self._solver.solve(self._rhs, control)
        return Sample(float(self._tracer.seconds()[CG]), result.iterations, np.asarray(result.x))

    def close(self) -> None:
        del self._solver


class Petsc:
    """PETSc's KSP on a matrix that PETSc assembles from our element matrices."""

    def __init__(self, prepared: Prepared, storage: str, precond: str) -> None:
        self.library = f"PETSc {petsc.version()}"
        self._rhs = prepared.rhs
        self._tracer = make_tracer()
        set_up: Any = petsc.library().Log.Event("PCSetUp")
        before = set_up.getPerfInfo()["time"]
        begin = time.perf_counter()
        self._solver = petsc.PetscSolver(
            prepared.sub,
            prepared.interface,
            prepared.lame,
            self._tracer,
            storage="aij" if storage == CUSPARSE else storage,
            precond=precond,
            kept_as=CUSPARSE if storage == CUSPARSE else "",
        )
        self.setup: float = set_up.getPerfInfo()["time"] - before
        self.assembly: float | None = time.perf_counter() - begin - self.setup

    def solve(self, control: StoppingCriterion) -> Sample:
        """Collective. The time is that of KSPSolve, without copying vectors.

        For fixed work, residuals are not checked, so PETSc may use the free norm.
        """
        kinds: Any = petsc.library().KSP.NormType
        plain = self._solver.ksp.getPC().getType() == "none"
        self._solver.ksp.setNormType(kinds.NATURAL if control.fixed or plain else kinds.UNPRECONDITIONED)
        self._tracer.reset()
        result = self._solver.solve(self._rhs, control)
        return Sample(float(self._tracer.seconds()[CG]), result.iterations, result.x)

    def close(self) -> None:
        self._solver.destroy()
