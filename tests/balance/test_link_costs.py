"""Messages in decisions: costs by pair of ranks, on ranks with the cost of moves and remaining iterations."""

import itertools

import msgspec
import numpy as np
import pytest
from golden import job
from planted_job import Job, cheap, same_bits, slow_first, unit
from planted_machine import planted_machine

from fembench.balance.choose import amortised, apbsp, balanced_ranks, candidates, forecast
from fembench.balance.control import decide, policy_of
from fembench.balance.driver import visible
from fembench.balance.link import SMALL, of_profile, probe
from fembench.balance.natives import greedy, greedy_comm, metis_shares, refine, refine_comm
from fembench.balance.observation import Links, PairCosts, Tuning, applied
from fembench.base.errors import InputError

FAST = Tuning(band=0.1, hysteresis=0.0)


def ring(n, n_bytes=1.0):
    """Blocks in a ring, each connected to both neighbours."""
    a = np.arange(n)
    b = (a + 1) % n
    return Links(np.concatenate((a, b)), np.concatenate((b, a)), np.full(2 * n, float(n_bytes)))


def costs(n, per_message=0.0, per_byte=0.0, far=(), far_message=0.0):
    """The same for all pairs, except messages to and from the ranks in `far`."""
    table = np.full((n, n), per_message)
    for rank in far:
        table[rank], table[:, rank] = far_message, far_message
    return PairCosts(table, np.full((n, n), per_byte))


def far_third(**more):
    """Rank 0 has half the speed; rank 2 is as fast as rank 1, but far away."""
    return job(
        np.repeat(range(3), 4),
        np.r_[np.full(4, 2.0), np.ones(8)],
        [0.5, 1, 1],
        links=ring(12),
        pairs=costs(3, 0.01, far=(2,), far_message=1.0),
        remaining=100,
        **more,
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_load_after_one_move_is_that_of_the_new_owners(seed):
    rng = np.random.default_rng(seed)
    n, p = 12, 4
    to, source = rng.integers(0, n, (2, 60))
    links = Links(to, (source + (to == source)) % n, rng.integers(1, 9, 60).astype(float))
    owner = rng.integers(0, p, n)
    stats = job(owner, rng.random(n), rng.random(p) + 0.5, links=links, shown=0.5,
                pairs=PairCosts(rng.random((p, p)), rng.random((p, p))))  # fmt: skip
    for i in range(n):
        there, here = stats.if_moved(owner, np.array([i]))
        for j in set(range(p)) - {int(owner[i])}:
            load = stats.load_if(applied(owner, [(i, j)]))
            assert there[0, j] == pytest.approx(load[j])
            assert here[0, j] == pytest.approx(load[owner[i]])


def test_a_rank_receives_one_message_from_each_rank_with_the_bytes_of_all_blocks():
    stats = job([0, 0, 1, 1], [1, 1, 1, 1], links=ring(4, 100), pairs=costs(2, 0.5, 0.001))
    assert stats.load == pytest.approx(2 + 0.5 + 0.2)  # both ends of each row of two blocks
    assert forecast(stats, []) == pytest.approx(2.7)


def test_blocks_go_where_their_messages_are_cheap():
    stats = far_third()
    assert {target for _, target in amortised(stats, FAST)} == {1}
    near = job(stats.owner, stats.time, stats.speed, links=stats.links, remaining=100)
    assert {target for _, target in amortised(near, FAST)} == {1, 2}


@pytest.mark.row("002:4.3")
def test_ranks_of_equal_work_are_not_balanced_if_one_waits_for_more_messages():
    row = Links(np.array([0, 1, 1, 2]), np.array([1, 0, 2, 1]), np.ones(4))
    stats = job([0, 1, 2], [1, 1, 1], links=row, pairs=costs(3, 0.5))  # 1.5, 2, 1.5
    assert not balanced_ranks(stats, 0.1)
    assert balanced_ranks(stats.silent, 0.1)


@pytest.mark.parametrize(("remaining", "moves"), [(5, 0), (40, 3)])
def test_a_new_assignment_is_adopted_if_the_remaining_iterations_pay_for_it(remaining, moves):
    """Three blocks move, at 10 s each, and save 2 s per iteration."""
    stats = job([0, 0, 0, 0, 1], [1, 1, 1, 1, 1e-3], per_move=10.0, remaining=remaining)
    assert len(decide(policy_of("greedy"), stats, FAST)) == moves


@pytest.mark.row("002:F9")
def test_the_potential_uses_the_cost_of_the_pair():
    links = Links(np.array([0, 0]), np.array([4, 8]), np.array([100.0, 100.0]))
    per_byte = np.full((3, 3), 1e-3)
    per_byte[0, 2] = 2e-3
    stats = job(np.repeat(range(3), 4), np.r_[np.full(4, 2.0), np.ones(8)], [0.5, 1, 1], links=links,
                size=np.full(12, 10.0), pairs=PairCosts(np.zeros((3, 3)), per_byte.T))  # fmt: skip
    found = {c.target: c for c in candidates(stats, FAST) if c.block == 0}
    assert found[1].comm == pytest.approx(0.1)
    assert found[2].mem == pytest.approx(0.02)
    assert found[1].mem == pytest.approx(0.01)


@pytest.mark.row("002:F12")
def test_the_prediction_algorithm_simulates_communication():
    """Its one useful move makes the longest messages longer than it makes computing shorter."""
    stats = job([0, 0, 0, 1], [1, 1, 1, 1], links=ring(4), pairs=costs(2))
    assert apbsp(stats, Tuning(band=0.1))
    dear = job([0, 0, 0, 1], [1, 1, 1, 1], links=Links(np.array([0, 1]), np.array([1, 2]), np.ones(2)),
               pairs=costs(2, 1.5))  # fmt: skip
    assert apbsp(dear, Tuning(band=0.1)) == []


def test_greedy_with_messages_keeps_blocks_together_that_talk():
    """Blocks 0 and 1, and 2 and 3, exchange messages; start: 0 and 2 on one rank."""
    links = Links(np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2]), np.ones(4))
    stats = job([0, 1, 0, 1], [1, 1, 1, 1], links=links, pairs=costs(2, 3.0))
    assert applied(stats.owner, greedy_comm(stats, FAST)).tolist() == [0, 0, 1, 1]
    assert applied(stats.owner, greedy(stats, FAST)).tolist() == [0, 1, 0, 1]


