"""The only importer of petsc4py: the same distributed system, solved by PETSc's KSP.

`solve.petsc_matrix` builds the matrix; this module holds the library, KSP and its times.

Residuals are |r|_2, unpreconditioned, as in `solve.cg`. Without a preconditioner
PETSc is asked for its "natural" norm, sqrt(<r, r>), which is the same number with one
pass and one reduction less.

Phases, from PETSc's log: MatMult without its scatters -> cg.spmv_interior,
VecScatterBegin -> cg.send, VecScatterEnd -> cg.wait, dots and norms with their
reductions -> cg.dot, vector updates -> cg.axpy, PCApply -> cg.precond. Preconditioners
other than none and jacobi multiply inside PCApply: for those, only PCApply is separated
and the rest is left in cg.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import BreakdownError, InputError
from fembench.methods.lookup import precond_of, preconds, storage_of
from fembench.methods.steps import Work
from fembench.records.phases import AXPY, CG, DOT, PRECOND, SEND, SPMV_INTERIOR, WAIT
from fembench.solve.iterate import CGResult, StoppingCriterion, exhausted
from fembench.solve.operators import Operator, build_operator
from fembench.solve.petsc_matrix import Numbering, assemble, assembled_rows

if TYPE_CHECKING:
    from fembench.fem.materials import Modulus
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain
    from fembench.timing.tracer import TracerLike

_EVENTS = {
    "MatMult": SPMV_INTERIOR,
    "VecScatterBegin": SEND,
    "VecScatterEnd": WAIT,
    "VecTDot": DOT,
    "VecDot": DOT,
    "VecDotNorm2": DOT,
    "VecNorm": DOT,
    "VecAXPY": AXPY,
    "VecAYPX": AXPY,
    "PCApply": PRECOND,
}


@functools.cache
def library() -> Any:
    """petsc4py's PETSc module, its log on. Raises InputError if missing or unsuitable."""
    try:
        import petsc4py

        petsc4py.init(["fembench", "-no_signal_handler"])
        from petsc4py import PETSc
    except ImportError as error:
        raise InputError(
            f"PETSc: petsc4py cannot be imported ({error}); 'fembench doctor' says how to install it"
        ) from error
    if PETSc.ScalarType is not np.float64:
        raise InputError(f"PETSc: scalars of this build are {np.dtype(PETSc.ScalarType)}; expected float64")
    PETSc.Log.begin()
    return PETSc


def version() -> str:
    """PETSc's version, "3.26.1"."""
    return ".".join(str(n) for n in library().Sys.getVersion())


def has_cuda() -> bool:
    """Whether PETSc computes on NVIDIA's GPUs, by its configuration: starting it is collective."""
    import petsc4py

    where = petsc4py.get_config()
    folder = Path(where["PETSC_DIR"]) / (where.get("PETSC_ARCH") or "")
    return "PETSC_HAVE_CUDA 1" in (folder / "include" / "petscconf.h").read_text(encoding="utf-8")


