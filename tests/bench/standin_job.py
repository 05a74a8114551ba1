"""Run under mpiexec by test_standins: meshes m1 to m3 on up to 8 ranks of one job.

Prints one JSON line per solve on rank 0: python standin_job.py counts|'{MESH: [RANKS, …], …}'
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from problems import solved_on

from fembench.bench.prepare import prepare, prepare_parts
from fembench.bench.verify import verify
from fembench.fem.problem import load_problem
from fembench.mesh.presets import resolve
from fembench.partition.partition import Partition
from fembench.ranks.comm import all_arrive, world
from fembench.records.case import Case
from fembench.timing.tracer import NullTracer

TRACER = NullTracer()
UNSTRUCTURED = Path(__file__).parents[2] / "meshes"
PROBLEM = """
[material]
E = 210e9
nu = {nu}
[[constraints]]
on = {{plane = "x=0"}}
[[forces]]
on = {{point = [1.0, 0.5, 1.0]}}
force = [0, -500, 0]
"""


def solve(comm, case, prepared):
    """(verification, iterations, u of the whole mesh on rank 0, bits of shared copies)."""
    solved, result = solved_on(prepared, case, TRACER)
    pieces = comm.gather((prepared.sub.global_nodes, solved.u))
    u = None
    if pieces is not None:
        u = np.zeros((prepared.mesh.n_nodes, 3))
        for nodes, values in pieces:
            u[nodes] = values
    return verify(solved), result, u


def loaded_node_shared_by_all(mesh, n):
    """Parts by x, but the cells at the loaded corner are dealt out so that all n ranks hold the node."""
    order = np.argsort(mesh.x[mesh.cells].mean(axis=1)[:, 0], kind="stable")
    part = np.empty(mesh.n_cells, np.int32)
    part[order] = np.arange(mesh.n_cells) * n // mesh.n_cells
    corner = np.flatnonzero((mesh.x == [1.0, 0.5, 1.0]).all(axis=1))[0]
    around = np.flatnonzero((mesh.cells == corner).any(axis=1))
    part[around] = np.arange(around.size) % n
    return Partition(part, (1.0 / n,) * n, "by hand", 0)


def row(comm, case, mesh, verification, result, error, **more):
    if comm.rank == 0:
        facts = {
            "mesh": case.question.mesh,
            "ranks": comm.size,
            "method": case.placement.partitioner,
            "storage": case.method.storage,
            "iterations": result.iterations,
            "uy": verification.load_displacement[1],
            "reactions": verification.reactions,
            "identical": verification.copies_identical,
            "error": error,
            "true residual": verification.true_residual,
            "counts": [mesh.n_nodes, mesh.n_cells, mesh.n_equations],
        }
        print(json.dumps(facts | more), flush=True)


def relative(u, reference):
    return float(np.abs(u - reference).max() / np.abs(reference).max())


def main(world_comm, ranks_of):
    """Ranks that a solve does not need wait asleep: spinning, they would take the cores from it."""
    comms = {n: world_comm.Split(0 if world_comm.rank < n else 1) for n in range(1, 9)}
    for mesh, n_ranks in ranks_of.items():
        whole = None
        for n in n_ranks:
            if world_comm.rank < n:
                whole = on_ranks(comms[n], mesh, whole)
        assert all_arrive(world_comm, 600)


def on_ranks(comm, mesh, whole):
    """Both partitioners, and the smallest mesh dense, too; returns u of one rank."""
    for method in ("metis", "rcb") if comm.size > 1 else ("metis",):
        prepared = prepare(comm, Case.of(mesh=mesh, ranks=comm.size, partitioner=method), TRACER)
        for storage in ("csr", "dense") if (mesh, method) == ("m1", "metis") else ("csr",):
            case = Case.of(mesh=mesh, partitioner=method, storage=storage)
            verification, result, u = solve(comm, case, prepared)
            whole = u if whole is None else whole
            error = relative(u, whole) if comm.rank == 0 else 0.0
            row(comm, case, prepared.mesh, verification, result, error)
    if 1 < comm.size <= 6:
        forced(comm, mesh, comm.size, whole)
    return whole


def printed_counts(comm):
    """Iterations with other Poisson's ratios, with a relative tolerance, and on unstructured meshes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cantilever.toml")
        for nu in (0.0, 0.2, 0.3, 0.4):
            file.write_text(PROBLEM.format(nu=nu))
            for mesh in ("m1", "m2", "m3"):
                case = Case.of(mesh=mesh, problem=str(file), storage="sym", tolerance_kind="absolute")
                count(comm, case, nu=nu)
    for mesh in ("m1", "m2", "m3"):
        count(comm, Case.of(mesh=mesh, tolerance_kind="relative"), relative=True)
    for k in (1, 2, 3):
        count(comm, Case.of(mesh=str(UNSTRUCTURED / f"thesis{k}.msh")), unstructured=k)


def count(comm, case, **what):
    prepared = prepare(comm, case, TRACER)
    _, result, _ = solve(comm, case, prepared)
    facts = {
        "count of": case.question.mesh,
        "iterations": result.iterations,
        "equations": prepared.mesh.n_equations,
    }
    print(json.dumps(facts | what), flush=True)


def forced(comm, mesh, n, whole):
    """The loaded node on every rank: its load still counts once."""
    body = resolve(mesh)
    case = Case.of(mesh=mesh, partitioner="metis")
    parts = loaded_node_shared_by_all(body, n)
    prepared = prepare_parts(comm, case, load_problem("corner-load"), body, parts, TRACER)
    verification, result, u = solve(comm, case, prepared)
    error = relative(u, whole) if comm.rank == 0 else 0.0
    row(comm, case, prepared.mesh, verification, result, error, method="by hand")


if __name__ == "__main__":
    if sys.argv[1:] == ["counts"]:
        printed_counts(world())
    else:
        main(world(), json.loads(sys.argv[1]))
