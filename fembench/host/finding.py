"""A line of the check-up of `fembench doctor`. Imports no library, so it can tell of any that is missing."""

from typing import Literal, NamedTuple

Status = Literal["ok", "missing (optional)", "problem"]


class Finding(NamedTuple):
    """What was found of one item."""

    item: str
    status: Status
    found: str
    advice: str = ""  # what to type, where the status is not ok
    required: bool = False  # nothing runs without it


def ok(item: str, found: str) -> Finding:
    return Finding(item, "ok", found)
