"""What makes two runs repetitions of one configuration, for predictions."""

from collections import defaultdict
from collections.abc import Sequence

from fembench.records.case import Case
from fembench.records.record import Record

SAME = (
    *("mesh", "problem", "ranks", "shares", "partitioner"),
    *("solver", "storage", "precond", "variant", "overlap", "dilate"),
)


def key(case: Case) -> tuple[object, ...]:
    """What makes two runs the same configuration."""
    return tuple(getattr(case, name) for name in SAME)


def by_case(records: Sequence[Record]) -> dict[tuple[object, ...], list[Record]]:
    """Runs of each configuration."""
    found: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in records:
        found[key(record.case)].append(record)
    return dict(found)
