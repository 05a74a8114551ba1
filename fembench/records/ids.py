"""Timestamps and ids of records."""

import datetime
import re


def now_utc() -> str:
    """The current time in UTC, in ISO 8601, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def check_id(id: str) -> None:
    """Raises ValueError unless the id of a record is a plain file name, because paths contain it."""
    if not re.fullmatch(r"[^/\\\0.][^/\\\0]*", id):
        raise ValueError(f"id '{id}': expected a file name without folders and without a leading dot")
