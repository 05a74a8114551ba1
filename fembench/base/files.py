"""Files that are whole or absent: write to a temporary name, then rename. Locks on folders.

A folder is held by one process alone, or by several that share it.
The lock is flock's, which the system releases when its process ends, however that
happens. The text of the file, a line per process, only names the holders; a leftover
file locks nothing. On a file system without flock, a file that names a live process
locks the folder for that process alone.
"""

import contextlib
import datetime
import errno
import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from fembench.base.errors import InputError, shown


@contextlib.contextmanager
def atomic_path(path: Path | str, *, new: bool = False) -> Iterator[Path]:
    """A temporary name in the folder of `path`; renamed to it on success, removed on failure.

    `new`: only if there is no such file, also if several processes write it at once.
    Raises InputError naming the path and the system's reason
    (not writable, disk full, …).
    """
    target = Path(path)
    check_regular(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        # the suffix stays last: libraries choose a format by it
        temporary = _beside(target, target.suffix or ".part")
        temporary.touch(0o600, exist_ok=False)
    try:
        with writing(target):
            yield temporary
            os.chmod(temporary, 0o644)
            if new:
                os.close(os.open(target, os.O_CREAT | os.O_EXCL))
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Errors of the system become an InputError that names what cannot be written, and why."""
    try:
        yield
    except OSError as error:
        file = next((str(p) for p in target.parents if os.path.exists(p) and not os.path.isdir(p)), "")
        reason = f"{file} is not a folder" if file else error.strerror or error
        raise InputError(f"cannot write {shown(target, 200)}: {reason}") from error


def _beside(target: Path, suffix: str = "") -> Path:
    """A name in the same folder that no other process chooses, on whichever host."""
    return target.with_name(f".{target.name}.{os.urandom(4).hex()}{suffix}")


def check_regular(target: Path) -> None:
    """Raises InputError if this is no file: renaming would replace a device."""
    if os.path.exists(target) and not os.path.isfile(target):
        reason = os.strerror(errno.EISDIR) if os.path.isdir(target) else "not a regular file"
        raise InputError(f"cannot write {shown(target, 200)}: {reason}")


@contextlib.contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """A new folder beside `path` to fill: in place of `path` on success, else removed.

    Raises InputError naming the path and the system's reason.
    """
    import shutil  # slow to import, and ranks fill no folders

    target = Path(path)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        place = _beside(Path(os.path.abspath(target)))  # also of "."
        place.mkdir(0o700)
    new, old = place / "new", place / "old"
    try:
        with writing(target):
            new.mkdir(mode=0o755)
            yield new
            if target.is_dir():  # a file is refused by the next line
                os.rename(target, old)
            os.rename(new, target)
    except InputError as error:  # of a file in it, by the name that the user knows
        raise InputError(str(error).replace(str(new), str(target))) from error
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(place, ignore_errors=True)


def write_atomic(path: Path | str, data: str | bytes, *, new: bool = False) -> None:
    """Write all of `data` to `path`, or nothing. With `new`, an existing file is an error."""
    content = data.encode() if isinstance(data, str) else data
    with atomic_path(path, new=new) as temporary, open(temporary, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


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
    with writing(path):
        release = _acquire(path, shared, tidy)
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
