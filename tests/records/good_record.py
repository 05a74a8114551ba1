"""A record that is VALID, to be spoiled in one place."""

from pathlib import Path

import msgspec

from fembench.records.store import load
from fembench.records.validity import judge

FROZEN = Path(__file__).parent.parent / "data" / "record.json"
replace = msgspec.structs.replace


def good_record():
    """A record that is VALID: long enough and without drift."""
    raw = load(FROZEN)
    steady = next(s for s in raw.sets if not s.warmup)
    longer = replace(steady, seconds=tuple(tuple(200 * s for s in row) for row in steady.seconds))
    longer = replace(longer, total=tuple(200 * t for t in longer.total))
    warm = tuple(s for s in raw.sets if s.warmup)
    sets = warm + (longer,) * 20
    extra = [
        sum(
            row[i]
            for s in sets
            for row in [s.seconds[rank]]
            for i, n in enumerate(raw.phases)
            if "." not in n
        )
        + sum(raw.setup[rank])
        for rank in range(2)
    ]
    committed = replace(raw.environment, dirty=False)
    good = replace(raw, environment=committed, sets=sets, total=tuple(1.001 * t for t in extra))
    assert judge(good).status == "VALID", judge(good).reasons
    return good


def status(record, **changes):
    return judge(replace(record, **changes)).status


def broken(record, **changes):
    """Rules that do not hold after the change."""
    return {rule.id for rule in judge(replace(record, **changes)).rules if rule.ok is not True}


def in_environment(record, **changes):
    return replace(record, environment=replace(record.environment, **changes))
