"""The test suite's own behaviour under MPI: tests of two ranks that fail, hang or die, each in a session."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow


@pytest.fixture
def session(tmp_path):
    """Run the text of a test module on two ranks; give its exit status and what it printed."""
    for path in (HERE / "conftest.py", HERE / "hooks.py", HERE / "ranks.py", HERE.parent / "pyproject.toml"):
        shutil.copy(path, tmp_path)

    def run(text):
        (tmp_path / "test_it.py").write_text(
            f"import os\nimport pytest\npytestmark = pytest.mark.mpi\n{text}"
        )
        variables = os.environ | {"FEMBENCH_TEST_LIMIT": "4", "FEMBENCH_TEST_TALLY": str(tmp_path / "tally")}
        options = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--color=no", str(tmp_path)]
        done = subprocess.run(
            ["mpiexec", "-n", "2", sys.executable, "-m", "pytest", *options],
            cwd=tmp_path,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        tally = tmp_path / "tally"
        return done.returncode, done.stdout, tally.read_text().split() if tally.exists() else []

    return run


def test_rank_0_alone_prints_and_counts(session):
    status, output, tally = session("def test_a(comm): assert comm.allreduce(1) == 2\n")
    assert (status, tally) == (0, ["passed", "1", "failed", "0"])
    assert output.count("test session starts") == 1


def test_a_failure_on_another_rank_fails_the_session_and_is_shown(session):
    status, output, tally = session(
        "def test_a(comm): assert comm.rank != 1\ndef test_b(comm): assert comm.allreduce(1) == 2\n"
    )
    assert status != 0
    assert "rank 1, call: assert 1 != 1" in output
    assert tally[:4] == ["passed", "2", "failed", "1"]  # on rank 0 the test itself passed
    assert "test_a: rank 1, call: assert 1 != 1" in " ".join(tally[4:])


OURS = "int(os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK', '0')))"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "def test_a(comm):\n    assert comm.rank != 1, 'the reason'\n    comm.allreduce(1)\n",
            ["AssertionError: the reason", "rank 1 waited"],
        ),
        ("def test_a(comm):\n    comm.recv(source=1 - comm.rank)\n", ["Timeout", "line 5 in test_a"]),
        ("def test_a(comm):\n    comm.rank == 1 and os._exit(7)\n    comm.Barrier()\n", []),
        (
            f"if {OURS} == 1:\n    raise ValueError('not here')\ndef test_a(comm): pass\n",
            ["ValueError: not here", "has other tests than another rank"],
        ),
    ],
    ids=["fails while the other waits", "hangs", "dies", "collects other tests"],
)
def test_a_rank_that_cannot_go_on_ends_the_job_with_the_reason_and_the_place(session, text, words):
    status, output, _ = session(text)
    assert status != 0
    assert [word for word in words if word not in output] == []
