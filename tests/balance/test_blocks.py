"""The solve over blocks: same bits whatever the mapping, every block somewhere once, bytes counted."""

import sys

import numpy as np
import pytest
from planted_job import Job, same_bits, slow_first

from fembench.balance import matrix_blocks
from fembench.balance.control import parse_drain
from fembench.balance.decompose import decompose
from fembench.balance.matrix_blocks import expected
from fembench.base.errors import InputError
from fembench.bench.measure import control_of
from fembench.methods.policies import POLICIES
from fembench.solve.cg import ConjugateGradients
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.synthetic.slowness import FullSpeed

pytestmark = pytest.mark.mpi
MOVING = sorted(set(POLICIES) - {"none", "observe"})


def plain(job):
    """The solve without blocks."""
    case, prepared = job.case, job.prepared
    A = build_operator(case.method.storage, prepared.sub, *prepared.lame)
    M = make_preconditioner(case.method.precond, A, prepared.interface, prepared.sub)
    solver = ConjugateGradients(A, prepared.interface, M, job.tracer)
    return solver.solve(prepared.rhs, control_of(case, prepared.mesh.n_equations))


@pytest.fixture(scope="module")
def at_rest():
    """The result of a case whose blocks stay where they are, solved once."""
    known = {}

    def solved(comm, **fields):
        key = frozenset(fields.items())
        if key not in known:
            with pytest.MonkeyPatch.context() as patch:
                known[key], _ = Job(comm, **fields).solve(patch)
        return known[key]

    return solved


@pytest.mark.mpi(1, 2, 3)
@pytest.mark.row("002:F1")
@pytest.mark.parametrize("c", [1, 2, 4])
@pytest.mark.parametrize("precond", ["none", "jacobi", "block-jacobi"])
def test_blocks_give_the_solution_of_parts(comm, monkeypatch, c, precond):
    job = Job(comm, blocks_per_rank=c, precond=precond)
    result, _ = job.solve(monkeypatch)
    reference = plain(job)
    assert abs(result.iterations - reference.iterations) <= 2
    assert np.allclose(result.x, reference.x, rtol=1e-6, atol=1e-9 * np.abs(reference.x).max())
    if c == 1 and comm.size <= 2:  # two numbers have one sum
        assert result.residuals == reference.residuals
        assert same_bits(result.x, reference.x)


def test_one_block_a_rank_is_the_ranks_own_part(comm):
    job = Job(comm)
    (plan,) = decompose(job.prepared.sub, job.prepared.interface, job.prepared.rhs, 1)
    assert plan.sub is job.prepared.sub
    assert plan.sharing.ranks == job.prepared.interface.neighbours


@pytest.mark.row("002:F2")
@pytest.mark.parametrize("c", [2, 4])
def test_blocks_have_every_cell_once_and_know_each_other(comm, c):
    job = Job(comm)
    plans = decompose(job.prepared.sub, job.prepared.interface, job.prepared.rhs, c)
    cells = np.concatenate(comm.allgather(np.concatenate([p.sub.global_cells for p in plans])))
    assert np.array_equal(np.sort(cells), np.arange(job.prepared.mesh.n_cells))
    shared = {}
    for rows in comm.allgather([(p.id, p.sub.global_nodes, p.sharing.ranks, p.sharing.nodes) for p in plans]):
        for a, nodes, others, lists in rows:
            shared |= {(a, b): nodes[index].tolist() for b, index in zip(others, lists)}
    assert all(shared[a, b] == shared[b, a] for a, b in shared)
    held = {p.id: set(p.sub.global_nodes[: p.sub.n_active].tolist()) for p in plans}
    held = {k: v for part in comm.allgather(held) for k, v in part.items()}
    for a in held:
        for b in held:
            if a != b:
                assert sorted(held[a] & held[b]) == shared.get((a, b), [])
    total = np.bincount(np.concatenate([list(h) for h in held.values()]))
    for p in plans:
        assert np.array_equal(p.sub.sharers[: p.sub.n_active], total[p.sub.global_nodes[: p.sub.n_active]])


