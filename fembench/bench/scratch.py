"""Where a single run's record goes: a fresh name in a folder that can be written."""

import os
from pathlib import Path

from fembench.base.errors import InputError


def writable(folder: Path) -> None:
    """Make the folder. Raises InputError where it cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {folder}: permission denied")


def next_id(folder: Path, stem: str) -> str:
    """`stem`-rN with the lowest N that is free."""
    number = 1
    while any((folder / f"{stem}-r{number}{suffix}").exists() for suffix in (".json", ".failed.json")):
        number += 1
    return f"{stem}-r{number}"
