"""fembench partition and fembench.parts: from shares to files."""

import json
import shutil
import subprocess

import numpy as np
import pytest

import fembench
from fembench.cli.main import main
from fembench.cli.parser import page
from fembench.cli.verbs import verb_parser
from fembench.errors import InputError
from fembench.mesh.box import box
from fembench.partition.maps import MAPS, write_map
from fembench.partition.methods import partition
from fembench.partition.partition import metrics
from fembench.records.weights import UNDECIDED, RankShare, Weights, save_weights
from fembench.workflows.command import EXPORTS


def weights(**others):
    ranks = (RankShare(host="fast", share=0.75), RankShare(host="slow", share=0.25))
    day = "2026-01-02T03:04:05+00:00"
    return Weights(schema=1, rule="time", created=day, measured=day, source=("x",), ranks=ranks, **others)


@pytest.fixture
def file(tmp_path):
    save_weights(weights(), tmp_path / "w.json")
    return str(tmp_path / "w.json")


def test_the_verb_says_how_the_cells_are_divided_and_for_which_host_each_part_is(file, tmp_path, output):
    text = output("partition", "m1", "--weights", file, "--to", "metis", "-o", str(tmp_path / "p"))
    lines = (tmp_path / "p" / "m1.part.2").read_text().split()
    assert text.startswith(f"{len(lines)} cells in 2 parts of 75.0 %, 25.0 %: within 0.")
    assert f"|    1 | slow | 25.0 % | 25.0 % | {lines.count('1'):5} |" in text
    assert "line i is the part of cell i" in text


def test_json_has_the_sizes_hosts_and_files(file, tmp_path, answer):
    tree = answer("partition", "m1", "--weights", file, "--to", "petsc", "-o", str(tmp_path))
    assert (tree["targets"], tree["hosts"]) == ([0.75, 0.25], ["fast", "slow"])
    assert tree["files"] == [str(tmp_path / name) for name in ("map_distribute.py", "m1.part.2")]
    assert json.dumps(tree["cells"]).count(",") == 1


def test_python_gets_the_map_and_writes_nothing_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cut = fembench.parts("m1", shares="3:1")
    assert cut.partition.sizes.tolist()[0] == pytest.approx(0.75 * len(cut.partition.part_of_cell), rel=0.01)
    assert fembench.parts("m1", weights=weights()).partition.sizes.tolist() == cut.partition.sizes.tolist()
    assert (cut.files, [*tmp_path.iterdir()]) == ((), [])


def test_python_gives_shares_as_numbers_too():
    sizes = [fembench.parts("m1", shares=s).partition.sizes.tolist() for s in ("2:1", [2, 1], (2.0, 1.0))]
    assert sizes[0] == sizes[1] == sizes[2]
    with pytest.raises(InputError, match=r"parts: shares = 2: expected text or a list \(each a number\)"):
        fembench.parts("m1", shares=2)


def test_a_notebook_shows_a_cut_mesh_as_a_sentence_and_a_table():
    cut = fembench.parts("m1", shares="2:1")
    assert repr(cut) == f"{cut.sentence}\n\n{cut.text}"
    assert cut._repr_html_() == f"<p>{cut.sentence}</p><pre>{cut.text}</pre>"


