"""The peers that run on ranks: our own solver and PETSc's, on the same subdomains."""

import time
from typing import Any

import fembench.solve.petsc as petsc
from fembench.bench.prepare import Prepared
from fembench.peers.catalog import Entry, Peer, Sample
from fembench.records.phases import CG
from fembench.solve.cg import ConjugateGradients
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import make_tracer


def make_parallel(entry: Entry, prepared: Prepared) -> Peer:
    """fembench's own peer, or PETSc's, by name. Collective."""
    owner, storage = entry.peer.split("-")
    if owner == "own":
        return Own(prepared, storage, entry.precond)
    return Petsc(prepared, storage, entry.precond)


class Own:
    """fembench itself, tracing included, as `fembench run` runs it."""

    def __init__(self, prepared: Prepared, storage: str, precond: str) -> None:
        self.library = "fembench, compiled kernels"
        self._rhs, self._tracer = prepared.rhs, make_tracer()
        begin = time.perf_counter()
        A = build_operator(storage, prepared.sub, *prepared.lame)
        middle = time.perf_counter()
        M = make_preconditioner(precond, A, prepared.interface, prepared.sub, self._tracer)
        self._solver = ConjugateGradients(A, prepared.interface, M, self._tracer)
        self.assembly: float | None = middle - begin
        self.setup = time.perf_counter() - middle

    def solve(self, control: StoppingCriterion) -> Sample:
        """Collective."""
        self._tracer.reset()
        result = self._solver.solve(self._rhs, control)
        return Sample(float(self._tracer.seconds()[CG]), result.iterations, result.x)

    def close(self) -> None:
        del self._solver


class Petsc:
    """PETSc's KSP on a matrix that PETSc assembles from our element matrices."""

    def __init__(self, prepared: Prepared, storage: str, precond: str) -> None:
        self.library = f"PETSc {petsc.version()}"
        self._rhs, self._tracer = prepared.rhs, make_tracer()
        set_up: Any = petsc.library().Log.Event("PCSetUp")
        before, begin = set_up.getPerfInfo()["time"], time.perf_counter()
        self._solver = petsc.PetscSolver(
            prepared.sub,
            prepared.interface,
            prepared.lame,
            self._tracer,
            storage=storage,
            precond=precond,
        )
        self.setup: float = set_up.getPerfInfo()["time"] - before
        self.assembly: float | None = time.perf_counter() - begin - self.setup

    def solve(self, control: StoppingCriterion) -> Sample:
        """Collective. The time is that of KSPSolve; copying vectors in and out is not included.

        For fixed work, residuals are not checked, so PETSc may use the norm that costs nothing.
        """
        kinds: Any = petsc.library().KSP.NormType
        plain = self._solver.ksp.getPC().getType() == "none"
        self._solver.ksp.setNormType(kinds.NATURAL if control.fixed or plain else kinds.UNPRECONDITIONED)
        self._tracer.reset()
        result = self._solver.solve(self._rhs, control)
        return Sample(float(self._tracer.seconds()[CG]), result.iterations, result.x)

    def close(self) -> None:
        self._solver.destroy()
