"""What `run` prints about a run without a record: one line, and what was printed if a rank crashed."""

import pytest

from fembench.cli.main import main
from fembench.launch.run_job import JobEnd


@pytest.mark.parametrize(
    ("kind", "said"), [("killed", ""), ("timeout", ""), ("revoked", ""), ("crashed", "what was printed\n")]
)
def test_what_a_launcher_prints_is_shown_only_after_a_crash(tmp_path, monkeypatch, capsys, kind, said):
    monkeypatch.chdir(tmp_path)
    outcome = JobEnd(None, kind, "the reason", 1, "what was printed")
    monkeypatch.setattr("fembench.workflows.run.launch", lambda *_, **__: outcome)
    assert main(["run", "m1", "--ranks", "1"]) == 1
    assert capsys.readouterr().err == f"{said}fembench: the reason\n"


@pytest.mark.parametrize(
    ("words", "who"),
    [
        ("--ranks 2", ""),
        ("--ranks 3", "3 ranks"),
        ("--ranks 1 --threads 4", "1 rank of 4 threads"),
        ("--ranks 4 --emulate 1,1,1,0.5 --dilate 2", ""),
    ],
)
def test_ranks_that_will_share_cores_are_told_so_before_they_start(tmp_path, monkeypatch, capsys, words, who):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fembench.launch.allocation.usable_cores", lambda: 2)
    outcome = JobEnd(None, "killed", "the reason", 1, "")
    monkeypatch.setattr("fembench.workflows.run.launch", lambda *_, **__: outcome)
    assert main(["run", "m1", *words.split()]) == 1
    note = f"run: {who} on 2 cores of this machine: OVERSUBSCRIBED: functional only\n"
    assert capsys.readouterr().err == f"{note * bool(who)}fembench: the reason\n"


def test_more_ranks_than_this_machine_starts_are_refused_before_a_folder_is_made(
    tmp_path, monkeypatch, refusal
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fembench.launch.line.usable_cores", lambda: 2)
    assert "129 ranks on the 2 cores of this machine: expected" in refusal("run", "m1", "--ranks", "129")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["run", "tune"])
def test_a_job_that_no_launcher_can_start_leaves_no_folder(tmp_path, monkeypatch, refusal, verb):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEMBENCH_LAUNCHER", "nowhere")
    assert "launcher 'nowhere'" in refusal(verb, "m1", "--ranks", "2")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ranks", ["[1, 129]", "129"])
@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--minutes", "1")])
def test_a_campaign_with_more_ranks_than_this_machine_starts_is_refused_before_anything_runs(
    tmp_path, monkeypatch, capsys, ranks, options
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fembench.launch.line.usable_cores", lambda: 2)
    monkeypatch.delattr("fembench.bench.campaign.launch")
    (tmp_path / "c.toml").write_text(f'name = "c"\n[[cases]]\nmesh = "m1"\nranks = {ranks}\n')
    assert main(["sweep", "c.toml", *options]) == 2
    said = "129 ranks on the 2 cores of this machine: expected at most 128, 64 per core"
    assert capsys.readouterr() == ("", f"fembench: {said}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


@pytest.mark.parametrize("mesh", ["m9", "nowhere.msh"])
@pytest.mark.parametrize(("verb", "module"), [("run", "run"), ("tune", "tune")])
def test_a_mesh_that_is_not_there_is_refused_before_a_rank_is_started(
    tmp_path, monkeypatch, refusal, verb, module, mesh
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(f"fembench.workflows.{module}.launch")
    said = refusal(verb, mesh, "--ranks", "2")
    assert mesh in said
    assert "no such file" in said
    assert not list(tmp_path.iterdir())
