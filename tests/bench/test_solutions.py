"""Answers against theory, on any number of ranks."""

import numpy as np
import pytest
from problems import counted, solved, solved_and_verified

from fembench.bench.verify import verify
from fembench.ranks.comm import alone
from fembench.records import phases
from fembench.synthetic.slowness import slowness_of
from fembench.timing.tracer import NullTracer

pytestmark = pytest.mark.mpi
FORMATS = ("csr", "dense", "bsr", "sym", "ebe")


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("method", ["metis", "rcb"])
@pytest.mark.parametrize("element", ["tet4", "hex8"])
@pytest.mark.parametrize("storage", FORMATS)
def test_the_patch_test_passes_to_rounding(comm, method, element, storage):
    fields = {"problem": "patch", "tolerance": 1e-13, "tolerance_kind": "relative"}
    mesh = f"box:4x3x4:{element}"
    result, v = solved_and_verified(comm, mesh=mesh, partitioner=method, storage=storage, **fields)
    assert result.converged
    assert v.exact_error < 1e-10


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("element", ["tet4", "hex8"])
def test_the_manufactured_solution_converges_with_order_two(comm, element):
    fields = {"problem": "manufactured", "storage": "sym", "tolerance": 1e-9, "tolerance_kind": "relative"}
    meshes = (f"box:{n}x{n // 2}x{n}:{element}" for n in (8, 16))
    coarse, fine = (solved_and_verified(comm, mesh=mesh, **fields)[1].exact_error for mesh in meshes)
    assert np.log2(coarse / fine) >= 1.8


@pytest.mark.parametrize("problem", ["bar", "cantilever"])
def test_reactions_balance_all_loads(comm, problem):
    fields = {"storage": "sym", "tolerance": 1e-11, "tolerance_kind": "relative"}
    _, v = solved_and_verified(comm, mesh="box:5x4x3", problem=problem, **fields)
    total = {"bar": (-1e6 * 0.5, 0.0, 0.0), "cantilever": (0.0, 7850 * 9.80665 * 0.5, 0.0)}[problem]
    assert v.reactions == pytest.approx(total, rel=1e-8, abs=1e-3)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("storage", FORMATS)
@pytest.mark.parametrize("precond", ["none", "jacobi"])
def test_overlap_on_and_off_are_bit_identical(comm, storage, precond):
    fields = {"mesh": "m1", "storage": storage, "precond": precond}
    (_, on), (_, off) = (solved(comm, overlap=overlap, **fields) for overlap in (True, False))
    assert on.residuals == off.residuals
    assert on.x.tobytes() == off.x.tobytes()


def test_emulated_slowness_does_not_change_a_bit(comm):
    slow = slowness_of(comm.rank, (1.0, *[0.5] * (comm.size - 1)), 1.5).tracer(NullTracer())
    (_, honest), (_, emulated) = (solved(comm, tracer, mesh="m1", iterations=40) for tracer in (None, slow))
    assert honest.residuals == emulated.residuals
    assert honest.x.tobytes() == emulated.x.tobytes()


@pytest.mark.mpi(2, 3)
@pytest.mark.parametrize("partitioner", ["metis", "rcb"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_solution_under_any_shares_is_that_of_one_rank(comm, partitioner, seed):
    shares = ",".join(f"{s:.3f}" for s in np.random.default_rng(seed).uniform(0.05, 1.0, comm.size))
    one, expected = solved(alone(), mesh="m2")
    many, found = solved(comm, mesh="m2", shares=shares, partitioner=partitioner)
    u = np.empty_like(one.u)
    u[one.prepared.sub.global_nodes] = one.u
    difference = np.abs(many.u - u[many.prepared.sub.global_nodes]).max()
    assert difference <= 1e-9 * np.abs(u).max()  # rule A5 asks for 100 x the tolerance
    assert abs(found.iterations - expected.iterations) <= max(2, 0.02 * expected.iterations)


@pytest.mark.row("004:F3")
def test_replicated_partition_gives_the_same_bits(comm):
    (_, scattered), (_, replicated) = (solved(comm, mesh="m1", replicated=flag) for flag in (False, True))
    assert scattered.x.tobytes() == replicated.x.tobytes()


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("storage", ["csr", "sym"])
@pytest.mark.parametrize("precond", ["none", "jacobi", "block-jacobi"])
def test_an_iteration_has_two_allreduces_and_one_update(comm, storage, precond):
    state, result, counts = counted(comm, mesh="m1", storage=storage, precond=precond)
    assert counts[phases.ALLREDUCE] == 2 * result.iterations + 1
    assert counts[[phases.SEND, phases.WAIT, phases.UNPACK]].tolist() == [result.iterations + 1] * 3
    assert counts[[phases.SPMV_INTERIOR, phases.SPMV_INTERFACE]].tolist() == [result.iterations] * 2
    assert len(state.prepared.interface.message_bytes) == len(state.prepared.interface.neighbours)


def test_verification_sees_a_wrong_solution(comm):
    state, _ = solved(comm, mesh="m1")
    state.x[:] *= 1.0 + 1e-6
    v = verify(state)
    assert v.true_residual > 1e-6 * v.rhs_norm * 0.99


def test_verification_sees_copies_that_differ(comm):
    state, _ = solved(comm, mesh="m1")
    if comm.rank == 0 and comm.size > 1:
        state.x[-1] = np.nextafter(state.x[-1], 1.0)
    assert verify(state).copies_identical == (comm.size == 1)
