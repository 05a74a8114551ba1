"""Files that are whole or absent: write to a temporary name, then rename."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

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
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # the suffix stays last: libraries choose a format by it
        temporary = _beside(target, target.suffix or ".part")
        temporary.touch(0o600, exist_ok=False)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    try:
        yield temporary
        os.chmod(temporary, 0o644)
        if new:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL))
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


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
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        place = _beside(target)
        place.mkdir(0o700)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    new, old = place / "new", place / "old"
    try:
        new.mkdir(mode=0o755)
        yield new
        if target.exists():
            os.rename(target, old)
        os.rename(new, target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def write_atomic(path: Path | str, data: str | bytes, *, new: bool = False) -> None:
    """Write all of `data` to `path`, or nothing. With `new`, an existing file is an error."""
    content = data.encode() if isinstance(data, str) else data
    with atomic_path(path, new=new) as temporary, open(temporary, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
