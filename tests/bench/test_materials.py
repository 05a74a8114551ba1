"""Bodies of several materials: solved as theory says, and refused where a cell has none or two."""

import numpy as np
import pytest
from problems import solved, solved_and_verified

from fembench.balance.decompose import decompose
from fembench.base.errors import InputError
from fembench.bench.prepare import prepare
from fembench.fem.materials import lame
from fembench.fem.parts import solve
from fembench.fem.problem import load_problem
from fembench.mesh.box import box
from fembench.mesh.io import read, write
from fembench.mesh.mesh import Mesh
from fembench.mesh.slicing import source_of_mesh, write_sliced
from fembench.ranks.comm import on_root
from fembench.records.case import Case
from fembench.timing.tracer import NullTracer

LENGTHS = (3.0, 1.0, 1.0)
PULL = 1e6  # Pa
STIFF, SOFT = 200e9, 0.2e9  # Pa
SERIES = f"""
[material]
E = {STIFF}
nu = 0.0
rho = 1000.0
[materials.soft]
E = {SOFT}
nu = 0.0
rho = 3000.0
[[constraints]]
on = {{plane = "x=min"}}
u = [0.0, "free", "free"]
[[constraints]]
on = {{plane = "y=min"}}
u = ["free", 0.0, "free"]
[[constraints]]
on = {{plane = "z=min"}}
u = ["free", "free", 0.0]
"""
TENSION = f'[[tractions]]\non = {{plane = "x=max"}}\ntraction = [{PULL}, 0.0, 0.0]\n'


def bar(element="tet4", tags=None):
    """A bar of which the last two thirds are soft."""
    plain = box((6, 3, 3), element, LENGTHS)
    soft = np.flatnonzero(plain.x[plain.cells].mean(axis=1)[:, 0] > 1.0)
    cells = {"soft": soft} if tags is None else tags(plain, soft)
    return Mesh.create(plain.x, plain.cells, element, "bar", plain.node_tags, plain.facet_tags, cells)


@pytest.fixture
def placed(comm, tmp_path):
    """Puts a mesh and a problem where all ranks see them: (mesh, problem)."""
    folder = comm.bcast(tmp_path)

    def place(mesh, problem, name="bar.vtu"):
        def files():
            (folder / "p.toml").write_text(problem)
            if name.endswith(".vtu"):
                write(mesh, folder / name)
            else:
                write_sliced(source_of_mesh(mesh), folder / name)

        on_root(comm, files)
        return {"mesh": str(folder / name), "problem": str(folder / "p.toml")}

    return place


def extension(x):
    """u_x (m) of two bars in series under tension."""
    return PULL * (np.minimum(x, 1.0) / STIFF + np.maximum(x - 1.0, 0.0) / SOFT)


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("element", ["tet4", "hex8"])
@pytest.mark.parametrize("name", ["bar.vtu", "bar.mesh"])
@pytest.mark.parametrize("storage", ["sym", "ebe"])
def test_two_bars_in_series_extend_as_theory_says(comm, placed, element, name, storage):
    fields = placed(bar(element), SERIES + TENSION, name)
    fields["partitioner"] = {"bar.mesh": "rcb", "bar.vtu": "metis"}[name]
    state, result = solved(comm, **fields, storage=storage, precond="jacobi", tolerance=1e-13)
    assert result.converged
    exact = np.zeros_like(state.u)
    exact[:, 0] = extension(state.prepared.sub.x[:, 0])
    np.testing.assert_allclose(state.u, exact, rtol=0, atol=1e-9 * exact.max(initial=1e-3))


@pytest.mark.mpi
def test_the_independent_checks_hold_for_several_materials(comm, placed):
    fields = placed(bar(), SERIES + TENSION)
    _, found = solved_and_verified(comm, **fields, precond="two-level", tolerance=1e-12)
    volume = 1.0 / STIFF + 2.0 / SOFT  # m³/Pa
    assert found.energy == pytest.approx(PULL**2 * volume / 2, rel=1e-9)
    assert found.rigid_body < 1e-12
    assert found.symmetry < 1e-14
    assert found.true_residual < 1e-11 * found.rhs_norm
    assert found.reactions == pytest.approx((-PULL, 0.0, 0.0), rel=1e-9, abs=1e-3)


