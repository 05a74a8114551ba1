"""Cost of the loop in Python compared with the same loop in C: microseconds per iteration on a small mesh.

    python benchmarks/loop.py [--ranks 1,2] [--mesh m1] [--json]

Both loops call the same compiled kernels and the same MPI functions in the same order (their solutions are
bit-identical, which is checked); the difference in time is the cost of the loop, with and without the
tracer's stamps. The other recurrences are measured, too. Configurations take turns in one process per rank;
times are medians over the turns, differences are medians of the differences within a turn. So that a slow
core is not taken for a slow loop, differences are also given in steps of a plain loop in the same turn.
"""

import argparse
import ctypes
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fembench.base.tables import table
from fembench.base.units import plural
from fembench.launch.line import environment, job_line
from fembench.stats.summary import median, median_interval

HERE = Path(__file__).resolve()
STEPS = 3000  # of a plain loop in Python, each of which multiplies, calls a built-in function, and adds
COMPILER = os.environ.get("CC", "cc")  # for the loop in C; without a compiler, only the rest is measured


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks, separated by commas")
    parser.add_argument("--mesh", default="m1")
    parser.add_argument("--precond", default="none")
    parser.add_argument("--iterations", type=int, default=200, help="iterations of one solve")
    parser.add_argument("--turns", type=int, default=200, help="solves of each configuration")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    results = [run(int(count), sys.argv[1:]) for count in options.ranks.split(",")]
    print(json.dumps(results, indent=1) if options.json else "\n\n".join(map(report, results)))
    return None


def run(ranks: int, arguments: list[str]) -> dict:
    """The result of rank 0 of this program, started as a worker on this number of ranks."""
    line = job_line(ranks)
    with tempfile.TemporaryDirectory() as folder:
        worker = [sys.executable, str(HERE), *arguments, "--worker", folder]
        subprocess.run(line.of(worker, Path(folder)), env=environment(line), check=True)
        return json.loads(Path(folder, "result.json").read_text())


def report(result: dict) -> str:
    """Times of the configurations, and by how much each is slower than the loop in C."""
    times, more = result["times"], result["more_than_c"]
    head = (
        f"{plural(result['ranks'], 'rank')}, {result['mesh']}: {result['equations']} equations, "
        f"{result['turns']} turns of {result['iterations']} iterations, {result['mpi']}"
    )
    rows = [[name, t["median"], t["low"], t["high"], t["minimum"]] for name, t in times.items()]
    rows += [[f"{name}, minus C", t["median"], t["low"], t["high"]] for name, t in more.items()]
    rows += [["Python, standard: cg minus its phases", result["left_over"]]]
    step = result["step"]
    rows += [["step of a plain loop in Python", step["median"], step["low"], step["high"], step["minimum"]]]
    return f"{head}\n{table(['µs per iteration', 'median', '95 % from', 'to', 'minimum'], rows, digits=3)}"


def work(options: argparse.Namespace) -> None:
    """Measure on every rank; rank 0 writes the result."""
    from fembench.ranks.comm import library, world

    comm = world()
    setup = Setup(comm, options)
    calls = setup.calls()
    if "C" in calls and calls["C"]().tobytes() != calls["Python, standard"]().x.tobytes():
        print("loop.py: the solutions of the loops in C and in Python differ", file=sys.stderr)
        comm.Abort(1)
    samples, left_over, steps = take_turns(comm, calls, setup.tracer, options)
    if comm.rank:
        return
    more = {n: np.subtract(s, samples["C"]) for n, s in samples.items() if "C" in samples and n != "C"}
    result = {
        "ranks": comm.size,
        "mesh": options.mesh,
        "equations": setup.prepared.mesh.n_equations,
        "iterations": options.iterations,
        "turns": options.turns,
        "mpi": library(),
        "times": {name: summary(s) for name, s in samples.items()},
        "more_than_c": {name: summary(s) for name, s in more.items()},
        "more_in_steps": {name: summary(s / steps) for name, s in more.items()},
        "step": summary(steps),
        "left_over": median(left_over),
    }
    Path(options.worker, "result.json").write_text(json.dumps(result))


def take_turns(comm, calls, tracer, options) -> tuple[dict[str, list[float]], list[float], np.ndarray]:
    """Microseconds per iteration: of every configuration, and of the rest of cg of the traced standard loop.

    Last, those of a step of a plain loop, in each turn.
    """
    from fembench.records.phases import CG, CG_PARTS

    samples: dict[str, list[float]] = {name: [] for name in calls}
    left_over, steps = [], []
    for _ in range(options.turns):
        begin = time.perf_counter()
        plain_loop()
        steps.append((time.perf_counter() - begin) / STEPS * 1e6)
        for name, call in calls.items():
            comm.Barrier()
            tracer.reset()
            begin = time.perf_counter()
            call()
            samples[name].append((time.perf_counter() - begin) / options.iterations * 1e6)
            if name == "Python, standard":
                spent = tracer.seconds() / options.iterations * 1e6
                left_over.append(spent[CG] - spent[list(CG_PARTS)].sum())
    return samples, left_over, np.array(steps)


def plain_loop() -> float:
    total = 0.0
    for k in range(STEPS):
        total += abs(k * 0.5)
    return total


def summary(samples) -> dict:
    interval = median_interval(samples)
    return {
        "median": median(samples),
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "minimum": float(np.min(samples)),
    }