def test_refine_with_messages_prefers_the_rank_that_talks_to_the_block():
    """Block 1 exchanges messages with block 3 on rank 2; elsewhere it would finish no earlier."""
    links = Links(np.array([1, 3]), np.array([3, 1]), np.ones(2))
    stats = job([0, 0, 1, 2], [1, 2, 1, 1.1], links=links, pairs=costs(3, 0.5))
    assert refine(stats, FAST) == [(0, 1)]
    assert refine_comm(stats, FAST)[0] == (1, 2)


@pytest.mark.parametrize(("blind", "aware"), [(greedy, greedy_comm), (refine, refine_comm)])
def test_without_messages_both_do_the_same(blind, aware):
    stats = far_third()
    assert aware(stats.silent, FAST) == blind(stats, FAST)


def test_what_computing_hides_is_not_charged():
    stats = job([0, 0, 1, 1], [1, 1, 1, 1], links=ring(4), pairs=costs(2, 1.0))
    half = visible(stats, 2.5)  # computing 2, messages 1
    assert (half.shown, half.communication) == (pytest.approx(0.5), 0.0)
    assert forecast(half, []) == pytest.approx(2.5)
    rest = visible(stats, 3.4)
    assert (rest.shown, rest.communication) == (1.0, pytest.approx(0.4))
    assert visible(stats, 1.9).shown == 0.0


def test_costs_of_messages_come_from_a_profile_by_host():
    machine = planted_machine((1, 1, 1), ("a", "a", "b"))
    found = of_profile(machine, ("a", "b", "a"), "machine.json")
    far, near = 52e-6 + 8 * SMALL * 1e-9, 1.1e-6 + SMALL * 1e-10
    assert found.per_message[0] == pytest.approx([near, far, near])
    assert found.per_message[:, 1] == pytest.approx([far, near, far])
    assert found.per_byte[0] == pytest.approx([1e-10, 8e-9, 1e-10])


