"""Folders that jobs write into: locks, record names, what killed processes left."""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.base.files import check_regular, locked, writing
from fembench.launch.line import check_start

OWN = ("/tmp", "/var/tmp", "/dev/shm")  # folders that each host of a cluster has for itself
# folders of jobs, ids in use, files half written: all of processes that were killed
_LEFT = re.compile(r"\.(job|hosts)-\w+|\..+(-r\d+\.reserved|\.json\.\w+\.json|\.npz\.\w+\.npz)")


def writable(folder: Path) -> None:
    """Make the folder. Raises InputError if it cannot be made or written."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        reason = os.strerror(errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES)
        raise InputError(f"cannot write {folder}: {reason}")


@contextlib.contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make the folder; what was made of it and its parents is removed if it is empty in the end.

    Raises InputError if it cannot be made or written.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        writable(folder)
        yield
    finally:
        for path in missing:
            with contextlib.suppress(OSError):
                path.rmdir()


def writable_file(output: Path) -> None:
    """Make the folder of a file to write later. Raises InputError if it cannot be."""
    writable(output.parent)
    check_regular(output)


def shared_folder(output: Path, own: Sequence[str] = OWN) -> Path:
    """The folder for a job that writes this file: its own, or this one if that is not shared.

    Raises InputError if the file cannot be written.
    """
    writable(output.parent)
    private = any(output.resolve().is_relative_to(folder) for folder in own)
    here = Path.cwd()
    if private and os.access(here, os.W_OK) and not any(here.is_relative_to(folder) for folder in own):
        return Path(".")
    return output.parent


@contextlib.contextmanager
def occupied(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a folder for jobs, made if missing: alone for a campaign, or shared by single runs.

    Removes leftovers of killed processes. Raises InputError if the folder is in use, or if
    no job can be started.
    """
    check_start()
    with made(folder), locked(folder, shared=shared, tidy=lambda: _sweep_away(folder)):
        yield


def _sweep_away(folder: Path) -> None:
    for left in folder.iterdir():
        if not _LEFT.fullmatch(left.name):
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def reserved(folder: Path, stem: str) -> Iterator[str]:
    """`stem`-rN with the lowest N that no record uses and no other process has reserved."""
    number = 1
    while not _reserve(folder, f"{stem}-r{number}"):
        number += 1
    id = f"{stem}-r{number}"
    try:
        yield id
    finally:
        _mark(folder, id).unlink(missing_ok=True)


def _reserve(folder: Path, id: str) -> bool:
    """Reserve the id; False if it is taken."""
    if _used(folder, id):
        return False
    try:
        os.close(os.open(_mark(folder, id), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    if not _used(folder, id):  # a process saves its record before it frees the id
        return True
    _mark(folder, id).unlink()
    return False


def _used(folder: Path, id: str) -> bool:
    return any((folder / f"{id}{suffix}").exists() for suffix in (".json", ".failed.json"))


def _mark(folder: Path, id: str) -> Path:
    return folder / f".{id}.reserved"
