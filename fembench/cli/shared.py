"""Options and messages that several verbs share."""

import argparse
import math
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

from fembench.base.errors import shown
from fembench.launch.launchers import LAUNCHERS, MAP_BY
from fembench.methods.storages import DEFAULT_STORAGE
from fembench.records.case import FIELDS, Case, CaseField, new_case
from fembench.records.case_fields import LARGEST


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
    """The limit that a text exceeds: the largest count, or the least one where it is no number at all."""
    digits = re.fullmatch(r"\+?0*([0-9]+)", text)
    return f"up to {LARGEST}" if digits and len(digits[1]) >= len(str(LARGEST)) else f"of at least {least}"


def real(least: float, most: float = math.inf, *, above: bool = False) -> Callable[[str], float]:
    """The type of an option that takes a finite number; `above`: the least itself is too small."""

    def number(text: str) -> float:
        value = _float(text)
        if value is None or not least <= value <= most or math.isinf(value) or (above and value == least):
            limits = f"above {least:g}" if above else f"of at least {least:g}"
            limits += f" and at most {most:g}" if most < math.inf else ""
            kind = "number" if value is None or math.isfinite(value) else "finite number"
            raise argparse.ArgumentTypeError(f"{shown(text)}: expected a {kind} {limits}")
        return value

    return number


def _float(text: str) -> float | None:
    """The number in a text, also nan and inf; None if there is none."""
    try:
        return float(text)
    except ValueError:
        return None


def case_options(parser: argparse.ArgumentParser) -> None:
    """An option for every field of a case, in named groups; the mesh is the positional argument."""
    parser.add_argument("mesh", metavar="MESH", help=FIELDS["mesh"].option.help)
    groups: dict[str, argparse._ArgumentGroup] = {}
    for field in FIELDS.values():
        if field.name == "mesh":
            continue
        if field.group not in groups:
            groups[field.group] = parser.add_argument_group(field.title)
        case_option(groups[field.group], field.name)


def case_option(parser: argparse._ActionsContainer, name: str) -> None:
    """The option of one field of a case."""
    parser.add_argument("--" + name.replace("_", "-"), **_option(FIELDS[name]))


def _option(field: CaseField) -> dict[str, Any]:
    """The arguments of `add_argument` for a field."""
    said = field.option
    text = said.help.replace("%", "%%")
    if field.type is bool:
        return {"action": argparse.BooleanOptionalAction, "default": field.default, "help": text}
    if field.name in ("storage", "partitioner"):  # their defaults depend on the solver and the mesh
        return {"choices": field.choices, "default": None, "help": text}
    found: dict[str, Any] = {"default": field.default, "help": text}
    if field.choices:
        return found | {"choices": [word for word in field.choices if word], "metavar": said.metavar or None}
    if field.type is int:
        return found | {"type": whole(int(said.least), int(said.most)), "metavar": said.metavar or "N"}
    if field.type is float:
        return found | {"type": real(said.least), "metavar": said.metavar}
    return found | {"metavar": said.metavar}


def hosts_option(parser: argparse.ArgumentParser) -> None:
    """The hosts of a job, and how ranks are started there."""
    parser.add_argument(
        "--hostfile",
        "--rankfile",
        default="",
        metavar="FILE",
        help="a host file of any launcher, or a rankfile for Open MPI; fembench place writes both "
        "(default: the batch system's allocation, or this machine)",
    )
    launcher_options(parser)


def launcher_options(parser: argparse.ArgumentParser) -> None:
    """How ranks are started and mapped. `use_settings` puts them where `launch` reads them."""
    parser.add_argument(
        "--map-by",
        default="",
        choices=MAP_BY,
        metavar="|".join(MAP_BY),
        help="the next rank goes to the next core of a host (default), NUMA node, or host",
    )
    parser.add_argument(
        "--launcher",
        default="",
        metavar="NAME",
        help=f"{', '.join(one.name for one in LAUNCHERS)}, or the path of one (default: the mpiexec of this "
        "installation, or srun)",
    )
    parser.add_argument(
        "--launcher-options", default="", metavar="OPTIONS", help="more options for the launcher, in quotes"
    )


def job_options(parser: argparse.ArgumentParser, timeout: float) -> None:
    """Where a job runs and how long it may take; `timeout` in seconds, 0: no limit."""
    hosts_option(parser)
    limit = f"default: {timeout:g}" if timeout else "default: no limit"
    parser.add_argument(
        "--timeout",
        type=real(0),
        default=timeout,
        metavar="SECONDS",
        help=f"end a run after this time ({limit})",
    )


def case_from(options: argparse.Namespace) -> Case:
    """The case that the options describe. Raises InputError."""
    values = {name: getattr(options, name) for name in FIELDS}
    values["storage"] = options.storage or DEFAULT_STORAGE[options.solver]
    values["petsc_options"] = " ".join(filter(None, [options.petsc_options, *options.after]))
    return new_case(values, "options")


def typed_command(arguments: Sequence[str] | None = None) -> str:
    """The command as typed, quoted for a shell."""
    return shlex.join(["fembench", *(sys.argv[1:] if arguments is None else arguments)])
