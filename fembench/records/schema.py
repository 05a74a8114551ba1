"""The schema number of a file: only files of today's schema are read."""

from typing import Any

from fembench.base.errors import InputError


def of_schema(tree: Any, what: str, newest: int, where: str) -> dict[str, Any]:
    """The tree of a file. Raises InputError for another schema, or none."""
    version = tree.get("schema") if isinstance(tree, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError(f"{where}: not a fembench {what}: no schema number")
    if version != newest:
        how = "it is newer: update fembench" if version > newest else "measure again"
        raise InputError(f"{where}: schema {version} of a {what}; expected {newest}: {how}")
    return dict(tree)
