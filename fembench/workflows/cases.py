"""Cases: from the values of their fields, and with the shares of a weights file."""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from fembench.base.arguments import WORDS, as_in_file
from fembench.base.errors import InputError, closest
from fembench.base.progress import progress
from fembench.base.units import plural
from fembench.mesh.presets import check_known
from fembench.methods.lookup import device_text
from fembench.methods.storages import DEFAULT_STORAGE
from fembench.partition.shares import shares_text
from fembench.records.case import FIELDS, Case, exactly, new_case
from fembench.records.weights import Weights, as_text, weights_in
from fembench.synthetic.speeds import slowness_text
from fembench.weights.stale import doubts

WORDS[Case | Path | str] = "a preset, a box, a mesh file or a case"  # of an argument `mesh`


def case_asked(mesh: Case | Path | str, fields: Mapping[str, Any], function: str = "run") -> Case:
    """The case with these fields, others as in a case or by default.

    Raises InputError about the function, also for a mesh that is not there.
    """
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        near = closest(unknown[0], FIELDS, alike=0.6)
        hint = f"the nearest field is '{near}'" if near else f"expected one of {', '.join(FIELDS)}"
        raise InputError(f"{function}: unknown field '{unknown[0]}'; {hint}")
    known = mesh.flat() if isinstance(mesh, Case) else {"mesh": str(mesh)}
    given = exactly(as_in_file(fields))
    if isinstance(given.get("shares"), list | tuple):
        given["shares"] = shares_text(given["shares"])
    case = case_of({**known, **given}, function)
    check_known(case.question.mesh)
    return case


def with_ranks(ranks: int | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a case with its number of ranks; without it for None."""
    return dict(fields) if ranks is None else {"ranks": ranks, **fields}


def call_text(function: str, mesh: Case | Path | str, fields: Mapping[str, Any]) -> str:
    """A call of fembench.FUNCTION, as a record keeps what was typed."""
    shown = mesh.question.mesh if isinstance(mesh, Case) else str(mesh)
    typed = ", ".join([repr(shown), *(f"{name}={value!r}" for name, value in fields.items())])
    return f"fembench.{function}({typed})"


def check_least(least: int, **numbers: float) -> None:
    """Raises InputError for a number that is smaller, not finite, or none."""
    for name, value in numbers.items():
        if not (isinstance(value, int | float) and least <= value < inf):
            raise InputError(f"{name} = {value!r}: expected a number of at least {least}")


@contextlib.contextmanager
def nothing_kept() -> Iterator[None]:
    """A KeyboardInterrupt says so, unless it says what was."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = error.args or ("nothing was kept",)
        raise


def check_words(known: Collection[str], **words: str) -> None:
    """Raises InputError for a word that is not one of those known."""
    for name, word in words.items():
        if word not in known:
            raise InputError(f"{name} = {word!r}: expected one of {', '.join(filter(None, known))}")


def case_of(fields: Mapping[str, Any], where: str) -> Case:
    """The case with these fields, else defaults. Raises InputError about `where`."""
    return new_case({**fields, "storage": storage_of(fields)}, where)


def storage_of(fields: Mapping[str, Any]) -> Any:
    """The storage among the fields of a case, or the default one of its solver."""
    usual = DEFAULT_STORAGE.get(str(fields.get("solver", "own")), FIELDS["storage"].default)
    return fields.get("storage") or usual


def weighted(case: Case, given: Weights | Path | str | None) -> Case:
    """The case with the shares of weights or their file; itself without. Raises InputError."""
    if not given:
        return case
    if case.placement.shares:
        raise InputError(f"weights = {given} and shares = {case.placement.shares}: expected one of them")
    weights = weights_in(given)
    if len(weights.ranks) != case.placement.ranks:
        raise InputError(
            f"{given}: weights of {plural(len(weights.ranks), 'rank')}; the case has {case.placement.ranks}"
        )
    known = [rank.device for rank in weights.ranks]
    for rank, (theirs, here) in enumerate(zip(known, case.devices)):
        if theirs not in ("", here):
            other = f"the weights have {theirs} in its place: expected device = '{device_text(known)}'"
            raise InputError(f"{given}: rank {rank} computes on {here}, {other}")
    return case.with_(shares=as_text(weights))


def warn_of_weights(given: Weights | Path | str | None, cases: Iterable[Case]) -> None:
    """Warn of weights that do not suit these cases."""
    if not given:
        return
    weights, hosts = weights_in(given), os.environ.get("FEMBENCH_SYNTHETIC", "")  # set in a lab
    users = (case for case in cases if case.placement.shares == as_text(weights))
    here = {slowness_text(case.synthetic, hosts) for case in users}
    for text in dict.fromkeys(text for one in sorted(here) for text in doubts(weights, one)):
        progress(f"fembench: warning: {text}")


def warn_of_doubts(weights: Weights, synthetic: str | None = None) -> None:
    """Warn of weights that should not be used for ranks emulated so; None: as these hosts are."""
    here = os.environ.get("FEMBENCH_SYNTHETIC", "") if synthetic is None else synthetic
    for doubt in doubts(weights, here):
        progress(f"fembench: warning: {doubt}")
