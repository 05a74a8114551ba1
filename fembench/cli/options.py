"""How a verb declares its options, and hands them to a workflow."""

import argparse
import inspect
import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fembench.base.errors import shown
from fembench.records.option import LARGEST, between

T = TypeVar("T")
ROW = re.compile(
    r"(?P<names>-\S*?(?:, -\S*?)*|\w+)(?: (?P<value>.+?)(?P<mark>[+*!])?(?: = (?P<default>\S+))?)?"
    r": (?P<help>.*)"
)
MARKS: dict[str, dict[str, Any]] = {
    "+": {"nargs": "+", "default": []},
    "*": {"action": "append", "default": []},
    "!": {"required": True},
}


def declare(parser: argparse._ActionsContainer, text: str, **kinds: Any) -> None:
    """Add the options and arguments in a text, which reads like the help page:

        records RECORD+: an argument of one word or more; [RECORD]: of one or none
        -o, --output FILE = out.json: an option with a default; FILE*: may be repeated; FILE!: is required
        --ranks N: a whole number of at least 1; SECONDS: a finite number above 0; both are 0 if left out
        --element tet4|hex8: one of these
        --json: a flag; --[no-]json: true, false, or not given
        | --link LINK: excludes the other options that begin so
        [title] note: begins a group

    kinds: by name, the type of the value, or its choices
    """
    container, either = parser, None
    for line in filter(None, re.sub(r"\n +", " ", text).splitlines()):
        if head := re.fullmatch(r"\[(.*?)\] ?(.*)", line):
            container = parser.add_argument_group(head[1], head[2])
        elif line.startswith("| "):
            either = either or container.add_mutually_exclusive_group()
            _add(either, line[2:], kinds)
        else:
            _add(container, line, kinds)


def declare_actions(parser: argparse.ArgumentParser, text: str, **kinds: Any) -> None:
    """Add the actions in a text, a paragraph each: "up: build a lab", then its options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for paragraph in text.strip().split("\n\n"):
        head, _, options = paragraph.partition("\n")
        name, _, help = head.partition(": ")
        declare(actions.add_parser(name, help=help), options, **kinds)


def _add(container: argparse._ActionsContainer, line: str, kinds: Mapping[str, Any]) -> None:
    """Add what one line of such a text declares."""
    row = ROW.fullmatch(line)
    if row is None:
        raise ValueError(f"not the declaration of an option: {line}")
    names = row["names"].replace("[no-]", "").split(", ")
    kind = kinds.get(names[-1].lstrip("-").replace("-", "_"))
    settings = _settings(row["value"] or "", row["default"], kind) | MARKS.get(row["mark"] or "", {})
    if "[no-]" in row["names"]:
        settings = {"action": argparse.BooleanOptionalAction, "default": None}
    if names[0][0] != "-" and settings.get("nargs") != "?":
        del settings["default"]
    container.add_argument(*names, help=row["help"], **settings)


def _settings(value: str, default: str | None, kind: Any) -> dict[str, Any]:
    """Those of `add_argument` for a value, as it is declared; without one, for a flag."""
    if isinstance(kind, tuple) or re.fullmatch(r"[a-z0-9-]+(\|[a-z0-9-]+)+", value):
        return {"choices": kind or tuple(value.split("|")), "default": default or ""}
    if not value:
        return {"action": "store_true", "default": False}
    number = int if value == "N" else float
    if value in USUAL:
        kind, default = kind or USUAL[value], default or "0"
    found = {"type": kind, "default": default if kind else default or ""}
    if kind and default:
        found["default"] = number(default)
    if re.fullmatch(r"\[[^]]*\]", value):
        return found | {"metavar": value[1:-1], "nargs": "?"}
    return found | {"metavar": value} | ({"nargs": argparse.REMAINDER} if value.endswith(" ...") else {})


def listed(formats: Mapping[str, Any]) -> str:
    """'metis: its file; shares: an argument': formats by name, with their help."""
    return "; ".join(f"{name}: {one.help}" for name, one in formats.items()).replace("%", "%%")


def call(workflow: Callable[..., T], options: argparse.Namespace, **others: Any) -> T:
    """What a workflow returns for the options named as its parameters, if given, and for others."""
    parameters = inspect.signature(workflow).parameters.values()
    known = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
    given = {name: value for name, value in vars(options).items() if name in known and value is not None}
    return workflow(**given | others)


def whole(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """The type of an option that takes a whole number."""

    def number(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not least <= int(text) <= most:
            limits = (
                f"number from {least} to {most}" if most < LARGEST else f"whole number {_limit(text, least)}"
            )
            raise argparse.ArgumentTypeError(f"{shown(text)}: expected a {limits}")
        return int(text)

    return number


def _limit(text: str, least: int) -> str:
    """The limit that a text exceeds: the largest count; the least one for no number."""
    digits = re.fullmatch(r"\+?0*([0-9]+)", text)
    return f"up to {LARGEST}" if digits and len(digits[1]) >= len(str(LARGEST)) else f"of at least {least}"


def real(least: float, most: float = LARGEST, *, inner: bool = False) -> Callable[[str], float]:
    """The type of an option that takes a finite number; `inner`: without the limits."""

    def number(text: str) -> float:
        value = _float(text)
        if value is None or not least <= value <= most or (inner and value in (least, most)):
            kind = "number" if value is None or math.isfinite(value) else "finite number"
            raise argparse.ArgumentTypeError(f"{shown(text)}: expected a {kind} {limits(value)}")
        return value

    def limits(value: float | None) -> str:
        if value is not None and most == LARGEST < value < math.inf:
            return f"up to {LARGEST}"
        if inner:
            return between(least, most if value is None or value > least else LARGEST)
        return f"of at least {least:g}" + (f" and at most {most:g}" if most < LARGEST else "")

    return number


def percentage(text: str) -> float:
    """The type of an option that takes a percentage, as 5%; the fraction."""
    value = _float(text.strip().removesuffix("%"))
    if value is None or not text.strip().endswith("%") or not 0 <= value < LARGEST:
        raise argparse.ArgumentTypeError(f"{shown(text)}: expected a percentage such as 5%")
    return value / 100


def _float(text: str) -> float | None:
    """The number in a text, also nan and inf; None if there is none."""
    try:
        return float(text)
    except ValueError:
        return None


def typed_command() -> str:
    """The command as typed, quoted for a shell."""
    return shlex.join(["fembench", *sys.argv[1:]])


USUAL = {"N": whole(1), "SECONDS": real(0, inner=True)}
