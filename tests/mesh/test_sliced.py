"""Sliced meshes: the same mesh in a folder, whole or not at all, and refused when damaged."""

import filecmp
import re
import shutil
import zlib

import msgspec
import numpy as np
import pytest
from mesh_samples import ELEMENTS, shuffled, tagged
from msgspec.structs import replace

from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.bench.inputs import Inputs
from fembench.cli.main import main
from fembench.mesh import sliced, slicing
from fembench.mesh.box import Box, box
from fembench.mesh.io import write
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.mesh.sliced import ARRAYS, Sliced, sealed
from fembench.mesh.slicing import source_of_box, source_of_mesh, write_sliced
from fembench.records.case import new_case


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_folder_of_slices_is_the_same_mesh_with_the_same_hash(tmp_path, element, monkeypatch):
    monkeypatch.setattr(slicing, "PIECE", 7)
    for mesh in (tagged(element), shuffled(element), box((3, 2, 4), element)):
        assert write_sliced(source_of_mesh(mesh), tmp_path / "a.mesh") == mesh.hash
        again = resolve(str(tmp_path / "a.mesh"))
        assert (again.hash, again.name) == (mesh.hash, mesh.name)
        assert again.facet_tags.keys() == mesh.facet_tags.keys()
        assert Inputs().mesh_hash(str(tmp_path / "a.mesh")) == mesh.hash


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_box_is_written_layer_by_layer_as_if_it_had_been_made_whole(tmp_path, element):
    plan = Box((3, 4, 2), element)
    write_sliced(source_of_box(plan), tmp_path / "a")
    write_sliced(source_of_mesh(box(plan.cells, element)), tmp_path / "b")
    for name in ("nodes", "cells", "corners", "facets", "marks"):
        assert filecmp.cmp(tmp_path / "a" / f"{name}.npy", tmp_path / "b" / f"{name}.npy", shallow=False)
    assert Sliced(tmp_path / "a").manifest == Sliced(tmp_path / "b").manifest


@pytest.fixture
def folder(tmp_path):
    """Two cubes apart, so that no array is empty, with a node tag and a cell tag."""
    cube = box((2, 2, 2))
    mesh = Mesh.create(
        np.vstack([cube.x, cube.x + 9]),
        np.vstack([cube.cells, cube.cells + 27]),
        "tet4",
        node_tags={"n": [1]},
        cell_tags={"c": [0, 1]},
    )
    write_sliced(source_of_mesh(mesh), tmp_path / "a.mesh")
    return tmp_path / "a.mesh"


def test_a_folder_of_another_format_is_to_be_converted_again(folder, capsys):
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("sliced mesh 3", "sliced mesh 2"))
    assert main(["mesh", "info", str(folder)]) == 2
    assert "expected 'fembench sliced mesh 3'; convert the mesh again" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*ARRAYS, "manifest"])
@pytest.mark.parametrize("how", ["changed", "shortened", "emptied", "gone"])
def test_damage_is_one_line_that_names_the_file(folder, name, how, capsys):
    path = next(folder.glob(f"{name}.*"))
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        broken = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        path.write_bytes({"changed": broken, "shortened": content[:-9], "emptied": b""}[how])
    if name in ("corners", "parts") and how == "changed":  # not needed for the whole
        mesh = Sliced(folder)
        with pytest.raises(InputError, match=rf"{name}\.npy is damaged"):
            mesh.rows(name, 0, mesh.manifest.rows[name])
        return
    assert main(["mesh", "info", str(folder)]) == 2
    said = capsys.readouterr().err
    assert path.name in said
    assert str(folder) in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("rows", {"nodes": 0}),
        ("rows", {"cells": 0}),
        ("rows", {"corners": 0}),
        ("rows", {"parts": 1}),
        ("n_parts", 1),
        ("n_parts", 0),
        ("element", "tet5"),
        *(("sums", {name: sums}) for name in ("cells", "marks") for sums in ((), (0,), (0, 0, 0))),
    ],
)
def test_a_manifest_whose_counts_do_not_fit_is_damaged_although_it_is_sealed(folder, part, values):
    manifest = Sliced(folder).manifest
    now = getattr(manifest, part) | values if isinstance(values, dict) else values
    changed = sealed(replace(manifest, **{part: now}))
    write_atomic(folder / "manifest.json", msgspec.json.encode(changed))
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        Sliced(folder)


