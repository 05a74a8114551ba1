"""The committed unstructured meshes of the box of Ferreira (2006)."""

from pathlib import Path

import numpy as np
import pytest

from fembench.mesh.presets import resolve
from fembench.mesh.quality import quality, volumes

FOLDER = Path(__file__).parents[2] / "meshes"
MESHES = {"thesis1": (233, 855, 618), "thesis2": (933, 4014, 2577), "thesis3": (1984, 9126, 5565)}


@pytest.mark.parametrize("name", MESHES)
def test_the_sizes_are_near_those_published(name):
    mesh = resolve(str(FOLDER / f"{name}.msh"))
    equations = 3 * np.count_nonzero(mesh.x[:, 0] > 1e-9)
    assert (mesh.n_nodes, mesh.n_cells, equations) == pytest.approx(MESHES[name], rel=0.06)


@pytest.mark.parametrize("name", MESHES)
def test_they_fill_the_box_with_well_shaped_tetrahedra_and_named_faces(name):
    mesh = resolve(str(FOLDER / f"{name}.msh"))
    assert volumes(mesh.x, mesh.cells, "tet4").sum() == pytest.approx(0.5, rel=1e-12)
    assert quality(mesh.x, mesh.cells, "tet4").min() > 0.3
    assert set(mesh.facet_tags) == {"x0", "x1", "y0", "y1", "z0", "z1"}
    for tag, facets in mesh.facet_tags.items():
        axis, side = "xyz".index(tag[0]), int(tag[1])
        p = mesh.x[facets]
        assert np.all(p[:, :, axis] == side * (1.0, 0.5, 1.0)[axis])
        area = 0.5 * np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        assert area[:, axis].sum() == pytest.approx((1 if side else -1) * (1.0 if axis == 1 else 0.5))


@pytest.mark.parametrize("name", MESHES)
def test_the_loaded_corner_is_a_node(name):
    mesh = resolve(str(FOLDER / f"{name}.msh"))
    assert np.count_nonzero((mesh.x == [1.0, 0.5, 1.0]).all(axis=1)) == 1
