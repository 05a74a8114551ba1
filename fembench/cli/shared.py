"""Options and words that several verbs share."""

import argparse
import math
import re
import shlex
import sys
from collections.abc import Callable, Sequence

import msgspec

from fembench.base.errors import InputError, shown
from fembench.records.case import LARGEST, LEAST, MOST, Case, new_case
from fembench.records.record import Record

_HELP = {
    "mesh": "preset (m1 m2 m3 s m l xl), box:NXxNYxNZ[:tet4|hex8], box:N-equations, or a mesh file",
    "problem": "preset (thesis cantilever bar patch manufactured) or a TOML file",
    "ranks": "MPI ranks; without a host file at most 64 per core",
    "shares": "target share of each rank: 7:1, 2,1,1 or 8*1 (default: equal)",
    "partitioner": "how the mesh is cut",
    "replicated": "every rank partitions the whole mesh, as in the source thesis",
    "solver": "own, or petsc: the same system through PETSc's KSP",
    "storage": "how the stiffness is stored; default: sym, with --solver petsc baij",
    "petsc_options": "PETSc's own options in one string; or give them after `--`",
    "precond": "preconditioner of CG",
    "variant": "form of the CG recurrence",
    "overlap": "compute interior rows while interface messages travel",
    "exchange": "interface messages; blocking: sends and receives as in the source thesis, with --no-overlap",
    "tolerance": "stop at this residual",
    "tolerance_kind": "absolute (newton) or relative to the load",
    "max_iterations": "give up after so many; 0: ten times the equations",
    "iterations": "fixed work: exactly so many iterations a set; 0: until the tolerance",
    "sets": "timed repetitions of assembly and CG",
    "warmups": "sets before them that do not count",
    "seconds": "go on with sets until this much CG time is filled",
    "clock": "auto, tsc, perf_counter_ns, mpi_wtime, monotonic_raw, time_ns",
    "trace_iterations": "iterations whose every event is kept",
    "fields": "also write displacement, stress and part, for pictures and ParaView",
    "emulate": "SYNTHETIC: speed of each rank, 1,1,0.5,0.25; a rank computes so much slower",
    "dilate": "SYNTHETIC: all ranks compute so many times slower, so that several share a core",
    "emulate_change": "SYNTHETIC: speeds from an iteration on, 100:1,1,0.33;300:1,1,1",
    "balance": "move blocks of cells between ranks while CG runs, by this policy (amortised is the best)",
    "blocks_per_rank": "with --balance: blocks that each part is cut into",
    "look_every": "with --balance: iterations between calls of the balancer (gamma)",
    "first_look": "with --balance: calls before the first look (alpha)",
    "band": "with --balance: deviation of a rank's time from the mean that is let pass (D)",
    "drain": "with --balance: RANK@ITERATION, the rank is empty from then on",
    "seed": "of partition",
    "label": "free text kept in the record",
}


def whole(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """The type of an option that takes a whole number."""

    def number(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text) or not least <= int(text) <= most:
            limits = (
                f"number from {least} to {most}" if most < LARGEST else f"whole number of at least {least}"
            )
            raise argparse.ArgumentTypeError(f"{shown(text)}: expected a {limits}")
        return int(text)

    return number


def real(least: float, most: float = math.inf, *, above: bool = False) -> Callable[[str], float]:
    """The type of an option that takes a finite number; `above`: the least itself is too small."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and least <= value <= most) or (above and value == least):
            limits = f"above {least:g}" if above else f"of at least {least:g}"
            limits += f" and at most {most:g}" if most < math.inf else ""
            raise argparse.ArgumentTypeError(f"{shown(text)}: expected a number {limits}")
        return value

    return number


def _number(field: msgspec.structs.FieldInfo) -> Callable[[str], float]:
    """The type of the option of a case's number."""
    least = LEAST.get(field.name, 0)
    return whole(least, MOST.get(field.name, LARGEST)) if field.type is int else real(least)


def case_options(parser: argparse.ArgumentParser) -> None:
    """An option for every field of a case; the mesh is the positional argument."""
    parser.add_argument("mesh", metavar="MESH", help=_HELP["mesh"])
    for field in msgspec.structs.fields(Case):
        if field.name == "mesh":
            continue
        flag = "--" + field.name.replace("_", "-")
        text = _HELP[field.name].replace("%", "%%")
        if field.type is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=text)
            continue
        if field.name == "storage":
            parser.add_argument(flag, choices=field.type.__args__, default=None, help=text)
            continue
        choices = getattr(field.type, "__args__", None)
        kind = str if choices else _number(field) if field.type in (int, float) else field.type
        shown = f"{text} (default: {field.default})" if field.default not in ("", 0, 0.0) else text
        parser.add_argument(
            flag,
            type=kind,
            choices=choices,
            default=field.default,
            help=shown,
            metavar=None if choices else "X",
        )


def case_from(options: argparse.Namespace) -> Case:
    """The case that the options describe. Raises InputError."""
    values = {f.name: getattr(options, f.name) for f in msgspec.structs.fields(Case)}
    values["storage"] = options.storage or ("baij" if options.solver == "petsc" else "sym")
    values["petsc_options"] = " ".join(filter(None, [options.petsc_options, *options.after]))
    return new_case(values, "options")


def typed_command(arguments: Sequence[str] | None = None) -> str:
    """What the user typed, as it can be typed again."""
    return shlex.join(["fembench", *(sys.argv[1:] if arguments is None else arguments)])


def progress(text: str) -> None:
    """One line of progress on stderr, at once."""
    print(text, file=sys.stderr, flush=True)


def weighted(case: Case, path: str | None) -> Case:
    """The case with the shares of a weights file; itself without one. Raises InputError."""
    if not path:
        return case
    from fembench.records.weights import as_text, load_weights

    if case.shares:
        raise InputError(f"--weights {path} and shares {case.shares}: expected one of them")
    weights = load_weights(path)
    if len(weights.ranks) != case.ranks:
        raise InputError(f"{path}: weights of {len(weights.ranks)} ranks; the case has {case.ranks}")
    return msgspec.structs.replace(case, shares=as_text(weights))


def warn_if_stale(path: str | None, record: Record) -> None:
    """Say on stderr where the weights of a run no longer fit its machines."""
    if not path:
        return
    from fembench.records.weights import load_weights
    from fembench.weights.stale import warning

    text = warning(load_weights(path), record)
    if text:
        progress(f"fembench: warning: {text}")
