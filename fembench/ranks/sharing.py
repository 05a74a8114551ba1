"""Which ranks share which nodes, although no rank holds the whole mesh.

A rendezvous: each rank is in charge of a range of global numbers, all ranges equally
long. Every rank reports its nodes there and receives, for each node that other ranks
also hold, the numbers of these ranks. Volume per rank is about its own number of nodes,
whatever the size of the whole mesh.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fembench.base.arrays import I32, I64, Mask
from fembench.ranks.comm import MAX, Comm


class Sharing(Struct, frozen=True):
    """For each pair (this rank, another rank) the nodes that both hold."""

    ranks: tuple[int, ...]  # ascending, without this one
    nodes: tuple[I32, ...]  # [neighbour] positions in the rank's global_nodes
    sharers: NDArray[np.integer]  # (n_nodes,) how many ranks hold the node, this one included
    owned: Mask  # (n_nodes,) this rank is the lowest that holds the node


def find_sharing(comm: Comm, global_nodes: NDArray[np.integer]) -> Sharing:
    """Sharing of the nodes (n_nodes,), each global number once per rank. Collective."""
    ascending, order = global_nodes, None
    if (global_nodes[1:] < global_nodes[:-1]).any():
        order = np.argsort(global_nodes, kind="stable").astype(np.int32)
        ascending = global_nodes[order]
    pairs = _meet(comm, ascending)
    numbers, others = pairs[:, 0], pairs[:, 1]
    by_rank = np.lexsort((numbers, others))
    numbers, others = numbers[by_rank], others[by_rank]
    position = np.searchsorted(ascending, numbers.astype(ascending.dtype)).astype(np.int32)
    if order is not None:
        position = order[position]
    ranks, first = np.unique(others, return_index=True)
    sharers = np.ones(global_nodes.size, np.min_scalar_type(comm.size))  # one byte up to 255 ranks
    np.add.at(sharers, position, 1)
    owned = np.ones(global_nodes.size, bool)
    owned[position[others < comm.rank]] = False
    return Sharing(
        ranks=tuple(int(r) for r in ranks),
        nodes=tuple(np.split(position, first[1:])) if ranks.size else (),
        sharers=sharers,
        owned=owned,
    )


def _meet(comm: Comm, numbers: NDArray[np.integer]) -> I64:
    """(n, 2) ascending pairs (global node, other rank that holds it)."""
    largest = comm.allreduce(int(numbers.max(initial=0)), MAX)
    begins = np.minimum((largest // comm.size + 1) * np.arange(1, comm.size), largest)
    ends = np.searchsorted(numbers, begins.astype(numbers.dtype))
    received, counts = exchange(comm, numbers, np.diff([0, *ends, numbers.size]))
    replies, destinations = _introductions(*_in_several(received, counts))
    del received
    order = np.argsort(destinations, kind="stable")
    answer, _ = exchange(comm, replies[order].ravel(), 2 * np.bincount(destinations, minlength=comm.size))
    return answer.reshape(-1, 2)


def _in_several(numbers: NDArray[np.integer], counts: I64) -> tuple[NDArray[np.integer], I64]:
    """(number, rank that reported it) of nodes that several reported, counts[rank] each."""
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    ascending = numbers[order]
    equal = np.append(False, ascending[1:] == ascending[:-1])[: len(numbers)]
    several = order[equal | np.append(equal[1:], False)[: len(numbers)]]
    return numbers[several], np.searchsorted(np.cumsum(counts), several, side="right")


def _introductions(numbers: NDArray[np.integer], source: I64) -> tuple[I64, I64]:
    """For each (node, rank) and each other rank of that node: ((node, other), rank)."""
    order = np.lexsort((source, numbers))
    numbers, source = numbers[order], source[order]
    fresh = (
        np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]) if numbers.size else np.zeros(0, np.int64)
    )
    group_size = np.diff(np.r_[fresh, numbers.size])
    size = np.repeat(group_size, group_size)
    start = np.repeat(fresh, group_size)
    place = np.arange(numbers.size) - start
    replies, destinations = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)]
    for step in range(1, int(group_size.max(initial=1))):
        member = np.flatnonzero(size > step)
        other = start[member] + (place[member] + step) % size[member]
        replies.append(np.column_stack((numbers[member], source[other])))
        destinations.append(source[member])
    return np.concatenate(replies), np.concatenate(destinations)


def exchange(comm: Comm, values: np.ndarray, counts: NDArray[np.integer]) -> tuple[np.ndarray, I64]:
    """Send counts[p] numbers in turn to rank p; (received, counts by source). Collective."""
    send = np.ascontiguousarray(counts, np.int64)
    receive = np.empty_like(send)
    comm.Alltoall(send, receive)
    out = np.empty(int(receive.sum()), values.dtype)
    comm.Alltoallv(
        [np.ascontiguousarray(values), (send, _offsets(send))], [out, (receive, _offsets(receive))]
    )
    return out, receive


def _offsets(counts: I64) -> I64:
    return np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)
