"""Bodies of several parts, from a mesh file to the solution: refused or solved rightly."""

import re
from itertools import cycle

import numpy as np
import pytest
from bodies import BODIES, PROBLEM, direct
from problems import solved

from fembench.base.errors import InputError

pytestmark = pytest.mark.mpi(1, 3)


@pytest.fixture
def files(comm, tmp_path):
    """Write rank 0's mesh and problem; (mesh, problem) as all ranks name them."""
    from fembench.mesh.io import write

    def written(mesh):
        if comm.rank == 0:
            write(mesh, tmp_path / "body.vtu")
            (tmp_path / "body.toml").write_text(PROBLEM)
        return comm.bcast((str(tmp_path / "body.vtu"), str(tmp_path / "body.toml")))

    return written


@pytest.mark.parametrize(("name", "element"), list(zip(BODIES, cycle(["tet4", "hex8"]))))
def test_a_body_that_can_move_is_refused_and_any_other_is_solved_as_directly(comm, files, name, element):
    mesh = BODIES[name].mesh(element)
    path, problem = files(mesh)
    expected = direct(mesh)
    if expected is None:
        with pytest.raises(InputError, match="can still move"):
            solved(comm, mesh=path, problem=problem)
        return
    state, _ = solved(comm, mesh=path, problem=problem, tolerance=1e-12)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(state.u, expected[state.prepared.sub.global_nodes], atol=1e-8 * scale)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a face, nodes not merged", "2 unconnected parts; part 2 (12 nodes, around (3, 0.5, 0.5)) can"),
        ("an edge", "2 parts that share no facet; part 2 (12 nodes, around (3, 1.5, 0.5)) can still move"),
    ],
)
def test_the_part_that_can_move_is_named(comm, files, name, message):
    path, problem = files(BODIES[name].mesh("hex8"))
    with pytest.raises(InputError, match=re.escape(message)):
        solved(comm, mesh=path, problem=problem)
