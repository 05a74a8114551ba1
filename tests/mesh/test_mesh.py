"""What `Mesh.create` accepts, refuses and makes canonical."""

from dataclasses import replace

import numpy as np
import pytest
from mesh_samples import ELEMENTS, shuffled, shuffled_facets, tagged

from fembench.base.errors import InputError
from fembench.fem.parts import check_whole, whole_mesh
from fembench.fem.problem import PATCH
from fembench.mesh.box import box
from fembench.mesh.facets import facet_neighbours
from fembench.mesh.mesh import Mesh
from fembench.partition.methods import partition

X = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)
TWO = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])


def test_arrays_are_copies_of_the_right_type_that_nobody_can_change():
    x, cells = X.astype(np.float32), TWO.astype(np.uint64)
    mesh = Mesh.create(x, cells, "tet4", node_tags={"a": [3, 1, 3]}, facet_tags={"f": [[2, 1, 0]]})
    assert (mesh.x.dtype, mesh.cells.dtype) == (np.float64, np.int32)
    assert mesh.node_tags["a"].tolist() == [1, 3]
    for array in (mesh.x, mesh.cells, mesh.node_tags["a"], mesh.facet_tags["f"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    x[0] = 9
    assert mesh.x[0, 0] == 0.0


@pytest.mark.parametrize("element", ELEMENTS)
def test_tags_have_one_canonical_form_so_equal_meshes_have_equal_hashes(element):
    mesh = shuffled(element)
    facets = shuffled_facets(mesh)
    one = Mesh.create(
        mesh.x, mesh.cells, element, "one", {"a": [2, 1]}, {"skin": facets, "empty": facets[:0]}
    )
    two = Mesh.create(mesh.x, mesh.cells, element, "two", {"a": [1, 2, 1]}, {"skin": facets[::-1, ::-1]})
    assert one.hash == two.hash
    assert list(one.facet_tags) == ["skin"]


@pytest.mark.parametrize("element", ELEMENTS)
def test_whatever_changes_the_content_changes_the_hash(element):
    mesh = tagged(element)
    x, facets = mesh.x.copy(), mesh.facet_tags
    x[3, 1] = np.nextafter(x[3, 1], 2.0)
    changes = [
        {"x": x},
        {"cells": mesh.cells[::-1].copy()},
        {"node_tags": {"tip": mesh.node_tags["tip"]}},
        {"facet_tags": {**facets, "some": facets["some"][1:]}},
        {"facet_tags": {**facets, "skin": facets["some"], "some": facets["skin"]}},
        {"facet_tags": {**facets, "other": facets["some"]}},
    ]
    hashes = {replace(mesh, **change).hash for change in changes}
    assert len({mesh.hash, *hashes}) == 1 + len(changes)
    assert mesh.hash == replace(mesh, name="renamed").hash


def test_minus_zero_is_zero():
    mesh = box((2, 1, 1))
    minus = np.where(mesh.x == 0, -0.0, mesh.x)
    assert np.signbit(minus).any()
    assert Mesh(minus, mesh.cells, "tet4", "", {}, mesh.facet_tags).hash == mesh.hash


def test_the_hash_is_that_of_the_bytes_of_its_parts():
    import hashlib

    mesh = Mesh.create(X, TWO, "tet4", node_tags={"a": [4]})
    text = b"fembench mesh 1 tet4 5 2" + X.tobytes() + TWO.astype("<i4").tobytes()
    assert mesh.hash == hashlib.sha256(text + b"node a 1\0" + np.array([4], "<i4").tobytes()).hexdigest()


NAN = X.copy()
NAN[2, 0] = np.nan
HUGE = X * 1e200
BRICK = box((1, 1, 1), "hex8")
BAD = {
    "inverted": (X, [[0, 1, 2, 3], [1, 3, 2, 4]], r"1 of 2 cells \(first: 1\) inverted"),
    "flat": (X * [1, 1, 0], TWO, r"2 of 2 cells \(first: 0\) degenerate"),
    "nearly flat": (X * [1, 1, 1e-11], TWO, r"2 of 2 cells \(first: 0\) degenerate"),
    "coinciding nodes": (X, [[0, 1, 2, 3], [1, 2, 2, 4]], r"1 of 2 cells \(first: 1\) degenerate"),
    "orphan": (np.vstack([X, X[:2]]), TWO, r"2 of 7 nodes \(first: 5\) in no cell; expected every node"),
    "above range": (X, [[0, 1, 2, 3], [1, 2, 3, 5]], "cells name nodes 0 to 5; expected 0 to 4"),
    "below range": (X, [[0, 1, 2, 3], [1, 2, 3, -1]], "cells name nodes -1 to 3; expected 0 to 4"),
    "not finite": (NAN, TWO, r"1 of 5 nodes \(first: 2\) with a coordinate that is not finite"),
    "overflowing": (HUGE, TWO, r"2 of 2 cells \(first: 0\) degenerate"),
    "twice the same cell": (X, [*TWO, TWO[0]], "three or more cells meet in one facet"),
    "no cells": (X, np.empty((0, 4), int), "no cells; expected at least one tet4"),
    "2-D": (X[:, :2], TWO, r"coordinates have shape \(5, 2\); expected \(n_nodes, 3\)"),
    "triangles": (X, TWO[:, :3], r"cells have shape \(2, 3\); expected \(n_cells, 4\) for tet4"),
    "real numbers": (X, TWO * 1.0, "cells are of type float64; expected integers"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_mesh_is_one_clear_line(case):
    x, cells, message = BAD[case]
    with pytest.raises(InputError, match=f"^mesh part: {message}") as caught:
        Mesh.create(x, cells, "tet4", "part")
    assert "\n" not in str(caught.value)


def test_a_hexahedron_is_refused_where_one_corner_is_pushed_in():
    x = BRICK.x * [1, 2, 1]
    assert Mesh.create(x, BRICK.cells, "hex8").n_cells == 1
    x[BRICK.cells[0, 6]] = [0.3, 0.3, 0.3]
    with pytest.raises(InputError, match=r"1 of 1 cells .* inverted"):
        Mesh.create(x, BRICK.cells, "hex8")
    with pytest.raises(InputError, match="inverted"):
        Mesh.create(BRICK.x, BRICK.cells[:, [4, 5, 6, 7, 0, 1, 2, 3]], "hex8")


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"node_tags": {"a": [1, 5]}}, "node tag 'a': names nodes 1 to 5; expected 0 to 4"),
        ({"facet_tags": {"f": [[0, 1, 7]]}}, "facet tag 'f': names nodes 0 to 7; expected 0 to 4"),
        ({"facet_tags": {"f": [[0, 1, 2], [0, 1, 4]]}}, "facet tag 'f': 1 of 2 facets belong to no cell"),
        ({"facet_tags": {"f": [[0, 1, 2, 3]]}}, r"facet tag 'f': shape \(1, 4\); expected \(n_facets, 3\)"),
    ],
)
def test_tags_of_absent_things_are_refused(tags, message):
    with pytest.raises(InputError, match=f"mesh m, {message}"):
        Mesh.create(X, TWO, "tet4", "m", **tags)


def test_a_facet_between_two_cells_belongs_to_the_lower_and_looks_out_of_it():
    mesh = Mesh.create(X, TWO, "tet4", facet_tags={"f": [[3, 2, 1]]})
    a, b, c = X[mesh.facet_tags["f"][0]]
    assert np.cross(b - a, c - a) @ (X[0] - a) < 0


def test_the_cells_behind_facets_are_found_once_for_checks_parts_boundary_and_partition(monkeypatch):
    plain = box((3, 2, 2))
    calls = []

    def counted(cells, element):
        calls.append(element)
        return facet_neighbours(cells, element)

    for module in ("facets", "mesh"):
        monkeypatch.setattr(f"fembench.mesh.{module}.facet_neighbours", counted)
    mesh = Mesh.create(plain.x, plain.cells, "tet4")
    check_whole(PATCH, whole_mesh(PATCH, mesh))
    partition(mesh, [0.5, 0.5])
    assert calls == ["tet4"]
