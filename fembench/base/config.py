"""TOML and JSON to frozen structs; an unknown key is an error that names the nearest known one."""

import difflib
import re
import sys
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fembench.base.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")


def read_text(path: Path | str) -> str:
    """The text of a file. Raises InputError naming it where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"cannot read {path}: {reason}") from error


def read_toml(path: Path | str, kind: type[T]) -> T:
    """The struct of type `kind` that a TOML file describes. Raises InputError."""
    try:
        tree = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    return convert(tree, kind, where=str(path))


def read_json(path: Path | str, kind: type[T]) -> T:
    """The struct of type `kind` that a JSON file holds. Raises InputError."""
    try:
        tree = msgspec.json.decode(read_text(path).encode())
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not valid JSON: {error}") from error
    return convert(tree, kind, where=str(path))


def convert(tree: Any, kind: type[T], *, where: str) -> T:
    """`tree` (dicts, lists, scalars) as a `kind`. Raises InputError naming key and place."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_explain(str(error), kind)}") from error


def _explain(message: str, kind: type) -> str:
    """msgspec's message; where it is about an unknown key, with the nearest known key."""
    unknown = re.search(r"unknown field `(.+?)`", message)
    if not unknown:
        return message.replace("`", "'")
    key = unknown.group(1)
    place = re.search(r" - at `\$?\.?(.*?)`$", message)
    inside = f" in [{place.group(1)}]" if place and place.group(1) else ""
    near = difflib.get_close_matches(key, sorted(_known_keys(kind)), n=1, cutoff=0.0)
    return f"unknown key '{key}'{inside}; the nearest known key is '{near[0]}'"


def _known_keys(kind: Any, seen: set[Any] | None = None) -> set[str]:
    """Every field name of a struct type and of the structs inside it."""
    seen = set() if seen is None else seen
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind in seen:
            return set()
        seen.add(kind)
        keys = set()
        for field in msgspec.structs.fields(kind):
            keys |= {field.encode_name} | _known_keys(field.type, seen)
        return keys
    keys = set()
    for argument in getattr(kind, "__args__", ()):
        keys |= _known_keys(argument, seen)
    return keys