@pytest.mark.parametrize(
    ("changes", "hosts", "word"), [({}, ("a", "c"), "no host c"), ({"network": None}, ("a",), "--network")]
)
def test_a_profile_without_the_costs_is_refused(changes, hosts, word):
    machine = msgspec.structs.replace(planted_machine((1, 1), ("a", "b")), **changes)
    with pytest.raises(InputError, match=f"machine.json: .*{word}"):
        of_profile(machine, hosts, "machine.json")


@pytest.mark.mpi
def test_costs_of_all_pairs_are_measured(comm):
    found = probe(comm)
    apart = ~np.eye(comm.size, dtype=bool)
    assert (found.per_message[apart] > 0).all()
    assert np.isfinite(found.per_byte).all()
    assert (found.per_byte >= 0).all()
    assert comm.bcast(found.per_message.tobytes()) == found.per_message.tobytes()


def dear_bytes(facts, n_ranks):
    """The messages of the last rank take as long as two blocks per iteration."""
    owner = np.arange(facts.work.size) * n_ranks // facts.work.size
    per_byte = np.full((n_ranks, n_ranks), 1e-13)
    n_bytes = facts.links.received(owner, n_ranks)[-1].sum()
    per_byte[-1] = per_byte[:, -1] = 2 * unit(facts) / n_bytes
    return PairCosts(np.zeros((n_ranks, n_ranks)), per_byte)


def moves_of(ledger):
    return [move for look in ledger.looks for move in look.moves]


@pytest.mark.mpi(2, 3, 4)
def test_few_bytes_go_over_a_slow_link_and_of_three_ranks_no_block_goes_there(comm, monkeypatch):
    far, slow = comm.size - 1, slow_first(comm, 0.7 if comm.size < 4 else 0.3)
    fields = {"blocks_per_rank": 4, "balance": "amortised", "iterations": 40, "hysteresis": 0.0, "band": 0.05}
    job = Job(comm, slow, dear_bytes, sizes=0, **fields)
    result, ledger = job.solve(monkeypatch)
    other, near = Job(comm, slow, sizes=0, **fields).solve(monkeypatch)
    assert same_bits(result.x, other.x)
    if comm.rank == 0:
        links = job.session.known.links
        over = [links.received(np.array(one.owner), comm.size)[far].sum() for one in (ledger, near)]
        assert comm.size == 3 or over[0] < over[1]
        assert moves_of(ledger)
        assert far in {move.target for move in moves_of(near)}
        assert comm.size != 3 or far not in {move.target for move in moves_of(ledger)}


def dear_moves(facts, n_ranks):
    """A mean block takes as long to move as 30 blocks to compute, by its bytes alone."""
    per_byte = 30 * unit(facts) / facts.size.mean()
    return PairCosts(np.zeros((n_ranks, n_ranks)), np.full((n_ranks, n_ranks), per_byte))


@pytest.mark.mpi(2, 3)
@pytest.mark.parametrize(("pairs", "moving"), [(cheap, 30.0), (dear_moves, 0.0)])
def test_moves_are_made_if_the_remaining_iterations_pay_for_them(comm, monkeypatch, pairs, moving):
    """A block saves its rank 3.3 times its time at full speed: nine iterations pay for a move, not five."""
    fields = {"blocks_per_rank": 4, "balance": "amortised", "hysteresis": 0.0}
    jobs = [Job(comm, slow_first(comm), pairs, moving, iterations=n, **fields) for n in (40, 10)]
    ledgers = [one.solve(monkeypatch)[1] for one in jobs]
    if comm.rank == 0:
        assert [ledger.looks[0].remaining for ledger in ledgers] == [35, 5]
        assert [bool(moves_of(ledger)) for ledger in ledgers] == [True, False]


def test_policies_take_a_ring_that_sends_one_way_as_neighbours_both_ways():
    """METIS overwrites memory if an edge lacks its opposite."""
    turn, back = np.arange(14), (np.arange(14) + 1) % 14
    one_way, both = Links(back, turn, np.ones(14)), ring(14)
    starts, neighbours = one_way.graph(14)
    for i, (a, b) in enumerate(itertools.pairwise(starts)):
        assert set(neighbours[a:b]) == {(i - 1) % 14, (i + 1) % 14}
    stats = [job(np.arange(14) // 2, np.arange(1.0, 15), links=links) for links in (one_way, both)]
    one, other = (metis_shares(each, FAST) for each in stats)
    assert one == other != []
