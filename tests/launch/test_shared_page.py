"""The page of memory on which rank 0 shows how far a set is, and its starter looks."""

import subprocess
import sys
import time
from array import array

import msgspec
import pytest

from fembench.launch.job import PAGE
from fembench.launch.shared_page import Page, PageAddress, Teller, page_in, page_of, shared_page

RANK = """
import sys, pathlib
from fembench.launch.shared_page import page_in

page = page_in(pathlib.Path(sys.argv[1]))
page.expect(12, True, 0.0)
page.turn_to(1, 0)
page.show(340, 3.21e-3, 1e-6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a file in memory is of Linux")
def test_what_a_solver_in_another_process_reaches_is_seen_while_its_loop_runs(tmp_path):
    with shared_page(tmp_path) as page:
        assert page.shared
        assert page.line() == ""
        subprocess.run([sys.executable, "-c", RANK, str(tmp_path)], check=True)
        assert page.line() == "set 1 of about 12, iteration 340; residual 3.2e-03 (ends at 1.0e-06)"
    assert not page_in(tmp_path).shared  # nothing of it stays


@pytest.mark.parametrize("change", [{"name": "fembench-other"}, {"file": 0}, {"process": 2**22 + 1}])
def test_a_file_that_is_not_the_page_of_the_job_is_left_alone(tmp_path, change):
    with shared_page(tmp_path):
        at = msgspec.json.decode((tmp_path / PAGE).read_bytes(), type=PageAddress)
        other = msgspec.structs.replace(at, **change)
        (tmp_path / PAGE).write_bytes(msgspec.json.encode(other))
        assert not page_in(tmp_path).shared
    for text in (b"", b"{}", b"\xff"):
        (tmp_path / PAGE).write_bytes(text)
        assert not page_in(tmp_path).shared


@pytest.mark.parametrize(
    ("number", "iterations", "shown", "line"),
    [
        (0, 0, (5, 1.0, 0.0), ""),
        (1, 0, (-1, 0.0, 0.0), "set 1 of 4"),
        (1, 0, (7, 1e-3, 1e-9), "set 1 of 4, iteration 7; residual 1.0e-03 (ends at 1.0e-09)"),
        (1, 200, (50, 1e-3, 0.0), "set 1 of 4, 2:30 left, iteration 50 of 200; residual 1.0e-03"),
        (3, 200, (-1, 1e-3, 0.0), "set 3 of 4, 0:10 left"),
        (3, 200, (900, 1e-3, 0.0), "set 3 of 4, 0:03 left, iteration 900 of 200; residual 1.0e-03"),
        (6, 200, (100, 1e-3, 0.0), "set 6 of 6, 0:01 left, iteration 100 of 200; residual 1.0e-03"),
    ],
)
def test_a_line_says_set_time_left_iteration_and_residual(monkeypatch, number, iterations, shown, line):
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    page = Page()
    page.expect(4, False, 100.0)
    page.turn_to(number, iterations)
    page.words[:3] = array("d", shown)
    assert page.line() == line


def test_the_page_comes_with_the_function_that_tells(tmp_path):
    page = Page()
    teller = Teller(tmp_path / "progress.txt", page)
    teller("one")
    teller("two")
    assert (tmp_path / "progress.txt").read_text() == "one\ntwo\n"
    assert page_of(teller) is page
    assert not page_of(print).shared