class PetscSolver:
    """One rank's PETSc matrix and KSP, built once and reused by every solve.

    `precond` is none, jacobi or gamg (with the rigid-body modes as near-null space);
    `options` are PETSc's own ("-ksp_type", "pipecg", …) and override everything else.
    Collective. Raises InputError for names and options that PETSc does not know.
    """

    def __init__(
        self,
        sub: Subdomain,
        interface: Interface,
        lame: tuple[Modulus, Modulus],
        tracer: TracerLike,
        *,
        storage: str,
        precond: str = "none",
        options: Sequence[str] = (),
        kept_as: str = "",
    ) -> None:
        """`kept_as`: PETSc's type of the matrix, and with it of the vectors, if not that of `storage`."""
        self._storage = storage_of(storage, "petsc")
        precond_of(precond, "petsc")
        PETSc = library()
        self._interface = interface
        self._tracer = tracer
        self._numbering = Numbering(PETSc, sub, interface)
        self.A = assemble(storage, sub, self._numbering, *lame)
        if kept_as:
            self.A.convert(kept_as)
        self._x, self._b = self.A.createVecs()
        self.ksp = _make_ksp(self.A, precond, options)
        self.operator = self._operator(storage, sub, *lame)
        self.work = Work()  # not counted: PETSc chooses its own passes over vectors
        self._events = {name: PETSc.Log.Event(name) for name in _EVENTS}
        self._split = self.ksp.getPC().getType() in _priced()

    def solve(self, f: F64, control: StoppingCriterion, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,): the rank's load. Collective.

        `record` has no effect: spans of single iterations are not known inside PETSc.
        Raises BreakdownError on every rank alike if A or M is not positive definite.
        """
        recording = self._tracer.recording
        self._tracer.recording = False
        self._b.array[:] = self._numbering.owned(self._interface.update(f.copy()))
        self.ksp.setTolerances(
            rtol=control.tolerance if control.relative and not control.fixed else 0.0,
            atol=0.0 if control.relative or control.fixed else control.tolerance,
            divtol=1e300,
            max_it=control.limit,
        )
        self.ksp.setConvergenceHistory(control.limit + 1, reset=True)
        before = self._times()
        self._tracer.begin(CG)
        self.ksp.solve(self._b, self._x)
        self._tracer.end(CG)
        self._trace(before)
        self._tracer.recording = recording
        return self._result(control)

    def _result(self, control: StoppingCriterion) -> CGResult:
        reason = self.ksp.getConvergedReason()
        reasons = library().KSP.ConvergedReason
        residuals = tuple(self.ksp.getConvergenceHistory().tolist())
        if reason < 0 and reason != reasons.DIVERGED_MAX_IT and not exhausted(residuals):
            name = next((k for k, v in vars(reasons).items() if v == reason and k.startswith("DIV")), reason)
            raise BreakdownError(f"PETSc: {name} after {self.ksp.getIterationNumber()} iterations")
        target = control.target(residuals[0])
        return CGResult(
            x=self._numbering.spread(self._x.array),
            iterations=self.ksp.getIterationNumber(),
            residuals=residuals,
            target=target,
            converged=residuals[-1] <= target,
        )

    def _times(self) -> dict[str, tuple[float, int]]:
        """Seconds and counts of every event so far, on this rank."""
        infos = {name: event.getPerfInfo() for name, event in self._events.items()}
        return {name: (info["time"], info["count"]) for name, info in infos.items()}

    def _trace(self, before: dict[str, tuple[float, int]]) -> None:
        """Pass the times that PETSc's log has gained since `before` to the tracer."""
        gained = {name: (t - before[name][0], n - before[name][1]) for name, (t, n) in self._times().items()}
        scatters = gained["VecScatterBegin"][0] + gained["VecScatterEnd"][0]
        gained["MatMult"] = (gained["MatMult"][0] - scatters, gained["MatMult"][1])
        for name, (seconds, count) in gained.items():
            if count and (self._split or name == "PCApply"):
                ticks = round(seconds / count * self._tracer.ticks_per_second)
                for _ in range(count):
                    self._tracer.add(_EVENTS[name], 0, ticks)

    def _operator(self, storage: str, sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
        """The matrix as an `Operator`, for verification; KSP uses PETSc's own product."""
        n = self._numbering.n_owned
        nonzeros = self.A.getInfo(library().Mat.InfoType.LOCAL)["nz_used"]
        useful = 2 * nonzeros - 9 * n if self._storage.half else nonzeros
        return Operator(
            storage=storage,
            lam=lam,
            mu=mu,
            n_interior=sub.n_interior,
            n_active=sub.n_active,
            matrix_bytes=round(self._storage.entry_bytes * nonzeros),
            flops=round(2 * useful),
            bind=lambda d, q: _Product(self, d, q),
            block_diagonal=lambda: build_operator("ebe", sub, lam, mu).block_diagonal(),
        )

    def multiply(self, d: F64) -> F64:
        """A d, summed over sharers, for a consistent d (3 n_active,). Collective."""
        x, y = self.A.createVecs()
        x.array[:] = self._numbering.owned(d)
        self.A.mult(x, y)
        return self._numbering.spread(y.array)

    def destroy(self) -> None:
        """Free PETSc's objects, which otherwise stay until the program ends. Collective."""
        for thing in (self.ksp, self._x, self._b, self.A):
            thing.destroy()
        library().garbage_cleanup(self._interface.comm)


class _Product:
    """q = this rank's share of A d: PETSc sums over ranks, so shared rows are weighted."""

    def __init__(self, solver: PetscSolver, d: F64, q: F64) -> None:
        self._solver = solver
        self._d = d
        self._q = q

    def interface(self) -> None: ...

    def interior(self) -> None:
        self._q[:] = self._solver._interface.weighted(self._solver.multiply(self._d))


def _priced() -> list[str]:
    """PETSc's preconditioners that do not multiply inside PCApply."""
    return [p.name for p in preconds("petsc") if p.application is not None]


def _make_ksp(A: Any, precond: str, options: Sequence[str]) -> Any:
    """A KSP of type cg, set up; options override its type. Collective."""
    PETSc = library()
    ksp = PETSc.KSP().create(comm=A.getComm())
    ksp.setOperators(A, assembled_rows(A) if precond == "gamg" else A)
    ksp.setType("cg")
    ksp.getPC().setType(precond)
    ksp.setInitialGuessNonzero(False)
    kinds = PETSc.KSP.NormType
    ksp.setNormType(kinds.NATURAL if precond == "none" else kinds.UNPRECONDITIONED)
    database = PETSc.Options()
    names = [o for o in options if o.startswith("-") and not o[1:2].isdigit()]
    database.insertString(" ".join(options))
    try:
        ksp.setFromOptions()
        ksp.setUp()
        unused = [name for name in names if not database.used(name[1:])]
    except PETSc.Error as error:
        raise InputError(f"PETSc: {str(error).splitlines()[-1].strip()}") from error
    finally:
        for name in names:
            database.delValue(name[1:])
    if unused:
        raise InputError(f"PETSc option '{unused[0]}' is unknown to this solver")
    return ksp
