"""Provenance: commit, versions, variables, BLAS threads."""

import os
import shutil
import subprocess
import sys

import pytest

from fembench.machine import provenance
from fembench.machine.provenance import source_state, variables, version_of, versions

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


@pytest.fixture
def clone(tmp_path):
    """A small repository with one commit, laid out like this one."""

    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *identity, *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "fembench").mkdir()
    (tmp_path / "fembench" / "a.py").write_text("1\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    return tmp_path, git("rev-parse", "HEAD")


@needs_git
def test_a_clean_tree_is_its_commit(clone):
    assert source_state(clone[0]) == (clone[1], False)


@needs_git
@pytest.mark.parametrize("name", ["a.py", "new.py"])
def test_a_changed_or_new_source_makes_the_tree_dirty(clone, name):
    (clone[0] / "fembench" / name).write_text("2\n")
    assert source_state(clone[0]) == (clone[1], True)


@needs_git
def test_results_and_notes_do_not(clone):
    (clone[0] / "results").mkdir()
    (clone[0] / "results" / "r.json").write_text("{}")
    assert source_state(clone[0]) == (clone[1], False)


@needs_git
def test_without_git_the_commit_is_read_from_its_files_and_not_known_to_be_clean(clone, monkeypatch):
    monkeypatch.setattr(provenance, "_git", lambda *_: None)
    assert source_state(clone[0]) == (clone[1], True)


@needs_git
def test_a_packed_branch_is_found_too(clone, monkeypatch):
    subprocess.run(["git", "-C", str(clone[0]), "pack-refs", "--all"], check=True)
    monkeypatch.setattr(provenance, "_git", lambda *_: None)
    assert source_state(clone[0])[0] == clone[1]


@needs_git
def test_an_installation_inside_somebodys_clone_does_not_take_its_commit(clone):
    inner = clone[0] / "venv" / "site-packages"
    inner.mkdir(parents=True)
    assert source_state(inner) == ("unknown", True)


def test_versions_name_python_and_what_is_installed():
    found = versions()
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"numpy", "mpi4py", "msgspec", "fembench"} <= set(found)
    assert version_of("no-such-package-at-all") == ""


def test_only_variables_that_matter_are_kept():
    environment = {
        "OMP_NUM_THREADS": "1",
        "OMPI_MCA_btl": "self,tcp",
        "FEMBENCH_KERNELS": "reference",
        "SLURM_JOB_ID": "7",
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_MCA_num_procs": "4",
        "HOME": "/root",
        "FEMBENCH_SECRET": "x",
        "PATH": "/bin",
    }
    assert list(variables(environment)) == [
        "FEMBENCH_KERNELS",
        "OMPI_MCA_btl",
        "OMP_NUM_THREADS",
        "SLURM_JOB_ID",
    ]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_blas_threads_are_those_that_the_library_uses(threads):
    line = "from fembench.machine.provenance import blas_threads; print(blas_threads())"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, env=environment)
    assert (done.stdout.strip(), done.stderr) == (str(min(int(threads), os.cpu_count() or 1)), "")


def test_without_a_library_that_answers_the_environment_does(monkeypatch):
    monkeypatch.setattr(provenance, "blas_libraries", list)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert provenance.blas_threads() == 3
    for name in provenance.THREADS:
        monkeypatch.delenv(name, raising=False)
    assert provenance.blas_threads() == (os.cpu_count() or 1)
