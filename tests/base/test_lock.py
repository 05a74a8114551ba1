"""Locks on folders: who may enter, who is told what, and what a dead process leaves."""

import contextlib
import errno
import os
import platform
import signal
import subprocess
import sys

import pytest

from fembench.base import files
from fembench.base.errors import InputError
from fembench.base.files import BY_NAME, NAME, locked

ENTER = """
import sys, time
from pathlib import Path
from fembench.base.files import locked
with locked(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("in", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def another(folder, how):
    """Another process in the folder."""
    line = [sys.executable, "-c", ENTER, str(folder), how]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "in\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("there", "here"), [("alone", "alone"), ("alone", "shared"), ("shared", "alone")])
def test_who_wants_to_be_alone_shares_with_nobody(tmp_path, there, here):
    tidied = []
    with another(tmp_path, there) as other:
        owner = f"pid {other.pid} on host {platform.node()} since 20"
        enter = locked(tmp_path, shared=here == "shared", tidy=lambda: tidied.append(1))
        with pytest.raises(InputError, match=f"^.*{owner}.*$"), enter:
            pass
    assert not tidied


def test_those_who_share_enter_together_and_nothing_is_tidied_away_from_the_first(tmp_path):
    tidied = []
    with another(tmp_path, "shared"), locked(tmp_path, shared=True, tidy=lambda: tidied.append(1)):
        assert not tidied


def test_a_killed_owner_holds_nobody_up(tmp_path):
    with another(tmp_path, "alone") as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (tmp_path / NAME).exists()
    tidied = []
    with locked(tmp_path, tidy=lambda: tidied.append(1)):
        assert tidied == [1]
    assert not list(tmp_path.iterdir())


def test_a_file_that_names_a_live_process_locks_nothing(tmp_path):
    (tmp_path / NAME).write_bytes(files._me())
    with locked(tmp_path):
        pass


def test_the_last_of_several_removes_the_file(tmp_path):
    with locked(tmp_path, shared=True):
        with locked(tmp_path, shared=True):
            pass
        assert (tmp_path / NAME).exists()
    assert not list(tmp_path.iterdir())


def test_on_a_full_disk_no_file_is_left(tmp_path, monkeypatch):
    def full(handle, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.write", full)
    for shared in (False, True):
        with pytest.raises(InputError, match="No space left"), locked(tmp_path, shared=shared):
            pass
    assert not list(tmp_path.iterdir())


@pytest.fixture
def no_flock(monkeypatch):
    def refuse(handle, kind):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)


@pytest.mark.usefixtures("no_flock")
def test_without_flock_the_file_is_the_lock(tmp_path):
    with locked(tmp_path):
        for shared in (False, True):
            words = f"pid {os.getpid()} on host .* since .* or delete"
            with pytest.raises(InputError, match=words), locked(tmp_path, shared=shared):
                pass
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("no_flock")
def test_without_flock_the_file_of_a_dead_process_is_passed_over(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mark = f'{{"pid": {dead.pid}, "host": "{platform.node()}", "since": "2026-01-01T00:00:00+00:00"}}\n'
    (tmp_path / BY_NAME).write_text(mark)
    with locked(tmp_path):
        assert str(os.getpid()) in (tmp_path / BY_NAME).read_text()
    (tmp_path / BY_NAME).write_text(mark.replace(platform.node(), "elsewhere"))
    with pytest.raises(InputError, match="on host elsewhere"), locked(tmp_path):
        pass