@pytest.mark.mpi(1, 3)
@pytest.mark.row("002:F14", "002:7.7-1")
@pytest.mark.parametrize(
    ("policy", "c"),
    [*((policy, 4) for policy in MOVING), ("amortised", 1), ("random", 1)],  # two: below
)
def test_residuals_and_solution_are_bit_identical_whatever_moves(comm, monkeypatch, at_rest, policy, c):
    fields = {"blocks_per_rank": c, "iterations": 60}
    still = at_rest(comm, **fields)
    job = Job(comm, slow_first(comm), balance=policy, **fields)
    result, ledger = job.solve(monkeypatch)
    assert result.residuals == still.residuals
    assert same_bits(result.x, still.x)
    if comm.rank == 0 and comm.size > 1 and c > 1 and policy != "random":
        assert any(look.moves for look in ledger.looks)


SYSTEMS = [
    {"storage": storage, "precond": precond, "overlap": overlap}
    for storage in ("sym", "bsr", "csr", "dense", "ebe")
    for precond in ("none", "jacobi", "block-jacobi")
    for overlap in ((True, False) if precond == "none" else (True,))
]
HEXES = {"mesh": "box:6x4x6:hex8", "blocks_per_rank": 3}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("fields", [*SYSTEMS, HEXES], ids=lambda fields: "-".join(map(str, fields.values())))
def test_so_they_are_with_every_storage_preconditioner_and_element(comm, monkeypatch, fields):
    fields = {"blocks_per_rank": 2, "iterations": 40} | fields
    still, _ = Job(comm, **fields).solve(monkeypatch)
    result, ledger = Job(comm, slow_first(comm), balance="amortised", **fields).solve(monkeypatch)
    assert result.residuals == still.residuals
    assert len(result.residuals) == 41
    assert same_bits(result.x, still.x)
    assert comm.rank or comm.size == 1 or any(look.moves for look in ledger.looks)


def test_python_calls_of_an_iteration_do_not_grow_with_the_blocks(comm):
    def calls(c):
        job = Job(comm, blocks_per_rank=c)
        solver = job.session.solver(job.case, job.prepared, job.tracer)._solver
        steps = solver.iterations({plan.id: plan.rhs for plan in job.session.plans})
        for _ in range(3):
            next(steps)
        made, before = [], sys.getprofile()
        sys.setprofile(lambda frame, event, arg: made.append(event) if event.endswith("call") else None)
        try:
            for _ in range(5):
                next(steps)
        finally:
            sys.setprofile(before)
        return len(made)

    assert calls(4) == calls(1)


@pytest.mark.row("002:F15")
def test_after_every_migration_the_blocks_are_a_partition_and_bytes_are_the_sum_of_sizes(comm, monkeypatch):
    job = Job(comm, slow_first(comm), blocks_per_rank=4, balance="amortised")
    sent, owners = [], []
    honest = matrix_blocks.migrate

    def counted(comm, solver, moves):
        sent.append(honest(comm, solver, moves))
        held = [i for part in comm.allgather(list(solver.blocks)) for i in part]
        assert sorted(held) == list(range(4 * comm.size))
        assert all(solver.owner[i] == comm.rank for i in solver.blocks)
        owners.append(solver.owner.copy())
        return sent[-1]

    monkeypatch.setattr(matrix_blocks, "migrate", counted)
    _, ledger = job.solve(monkeypatch)
    total = comm.allreduce(sum(sent))
    assert comm.size == 1 or owners
    if comm.rank == 0:
        assert total == sum(look.bytes for look in ledger.looks)
        sizes = job.session.known.size
        assert all(m.bytes == sizes[m.block] for look in ledger.looks for m in look.moves)
        assert not owners or tuple(owners[-1]) == ledger.owner


@pytest.mark.mpi(2, 3, 4)
@pytest.mark.row("002:drain")
@pytest.mark.parametrize("policy", ["none", "amortised", "greedy"])
def test_a_rank_told_to_leave_is_emptied_and_the_solution_the_same(comm, monkeypatch, at_rest, policy):
    fields = {"blocks_per_rank": 2, "iterations": 40}
    still = at_rest(comm, **fields)
    job = Job(comm, balance=policy, drain="1@12", **fields)
    result, ledger = job.solve(monkeypatch)
    assert result.residuals == still.residuals
    assert same_bits(result.x, still.x)
    if comm.rank == 0:
        assert 1 not in ledger.owner
        first = next(look for look in ledger.looks if look.drained)
        assert first.iteration == 15  # the first call from iteration 12 on


