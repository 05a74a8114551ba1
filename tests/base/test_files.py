"""Files that are whole or absent, and new ones that replace nothing."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fembench.base.errors import InputError
from fembench.base.files import write_atomic


def test_of_several_that_write_a_new_file_at_once_one_does(tmp_path):
    path, meeting = tmp_path / "p.json", Barrier(8)

    def write(k):
        meeting.wait(10)
        with contextlib.suppress(InputError):
            write_atomic(path, f"{k}", new=True)
            return f"{k}"
        return ""

    with ThreadPoolExecutor(8) as pool:
        (wrote,) = [text for text in pool.map(write, range(8)) if text]
    assert path.read_text() == wrote
    assert list(tmp_path.iterdir()) == [path]


def test_without_that_the_last_one_stays(tmp_path):
    for text in ("first", "second"):
        write_atomic(tmp_path / "p.json", text)
    assert (tmp_path / "p.json").read_text() == "second"
    with pytest.raises(InputError, match="File exists"):
        write_atomic(tmp_path / "p.json", "third", new=True)


def test_what_is_not_a_file_is_not_replaced_by_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target, reason in ((pipe, "not a regular file"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=f"^cannot write {target}: {reason}$"):
            write_atomic(target, "text")
    assert pipe.is_fifo()
