"""The hooks of the suite itself, in a session of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FAILS_ONCE = """
import pytest

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("folder")

def test_that_fails_once(folder, seen=[]):
    (folder / "made").mkdir()
    seen.append(folder)
    assert len(seen) == 2
"""


@pytest.mark.slow
def test_a_test_that_is_run_again_gets_the_fixtures_of_its_module_anew(tmp_path):
    pytest.importorskip("pytest_rerunfailures")
    for name in ("conftest.py", "hooks.py", "ranks.py"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "test_it.py").write_text(FAILS_ONCE)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("FEMBENCH_")}
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", "--reruns", "1", str(tmp_path)]
    done = subprocess.run(line, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert "1 passed, 1 rerun" in done.stdout, done.stdout
