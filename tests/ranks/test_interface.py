"""The neighbour sum and the inner product, against sums over all ranks; any number of ranks."""

import numpy as np
import pytest

from fembench.ranks import interface as interface_module
from fembench.ranks.interface import AllReduce, Interface, PendingAllReduce
from fembench.ranks.subdomain import find_sharing
from fembench.records import phases
from fembench.timing.tracer import make_tracer

pytestmark = pytest.mark.mpi


def overlapping(comm, per_rank=12, step=5):
    """Chains of nodes that overlap: many nodes have three or more sharers. Interior first."""
    nodes = np.arange(per_rank, dtype=np.int64) + step * comm.rank
    sharing = find_sharing(comm, nodes)
    order = np.argsort(sharing.sharers > 1, kind="stable")
    nodes = nodes[order]
    sharing = find_sharing(comm, nodes)
    n_interior = int((sharing.sharers == 1).sum())
    return nodes, Interface(comm, sharing, n_interior, nodes.size)


def values(rank, nodes, seed=0):
    """What `rank` holds at nodes: full-precision numbers of very different size."""
    table = np.random.default_rng([seed, rank]).standard_normal((200, 3)) * 10.0 ** (rank % 5 * 4)
    return table[nodes].ravel()


@pytest.mark.row("004:F6")
def test_update_adds_all_sharers_in_ascending_order_of_rank(comm):
    nodes, interface = overlapping(comm)
    v = interface.update(values(comm.rank, nodes))
    held = comm.allgather(nodes.tolist())
    for i, node in enumerate(nodes.tolist()):
        expected = np.zeros(3)
        for rank in range(comm.size):
            if node in held[rank]:
                expected = expected + values(rank, np.array([node]))
        assert v[3 * i : 3 * i + 3].tolist() == expected.tolist()  # every bit


def test_copies_that_differ_are_seen_and_are_bit_identical_after_an_update(comm):
    nodes, interface = overlapping(comm)
    v = values(comm.rank, nodes)
    assert all(mine.tobytes() != theirs.tobytes() for mine, theirs in interface.copies(v))
    assert all(mine.tobytes() == theirs.tobytes() for mine, theirs in interface.copies(interface.update(v)))


def test_the_inner_product_counts_every_node_once(comm):
    nodes, interface = overlapping(comm)
    a, b = values(0, nodes), values(1, nodes)
    everyone = np.unique(np.concatenate(comm.allgather(nodes)))
    assert interface.dot(a, b) == pytest.approx(values(0, everyone) @ values(1, everyone), rel=1e-13)


def test_message_bytes_are_three_doubles_a_shared_node(comm):
    nodes, interface = overlapping(comm)
    held = comm.allgather(set(nodes.tolist()))
    expected = {r: 24 * len(held[r] & held[comm.rank]) for r in range(comm.size) if r != comm.rank}
    assert dict(zip(interface.neighbours, interface.message_bytes)) == {
        r: n for r, n in expected.items() if n
    }


def test_an_update_is_stamped_as_send_wait_unpack(comm):
    nodes, interface = overlapping(comm)
    tracer = make_tracer("counter")
    update = interface.bind(values(comm.rank, nodes), tracer)
    update.start()
    update.finish()
    counts = tracer.counts()
    assert counts[[phases.SEND, phases.WAIT, phases.UNPACK]].tolist() == [1, 1, 1]
    assert counts.sum() == 3


def test_allreduce_sums_and_is_stamped(comm):
    tracer = make_tracer("counter")
    reduce = AllReduce(comm, 2, tracer)
    reduce.values[0], reduce.values[1] = comm.rank, 1.0
    assert reduce.run() is None
    assert list(reduce.values) == [comm.size * (comm.size - 1) / 2, comm.size]
    assert tracer.counts()[phases.ALLREDUCE] == 1


@pytest.mark.parametrize("persistent", [True, False])
def test_an_allreduce_in_two_halves_sums_each_time_anew(comm, monkeypatch, persistent):
    if not persistent:  # as with MPI 3
        monkeypatch.setattr(interface_module, "persistent_allreduce", lambda *arguments: None)
    tracer = make_tracer("counter")
    reduce = PendingAllReduce(comm, 2, tracer)
    for k in range(1, 4):
        reduce.values[0], reduce.values[1] = comm.rank, k
        reduce.start()
        reduce.finish()
        assert list(reduce.sums) == [comm.size * (comm.size - 1) / 2, k * comm.size]
    assert tracer.counts()[[phases.SEND, phases.ALLREDUCE]].tolist() == [3, 3]
