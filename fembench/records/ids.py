"""Timestamps and ids of records."""

import datetime
import re


def now_utc() -> str:
    """ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def check_id(id: str) -> None:
    """Raises ValueError unless the id of a record is a plain file name, as paths are made of it."""
    if not re.fullmatch(r"[^/\\\0.][^/\\\0]*", id):
        raise ValueError(f"id '{id}': expected a file name without folders and without a leading dot")
