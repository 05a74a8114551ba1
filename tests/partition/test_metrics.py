"""The report of a partition against brute force."""

import time

import numpy as np
import pytest
from mesh_samples import shuffled
from partition_samples import (
    clamped,
    cut_by_brute_force,
    pairs_by_brute_force,
    sharers_by_brute_force,
)

from fembench.base.errors import InputError
from fembench.mesh.presets import resolve
from fembench.partition.methods import partition
from fembench.partition.partition import Partition, count_cut, metrics, node_parts


def random_partition(mesh, n_parts, seed=0):
    part = np.random.default_rng(seed).integers(0, n_parts, mesh.n_cells).astype(np.int32)
    part[:n_parts] = np.arange(n_parts)
    return Partition(part, (1 / n_parts,) * n_parts, "random", 5)


def partitions(mesh):
    yield partition(mesh, (0.5, 0.3, 0.2))
    yield partition(mesh, (1 / 6,) * 6, "rcb")
    yield random_partition(mesh, 9)
    yield partition(mesh, (1.0,))


@pytest.mark.row("004:F16")
@pytest.mark.parametrize("element", ["tet4", "hex8"])
@pytest.mark.parametrize("support", ["none", "nodes", "dofs"])
def test_every_number_is_what_brute_force_counts(element, support):
    mesh = shuffled(element)
    fixed = np.zeros((mesh.n_nodes, 3), dtype=bool)
    if support == "nodes":
        fixed[clamped(mesh)] = True
    if support == "dofs":
        fixed = np.random.default_rng(1).random((mesh.n_nodes, 3)) < 0.6
    given = {"none": None, "nodes": fixed[:, 0], "dofs": fixed.reshape(-1)}[support]
    free = 3 - fixed.sum(axis=1)
    for parts in partitions(mesh):
        facts = metrics(mesh, parts, given)
        sharers = sharers_by_brute_force(mesh, parts.part_of_cell)
        for p in range(parts.n_parts):
            own = [n for n, s in enumerate(sharers) if p in s]
            shared = [n for n in own if len(sharers[n]) > 1]
            active = [n for n in shared if free[n]]
            others = sorted(set().union(*(sharers[n] for n in active)) - {p})
            pairs = pairs_by_brute_force(mesh, parts.part_of_cell, p)
            assert facts.cells[p] == np.count_nonzero(parts.part_of_cell == p)
            assert facts.dofs[p] == sum(free[n] for n in own)
            assert facts.shared_dofs[p] == sum(free[n] for n in shared)
            assert facts.shared_dofs_all[p] == 3 * len(shared)
            assert facts.blocks[p] == sum(1 for a, b in pairs if free[a] and free[b])
            assert list(facts.neighbours[p]) == others
            assert list(facts.message_bytes[p]) == [24 * sum(q in sharers[n] for n in active) for q in others]
        assert facts.cut == cut_by_brute_force(mesh, parts.part_of_cell) == count_cut(mesh, parts)
        assert (facts.method, facts.targets, facts.seed) == (parts.method, parts.targets, parts.seed)


def test_pairs_of_nodes_and_parts_come_once_and_ascending():
    mesh = shuffled("tet4")
    parts = random_partition(mesh, 7)
    node, part = node_parts(mesh.cells, parts.part_of_cell, mesh.n_nodes)
    sharers = sharers_by_brute_force(mesh, parts.part_of_cell)
    assert list(zip(node.tolist(), part.tolist())) == [
        (n, p) for n, s in enumerate(sharers) for p in sorted(s)
    ]


def test_a_plane_cut_of_the_smallest_stand_in_shares_its_nodes():
    """6 x 4 x 6 grid cells cut in the middle of x: 5 x 7 nodes are shared, 4 x 6 x 2 facets cut."""
    mesh = resolve("m1")
    half = (mesh.x[mesh.cells].mean(axis=1)[:, 0] > 0.5).astype(np.int32)
    facts = metrics(mesh, Partition(half, (0.5, 0.5), "by hand"), clamped(mesh))
    assert facts.cells == (432, 432)
    assert facts.shared_dofs == facts.shared_dofs_all == (105, 105)
    assert facts.dofs == (3 * 3 * 35, 3 * 4 * 35)
    assert facts.cut == 48
    assert facts.neighbours == ((1,), (0,))
    assert facts.message_bytes == ((840,), (840,))


def test_parts_that_share_only_restrained_nodes_exchange_nothing():
    mesh = resolve("box:2x2x1:hex8")
    part = np.array([0, 1, 2, 0], dtype=np.int32)  # 0 touches itself along the middle edge
    everything = np.ones(mesh.n_nodes, dtype=bool)
    facts = metrics(mesh, Partition(part, (0.5, 0.25, 0.25), "by hand"), everything)
    assert facts.neighbours == ((), (), ())
    assert facts.blocks == facts.shared_dofs == facts.dofs == (0, 0, 0)
    assert sum(facts.shared_dofs_all) > 0


def test_a_mask_of_a_wrong_size_is_refused():
    mesh = shuffled("tet4")
    with pytest.raises(InputError, match=r"restrained mask of shape \(7,\); expected 120 nodes or 360 dofs"):
        metrics(mesh, partition(mesh, (1.0,)), np.zeros(7, dtype=bool))


def test_the_report_on_375_000_tetrahedra_takes_less_than_a_second_of_computing():
    mesh = resolve("m")
    parts = partition(mesh, (1 / 8,) * 8, "rcb")
    begin = time.process_time()
    metrics(mesh, parts, clamped(mesh))
    assert time.process_time() - begin < 1.0
