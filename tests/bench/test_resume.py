"""A campaign started again: what is kept, what is run again and why, what is held against what.

The ranks are replaced by a function that returns a planted record, so that only decisions are tested.
"""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from planted_records import FROZEN, on_ranks

from fembench.bench import campaign as campaigns
from fembench.bench.campaign import execute, read_campaign
from fembench.bench.campaign_folder import Folder
from fembench.cli.main import main
from fembench.fem.problem import load_problem, resolved
from fembench.launch.job import UNSHARED
from fembench.launch.run_job import JobEnd
from fembench.mesh.box import box
from fembench.mesh.io import write
from fembench.mesh.presets import resolve
from fembench.records.store import load, record_paths, save

PROBLEM = (
    '[[constraints]]\non = {plane = "x=0"}\n[[forces]]\non = {point = [1, 0.5, 1]}\nforce = [0, -500, 0]\n'
)
CAMPAIGN = """name = "c"
[[cases]]
mesh = ["a.vtu", "box:2x2x2"]
problem = ["p.toml", "q.toml", "corner-load"]
"""
SWEEP = ["sweep", "c.toml", "--results", "out", "--no-report"]
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
        found.append((case.question.mesh, case.question.problem, reference.source if reference else ""))
        if case.output.label in ("input", "crashed"):
            return JobEnd(None, case.output.label, "planted", 2, "")
        record = load(FROZEN)
        record = replace(
            on_ranks(record, case.placement.ranks),
            id=id,
            case=case,
            problem=json.loads(msgspec.json.encode(resolved(load_problem(case.question.problem)))),
            mesh=replace(record.mesh, hash=resolve(case.question.mesh).hash),
            reference=reference,
            verdict=replace(record.verdict, status=case.output.label or "PROVISIONAL"),
        )
        return JobEnd(record, "ok", "", 0, "")

    monkeypatch.setattr(campaigns, "launch", launch)
    return found


def sweep(started):
    """The runs that a sweep starts."""
    started.clear()
    assert main(SWEEP) == 0
    return {(mesh, problem) for mesh, problem, _ in started}


MESHES, PROBLEMS = ("a.vtu", "box:2x2x2"), ("p.toml", "q.toml", "corner-load")
ALL = {(mesh, problem) for mesh in MESHES for problem in PROBLEMS}


def edit_problem():
    Path("p.toml").write_text(PROBLEM.replace("-500", "-501"))


def edit_mesh():
    write(box((2, 2, 3)), Path("a.vtu"))


CONTINUED = "; the same command in a new job on these hosts continues the campaign"


@pytest.mark.parametrize(("kind", "status", "more"), [("revoked", 1, CONTINUED), (UNSHARED, 2, "")])
def test_a_campaign_whose_hosts_are_gone_or_see_no_folder_stops_and_continues_with_the_same_command(
    folder, started, monkeypatch, capsys, kind, status, more
):
    planted, calls = campaigns.launch, []

    def launch(case, **more):
        calls.append(case)
        return JobEnd(None, kind, "the reason", status, "") if len(calls) == 2 else planted(case, **more)

    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "launch", launch)
        assert main(SWEEP) == status
    assert capsys.readouterr().err.splitlines()[-1] == f"fembench: the reason{more}"
    assert (len(calls), len(record_paths(Path("out")))) == (2, 1)
    assert not list(Path("out/runs").glob("*.failed.json"))
    assert len(sweep(started)) == len(ALL) - 1


def records(folder):
    return {path.name: path.read_bytes() for path in record_paths(folder)}


def touch_copy_and_comment():
    shutil.copy("a.vtu", "b.vtu")
    Path("b.vtu").replace("a.vtu")
    Path("p.toml").write_text("# the same, with its default written out\n[material]\nE = 210e9\n" + PROBLEM)


def delete_problem():
    Path("q.toml").unlink()


def first_record():
    """That of mesh a.vtu and problem p.toml."""
    records = ((path, load(path).case.question) for path in record_paths("out"))
    return next(path for path, asked in records if (asked.mesh, asked.problem) == ("a.vtu", "p.toml"))


