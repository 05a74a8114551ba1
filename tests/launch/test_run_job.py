"""A job of ranks from the side that starts it; here its launcher is nothing, and one Python is its rank."""

import os

import msgspec
import pytest

from fembench.base.errors import InputError, RunFailedError
from fembench.launch.run_job import run_job

WELL = """
(folder / "progress.txt").write_text("one\\ntwo\\n")
(folder / "result.json").write_bytes((folder / "job.json").read_bytes())
"""


class Sum(msgspec.Struct):
    """A job."""

    numbers: list[int]


def ended(folder, code, tell=None):
    """The end of a job whose rank runs this."""
    program = folder / "rank.py"
    program.write_text(f"import sys, pathlib\nfolder = pathlib.Path(sys.argv[1])\n{code}")
    variables = dict(os.environ)
    end = run_job((str(program),), Sum([1, 2]), "result.json", [], variables, scratch=folder, tell=tell)
    assert list(folder.iterdir()) == [program]  # its folder is gone
    return end


def test_a_job_is_handed_over_and_its_result_and_progress_come_back(tmp_path):
    lines = []
    end = ended(tmp_path, WELL, lines.append)
    assert (end.kind, end.exit_status, end.content()) == ("ok", 0, b'{"numbers":[1,2]}')
    assert lines == ["one", "two"]


@pytest.mark.parametrize(
    ("code", "error", "status", "message"),
    [
        ('(folder / "error.txt").write_text("input\\nno such mesh")', InputError, 2, "no such mesh"),
        ('(folder / "error.txt").write_text("failed\\nno memory")', RunFailedError, 2, "no memory"),
        ('sys.exit("the end")', RunFailedError, 1, "exit status 1: the end"),
    ],
)
def test_a_job_without_a_result_says_why(tmp_path, code, error, status, message):
    end = ended(tmp_path, code)
    assert (end.result, end.exit_status) == (None, status)
    with pytest.raises(error, match=f"{message}$"):
        end.content()
