"""A box made in parallel is the box made whole and cut the same way; any number of ranks."""

import numpy as np
import pytest

from fembench.bench.prepare import prepare, prepare_parts
from fembench.fem.problem import load_problem
from fembench.fem.survey import Survey
from fembench.mesh.presets import box_named, resolve
from fembench.partition.partition import Partition
from fembench.ranks.box import box_region
from fembench.records.case import Case
from fembench.timing.tracer import NullTracer

pytestmark = pytest.mark.mpi
SHARES = {1: "", 2: "3:1", 3: "2,1,1", 4: "4*1"}


@pytest.mark.parametrize("mesh", ["box:5x4x6", "box:4x3x5:hex8"])
@pytest.mark.parametrize("problem", ["corner-load", "patch", "bar"])
def test_it_is_the_whole_box_cut_the_same_way(comm, mesh, problem):
    case = Case.of(mesh=mesh, partitioner="blocks", shares=SHARES[comm.size], problem=problem)
    mine = prepare(comm, case, NullTracer())
    plan, whole = box_named(mesh), resolve(mesh)
    per_grid = whole.n_cells // np.prod(plan.cells)
    grid = np.indices(plan.cells[::-1]).reshape(3, -1)[::-1]
    part = np.repeat(parts_of(grid, plan.cells, mine.partition.targets), per_grid)
    cut = Partition(part, mine.partition.targets, "blocks", 0)
    other = prepare_parts(comm, case, load_problem(problem), whole, cut, NullTracer())
    assert mine.partition == other.partition
    np.testing.assert_array_equal(mine.sub.global_nodes, other.sub.global_nodes)
    np.testing.assert_array_equal(mine.sub.cells, other.sub.cells)
    np.testing.assert_array_equal(mine.sub.x, other.sub.x)
    np.testing.assert_array_equal(mine.rhs, other.rhs)
    np.testing.assert_array_equal(mine.sub.restrained, other.sub.restrained)


def test_what_ranks_find_of_supports_and_loads_is_merged_on_its_way_to_them(comm):
    """Bytes that arrive at a rank do not grow with the number of ranks."""

    class NoneGathered(type(comm)):
        def allgather(self, sendobj):
            assert not isinstance(sendobj, Survey)
            return super().allgather(sendobj)

    case = Case.of(mesh="box:4x3x5", partitioner="blocks", shares=SHARES[comm.size], problem="corner-load")
    assert prepare(NoneGathered(comm), case, NullTracer()).mesh.n_fixed == 3 * 4 * 6


def parts_of(grid, counts, targets):
    """(n,) the part whose region holds each of the grid cells; grid: (3, n) their indices i, j, k."""
    found = np.full(np.shape(grid)[1], -1)
    for part in range(len(targets)):
        for block in box_region(counts, targets, part):
            inside = [(low <= index) & (index < high) for index, (low, high) in zip(grid, block)]
            found[np.logical_and.reduce(inside)] = part
    return found


def test_its_hash_is_of_the_specification(comm):
    a, b = (
        prepare(comm, Case.of(mesh=m, partitioner="blocks"), NullTracer()).mesh.hash
        for m in ("box:5x4x6", "box:6x4x5")
    )
    assert a.startswith("box-")
    assert a != b


def test_a_file_cannot_be_cut_in_blocks(comm):
    from fembench.base.errors import InputError

    with pytest.raises(InputError, match="only for boxes"):
        prepare(comm, Case.of(mesh="part.msh", partitioner="blocks"), NullTracer())