FORGED = [
    ("cells", (0, 0), 54, "not all numbers are within 0 to 53"),
    ("cells", (47, 3), -1, "not all numbers are within 0 to 53"),
    ("corners", (0, 0), -1, "not all numbers are within 0 to 1073741824"),
    ("facets", (-1, 0), 96, "not all numbers are within 0 to 95"),
    ("facets", (0, 1), 4, "not all numbers are within 0 to 3"),
    ("facets", (0, 2), 1, "not all numbers are within 0 to 0"),
    ("facets", (3, 0), 90, "its rows do not ascend"),
    ("marks", (-1, 0), 54, "not all numbers are within 0 to 53"),
    ("marks", (0, 1), 2, "not all numbers are within 0 to 1"),
    ("marks", (0, 0), 53, "its rows do not ascend"),
    ("kinds", (1, 0), 2**31 - 1, "not all numbers are within 0 to 95"),
    ("kinds", (1, 1), 1, "not all numbers are within 0 to 0"),
    ("parts", (0, 0), 2, "not all numbers are within 0 to 1"),
    *(("nodes", (5, 1), value, "not all coordinates are within ± 1e+100 m") for value in (np.nan, 1e200)),
]


def forge(folder, name, at, value):
    """Another number in an array, whose check sums then fit it."""
    path, manifest = folder / f"{name}.npy", Sliced(folder).manifest
    array = np.load(path)
    array[at] = value
    np.save(path, array)
    fit = sealed(replace(manifest, sums=manifest.sums | {name: slicing._sums(path, array)}))
    write_atomic(folder / "manifest.json", msgspec.json.encode(fit))


@pytest.mark.parametrize(("name", "at", "value", "said"), FORGED)
def test_a_number_out_of_range_is_damage_although_its_check_sum_fits(folder, name, at, value, said, refusal):
    forge(folder, name, at, value)
    expected = f"cannot read mesh {folder}: {name}.npy is damaged: {said}; convert the mesh again"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        Sliced(folder).rows(name, 0, Sliced(folder).manifest.rows[name])
    if name not in ("corners", "parts"):  # not needed for the whole
        assert refusal("mesh", "info", str(folder)) == f"fembench: {expected}\n"


def test_rows_out_of_order_between_two_blocks_are_damage(folder, monkeypatch):
    mesh = resolve(str(folder))
    monkeypatch.setattr(sliced, "BLOCK", 4)
    write_sliced(source_of_mesh(mesh), folder)
    array = np.load(folder / "facets.npy")
    array[[0, 4]] = array[[4, 0]]
    array[:4] = array[np.argsort(array[:4, 0])]
    forge(folder, "facets", np.s_[:], array)
    with pytest.raises(InputError, match=r"facets\.npy is damaged: its rows do not ascend"):
        [Sliced(folder).rows_between("facets", low, low + 8) for low in range(0, 96, 8)]


@pytest.mark.parametrize(
    ("old", "new"), [(b"False", b"True "), (b"'<i4'", b"'|O' "), (b"(", b"["), (b"'<i4'", b"'<i4 ")]
)
def test_a_header_of_another_array_is_damage_although_its_check_sum_fits(folder, old, new):
    path, manifest = folder / "cells.npy", Sliced(folder).manifest
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    _, *rest = manifest.sums["cells"]
    sums = manifest.sums | {"cells": (zlib.crc32(sliced.head_of(path)), *rest)}
    write_atomic(folder / "manifest.json", msgspec.json.encode(sealed(replace(manifest, sums=sums))))
    with pytest.raises(InputError, match=r"cells\.npy is damaged; convert"):
        Sliced(folder)


