"""Arguments of the functions of `import fembench`: values of another type than declared are refused."""

import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fembench.base.errors import InputError, shown

P = ParamSpec("P")
R = TypeVar("R")
UNIONS = typing.Union, types.UnionType
NUMBERS: dict[Any, type] = {int: numbers.Integral, float: numbers.Real}  # those of numpy, too
WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    Mapping: "a dict",
    Callable: "a function",
    types.NoneType: "None",
}


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which raises InputError for an argument of a type that it does not declare."""

    @functools.wraps(function)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        signature = inspect.signature(function)
        try:
            given = signature.bind(*arguments, **named).arguments
        except TypeError:  # too few, too many, or an unknown name: Python says so
            return function(*arguments, **named)
        kinds = typing.get_type_hints(function)
        for name, value in given.items():
            if name not in kinds:  # self
                continue
            parameter = signature.parameters[name]
            several = parameter.kind == inspect.Parameter.VAR_POSITIONAL
            named_path = Path in typing.get_args(kinds[name]) and parameter.default not in ("", None)
            for one in value if several else [value]:
                if not _fits(one, kinds[name]) or (named_path and isinstance(one, str) and not one):
                    expected = f"{_in_words(kinds[name])}{_elsewhere(one, kinds)}"
                    raise InputError(f"{function.__name__}: {name} {_given(one)}: expected {expected}")
        return function(*arguments, **named)

    return checked


def as_in_file(value: Any) -> Any:
    """The value as a file would have it: paths, ranges, and what numpy or pandas gave, as Python's own."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {name: as_in_file(one) for name, one in value.items()}
    if isinstance(value, range | tuple | list):
        return [as_in_file(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _given(value: object) -> str:
    """A value for a message: "= 3"; of what Python does not bring, the type."""
    kind = type(value)
    return f"= {shown(repr(value))}" if kind.__module__ == "builtins" else f"is {kind.__name__}"


def _fits(value: object, kind: Any) -> bool:
    """Whether a value has a declared type; of a list, whether its entries have."""
    origin = typing.get_origin(kind) or kind
    parts = typing.get_args(kind)
    if origin in UNIONS:
        return any(_fits(value, part) for part in parts)
    if origin is Sequence:
        entries: Any = value.tolist() if hasattr(value, "tolist") else value  # of numpy or pandas
        listed = isinstance(entries, Sequence) and not isinstance(entries, str | bytes)
        return listed and all(_fits(entry, parts[0]) for entry in entries)
    if origin in NUMBERS:
        return isinstance(value, NUMBERS[origin]) and not isinstance(value, bool)
    return origin is Any or isinstance(value, origin)


def _elsewhere(value: object, kinds: Mapping[str, Any]) -> str:
    """Which other argument declares the class of a value: '; give it as weights=', or ""."""
    for name, kind in kinds.items():
        if type(value).__module__ != "builtins" and type(value) in typing.get_args(kind) and name != "return":
            return f"; give it as {name}="
    return ""


def _in_words(kind: Any) -> str:
    """A declared type: 'a path', 'a list (each a path or a Record)'."""
    origin = typing.get_origin(kind) or kind
    parts = typing.get_args(kind)
    if said := WORDS.get(kind) or WORDS.get(origin):
        return said
    if origin in UNIONS:
        *others, last = (_in_words(part) for part in parts if part is not str or Path not in parts)
        return f"{', '.join(others)} or {last}" if others else last
    if origin is Sequence:
        return f"a list (each {_in_words(parts[0])})"
    return str(origin.__name__)