def truncate(part):
    path = first_record()
    path.write_text(path.read_text()[: int(part * path.stat().st_size)])


def drop_later_fields():
    path = first_record()
    tree = json.loads(path.read_text())
    del tree["problem"]["body"], tree["problem"]["tractions"]
    path.write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("change", "repeated", "aside", "said"),
    [
        (edit_problem, {r for r in ALL if r[1] == "p.toml"}, 2, "p.toml has changed: runs to repeat: 2"),
        (edit_mesh, {r for r in ALL if r[0] == "a.vtu"}, 3, "a.vtu has changed: runs to repeat: 3 "),
        (touch_copy_and_comment, set(), 0, ""),
        (delete_problem, set(), 0, "q.toml no longer exists: records kept unchecked: 2"),
        (lambda: truncate(0.0), {("a.vtu", "p.toml")}, 1, " is damaged ("),
        (lambda: truncate(0.5), {("a.vtu", "p.toml")}, 1, " is damaged ("),
        (drop_later_fields, set(), 0, ""),  # a record of an earlier version
    ],
)
def test_exactly_the_runs_that_a_change_concerns_are_repeated_and_their_records_set_aside(
    folder, started, capsys, change, repeated, aside, said
):
    assert sweep(started) == ALL
    assert sweep(started) == set()
    change()
    before = records("out")
    capsys.readouterr()
    assert sweep(started) == repeated
    lines = capsys.readouterr().err.splitlines()
    told = [line for line in lines if re.search("changed|exists|damaged", line)]
    assert len(told) == bool(said)
    assert not said or said in told[0]
    kept = list(Path("out/runs/superseded").glob("*"))
    assert len(kept) == aside
    assert all(path.read_bytes() in before.values() for path in kept)
    assert len(record_paths("out")) >= len(ALL)
    assert sweep(started) == set()


@pytest.mark.parametrize("name", ["q.toml", "a.vtu"])
def test_a_file_that_a_run_without_a_record_needs_is_missed_before_any_run(folder, started, refusal, name):
    Path(name).unlink()
    assert f"cannot read {name}, which the campaign needs" in refusal(*SWEEP)
    assert started == []


@pytest.mark.parametrize(("name", "text"), [("p.toml", "force = "), ("a.vtu", "<VTKFile")])
def test_an_input_that_cannot_be_read_is_refused_and_records_are_kept(folder, started, refusal, name, text):
    sweep(started)
    before = records("out")
    Path(name).write_text(text)
    started.clear()
    assert name in refusal(*SWEEP)
    assert (started, records("out")) == ([], before)


def one_case(folder, fields):
    """(campaign, its runs, its folder) of mesh a.vtu and problem p.toml."""
    text = f'name = "c"\n[[cases]]\nmesh = "a.vtu"\nproblem = "p.toml"\n{fields}\n'
    Path("c.toml").write_text(text)
    place = Folder(folder / "out")
    place.prepare(Path("c.toml"))
    return *read_campaign(Path("c.toml")), place


@pytest.mark.parametrize(("kind", "kept"), [("input", 1), ("crashed", 0)])
def test_a_record_of_an_edited_problem_gives_way_unless_the_new_one_is_refused(folder, started, kind, kept):
    campaign, (run,), place = one_case(folder, f'label = "{kind}"')
    spec = json.loads(msgspec.json.encode(resolved(load_problem("p.toml"))))
    old = load(FROZEN)
    mesh = replace(old.mesh, hash=resolve("a.vtu").hash)
    save(replace(on_ranks(old, 1), id=run.id, case=run.case, problem=spec, mesh=mesh), place.runs)
    edit_problem()
    (done,) = execute(campaign, [run], place, command="")
    assert done.record is None
    assert len(record_paths("out")) == kept
    assert len(list(place.runs.glob("superseded/*"))) == 1 - kept


