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


@pytest.mark.parametrize("verb", ["run", "tune"])
def test_a_job_that_no_launcher_can_start_leaves_no_folder(tmp_path, monkeypatch, refusal, verb):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEMBENCH_LAUNCHER", "nowhere")
    assert "launcher 'nowhere'" in refusal(verb, "m1", "--ranks", "2")
    assert not list(tmp_path.iterdir())


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
