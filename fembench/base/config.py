"""TOML, JSON to frozen structs and back; the error of an unknown key names the nearest."""

import re
import sys
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fembench.base.errors import InputError, closest, shown
from fembench.base.files import write_atomic

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")
_KINDS = {  # types as msgspec names them
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text in quotes",
    "array": "a list",
    "object": "a table",
    "null": "null",
}
_AT = r"(?: - at `\$\.?(.*)`)?"  # where a message says that a value is


def read_text(path: Path | str) -> str:
    """The text of a file. Raises InputError, naming it, if it cannot be read.

    A device is refused: some, as /dev/zero, have no end.
    """
    try:
        if Path(path).is_char_device():
            raise InputError(f"cannot read {path}: a device; expected a file")
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"cannot read {path}: {reason}") from error


def read_toml(path: Path | str, kind: type[T]) -> T:
    """The struct of type `kind` that a TOML file describes. Raises InputError."""
    return from_toml(read_text(path), kind, where=str(path))


def from_toml(text: str, kind: type[T], *, where: str) -> T:
    """The struct of type `kind` that a text describes. Raises InputError naming its place."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # or integers too long for Python
        raise InputError(f"{where}: not valid TOML: {error}") from error
    return convert(tree, kind, where=where)


def read_json(path: Path | str, kind: type[T], what: str = "") -> T:
    """The struct of type `kind` in a JSON file. Raises InputError, which says `what` was expected."""
    try:
        tree = msgspec.json.decode(read_text(path).encode())
    except (msgspec.DecodeError, RecursionError) as error:
        why = str(error).removeprefix("JSON is malformed: ")
        expected = f"; expected {what}" if what else ""
        raise InputError(f"{path}: not valid JSON: {why}{expected}") from error
    return convert(tree, kind, where=str(path))


def encode(item: object) -> bytes:
    """JSON of structs and plain values, in one line; numpy scalars become plain numbers."""
    return msgspec.json.encode(item, enc_hook=_plain)


def _plain(value: object) -> object:
    if getattr(value, "shape", None) == ():
        return value.item()  # type: ignore[attr-defined]
    raise TypeError(f"cannot be written as JSON: {type(value).__name__}")


def json_text(item: object) -> str:
    """The same, indented."""
    return msgspec.json.format(encode(item), indent=1).decode()


def write_json(path: Path | str, item: object, *, new: bool = False) -> None:
    """Write indented JSON, whole or not at all. With `new`, an existing file is an error."""
    write_atomic(path, json_text(item), new=new)


def convert(tree: Any, kind: type[T], *, where: str) -> T:
    """`tree` (dicts, lists, scalars) as a `kind`. Raises InputError naming key and place."""
    try:
        return msgspec.convert(tree, kind, str_keys=True)  # of TOML and JSON all keys are text
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_explain(str(error), kind, tree)}") from None


def as_typed(value: object) -> str:
    """A value as a file has it, for a message: 'x', 1.5, true, ['a', 2]."""
    if isinstance(value, str):
        return f"'{shown(value)}'"
    if isinstance(value, list | tuple):
        return shown(f"[{', '.join(map(as_typed, value))}]")
    if isinstance(value, bool):
        return str(value).lower()
    return shown("null" if value is None else value)


def _explain(message: str, kind: type, tree: Any) -> str:
    """msgspec's message in words; for an unknown key, with the nearest known key."""
    unknown = re.search(r"unknown field `(.+?)`", message)
    if not unknown:
        return _wrong_type(message, tree) or message.replace("`", "'")
    key = unknown.group(1)
    place = re.search(r" - at `\$?\.?(.*?)`$", message)
    path = place.group(1) if place else ""
    known = sorted(_keys_at(kind, path))
    near = closest(key, known, alike=0.6)
    hint = f"; the nearest known key is '{near}'" if near else f"; expected one of {', '.join(known)}"
    return f"unknown key '{key}'" + (f" in [{path}]" if path else "") + hint


def _wrong_type(message: str, tree: Any) -> str:
    """'ranks = 'x': expected a whole number'; "" if the message is about something else."""
    missing = re.fullmatch(rf"Object missing required field `(.+?)`{_AT}", message)
    if missing:
        return f"key '{missing[1]}' is missing" + (f" in [{missing[2]}]" if missing[2] else "")
    length = r"( of (?:at most |at least )?length \d+)?"
    wrong = re.fullmatch(rf"Expected `([\w |]+)`{length}, got `?(\w+)`?{_AT}", message)
    if not wrong:
        return ""
    kinds, long, got, path = wrong.groups()
    expected = " or ".join(_KINDS.get(one, one) for one in kinds.split(" | ")) + (long or "")
    found, value = _value_at(tree, path or "")
    if not path or not found or isinstance(value, dict):
        return f"{path + ': ' if path else ''}expected {expected}, found {_KINDS.get(got, got)}"
    return f"{path} = {as_typed(value)}: expected {expected}"


def _value_at(tree: Any, path: str) -> tuple[bool, Any]:
    """(whether it is known, the value) at a path such as 'cases[0].ranks'."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(.*?)\]", path):
        try:
            tree = tree[int(index) if index else name]
        except (KeyError, IndexError, TypeError, ValueError):
            return False, None
    return True, tree


def _keys_at(kind: Any, path: str) -> set[str]:
    """Fields of the struct that a path such as 'cases[...].mesh' leads to."""
    found = _structs(kind)
    for name in re.findall(r"[A-Za-z_]\w*", path):
        found = {
            s
            for struct in found
            for f in msgspec.structs.fields(struct)
            if f.encode_name == name
            for s in _structs(f.type)
        }
    return {f.encode_name for struct in found for f in msgspec.structs.fields(struct)}


def _structs(kind: Any) -> set[type[msgspec.Struct]]:
    """The struct types that a type such as `tuple[A, ...] | None` is made of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {kind}
    return {struct for argument in getattr(kind, "__args__", ()) for struct in _structs(argument)}