@pytest.mark.mpi
def test_each_material_has_its_own_weight(comm, placed):
    fields = placed(bar(), SERIES + "[body]\ngravity = [2.0, 0.0, 0.0]\n")
    _, found = solved_and_verified(comm, **fields, precond="block-jacobi", tolerance=1e-12)
    assert found.reactions[0] == pytest.approx(-2.0 * (1.0 * 1000.0 + 2.0 * 3000.0), rel=1e-9)


def test_all_solvers_agree_with_the_direct_solution(tmp_path):
    (tmp_path / "p.toml").write_text(SERIES + TENSION)
    mesh = bar("hex8")
    u = solve(load_problem(tmp_path / "p.toml"), mesh)
    np.testing.assert_allclose(u[:, 0], extension(mesh.x[:, 0]), rtol=0, atol=1e-9 * u.max())


@pytest.mark.mpi
def test_blocks_that_migrate_keep_the_materials_of_their_cells(comm, placed):
    case = Case.of(ranks=comm.size, **placed(bar(), SERIES + TENSION))
    prepared = prepare(comm, case, NullTracer())
    for plan in decompose(prepared.sub, prepared.interface, prepared.rhs, 3):
        right = plan.sub.x[plan.sub.cells].mean(axis=1)[:, 0] > 1.0
        expected = np.where(right, SOFT, STIFF) / 2  # mu, as nu is 0
        np.testing.assert_array_equal(lame(prepared.spec, plan.sub)[1], expected)


FAULTS = {
    "no material": (lambda b, soft: {"soft": soft[:9], "hard": soft[9:]}, "tag 'hard' have no material"),
    "two": (lambda b, soft: {"soft": soft, "hard": soft[:1]}, "cells of tags 'hard' and 'soft' have two"),
    "unknown": (lambda b, soft: {"sofft": soft}, "unknown cell tag 'soft'; the nearest tag is 'sofft'"),
    "none": (lambda b, soft: {}, "unknown cell tag 'soft'; the mesh has no cell tags"),
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_cell_without_a_material_or_with_two_is_refused_on_every_rank(comm, placed, fault):
    tags, said = FAULTS[fault]
    extra = "[materials.hard]\nE = 1.0\n" if fault == "two" else ""
    fields = placed(bar(tags=tags), SERIES.replace("[[constraints]]", extra + "[[constraints]]", 1) + TENSION)
    with pytest.raises(InputError, match=said):
        solved(comm, **fields)


def test_a_material_out_of_range_is_one_line_that_says_where(tmp_path, refusal):
    path = tmp_path / "p.toml"
    path.write_text("[materials.soft]\nnu = 0.5\n")
    error = refusal("run", "m1", "--problem", str(path), "--ranks", "1")
    assert "nu must lie between -1 and 0.5" in error
    assert "materials[...]" in error


def test_a_manufactured_load_is_refused_where_there_are_several_materials(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[materials.soft]\nE = 1.0\n[body]\nfield = "manufactured"\n')
    with pytest.raises(InputError, match="a manufactured body force is that of one material"):
        load_problem(path)


@pytest.mark.parametrize("suffix", ["vtu", "msh"])
def test_tags_of_cells_come_back_from_a_file(tmp_path, suffix):
    mesh = bar()
    write(mesh, tmp_path / f"bar.{suffix}")
    found = read(tmp_path / f"bar.{suffix}")
    assert found.hash == mesh.hash != bar(tags=lambda *_: {}).hash
    np.testing.assert_array_equal(found.cell_tags["soft"], mesh.cell_tags["soft"])


def test_a_tag_of_all_cells_is_no_other_mesh():
    whole = bar(tags=lambda plain, _: {"solid": np.arange(plain.n_cells)})
    assert whole.hash == bar(tags=lambda *_: {}).hash
    assert whole.cell_tags.keys() == {"solid"}