class Setup:
    """One system and all loops over it."""

    def __init__(self, comm, options) -> None:
        from fembench.bench.prepare import prepare
        from fembench.records.case import Case
        from fembench.solve.iterate import StoppingCriterion
        from fembench.timing.certificate import Certifier
        from fembench.timing.tracer import make_tracer

        certificate = Certifier().start()
        self.tracer = make_tracer(certificate.name, 0, certificate.ticks_per_second)
        self.case = Case.of(mesh=options.mesh, ranks=comm.size, storage="bsr", precond=options.precond)
        self.prepared = prepare(comm, self.case, self.tracer)
        self.control = StoppingCriterion(fixed=options.iterations)

    def calls(self) -> dict[str, Callable[[], Any]]:
        """Every configuration as a call that solves; all are bound to one matrix."""
        from fembench.methods.lookup import names, recurrences
        from fembench.solve.from_names import recurrence_class
        from fembench.solve.operators import build_operator
        from fembench.solve.precond import make_preconditioner
        from fembench.timing.tracer import NullTracer

        p = self.prepared
        A = build_operator(self.case.method.storage, p.sub, *p.lame)
        M = make_preconditioner(self.case.method.precond, A, p.interface, p.sub, self.tracer)
        silent = recurrence_class("standard")(A, p.interface, M, NullTracer())
        solvers = {"Python, silent": silent}
        for name in names(recurrences("own")):
            solvers[f"Python, {name}"] = recurrence_class(name)(A, p.interface, M, self.tracer)
        calls = {name: functools.partial(s.solve, p.rhs, self.control) for name, s in solvers.items()}
        if not M.identity or shutil.which(COMPILER) is None:  # the loop in C knows no other M
            return calls
        in_c = LoopInC(recurrence_class("standard")(A, p.interface, M, NullTracer()), p)
        return {"C": functools.partial(in_c.solve, p.rhs, self.control.fixed)} | calls


class LoopInC:
    """loop_in_c.c, compiled here and bound to the vectors of a ConjugateGradients; full blocks, no M."""

    def __init__(self, solver, prepared) -> None:
        from fembench.solve.operators import assembled

        self._solver, sub = solver, prepared.sub
        indptr, _, columns, values = assembled(sub, *prepared.lame, upper=False)
        self._fields = {
            "n_nodes": sub.n_active,
            "n_interior": sub.n_interior,
            "indptr": indptr,
            "columns": columns,
            "values": values,
            "weights": prepared.interface.weights,
            "x": solver.x,
            "r": solver.r,
            "d": solver.d,
            "q": solver.q,
        }
        self._fields |= (
            kernel_addresses() | interface_fields(prepared.interface) | mpi_fields(prepared.interface)
        )
        self._struct = np.array([number(value) for value in self._fields.values()], np.int64)
        self._iterate = compiled().iterate
        self._iterate.restype = ctypes.c_double
        self._residuals = np.empty(0)

    def solve(self, f, iterations: int):
        """The solution after this many iterations."""
        if self._residuals.size != iterations:
            self._residuals = np.empty(iterations)
        rr = next(self._solver.iterations(f))  # the start is Python's in both
        struct, residuals = (ctypes.c_void_p(a.ctypes.data) for a in (self._struct, self._residuals))
        self._iterate(struct, ctypes.c_int64(iterations), ctypes.c_double(rr), residuals)
        return self._solver.x


def kernel_addresses() -> dict[str, object]:
    """In the order of loop_in_c.c: those of rows and vectors, then those of the interface."""
    from fembench.kernels import _compiled

    library = ctypes.CDLL(_compiled.__file__)
    names = ("bsr", "step", "direction", "pack", "add", "axpy")
    return {name: getattr(library, f"fb_{name}") for name in names}


def interface_fields(interface) -> dict[str, object]:
    return {
        "n_neighbours": len(interface.neighbours),
        "n_below": sum(rank < interface.comm.rank for rank in interface.neighbours),
        "n_shared": interface._index.size,
        "first": np.cumsum([0, *(nodes.size for nodes in interface.nodes)]).astype(np.int64),
        "index": interface._index,
        "out": interface._out,
        "in": interface._in,
        "own": np.empty(interface.weights.size),
    }


def mpi_fields(interface) -> dict[str, object]:
    """MPI's functions by address, its handles by value."""
    from mpi4py import MPI

    library, requests = ctypes.CDLL(MPI.__file__), interface._requests
    width = {4: np.int32, 8: np.int64}[MPI._sizeof(MPI.Request)]
    return {
        "startall": library.MPI_Startall,
        "waitall": library.MPI_Waitall,
        "allreduce": library.MPI_Allreduce,
        "requests": np.array([MPI._handleof(request) for request in requests], np.int64).astype(width),
        "statuses": np.zeros(max(1, len(requests)) * MPI._sizeof(MPI.Status), np.uint8),
        "n_requests": len(requests),
        "alone": interface.comm.size == 1,
        "comm": MPI._handleof(interface.comm),
        "type": MPI._handleof(MPI.DOUBLE),
        "sum": MPI._handleof(MPI.SUM),
    }


def number(value) -> int:
    """A field of loop_in_c.c's struct: an address or a number, 64 bits either way."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    if isinstance(value, ctypes._CFuncPtr):
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    return int(value)


def compiled() -> ctypes.CDLL:
    """loop_in_c.c as a library, compiled by the C compiler of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "loop_in_c.so")
        source = HERE.with_name("loop_in_c.c")
        subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        return ctypes.CDLL(str(library))


if __name__ == "__main__":
    main()
