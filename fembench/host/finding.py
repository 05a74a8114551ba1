"""A line of the check-up of `fembench doctor`. Imports none of the libraries it reports."""

from typing import Literal, NamedTuple

Status = Literal["ok", "missing (optional)", "problem"]


class Finding(NamedTuple):
    """What was found about one item."""

    item: str
    status: Status
    found: str
    advice: str = ""  # what to do, if the status is not ok
    required: bool = False  # nothing runs without it


def ok(item: str, found: str) -> Finding:
    return Finding(item, "ok", found)
