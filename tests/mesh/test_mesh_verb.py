"""`fembench mesh …` as a user types it."""

import json

import numpy as np
import pytest

from fembench.cli.main import main
from fembench.mesh.io import read
from fembench.mesh.mesh import Mesh, lines, summary
from fembench.mesh.presets import resolve


def said(capsys, *arguments):
    status = main(["mesh", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_info_prints_what_there_is_to_know_about_a_stand_in(capsys):
    status, out, _ = said(capsys, "info", "m3")
    assert status == 0
    for line in (
        f"hash        {resolve('m3').hash}",
        "nodes       1960",
        "cells       9126 tet4",
        "equations   5460 with the 140 nodes of lowest x clamped",
        "volume      0.5 m³ in (0, 0, 0) to (1, 0.5, 1) m",
        "x0 (234 facets), x1 (234 facets), y0 (338 facets)",
    ):
        assert line in out


def test_info_counts_a_single_node_or_facet_in_the_singular():
    facts = {**summary(resolve("m1")), "clamped_nodes": 1, "facet_tags": {"tip": 1}}
    said = "\n".join(lines(facts))
    assert "with the 1 node of lowest x clamped" in said
    assert "tip (1 facet)" in said


def test_info_counts_the_cells_of_parts_that_share_no_facet():
    one = resolve("box:1x1x1")
    cells = [one.cells + k * one.n_nodes for k in range(3)]
    mesh = Mesh.create(
        [[x + 2 * k, y, z] for k in range(3) for x, y, z in one.x], np.concatenate(cells), "tet4"
    )
    assert summary(mesh)["parts"] == 3 * [one.n_cells]
    assert "parts       3 that share no facet, of 6, 6, 6 cells" in lines(summary(mesh))
    assert "parts       1" in lines(summary(one))


def test_info_as_json_has_the_same_facts_as_numbers(capsys):
    status, out, _ = said(capsys, "info", "m1:hex8", "--json")
    facts = json.loads(out)
    assert status == 0
    assert (facts["nodes"], facts["cells"], facts["equations"], facts["clamped_nodes"]) == (245, 144, 630, 35)
    assert (facts["element"], facts["hash"]) == ("hex8", resolve("m1:hex8").hash)
    assert facts["volume"] == pytest.approx(0.5)
    assert (facts["lower"], facts["upper"]) == ([0, 0, 0], [1, 0.5, 1])
    assert facts["quality_min"] == pytest.approx(facts["quality_mean"])
    assert facts["facet_tags"]["y1"] == 36


def test_box_writes_the_mesh_asked_for(capsys, tmp_path):
    path = tmp_path / "b.vtu"
    status, out, _ = said(capsys, "box", "4x2x3", "--element", "hex8", "--lengths", 2, 1, 1, "-o", path)
    mesh = read(path)
    assert (status, mesh.n_cells, mesh.element) == (0, 24, "hex8")
    assert mesh.x.max(axis=0).tolist() == [2, 1, 1]
    assert mesh.hash[:12] in out
    said(capsys, "box", "m1", "-o", path)
    assert read(path).hash == resolve("m1").hash
    said(capsys, "box", 1000, "--lengths", 1, 1, 1, "-o", path)
    assert 3 * (read(path).x[:, 0] > 0).sum() == pytest.approx(1000, rel=0.05)


def test_convert_says_what_a_format_does_not_carry(capsys, tmp_path):
    status, out, _ = said(capsys, "convert", "m1", tmp_path / "a.msh")
    assert status == 0
    assert "does not keep" not in out
    status, out, _ = said(capsys, "convert", tmp_path / "a.msh", tmp_path / "a.mesh")
    assert status == 0
    assert "this format does not keep everything: tags x0, x1, y0, y1, z0, z1 are lost" in out
    assert read(tmp_path / "a.msh").hash == resolve("m1").hash


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "m4"),
        ("box", "3x", "-o", "q.vtu"),
        ("convert", "m1", "q.ele"),
        ("convert", "garbage.msh", "q.vtu"),
    ],
)
def test_bad_input_is_exit_2_and_one_line_and_leaves_nothing(capsys, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "garbage.msh").write_bytes(bytes(range(256)))
    status, out, err = said(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("fembench: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["garbage.msh"]
