"""Options that several verbs share: those of a case, of its hosts, and of a job."""

import argparse
import contextlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from fembench.base.terminal import reader_may_leave
from fembench.cli.options import declare, real, whole
from fembench.records.case import FIELDS, OTHER_WORK, CaseField
from fembench.workflows.command import LAUNCHER_NAMES, MAP_BY

if TYPE_CHECKING:
    from fembench.report.outputs import Findings

ASKED = {"storage", "partitioner", "sets", "warmups", "precision", "seconds", *OTHER_WORK}  # or not given
ALL = "--all: print all tables, not only those that support the conclusions\n"
LAUNCHER = f"""
--map-by {"|".join(MAP_BY)}: the next rank goes to the next core of a host (default), NUMA
    node, or host
--launcher NAME: {LAUNCHER_NAMES}, or the path of one (default: the mpiexec of this
    installation, or srun)
--launcher-options OPTIONS: more options for the launcher, in quotes
"""
HOSTS = f"""
--hostfile, --rankfile FILE: a host file of any launcher, or a rankfile for Open MPI;
    fembench place writes both (default: the batch system's allocation, or this machine)
{LAUNCHER}"""
JOB = f"""{HOSTS}--timeout SECONDS: end a run after this time (default: no limit)
"""


def case_options(parser: argparse.ArgumentParser) -> None:
    """An option for every field of a case, in named groups; the mesh is positional."""
    declare(parser, f"mesh MESH: {FIELDS['mesh'].option.help}")
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
    usual = f" (default: {field.default})" if field.name in OTHER_WORK and field.default else ""
    text = said.help.replace("%", "%%") + usual
    if field.type is bool:
        return {"action": argparse.BooleanOptionalAction, "default": field.default, "help": text}
    found: dict[str, Any] = {"default": None if field.name in ASKED else field.default, "help": text}
    if field.choices:
        return found | {"choices": [word for word in field.choices if word], "metavar": said.metavar or None}
    if field.type is int:
        return found | {"type": whole(int(said.least), int(said.most)), "metavar": said.metavar or "N"}
    if field.type is float:
        low, high = said.within or (said.least, said.most)
        return found | {"type": real(low, high, inner=bool(said.within)), "metavar": said.metavar}
    return found | {"metavar": said.metavar}


def fields_from(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a case that the options describe: {field: value}, without some not given."""
    values = {name: value for name in FIELDS if (value := getattr(options, name)) is not None}
    values["petsc_options"] = " ".join(filter(None, [options.petsc_options, *options.after]))
    return values


def say(conclusions: Sequence[str]) -> None:
    """Print sentences, a line each, and a blank line after the last."""
    print("".join(f"{sentence}\n" for sentence in [*conclusions, ""] if conclusions), end="")


def show(options: argparse.Namespace, found: "Findings[Any]", folded: Collection[str] = ()) -> None:
    """Print findings, or their JSON, and write the files of -o.

    folded: tables that are printed with --all only
    """
    from fembench.report.outputs import as_json
    from fembench.report.table import text

    with reader_may_leave():
        if options.json:
            print(as_json(found), end="")
        else:
            say(found.conclusions())
            shown = [t for t in found.tables().values() if t.name not in folded or options.all]
            print("\n\n".join(f"{t.title}\n\n{text(t)}" for t in shown))
    with contextlib.ExitStack() as all_written:  # those after one that cannot be written, too
        for path in reversed(options.output):
            all_written.callback(found.save, path)
