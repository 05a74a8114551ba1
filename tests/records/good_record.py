"""A record that is VALID, to be spoiled in one place."""

import msgspec
from planted_records import FROZEN, accounted, lasting

from fembench.records.store import load
from fembench.records.validity import judge

replace = msgspec.structs.replace


def good_record():
    """A record that is VALID: long enough and without drift."""
    raw = load(FROZEN)
    steady = next(s for s in lasting(raw, 200).sets if not s.warmup)
    longer = replace(steady, total=tuple(200 * t for t in steady.total))
    sets = tuple(s for s in raw.sets if s.warmup) + (longer,) * 20
    committed = replace(raw.environment, dirty=False)
    good = accounted(replace(raw, environment=committed, sets=sets))
    good = replace(good, total=tuple(1.001 * t for t in good.total))
    assert judge(good).status == "VALID", judge(good).reasons
    return good


def status(record, **changes):
    return judge(replace(record, **changes)).status


def broken(record, **changes):
    """Rules that do not hold after the change."""
    return {rule.id for rule in judge(replace(record, **changes)).rules if rule.ok is not True}


def in_environment(record, **changes):
    return replace(record, environment=replace(record.environment, **changes))
