"""Kernels relative to the memory bandwidth (the roof): products, vector updates, assembly, numberings.

    python benchmarks/kernels.py [--meshes m3,l,jittered:61] [--processes 1] [--turns 15] [--json]

All kernels of a mesh take turns in one process. A turn runs each kernel once untimed (as in a loop, the
caches contain what the last call left), then times enough calls to fill 20 ms. Times are CPU times of the
thread: other work on the machine disturbs them less than wall-clock times. "of the roof" is the bandwidth of
the kernel divided by that of a plain read, in the same turn, of as many bytes as the symmetric matrix has:
the median over the turns, with its 95 % interval. Bytes are those that must move: matrix, d read, q read and
written. With --processes P, the kernels run in P processes at once, bound to P cores, and so does the read.
"""

import argparse
import json
import multiprocessing
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from fembench.base.tables import table
from fembench.fem.materials import Material
from fembench.kernels.backend import kernels
from fembench.mesh.presets import resolve
from fembench.ranks.piece import rows_in_space
from fembench.solve.operators import build_operator
from fembench.stats.summary import median, median_interval

ROOF = "read"
ELEMENT = "element matrices"
STORAGES = ("sym", "bsr", "csr", "ebe")
SHORTEST = 20_000_000  # ns; a measurement sums up calls that take at least this long


@dataclass(frozen=True)
class Kernel:
    """Something to call, and what it moves and computes."""

    name: str
    run: Callable[[], Any]
    bytes: int = 0
    cells: int = 0  # cells per call; assembly only


Makers = dict[str, Callable[[str], Kernel]]  # name -> its constructor: builds only what is needed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--meshes", default="m3,l,jittered:61", help="presets, box:…, files, jittered:N for N³ nodes"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="only kernels whose names match this regular expression"
    )
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    options = parser.parse_args()
    results = [measure(mesh, options) for mesh in options.meshes.split(",")]
    print(json.dumps(results, indent=1) if options.json else "\n\n".join(map(report, results)))


def measure(mesh: str, options: argparse.Namespace) -> dict:
    """All kernels on one mesh, in one process or in several at once."""
    if options.processes == 1:
        return work(mesh, options, lambda: None)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(options.processes)
    results = context.Queue()

    def worker(core: int) -> None:
        os.sched_setaffinity(0, {core})
        results.put(work(mesh, options, barrier.wait))

    cores = sorted(os.sched_getaffinity(0))[: options.processes]
    workers = [context.Process(target=worker, args=(core,)) for core in cores]
    for w in workers:
        w.start()
    found = [results.get() for _ in workers]
    for w in workers:
        w.join()
    together = found[0]
    for name, times in together["ns"].items():
        together["ns"][name] = np.max([times, *(f["ns"][name] for f in found[1:])], axis=0).tolist()
    return together | {"processes": options.processes}


def work(mesh: str, options: argparse.Namespace, wait: Callable[[], Any]) -> dict:
    """Measure in this process; `wait` returns when all processes are there."""
    x, cells = geometry(mesh)
    makers = products(x, cells) | vectors(len(x)) | assembly(x, cells)
    chosen = [make(name) for name, make in makers.items() if re.search(options.only, name)]
    n = max([k.bytes for k in chosen[:1]] + [8 * len(cells)]) // 8  # as many bytes as the first product moves
    stream = kernels.Stream(n)
    chosen = [Kernel(ROOF, stream.read, 8 * n), *chosen]
    times: dict[str, list[float]] = {k.name: [] for k in chosen}
    for _ in range(options.turns):
        for k in chosen:
            times[k.name].append(calls(k.run, wait))
    return {
        "mesh": mesh,
        "nodes": len(x),
        "cells": len(cells),
        "isa": kernels.ISA,
        "processes": 1,
        "turns": options.turns,
        "bytes": {k.name: k.bytes for k in chosen},
        "assembled": {k.name: k.cells for k in chosen if k.cells},
        "ns": times,
    }