def test_of_many_equal_parts_three_have_a_row():
    cut = fembench.parts("m1", shares="20*1,10*2,7")
    rows = [line.split("|") for line in cut.text.splitlines() if line.startswith("|")][2:]
    sizes = cut.partition.sizes
    of = {1: sorted(sizes[:20]), 2: sorted(sizes[20:30])}
    expected = [size for k in (1, 2) for size in (of[k][0], of[k][len(of[k]) // 2], of[k][-1])]
    assert sorted(int(row[4]) for row in rows) == sorted([*expected, sizes[30]])
    assert "of equal targets: the ranks with the fewest, median and most cells" in cut.text
    assert fembench.parts("m1", shares="16*1").text.count("\n|") == 17


def test_a_map_that_changed_is_said_to_have_removed_the_files_of_the_older_one(tmp_path, output):
    words = ["partition", "m1", "-o", str(tmp_path)]
    output(*words, "--shares", "2:1", "--to", "dolfinx")
    text = output(*words, "--shares", "1:1")
    assert f"removed, of an older map: {tmp_path / 'map_partitioner.py'}" in text
    assert [path.name for path in tmp_path.iterdir()] == ["m1.part.2"]


def test_nodes_of_several_parts_are_counted_once():
    text = fembench.parts("box:2x1x1:hex8", shares="1:1").text
    assert text.count("|     1 |     8 |") == 2
    assert "\n4 nodes shared by two parts or more" in text


def test_weights_that_may_be_far_off_or_are_emulated_are_handed_over_with_a_warning(tmp_path, capsys):
    notes = (f"{UNDECIDED}: every pair", "DISTURBED: others used up to 57 %")
    save_weights(weights(notes=notes), tmp_path / "w.json")
    words = ["partition", "m1", "--weights", str(tmp_path / "w.json")]
    assert main([*words, "--to", "metis", "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"fembench: warning: {notes[0]}"
    assert told[1] == f"fembench: warning: weights: {notes[1]}"
    lines = []
    told = fembench.parts("m1", weights=weights(synthetic="1,0.5"), tell=lines.append)
    assert told.files == ()
    assert "are of SYNTHETIC ranks (1,0.5), but used for real ranks" in lines[0]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected either --shares 2:1 or --weights FILE"),
        (["--shares", "2"], "shares '2' name one part; expected 2*1 for two equal parts"),
        (["--shares", "64"], "shares '64' name one part; expected 64*1 for 64 equal parts"),
        (["--shares", "0.5"], "shares '0.5' name one part; expected 2*1 for two equal parts"),
        (["--weights", "."], ".: a folder; expected a file of weights: use `fembench weights . -o weights."),
        (["--shares", " "], "cannot read ''"),
        (["--shares", "3000*1"], "3000 parts of"),
        (["--weights", "nothing.json"], "cannot read nothing.json"),
        (["--shares", "1:1", "--weights", "w.json"], "not allowed with"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_a_line(words, said, tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    assert said in refusal("partition", "box:5x2x2", "--to", "metis", *words)
    assert not [*tmp_path.iterdir()]


def test_python_is_told_the_formats():
    with pytest.raises(InputError, match="unknown format 'su2'; expected one of metis, dolfinx"):
        fembench.parts("m1", shares="1:1", to="su2")


def test_what_a_format_declares_is_what_the_help_says():
    text = " ".join(page(verb_parser("partition"), 100).split())
    assert all(f"{name}: {one.help}" in text for name, one in MAPS.items())


GRAPH = "box-8x8x8"  # the name of its mesh, as in that of the map


def ran(folder, *words):
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def graph(tmp_path):
    """A mesh, and the folder of `graph`: cells that share a facet are neighbours, as METIS finds them."""
    if not shutil.which("m2gmetis"):
        pytest.skip("no METIS")
    mesh = box((8, 8, 8), "tet4")
    cells = "".join(f"{' '.join(map(str, row))}\n" for row in (mesh.cells + 1).tolist())
    (tmp_path / "mesh").write_text(f"{mesh.n_cells}\n{cells}")
    ran(tmp_path, "m2gmetis", "-gtype=dual", "-ncommon=3", "mesh", GRAPH)
    return mesh, tmp_path


def cut_edges(folder, part):
    """Edges of the graph of METIS between two parts."""
    lines = (folder / GRAPH).read_text().splitlines()[1:]
    return sum(part[a] != part[int(b) - 1] for a, line in enumerate(lines) for b in line.split()) // 2


def test_gpmetis_cuts_by_our_shares_and_writes_the_file_that_we_write(graph):
    mesh, folder = graph
    (folder / "shares").write_text(EXPORTS["metis"].text(weights()))
    told = ran(folder, "gpmetis", "-tpwgts=shares", GRAPH, "2")
    cut = partition(mesh, (0.75, 0.25))
    [path] = write_map("metis", mesh, cut, folder / "ours")[0]
    theirs = [int(line) for line in (folder / path.name).read_text().splitlines()]  # of the same name
    assert np.bincount(theirs)[0] == pytest.approx(0.75 * mesh.n_cells, rel=0.02)
    assert f"Edgecut: {cut_edges(folder, theirs)}," in told
    ours = [int(line) for line in path.read_text().splitlines()]
    assert len(ours) == len(theirs)
    assert cut_edges(folder, ours) == metrics(mesh, cut).cut  # its cells are ours, in our order


def test_scotch_maps_by_our_shares(graph):
    mesh, folder = graph
    gmap = shutil.which("scotch_gmap") or shutil.which("gmap")
    if not gmap or not shutil.which("gcv"):
        pytest.skip("no Scotch")
    (folder / "target").write_text(EXPORTS["scotch"].text(weights()))
    ran(folder, "gcv", "-ic", GRAPH, "wing.grf")
    ran(folder, gmap, "wing.grf", "target", "wing.map")
    n, *lines = (folder / "wing.map").read_text().splitlines()
    assert int(n) == len(lines) == mesh.n_cells
    sizes = np.bincount([int(line.split()[1]) for line in lines])
    assert sizes[0] == pytest.approx(0.75 * mesh.n_cells, rel=0.02)
