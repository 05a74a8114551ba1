"""A campaign started again: what is kept, what is run again and why, what is held against what.

The ranks are replaced by a function that returns a planted record, so that only decisions are tested.
"""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from fembench.bench import campaign as campaigns
from fembench.bench.campaign import Folder, execute, read_campaign
from fembench.bench.launcher import Outcome
from fembench.cli.main import main
from fembench.fem.problem import load_problem, resolved
from fembench.mesh.box import box
from fembench.mesh.io import write
from fembench.mesh.presets import resolve
from fembench.records.store import load, record_paths

FROZEN = Path(__file__).parent.parent / "data" / "record-schema-1.json"
PROBLEM = (
    '[[constraints]]\non = {plane = "x=0"}\n[[forces]]\non = {point = [1, 0.5, 1]}\nforce = [0, -500, 0]\n'
)
CAMPAIGN = """name = "c"
[[cases]]
mesh = ["a.vtu", "box:2x2x2"]
problem = ["p.toml", "q.toml", "thesis"]
"""
replace = msgspec.structs.replace


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(box((2, 2, 2)), Path("a.vtu"))
    for name in ("p.toml", "q.toml"):
        Path(name).write_text(PROBLEM)
    Path("c.toml").write_text(CAMPAIGN)
    return tmp_path


@pytest.fixture
def started(monkeypatch):
    """What was launched: (mesh, problem, source of the reference), in the order of runs."""
    found = []

    def launch(case, *, id, reference, **_):
        found.append((case.mesh, case.problem, reference.source if reference else ""))
        record = load(FROZEN)
        record = replace(
            record,
            id=id,
            case=case,
            problem=json.loads(msgspec.json.encode(resolved(load_problem(case.problem)))),
            mesh=replace(record.mesh, hash=resolve(case.mesh).hash),
            reference=reference,
            verdict=replace(record.verdict, status=case.label or "PROVISIONAL"),
        )
        return Outcome(record, "ok", "", 0, "")

    monkeypatch.setattr(campaigns, "launch", launch)
    return found


def sweep(started):
    """The runs that a sweep starts."""
    started.clear()
    assert main(["sweep", "c.toml", "--results", "out", "--no-report"]) == 0
    return {(mesh, problem) for mesh, problem, _ in started}


MESHES, PROBLEMS = ("a.vtu", "box:2x2x2"), ("p.toml", "q.toml", "thesis")
ALL = {(mesh, problem) for mesh in MESHES for problem in PROBLEMS}


def edit_problem():
    Path("p.toml").write_text(PROBLEM.replace("-500", "-501"))


def edit_mesh():
    write(box((2, 2, 3)), Path("a.vtu"))


def spoil_problem():
    Path("p.toml").write_text("force = ")


@pytest.mark.parametrize(
    ("edit", "depend", "why"),
    [
        (
            edit_problem,
            {r for r in ALL if r[1] == "p.toml"},
            "problem p.toml has changed: runs to repeat: 2 ",
        ),
        (edit_mesh, {r for r in ALL if r[0] == "a.vtu"}, "mesh a.vtu has changed: runs to repeat: 3 "),
    ],
)
def test_an_edited_input_repeats_exactly_the_runs_that_depend_on_it(
    folder, started, capsys, edit, depend, why
):
    assert sweep(started) == ALL
    assert sweep(started) == set()
    before = {path.name: path.read_bytes() for path in record_paths("out")}
    edit()
    capsys.readouterr()
    assert sweep(started) == depend
    said = [line for line in capsys.readouterr().err.splitlines() if "changed" in line]
    assert len(said) == 1
    assert said[0].startswith(why)
    kept = list(Path("out/runs/superseded").glob("*.json"))
    assert len(kept) == len(depend)
    assert all(path.read_bytes() in before.values() for path in kept)
    assert len(record_paths("out")) == len(ALL)
    assert sweep(started) == set()


def test_a_file_that_is_only_touched_copied_or_rewritten_with_comments_repeats_nothing(folder, started):
    sweep(started)
    shutil.copy("a.vtu", "b.vtu")
    Path("b.vtu").replace("a.vtu")
    Path("p.toml").write_text("# the same, with its default written out\n[material]\nE = 210e9\n" + PROBLEM)
    assert sweep(started) == set()


def test_records_of_a_deleted_file_are_kept_and_it_is_said(folder, started, capsys):
    sweep(started)
    Path("q.toml").unlink()
    capsys.readouterr()
    assert sweep(started) == set()
    assert "q.toml no longer exists: records kept unchecked: 2" in capsys.readouterr().err


def test_a_problem_that_can_no_longer_be_read_has_changed(folder, started):
    sweep(started)
    spoil_problem()
    runs = read_campaign(Path("c.toml"))[1]
    changed = {r.case.problem: Folder(Path("out")).changed(r) for r in runs}
    assert changed == {"p.toml": "problem p.toml", "q.toml": "", "thesis": ""}


def test_a_record_of_an_earlier_version_lacks_what_later_ones_added_and_is_still_of_the_same_problem(
    folder, started
):
    sweep(started)
    path = record_paths("out")[0]
    tree = json.loads(path.read_text())
    del tree["problem"]["body"], tree["problem"]["tractions"]
    path.write_text(json.dumps(tree))
    assert sweep(started) == set()


def reference_of_two_ranks(folder, started, *, label, between=lambda: None):
    """What the run on two ranks was held against, after one on one rank whose verdict is `label`."""
    text = f'name = "c"\n[[cases]]\nmesh = "a.vtu"\nproblem = "p.toml"\nranks = [1, 2]\nlabel = "{label}"\n'
    Path("c.toml").write_text(text)
    campaign, runs = read_campaign(Path("c.toml"))
    place = Folder(folder / "out")
    place.prepare(Path("c.toml"))
    for done in execute(campaign, runs, place, command=""):
        if done.run.case.ranks == 1:
            between()
    return started[-1][2], runs[0].id


def test_a_run_is_held_against_the_one_rank_run(folder, started):
    source, id = reference_of_two_ranks(folder, started, label="VALID")
    assert source == id


def test_an_invalid_one_rank_run_is_no_reference(folder, started):
    assert reference_of_two_ranks(folder, started, label="INVALID")[0] == ""


def test_a_one_rank_run_of_a_problem_edited_meanwhile_is_no_reference(folder, started):
    assert reference_of_two_ranks(folder, started, label="VALID", between=edit_problem)[0] == ""