def calls(run: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Nanoseconds of CPU of one call."""
    run()
    wait()
    n, spent, clock = 0, 0, time.thread_time_ns
    begin = clock()
    while spent < SHORTEST:
        run()
        n += 1
        spent = clock() - begin
    return spent / n


def geometry(spec: str) -> tuple[np.ndarray, np.ndarray]:
    """(x, cells) of a mesh, nodes numbered as a rank numbers them."""
    if spec.startswith("jittered:"):
        x, cells = jittered(int(spec.split(":")[1]))
    else:
        mesh = resolve(spec)
        x, cells = mesh.x, mesh.cells
    return renumbered(x, cells, rows_in_space(x, len(x), len(x)))


def jittered(n: int) -> tuple[np.ndarray, np.ndarray]:
    """An unstructured mesh: Delaunay tetrahedra of a shaken grid of n³ points, numbered at random."""
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    inside = (grid > 0) & (grid < n - 1)
    x = (grid + rng.uniform(-0.35, 0.35, grid.shape) * inside)[rng.permutation(len(grid))]
    cells = Delaunay(x).simplices.astype(np.int32)
    a = x[cells]
    volume = np.linalg.det(a[:, 1:] - a[:, :1])
    cells[volume < 0] = cells[volume < 0][:, [0, 2, 1, 3]]
    return x, np.ascontiguousarray(cells[np.abs(volume) > 1e-6])


def renumbered(x: np.ndarray, cells: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes moved to `position`, cells in the order of their lowest node."""
    moved = np.empty_like(x)
    moved[position] = x
    cells = position.astype(np.int32)[cells]
    kernels.sort_cells(cells, np.arange(len(cells)))
    return moved, cells


def alone(x: np.ndarray, cells: np.ndarray) -> Any:
    """A mesh as the whole subdomain of one rank, nothing restrained."""
    n = len(x)
    fixed = np.zeros(3 * n, bool)
    return SimpleNamespace(x=x, cells=cells, n_interior=n, n_active=n, n_nodes=n, fixed=fixed)


def products(x: np.ndarray, cells: np.ndarray) -> Makers:
    """Products of every storage, and of sym in other numberings."""
    n = len(x)
    positions = {
        "Cuthill-McKee": lambda: kernels.reorder(cells, n, n),
        "random": lambda: np.random.default_rng(1).permutation(n),
    }
    stored = {f"product {s}": lambda name, s=s: product(name, s, x, cells) for s in STORAGES}
    return stored | {
        f"product sym, {order}": lambda name, p=p: product(name, "sym", *renumbered(x, cells, p()))
        for order, p in positions.items()
    }


def product(name: str, storage: str, x: np.ndarray, cells: np.ndarray) -> Kernel:
    material = Material(210e9, 0.3, 0.0)
    A = build_operator(storage, alone(x, cells), material.lam, material.mu)
    d, q = kernels.zeros(3 * len(x)), kernels.zeros(3 * len(x))
    d[:] = np.random.default_rng(0).standard_normal(d.size)
    p = A.bind(d, q)

    def run() -> None:
        p.interface()
        p.interior()

    return Kernel(name, run, A.bytes_per_product)


def vectors(n_nodes: int) -> Makers:
    """Passes of one iteration."""
    n = 3 * n_nodes
    x, r, d, q = (kernels.zeros(n) for _ in range(4))
    inverse = kernels.zeros(n)
    plain = kernels.CGVectors(x, r, d, q, r, np.empty(0))
    jacobi = kernels.CGVectors(x, r, d, q, r, np.empty(0), inverse)
    return {
        "x, r step and r.r": lambda name: Kernel(name, lambda: plain.step(0.5), 48 * n),
        "the same with Jacobi": lambda name: Kernel(name, lambda: jacobi.step_jacobi(0.5), 56 * n),
        "direction": lambda name: Kernel(name, lambda: plain.direction(0.5), 24 * n),
        "d.q": lambda name: Kernel(name, plain.dot_dq, 16 * n),
    }


def assembly(x: np.ndarray, cells: np.ndarray) -> Makers:
    """Element matrices alone; symbolic and numeric assembly of sym and bsr."""
    n, fixed = len(x), np.zeros(3 * len(x), bool)

    def symbolic(name: str, upper: bool) -> Kernel:
        return Kernel(name, lambda: kernels.pattern(cells, n, n, upper), cells=len(cells))

    def numeric(name: str, upper: bool) -> Kernel:
        where = kernels.Incidence(cells, n)
        pattern = kernels.pattern(cells, n, n, upper, where)

        def run() -> None:
            kernels.assemble(x, cells, 1.2, 0.8, n, upper, fixed, *pattern, where)

        return Kernel(name, run, cells=len(cells))

    few = cells[: 1600 // cells.shape[1]].copy()  # what they take and give stays in the caches
    found: Makers = {
        ELEMENT: lambda name: Kernel(name, lambda: kernels.stiffness(x, few, 1.2, 0.8), cells=len(few))
    }
    for upper, storage in ((True, "sym"), (False, "bsr")):
        found[f"symbolic {storage}"] = lambda name, upper=upper: symbolic(name, upper)
        found[f"numeric {storage}"] = lambda name, upper=upper: numeric(name, upper)
    return found


def report(result: dict) -> str:
    """One table per mesh."""
    roof = result["bytes"][ROOF] / np.array(result["ns"][ROOF])
    rows = []
    for name, ns in result["ns"].items():
        moved, assembled = result["bytes"][name], result["assembled"].get(name)
        row: list[object] = [name, median(ns) / 1e3]
        if assembled:
            row += [None, None, None, assembled / median(ns) * 1e3]
        else:
            ratio = 100 * moved / np.array(ns) / roof
            interval = median_interval(ratio)
            spread = f"{interval.low:.0f} – {interval.high:.0f}" if interval else None
            row += [result["processes"] * moved / median(ns), round(median(ratio)), spread]
        rows.append(row)
    processes = f"{result['processes']} process{'es' * (result['processes'] > 1)}"
    head = (
        f"{result['mesh']}: {result['nodes']} nodes, {result['cells']} cells, "
        f"{processes}, {result['turns']} turns, {result['isa']}"
    )
    heads = ["kernel", "µs", "GB/s", "% of the roof", "95 %", "M cells/s"]
    return f"{head}\n{table(heads, rows, align='lrrrrr', digits=3)}"


if __name__ == "__main__":
    main()
