"""Peak memory of each rank on a box generated in parallel: total, and per mesh node.

    python benchmarks/memory.py [--mesh xl] [--ranks 1,2,4] [--slices] [--json]

The peak is that of the whole run (VmHWM): libraries, mesh, assembly, solve, verification. With --slices the
mesh is written into a folder and read by all ranks: the most that a rank allocates (by tracemalloc) until it
has its part, and at any time of the set-up, relative to the bytes of all nodes and cells.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from commands import fembench

from fembench.base import units
from fembench.base.tables import table
from fembench.launch.case_job import launch
from fembench.launch.line import environment, job_line
from fembench.records.case import Case
from fembench.records.phases import NAMES
from fembench.records.times import Times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", default="xl")
    parser.add_argument("--ranks", default="1,2,4", help="numbers of ranks, separated by commas")
    parser.add_argument("--slices", action="store_true", help="set-up from a folder, relative to the mesh")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(Path(options.worker))
    if options.slices:
        return print_shares(options)
    found = [measure(options.mesh, int(ranks)) for ranks in options.ranks.split(",")]
    if options.json:
        print(json.dumps(found, indent=1))
        return None
    heads = ["ranks", "all ranks", "largest rank", "largest rank over one rank", "bytes per mesh node"]
    one = next((f["largest"] for f in found if f["ranks"] == 1), None)
    rows = [
        [
            f["ranks"],
            units.size(f["together"]),
            units.size(f["largest"]),
            one and f["largest"] / one,
            f["a_node"],
        ]
        for f in found
    ]
    print(f"{options.mesh}: {found[0]['equations']} equations\n{table(heads, rows, digits=4)}")
    return None


def print_shares(options: argparse.Namespace) -> None:
    """What a rank holds of a mesh in a folder, for each number of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        fembench("mesh", "convert", options.mesh, f"{folder}/slices.mesh/", capture=True)
        found = [of_slices(Path(folder), int(ranks)) for ranks in options.ranks.split(",")]
    if options.json:
        print(json.dumps(found, indent=1))
        return
    heads = ["ranks", "until it has its part", "at any time of the set-up"]
    rows = [[f["ranks"], f"{f['part']:.1%}", f"{f['setup']:.1%}"] for f in found]
    print(f"{options.mesh}, largest rank, relative to the bytes of nodes and cells\n{table(heads, rows)}")


def of_slices(folder: Path, ranks: int) -> dict:
    """The result of rank 0 of this program, started as a worker on this number of ranks."""
    line = job_line(ranks)
    worker = [sys.executable, str(Path(__file__).resolve()), "--worker", str(folder)]
    subprocess.run(line.of(worker, folder), env=environment(line), check=True)
    return {"ranks": ranks} | json.loads((folder / "result.json").read_text())


def work(folder: Path) -> None:
    """On every rank: set-up, once to the part and once to the end."""
    from mpi4py import MPI

    from fembench.bench.prepare import prepare
    from fembench.mesh.sliced import Sliced
    from fembench.ranks.sliced import cut_slice, migrate, read_slice, sliced_piece
    from fembench.timing.tracer import NullTracer

    comm, path = MPI.COMM_WORLD, folder / "slices.mesh"
    mesh, targets = Sliced(path), (1 / comm.size,) * comm.size

    def part() -> object:
        cells = migrate(comm, mesh, cut_slice(comm, mesh, read_slice(comm, mesh), targets))  # as in a run
        return sliced_piece(comm, mesh, cells)

    case = Case.of(mesh=str(path), ranks=comm.size, partitioner="rcb", problem="cantilever")
    whole = sum((path / f"{name}.npy").stat().st_size for name in ("nodes", "cells"))
    steps = {"part": part, "setup": lambda: prepare(comm, case, NullTracer())}
    found = {name: comm.allreduce(peak(call), MPI.MAX) / whole for name, call in steps.items()}
    if comm.rank == 0:
        (folder / "result.json").write_text(json.dumps(found))


def peak(call: Callable[[], object]) -> int:
    """The most bytes allocated at any time in a call, its result included."""
    tracemalloc.start()
    result = call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del result
    return most


def measure(mesh: str, ranks: int) -> dict:
    """One short run."""
    case = Case.of(
        mesh=mesh, ranks=ranks, partitioner="blocks", iterations=5, sets=1, warmups=0, trace_iterations=0
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = launch(case, id="memory", command="benchmarks/memory.py", scratch=Path(folder))
    record = outcome.result
    if record is None:
        raise SystemExit(f"memory.py: {outcome.message}")
    nodes = [dofs / 3 for dofs in record.partition.dofs]
    return {
        "mesh": mesh,
        "ranks": ranks,
        "equations": record.mesh.n_equations,
        "peaks": record.peak_memory,
        "together": sum(record.peak_memory),
        "largest": max(record.peak_memory),
        "a_node": max(peak / n for peak, n in zip(record.peak_memory, nodes)),
        "setup": {name: t for name, t in zip(NAMES, Times(record).once.max(axis=0).tolist()) if t > 0},
    }


if __name__ == "__main__":
    main()
