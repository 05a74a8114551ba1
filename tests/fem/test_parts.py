"""Bodies of very many parts. How parts that touch are held: tests/bench/test_bodies.py."""

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.fem.parts import MOST, check_whole, whole_mesh
from fembench.fem.problem import Constraint, ProblemSpec
from fembench.fem.selection import Selection
from fembench.mesh.box import box
from fembench.mesh.facets import facet_neighbours, facet_parts
from fembench.mesh.mesh import Mesh


def row(n, gap, y=0):
    """n unit cubes along x; they step along y by `y` of a cube each."""
    cube = box((1, 1, 1), "hex8", (1.0, 1.0, 1.0))
    steps = np.arange(n)[:, None] * np.array([1.0 + gap, y, 0.0])
    x = (cube.x + steps[:, None]).reshape(-1, 3)
    x, where = np.unique(x.round(9), axis=0, return_inverse=True)
    cells = where.reshape(-1)[cube.cells + 8 * np.arange(n)[:, None]]
    return Mesh.create(x, cells, "hex8", node_tags={"end": np.flatnonzero(x[:, 0] == 0)})


def clamped(plane=None):
    on = Selection(plane=plane) if plane else Selection(tag="end")
    return ProblemSpec(name="p", constraints=(Constraint(on),))


def checked(spec, mesh):
    check_whole(spec, whole_mesh(spec, mesh))


def test_parts_are_numbered_by_their_first_cells():
    boxes = row(4, 0.5)
    assert facet_parts(boxes.behind).tolist() == [0, 1, 2, 3]
    assert facet_parts(row(4, 0.0).behind).tolist() == [0] * 4
    shuffled = box((5, 4, 3)).cells[np.random.default_rng(1).permutation(360)]
    assert not facet_parts(facet_neighbours(shuffled, "tet4")).any()


def test_any_number_of_parts_that_are_held_on_their_own_is_accepted():
    checked(clamped("z=0"), row(3 * MOST, 0.5))


def test_a_chain_of_hinged_parts_is_a_mechanism_and_its_loosest_part_is_named():
    with pytest.raises(
        InputError, match=r"12 parts that share no facet; part \d+ \(8 nodes.* can still move"
    ):
        checked(clamped(), row(12, 0.0, y=1))


def test_more_loose_parts_than_are_examined_are_refused_in_one_line():
    expected = f"expected supports for every part, or at most {MOST} "
    with pytest.raises(InputError, match=f"{MOST + 1} of them not held on their own; {expected}"):
        checked(clamped(), row(MOST + 2, 0.5))
