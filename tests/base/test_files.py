"""Files that are whole or absent, and new ones that replace nothing."""

import contextlib
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fembench.base.errors import InputError
from fembench.base.files import atomic_folder, write_atomic


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


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "parts").touch()
    with pytest.raises(InputError, match=f"^cannot write .*/map: {tmp_path / 'parts'} is not a folder$"):
        write_atomic(tmp_path / "parts" / "deep" / "map", "text")


def test_of_what_does_not_fit_on_the_disk_nothing_stays(tmp_path, full_disk):
    with full_disk(10), pytest.raises(InputError, match=f"^cannot write {tmp_path / 'a'}: File too large$"):
        write_atomic(tmp_path / "a", "longer than that")
    assert not list(tmp_path.iterdir())


def test_a_folder_takes_the_place_of_the_older_one_alone_and_only_when_it_is_whole(tmp_path, full_disk):
    target, file = tmp_path / "report", tmp_path / "file"
    file.write_text("of mine")
    for text in ("first", "second"):
        with atomic_folder(target) as place:
            (place / text).write_text(text)
    said = f"^cannot write {target}: File too large$"
    with full_disk(10), pytest.raises(InputError, match=said), atomic_folder(target) as place:
        (place / "third").write_text("longer than that")
    with pytest.raises(InputError, match=f"^cannot write {file}: Not a directory$"), atomic_folder(file):
        pass
    assert sorted(tmp_path.rglob("*")) == [file, target, target / "second"]
    assert file.read_text() == "of mine"


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    rename, target = os.rename, tmp_path / "report"
    target.mkdir()

    def refused(source, place):
        if source.name == "new":
            raise OSError(errno.EIO, "Input/output error")
        rename(source, place)

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(InputError, match="Input/output error"), atomic_folder(target):
        pass
    assert list(tmp_path.iterdir()) == [target]


def test_the_folder_of_now_is_no_place_for_a_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^cannot write \.: "), atomic_folder("."):
        pass
    assert list(tmp_path.parent.glob(f".{tmp_path.name}.*")) == []
