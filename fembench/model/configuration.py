"""Whether two runs repeat one configuration, and whether a run is that predicted."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.partition.shares import parse_shares
from fembench.records.case import FIELDS, Case, fields_of
from fembench.records.prediction import Predicted
from fembench.records.record import Record

T = TypeVar("T")
FREE = tuple(  # fields of a case that do not change what one iteration computes
    f.name for f in FIELDS.values() if f.group in ("stop", "effort", "output") or f.option.setup_only
)
# parameters of a balancing policy
TUNING = tuple(f.name for f in FIELDS.values() if f.group == "balancing" and f.name != "balance")
EMULATED = fields_of("synthetic")  # a prediction takes these from its profile


def deciding(case: Case) -> dict[str, object]:
    """{field: value} on which the time of an iteration depends; shares in a normal form."""
    free = FREE if case.balancing.balance else (*FREE, *TUNING)
    found = {name: value for name, value in case.flat().items() if name not in free}
    shares = parse_shares(case.placement.shares, case.placement.ranks)
    return found | {"shares": ":".join(f"{share:.6g}" for share in shares)}


def key(case: Case) -> tuple[object, ...]:
    """The key of a configuration; equal for repetitions."""
    return tuple(deciding(case).values())


def difference(said: Predicted, record: Record) -> str:
    """The first difference between a run and its prediction, with both values; or ""."""
    if said.mesh != record.mesh.hash:
        mesh = said.case.question.mesh
        return f"mesh hash is {record.mesh.hash[:12]}, predicted was {said.mesh[:12]} ({mesh})"
    if said.problem and content(said.problem) != content(record.problem):
        return f"problem '{record.case.question.problem}' has changed since the prediction"
    unlike = ["mesh", *(["problem"] if said.problem else [])]  # compared by content
    if said.synthetic and not said.case.emulated:
        unlike += EMULATED
    ran, asked = deciding(record.case), deciding(said.case)
    for name in (n for n in ran if n not in unlike and ran[n] != asked.get(n, ran[n])):
        return f"{name} is '{ran[name]}', predicted was '{asked[name]}'"
    return ""


def content(problem: dict[str, object]) -> bytes:
    """A problem without its name, for comparisons."""
    return msgspec.json.encode({**problem, "name": ""}, order="sorted")


def not_invalid(records: Sequence[Record]) -> tuple[list[Record], str]:
    """(records that are not INVALID, note on the others). Raises InputError if none is."""
    kept = [r for r in records if r.verdict.status != "INVALID"]
    if records and not kept:
        raise InputError(
            f"{plural(len(records), 'record')}, all INVALID, {records[0].id} first; expected valid runs"
        )
    left = len(records) - len(kept)
    return kept, f"{left} of {len(records)} records are INVALID and were left out" if left else ""


def by_configuration(records: Sequence[Record], values: Iterable[T]) -> dict[tuple[object, ...], list[T]]:
    """Values of runs, grouped by configuration."""
    found: dict[tuple[object, ...], list[T]] = defaultdict(list)
    for record, value in zip(records, values):
        found[key(record.case)].append(value)
    return dict(found)


def by_case(records: Sequence[Record]) -> dict[tuple[object, ...], list[Record]]:
    """Runs grouped by configuration."""
    return by_configuration(records, records)