def test_headers_padded_by_another_version_of_numpy_are_read(folder):
    path, manifest = folder / "cells.npy", Sliced(folder).manifest
    head, rows = sliced.head_of(path), path.read_bytes()[len(sliced.head_of(path)) :]
    longer = head[:8] + (len(head) + 54).to_bytes(2, "little") + head[10:-1] + b" " * 64 + b"\n"
    path.write_bytes(longer + rows)
    _, *rest = manifest.sums["cells"]
    sums = manifest.sums | {"cells": (zlib.crc32(longer), *rest)}
    write_atomic(folder / "manifest.json", msgspec.json.encode(sealed(replace(manifest, sums=sums))))
    assert Sliced(folder).whole().hash == manifest.hash


def test_a_manifest_of_more_rows_than_any_computer_holds_is_refused_at_once(folder):
    manifest = Sliced(folder).manifest
    changed = sealed(replace(manifest, rows=manifest.rows | {"nodes": 2**62}))
    write_atomic(folder / "manifest.json", msgspec.json.encode(changed))
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        Sliced(folder)


def test_a_folder_is_replaced_whole_or_stays_as_it_was(folder, monkeypatch, tmp_path):
    before = resolve(str(folder)).hash
    monkeypatch.setattr(slicing, "content_hash", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_sliced(source_of_mesh(box((1, 1, 1))), folder)
    assert resolve(str(folder)).hash == before
    monkeypatch.undo()
    write_sliced(source_of_mesh(box((1, 1, 1))), folder)
    assert resolve(str(folder)).n_cells == 6
    assert [path.name for path in tmp_path.iterdir()] == ["a.mesh"]


def test_no_file_is_written_through_a_map_as_a_full_disk_would_end_the_process(tmp_path, monkeypatch):
    class ReadOnly(np.memmap):
        def __new__(cls, *words, mode, **more):
            assert mode == "r"
            return super().__new__(cls, *words, mode=mode, **more)

    monkeypatch.setattr(np, "memmap", ReadOnly)
    write_sliced(source_of_box(Box((2, 1, 1))), tmp_path / "slices")


def test_no_other_folder_is_overwritten_or_read(tmp_path):
    with pytest.raises(InputError, match="something else"):
        write_sliced(source_of_mesh(box((1, 1, 1))), tmp_path)
    with pytest.raises(InputError, match=r"no manifest\.json"):
        resolve(str(tmp_path))


def test_the_reserved_tag_is_refused():
    mesh = Mesh.create(box((1, 1, 1)).x, box((1, 1, 1)).cells, "tet4", node_tags={"boundary": [1]})
    with pytest.raises(InputError, match="'boundary' is reserved"):
        source_of_mesh(mesh)


def test_convert_and_box_write_a_folder_where_the_name_ends_with_a_slash(tmp_path, capsys):
    write(box((2, 1, 1)), tmp_path / "a.msh")
    assert main(["mesh", "convert", str(tmp_path / "a.msh"), f"{tmp_path}/a.mesh/"]) == 0
    assert main(["mesh", "box", "2x1x1", "-o", f"{tmp_path}/b.mesh/"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in said] == [
        f"12 nodes, 12 tet4, hash {resolve(str(tmp_path / name)).hash[:12]}" for name in ("a.msh", "b.mesh")
    ]
    shutil.rmtree(tmp_path / "a.mesh")
    assert main(["mesh", "convert", f"{tmp_path}/b.mesh", str(tmp_path / "c.vtu")]) == 0


def test_a_forgotten_slash_is_told_in_the_line_on_the_file(tmp_path, capsys):
    for word, told in (("b.mesh", True), ("b.vtu", False)):
        assert main(["mesh", "convert", "box:2x1x1", f"{tmp_path}/{word}"]) == 0
        said, *_ = capsys.readouterr().out.splitlines()
        end = f"; a Medit file: for a folder of slices, end its name with a slash ({tmp_path}/{word}/)"
        assert said.endswith(end) is told


def test_a_sliced_mesh_is_cut_by_coordinates_unless_said_otherwise(folder):
    def of(**values):
        return new_case(values, "options").placement.partitioner

    assert of(mesh=str(folder)) == "rcb"
    assert of(mesh=str(folder), partitioner="metis") == "metis"
    assert of(mesh="m1") == of(mesh="m1", partitioner=None) == "metis"
