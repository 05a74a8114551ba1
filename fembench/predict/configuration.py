"""What makes two runs repetitions of one configuration, for predictions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from fembench.records.case import Case
from fembench.records.record import Record

T = TypeVar("T")
SAME = (
    *("mesh", "problem", "ranks", "shares", "partitioner"),
    *("solver", "storage", "precond", "variant", "overlap", "dilate"),
)


def key(case: Case) -> tuple[object, ...]:
    """What makes two runs the same configuration."""
    return tuple(getattr(case, name) for name in SAME)


def by_configuration(records: Sequence[Record], values: Iterable[T]) -> dict[tuple[object, ...], list[T]]:
    """A value of each run, those of one configuration together."""
    found: dict[tuple[object, ...], list[T]] = defaultdict(list)
    for record, value in zip(records, values):
        found[key(record.case)].append(value)
    return dict(found)


def by_case(records: Sequence[Record]) -> dict[tuple[object, ...], list[Record]]:
    """Runs of each configuration."""
    return by_configuration(records, records)
