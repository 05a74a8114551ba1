"""Which fembench runs: commit, changes, hash of the sources; from a tree, or as noted at installation."""

import shutil
import subprocess
import sys

import pytest

from fembench.host import build
from fembench.host.build import Build, source_state, sources_hash, this_build

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
@pytest.mark.parametrize(
    ("name", "dirty"),
    [("", False), ("fembench/a.py", True), ("fembench/new.py", True), ("results/r.json", False)],
)
def test_a_tree_is_its_commit_and_dirty_if_sources_were_changed_or_added(clone, name, dirty):
    if name:
        (clone[0] / name).parent.mkdir(exist_ok=True)
        (clone[0] / name).write_text("2\n")
    assert source_state(clone[0]) == (clone[1], dirty)


@needs_git
@pytest.mark.parametrize("packed", [False, True])
def test_without_git_the_commit_is_read_from_its_files_and_not_known_to_be_clean(clone, monkeypatch, packed):
    if packed:
        subprocess.run(["git", "-C", str(clone[0]), "pack-refs", "--all"], check=True)
    monkeypatch.setattr(build, "_git", lambda *_: None)
    assert source_state(clone[0]) == (clone[1], True)


@needs_git
def test_an_installation_inside_somebodys_clone_does_not_take_its_commit(clone):
    inner = clone[0] / "venv" / "site-packages"
    inner.mkdir(parents=True)
    assert source_state(inner) == ("unknown", True)


def test_the_hash_is_of_names_and_contents_of_sources_alone(tmp_path):
    def plant(folder, files):
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return sources_hash(tmp_path / folder)

    files = {"fembench/a.py": "1", "fembench/kernels/b.c": "2", "CMakeLists.txt": "3"}
    plain = plant("plain", files)
    assert plant("again", files) == plain
    assert plant("noise", files | {"fembench/x.so": "9", "README.md": "9", "results/r.json": "9"}) == plain
    others = [
        plant("edited", files | {"fembench/kernels/b.c": "4"}),
        plant("renamed", {"fembench/c.py": "1", "fembench/kernels/b.c": "2", "CMakeLists.txt": "3"}),
        plant("shifted", files | {"fembench/a.py": "12", "fembench/kernels/b.c": ""}),
        plant("more", files | {"fembench/new.py": ""}),
    ]
    assert len({plain, *others}) == 5


@needs_git
def test_what_is_noted_at_installation_is_the_build_of_the_tree(clone, tmp_path):
    (clone[0] / "CMakeLists.txt").write_text("")
    tree = this_build(clone[0] / "fembench")
    assert tree == Build(clone[1], True, sources_hash(clone[0]))  # CMakeLists.txt is not committed
    installed = tmp_path / "site-packages" / "fembench"
    # -S: where the package is built, fembench is not installed yet
    line = [sys.executable, "-I", "-S", build.__file__, str(clone[0]), str(installed / build.BUILT)]
    subprocess.run(line, check=True)
    assert this_build(installed) == tree


def test_a_package_without_a_note_is_unknown(tmp_path):
    assert this_build(tmp_path) == Build("unknown", True, "")
    (tmp_path / build.BUILT).write_text("[]")
    assert this_build(tmp_path) == Build("unknown", True, "")


def test_this_fembench_knows_its_sources():
    assert len(this_build().sources) == 64
