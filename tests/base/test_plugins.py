"""What other installed packages bring."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_job import measured

GUIDE = (Path(__file__).parents[2] / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
RUNS = re.findall("`fembench run m1 (--.*?)`", GUIDE)


@pytest.fixture
def installed(tmp_path):
    """The package of the guide, on the path of a process."""
    module = re.search(r"```python\n(.*?)```", GUIDE, re.S)[1]
    entries = re.search(r'(\[project.entry-points\."fembench.verbs".*?)```', GUIDE, re.S)[1]
    (tmp_path / "fembench_hello.py").write_text(module)
    info = tmp_path / "fembench_hello-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fembench-hello\nVersion: 1.0\n")
    groups = re.sub(r'\[project.entry-points\."(.*?)"\]', r"[\1]", entries)
    (info / "entry_points.txt").write_text(groups.replace(chr(34), ""))
    return os.environ | {"PYTHONPATH": str(tmp_path)}


def fembench(*words, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "fembench", *words], capture_output=True, text=True, **kwargs
    )


@pytest.mark.slow
def test_a_verb_of_another_package_has_help_a_line_in_the_list_and_runs(installed):
    assert fembench("hello", "n1", env=installed).stdout == "hello n1\n"
    assert "Say hello to a host." in fembench("hello", "--help", env=installed).stdout
    assert re.search(r"^  hello +Say hello to a host$", fembench("--help", env=installed).stdout, re.M)
    assert fembench("hello", "n1").returncode == 2  # and not without it


@pytest.mark.slow
@pytest.mark.parametrize("words", RUNS)
def test_methods_and_policies_of_another_package_run_like_our_own(
    words, installed, tmp_path_factory, refusal
):
    here, words = tmp_path_factory.mktemp("work"), words.split()
    run = ["run", "m1", "--sets", "8", "--json", *words]  # long enough for the clock
    done = fembench(*run, env=installed, cwd=here)
    assert measured(done), done.stderr
    record = json.loads(done.stdout)
    used = {*record["case"]["method"].values(), record["case"]["balancing"]["balance"]}
    assert record["solve"]["converged"]
    theirs = {option: name for option, name in zip(words[::2], words[1::2]) if option != "--ranks"}
    assert used >= set(theirs.values())
    (here / "r.json").write_text(done.stdout)
    assert set(record["environment"]["brought"].values()) == {"fembench-hello 1.0"}
    assert refusal("check", str(here / "r.json")).endswith("not installed: pip install fembench-hello\n")
    for option, name in theirs.items():
        said = refusal("run", "m1", option, name)
        assert name in said
        assert "expected" in said or "choose" in said


@pytest.mark.parametrize(
    "words",
    [
        ["study"],
        ["study", "thesis-004"],
        ["trace", "--binary", "x"],
        ["characterize", "--operations", "-o", "x"],
    ],
)
def test_without_the_studies_what_needs_them_says_what_to_install(words, tmp_path):
    code = (
        "import sys; from fembench.base import plugins\n"
        "plugins.plugin = lambda kind, name: None\nplugins.names = lambda kind: ()\n"
        "from fembench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("needs fembench-studies: pip install PATH-OF-THE-CLONE/studies\n")
    assert len(done.stderr.splitlines()) == 1
