"""The schema number of a file: only files of today's schema are read. The time in it."""

import datetime
from pathlib import Path
from typing import Any, TypeVar

from fembench.base.config import convert, read_json
from fembench.base.errors import InputError, shown

T = TypeVar("T")


def read(
    path: Path | str,
    kind: type[T],
    newest: int,
    what: str,
    *,
    has: str,
    verb: str,
    tree: dict[str, Any] | None = None,
) -> T:
    """The `kind` in a JSON file, `what` of schema `newest`, which has the key `has`.

    verb: of fembench, that writes such files; tree: the content, if it has been read

    Raises InputError for anything else.
    """
    tree = read_json(path, dict) if tree is None else tree
    version = tree.get("schema")
    if type(version) is not int or has not in tree:
        raise InputError(f"{path}: not {what}; expected a file of fembench {verb}")
    if version != newest:
        how = "it is newer: update fembench" if version > newest else "measure again"
        raise InputError(f"{path}: schema {version} of {what}; expected {newest}: {how}")
    return convert(tree, kind, where=str(path))


def check_time(text: str, where: str) -> None:
    """Raises InputError unless the text is a time in ISO 8601, with its zone."""
    try:
        known = datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{where} = '{shown(text)}': expected a time such as 2026-01-02T03:04:05+00:00")
