"""Sharing against a plain search over all ranks' node sets; runs on any number of ranks."""

import numpy as np
import pytest

from fembench.ranks.subdomain import exchange, find_sharing

pytestmark = pytest.mark.mpi


def node_set(rank, seed):
    """A random set of global nodes; large numbers, so 32-bit arithmetic would fail."""
    draw = np.random.default_rng([seed, rank])
    return draw.choice(40, size=20, replace=False).astype(np.int64) * 3_000_000_019


@pytest.mark.row("004:2.6")
@pytest.mark.parametrize("seed", range(5))
def test_every_shared_node_is_found_with_all_its_sharers(comm, seed):
    nodes = node_set(comm.rank, seed)
    sharing = find_sharing(comm, nodes)
    sets = [set(node_set(rank, seed).tolist()) for rank in range(comm.size)]
    expected = {r: sorted(sets[r] & sets[comm.rank]) for r in range(comm.size) if r != comm.rank}
    expected = {r: shared for r, shared in expected.items() if shared}
    assert dict(zip(sharing.ranks, (nodes[i].tolist() for i in sharing.nodes))) == expected
    assert sharing.sharers.tolist() == [sum(g in s for s in sets) for g in nodes.tolist()]
    assert sharing.owned.tolist() == [not any(g in s for s in sets[: comm.rank]) for g in nodes.tolist()]


def test_a_rank_without_nodes_takes_part(comm):
    nodes = np.arange(5 if comm.rank else 0, dtype=np.int64)
    sharing = find_sharing(comm, nodes)
    assert sharing.ranks == tuple(r for r in range(1, comm.size) if r != comm.rank) * bool(comm.rank)
    apart = find_sharing(comm, np.arange(10, dtype=np.int64) + 10 * comm.rank)
    assert (apart.ranks, apart.nodes, apart.owned.all()) == ((), (), True)


def test_exchange_delivers_in_order_of_source(comm):
    counts = np.arange(comm.size) + 1
    out, received = exchange(comm, np.full(counts.sum(), comm.rank, np.int64), counts)
    assert received.tolist() == [comm.rank + 1] * comm.size
    assert out.tolist() == np.repeat(np.arange(comm.size), comm.rank + 1).tolist()