@pytest.mark.mpi(2, 3, 4)
def test_a_very_slow_rank_is_drained_by_itself(comm, monkeypatch):
    job = Job(comm, slow_first(comm, 0.02), blocks_per_rank=2, balance="amortised")
    _, ledger = job.solve(monkeypatch)
    if comm.rank == 0:
        assert 0 not in ledger.owner


@pytest.mark.mpi(2, 3, 4)
@pytest.mark.row("002:7.7-7")
def test_blocks_follow_a_hot_spot_through_the_mesh(comm, monkeypatch):
    """The blocks of rank 0 become heavy and leave it; then those of the last rank, and they leave it."""
    c, n = 4, 4 * comm.size
    still, _ = Job(comm, blocks_per_rank=c, iterations=60).solve(monkeypatch)
    spots = f"5:0-{c - 1}x5;35:{n - c}-{n - 1}x5"
    fields = {"blocks_per_rank": c, "balance": "amortised", "iterations": 60, "hot_spot": spots}
    result, ledger = Job(comm, **fields).solve(monkeypatch)
    assert result.residuals == still.residuals
    assert same_bits(result.x, still.x)
    if comm.rank == 0:
        looks = {look.iteration: look for look in ledger.looks}
        first = next(look for look in ledger.looks if look.moves)
        assert 5 < first.iteration < 35
        assert (0, True) in {(m.source, m.block < c) for m in first.moves}
        settled = [look for look in ledger.looks if look.iteration <= 35][-1]
        assert settled.superstep < 0.8 * first.superstep
        last = next(look for look in ledger.looks if look.iteration > 35)
        assert max(last.rank_time) > max(looks[5].rank_time)
        assert last.balanced or any(m.block >= n - c for m in last.moves)


def test_a_hot_spot_counts_in_the_emulation_and_in_the_measured_times(comm, monkeypatch):
    """The first block of the rank costs three times its work from iteration 5 on."""
    c, works = 2, []

    class Noted(FullSpeed):
        def new_work(self, work, amounts=(), heavier=()):
            works.append(heavier)

    job = Job(comm, blocks_per_rank=c, hot_spot=f"5:{c * comm.rank}x3", balance="amortised")
    solver = job.session.solver(job.case, job.prepared, job.tracer)
    blocks = matrix_blocks.MatrixBlocks(
        comm, solver._solver, solver._facts, job.tracer, Noted(), job.session.spots
    )
    ticks = [0, round(10 * job.tracer.ticks_per_second)]
    monkeypatch.setattr(blocks, "_computing", lambda: ticks.pop(0))
    blocks.begin()
    n = [block.n_active for block in solver._solver.blocks.values()]
    assert works == [{5: pytest.approx((3 * n[0] + n[1]) / sum(n))}]
    blocks.open(0)
    solver._solver.seconds[:] = 1.0  # equal work; half of the window is before the change
    assert blocks.measured(10).seconds == pytest.approx([2 / 3, 1 / 3])


@pytest.mark.mpi(1)
def test_iterations_still_to_come():
    assert expected(10, 1e-2, 1.0, 1e-4, 1000) == 10  # half the way in decades
    assert expected(10, 2.0, 1.0, 1e-4, 1000) == 990  # it has grown: nobody knows
    assert expected(10, 1e-2, 1.0, 0.0, 50) == 40  # fixed work
    assert expected(10, 0.99, 1.0, 1e-4, 30) == 20  # not beyond the limit


@pytest.mark.mpi(1)
@pytest.mark.parametrize(
    "text", ["1", "1@", "@3", "x@3", "4@10", "0@1,1@1,2@1,3@1", "2@5,2@9", "²@1", "1@²", "1@" + "9" * 5000]
)
def test_a_wrong_drain_is_refused(text):
    with pytest.raises(InputError, match="drain"):
        parse_drain(text, 4)
