"""Progress: lines that stay; on a terminal also a line of what takes its time, gone afterwards."""

import io
import sys
import threading
import time

import pytest

from fembench.base import progress as module
from fembench.base.progress import progress, telling, working


class Terminal(io.StringIO):
    def isatty(self):
        return True


def until(condition):
    """Wait for it, two seconds at most."""
    end = time.monotonic() + 2
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)


def on_screen(written):
    """The lines that a terminal shows after this was written."""
    return [line.rpartition("\r")[2].replace("\x1b[K", "") for line in written.split("\n")]


def test_a_file_gets_the_lines_that_stay_and_no_other_if_work_is_short(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(module, "SILENCE", 60.0)
    with working("short work", patience=0, every=0.005):
        time.sleep(0.03)
        progress("[1/2] done")
    assert sys.stderr.getvalue() == "[1/2] done\n"


def test_a_file_gets_a_line_now_and_then_of_what_takes_long(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(module, "SILENCE", 0.02)
    with working("long work", patience=60, every=0.005) as now:
        until(lambda: sys.stderr.getvalue().count("\n") == 3)
        took = time.monotonic() - now.began
        now.text = "more work"
        until(lambda: "more" in sys.stderr.getvalue())
    lines = sys.stderr.getvalue().splitlines()
    assert lines[:3] == ["long work … 0:00"] * 3
    assert "more work … 0:00" in lines
    assert took >= 0.08  # after 0.02, 0.04 and 0.08 seconds


def test_a_terminal_shows_what_takes_its_time_with_the_time(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with working("equal shares", patience=0, every=0.005) as now:
        until(lambda: "equal shares … 0:00" in sys.stderr.getvalue())
        progress("[1/2] done")
        now.text = "weighted shares"
        until(lambda: "weighted shares" in sys.stderr.getvalue())
    written = sys.stderr.getvalue()
    assert "equal shares … 0:00" in written
    assert "weighted shares … 0:00" in written
    assert on_screen(written) == ["[1/2] done", ""]


def test_short_work_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with working("short", patience=60, every=0.005):
        time.sleep(0.03)
    assert sys.stderr.getvalue() == ""


def test_the_line_is_gone_when_the_work_fails(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())

    def fail():
        with working("bad luck", patience=0, every=0.005):
            until(lambda: "bad luck" in sys.stderr.getvalue())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert on_screen(sys.stderr.getvalue()) == [""]


def test_work_without_stderr_goes_on(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with working("nobody looks"):
        pass


def test_a_caller_in_python_is_told_instead_or_nobody(capsys):
    told = []
    with telling(told.append):
        progress("one")
        with working("work", patience=0, every=0.001) as now:
            now.text = "more"
            time.sleep(0.02)
        with telling(None):
            progress("two")
    assert told == ["one"]
    progress("three")
    assert capsys.readouterr() == ("", "three\n")


def test_a_caller_in_python_is_told_now_and_then_of_what_takes_long(monkeypatch):
    now, told = [0.0], []
    monkeypatch.setattr(module, "SILENCE", 5.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with telling(told.append), working("run: m") as work:
        for second in range(12):
            now[0] = second
            work.tell(f"set {second} of 12")
    assert told == ["run: m … 0:05, set 5 of 12", "run: m … 0:10, set 10 of 12"]
    with telling(None), working("run: m") as work:
        now[0] = 100.0
        work.tell("set 1 of 12")
    assert len(told) == 2


def test_each_thread_is_told_of_its_own_calls(capsys):
    ours, theirs, begun, ended = [], [], threading.Event(), threading.Event()

    def other():
        with telling(theirs.append):
            begun.set()
            ended.wait()
            progress("two")

    thread = threading.Thread(target=other)
    with telling(ours.append):
        thread.start()
        begun.wait()
        progress("one")
    ended.set()
    thread.join()
    progress("three")
    assert (ours, theirs) == (["one"], ["two"])
    assert capsys.readouterr() == ("", "three\n")


STAGE = "set 2 of 12, 0:21 left, iteration 9 of 70; residual 3.1e-04 (ends at 1.0e-06)"


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (104, f"run: m1 on 2 ranks … 0:00, {STAGE}"),
        (86, "run: m1 on 2 ranks … 0:00, set 2 of 12, 0:21 left, iteration 9 of 70; residual 3.1e-04"),
        (80, "run: m1 on 2 ranks … 0:00, set 2 of 12, 0:21 left, iteration 9 of 70"),
        (60, "run: m1 on 2 ranks … 0:00, set 2 of 12, 0:21 left"),
        (40, "run: m1 o … 0:00, set 2 of 12, 0:21 left"),
    ],
)
def test_the_target_of_the_residual_gives_way_first_then_the_residual_and_the_time_left_stays(width, shown):
    now = module.Doing("run: m1 on 2 ranks")
    now.tell(STAGE)
    assert now.line(width) == shown


def test_a_line_says_how_far_the_work_is_and_its_text_gives_way_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "41")
    with working("run: a mesh with a long name", patience=0, every=0.005) as now:
        now.tell("set 3 of about 12")
        until(lambda: "12" in sys.stderr.getvalue())
        assert now.line() == "run: a mesh with a long name … 0:00, set 3 of about 12"
        now.text = "more"
        assert now.line() == "more … 0:00"
    assert "\rrun: a mesh wi … 0:00, set 3 of about 12\x1b[K" in sys.stderr.getvalue()
