"""The hooks of the suite itself, in a session of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import hooks
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


def test_a_session_of_one_mark_imports_none_of_the_named_files_that_do_not_mention_it(tmp_path):
    (tmp_path / "test_a.py").write_text("@pytest.mark.mpi\ndef test_a(comm): pass\n")
    (tmp_path / "test_b.py").write_text("def test_b(): pass\n")
    where, wanted = SimpleNamespace(dir=tmp_path), SimpleNamespace(markexpr="mpi")
    for args, kept in (
        (["test_b.py::test_b", "test_a.py", "."], ["test_a.py", "."]),
        (["test_b.py", "test_b.py::test_b"], ["test_b.py"]),  # without any, pytest would collect all
    ):
        config = SimpleNamespace(args=args, option=wanted, invocation_params=where)
        assert hooks.marked(config) == kept
        serial = SimpleNamespace(args=args, option=SimpleNamespace(markexpr=""), invocation_params=where)
        assert hooks.marked(serial) == args


@pytest.mark.parametrize("worker", [True, False])
def test_workers_begin_with_the_files_that_have_slow_tests_and_keep_the_order_within_a_file(worker):
    def item(name):
        marks = {"slow": True} if name[2:] == "slow" else {}
        return SimpleNamespace(name=name, path=name[0], get_closest_marker=marks.get)

    names = ["a1", "b1", "b2slow", "b3", "c1slow", "c2slow"]
    items, hook = [item(name) for name in names], SimpleNamespace(pytest_deselected=lambda items: None)
    config = SimpleNamespace(hook=hook, **{"workerinput": {}} if worker else {})
    hooks.pytest_collection_modifyitems(config, items)
    ordered = ["c1slow", "c2slow", "b1", "b2slow", "b3", "a1"]
    assert [one.name for one in items] == (ordered if worker else names)
