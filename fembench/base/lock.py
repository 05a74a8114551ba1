"""Locks on folders: held by one process alone, or by several that share the folder.

The lock is flock's, which the system releases when its process ends, however that
happens. The text of the file, a line per process, only names the holders; a leftover
file locks nothing. On a file system without flock, a file that names a live process
locks the folder for that process alone.
"""

import contextlib
import datetime
import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from fembench.base.errors import InputError

NAME = ".fembench-lock"
BY_NAME = f"{NAME}-alone"  # on file systems without flock
PATIENCE = 5.0  # seconds to wait for an owner that has not written its name yet


class Owner(msgspec.Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    host: str
    since: str  # ISO 8601, UTC

    def __str__(self) -> str:
        return f"pid {self.pid} on host {self.host} since {self.since}"

    @property
    def alive(self) -> bool:
        """Whether the process exists; assumed of those on other hosts."""
        if self.host != platform.node():
            return True
        try:
            os.kill(self.pid, 0)
        except OSError as error:
            return isinstance(error, PermissionError)
        return True


class _NoFlockError(Exception):
    """The file system has no flock."""


@contextlib.contextmanager
def locked(folder: Path, *, shared: bool = False, tidy: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a folder alone, or share it. `tidy` runs first if nobody uses it.

    Raises InputError, naming the owner, if others hold the folder.
    """
    path = Path(folder) / NAME
    try:
        release = _acquire(path, shared, tidy)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield
    finally:
        release()


def _acquire(path: Path, shared: bool, tidy: Callable[[], None]) -> Callable[[], None]:
    """Take the lock; a call that releases it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            if _take(handle, path, shared, tidy):
                os.write(handle, _me())
                return partial(_release, handle, path)
        except _NoFlockError:
            os.close(handle)
            path.unlink(missing_ok=True)
            return _by_name(path.with_name(BY_NAME), shared)
        except BaseException:
            _release(handle, path)
            raise
        named = _owners(os.pread(handle, 1 << 16, 0))
        os.close(handle)
        live = [owner for owner in named if owner.alive]
        if live or time.monotonic() > deadline:
            raise _busy(path, live or named)
        time.sleep(0.01)


def _take(handle: int, path: Path, shared: bool, tidy: Callable[[], None]) -> bool:
    """Whether the lock was free. A process alone clears the text and tidies, then shares."""
    if _flock(handle, fcntl.LOCK_EX):
        if not _still_there(handle, path):
            return False
        os.ftruncate(handle, 0)
        tidy()
        if not shared:
            return True
    return shared and _flock(handle, fcntl.LOCK_SH) and _still_there(handle, path)


def _flock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _NoFlockError from error
    return True


def _still_there(handle: int, path: Path) -> bool:
    """Whether the path still names the open file: the last owner removes it."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _release(handle: int, path: Path) -> None:
    """Let go; the last owner removes the file."""
    with contextlib.suppress(OSError):
        if _flock(handle, fcntl.LOCK_EX) and _still_there(handle, path):
            path.unlink()
    os.close(handle)


def _by_name(mark: Path, shared: bool) -> Callable[[], None]:
    """The lock without flock; who shares checks only that nobody holds the folder alone."""
    for owner in _owners(mark.read_bytes() if mark.exists() else b""):
        if owner.alive:
            raise _busy(mark, [owner])
        mark.unlink(missing_ok=True)
    if shared:
        return lambda: None
    draft = mark.with_name(f"{BY_NAME}-{platform.node()}-{os.getpid()}")
    draft.write_bytes(_me())
    try:
        os.link(draft, mark)  # with its text, or not at all
    except FileExistsError as error:
        raise _busy(mark, _owners(mark.read_bytes())) from error
    finally:
        draft.unlink()
    return partial(mark.unlink, missing_ok=True)


def _me() -> bytes:
    since = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return msgspec.json.encode(Owner(os.getpid(), platform.node(), since)) + b"\n"


def _owners(text: bytes) -> list[Owner]:
    found = []
    for line in text.splitlines():
        with contextlib.suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(line, type=Owner))
    return found


def _busy(path: Path, owners: list[Owner]) -> InputError:
    who = str(owners[-1]) if owners else "another process"
    hint = f", or delete {path} if that process has ended" if path.name == BY_NAME else ""
    return InputError(f"{path.parent} is in use by {who}; wait until it ends or use another folder{hint}")