@pytest.mark.parametrize("option", ["--no-report", "--dry-run"])
def test_a_campaign_that_goes_on_decodes_each_record_once(folder, started, monkeypatch, option):
    sweep(started)
    decoded = []
    monkeypatch.setattr("fembench.records.store.check_shapes", lambda record, path: decoded.append(path))
    assert main(["sweep", "c.toml", "--results", "out", option]) == 0
    assert len(started) == len(ALL)
    assert sorted(decoded) == [str(path) for path in record_paths("out")]


def test_a_campaign_goes_on_with_another_comment_and_time_limit_and_keeps_the_new_text(folder, started):
    sweep(started)
    text = CAMPAIGN.replace('name = "c"', '# longer\nname = "c"\ntimeout = 900')
    Path("c.toml").write_text(text)
    assert sweep(started) == set()
    assert Path("out/campaign.toml").read_text() == text
    Path("c.toml").write_text(text.replace('"corner-load"', '"bar"'))
    assert main(SWEEP) == 2


def on_hosts(text):
    for path in record_paths("out"):
        record = load(path)
        save(replace(record, environment=replace(record.environment, hosts_asked=text)), path.parent)


@pytest.mark.parametrize(
    ("measured", "asked", "status"),
    [
        ("a slots=2; b", "# the same\na  slots=2\n\nb # too\n", 0),
        ("a slots=2; b", "a slots=2\n", 2),
        ("a slots=2; b", "", 2),
        ("", "a slots=2\n", 2),
        ("", "", 0),
        ("not recorded", "a slots=2\n", 0),
        ("n[1-3]", "n[1-3]", 0),
        ("n[1-3]", "n[2-4]", 2),
    ],
)
def test_records_of_other_hosts_are_refused(folder, started, capsys, monkeypatch, measured, asked, status):
    monkeypatch.delenv("FEMBENCH_HOSTFILE", raising=False)
    sweep(started)
    on_hosts(measured)
    before = records("out")
    given_by_slurm = asked.startswith("n[")
    for name, value in {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": asked}.items() if given_by_slurm else ():
        monkeypatch.setenv(name, value)
    Path("hosts").write_text(asked)
    options = ["--hostfile", "hosts"] if asked and not given_by_slurm else []
    started.clear()
    for last in ("--no-report", "--dry-run"):
        capsys.readouterr()
        assert main(["sweep", "c.toml", "--results", "out", *options, last]) == status
    assert (started, records("out")) == ([], before)
    if status:
        (said,) = capsys.readouterr().err.splitlines()
        assert f"made on other hosts ({measured or 'neither a host file nor a batch system'}): " in said
        assert "give another folder" in said


@pytest.mark.parametrize(
    ("label", "between", "taken"),
    [("VALID", lambda: None, True), ("INVALID", lambda: None, False), ("VALID", edit_problem, False)],
)
def test_a_run_is_held_against_a_valid_one_rank_run_of_its_problem(folder, started, label, between, taken):
    """`between` happens after the run on one rank, whose verdict is `label`."""
    campaign, runs, place = one_case(folder, f'ranks = [1, 2]\nlabel = "{label}"')
    for done in execute(campaign, runs, place, command=""):
        if done.run.case.placement.ranks == 1:
            between()
    assert started[-1][2] == (runs[0].id if taken else "")


def test_a_run_is_repeated_where_asked_if_its_record_is_invalid(folder, started, monkeypatch):
    sweep(started)
    (campaign, runs), kept = read_campaign(Path("c.toml"))[:2], Folder.record

    def record(self, run):
        found = kept(self, run)
        status = "INVALID" if run == runs[1] else found.verdict.status
        return replace(found, verdict=replace(found.verdict, status=status))

    monkeypatch.setattr(Folder, "record", record)
    asked = runs[1].case.question
    for again in (False, True):
        started.clear()
        list(execute(campaign, runs, Folder(Path("out")), command="fembench", again=again))
        assert [(m, p) for m, p, _ in started] == [(asked.mesh, asked.problem)] * again
    assert len(list(Path("out/runs/superseded").glob("*.json"))) == 1
