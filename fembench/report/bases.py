"""Which run is the base of which: what may vary between the two.

A result is compared with those that are not INVALID. Without a base, a reason is given.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fembench.records.case import FIELDS, fields_of
from fembench.records.compare import host_names, ranks_in_words, same_kind
from fembench.records.record import Record
from fembench.report.measures import CG, Time
from fembench.report.results import Result
from fembench.stats.student import ratio_unpaired


class Varying(NamedTuple):
    """What may differ between a run and its base."""

    fields: frozenset[str]  # of the case
    kind: frozenset[str] = frozenset()  # of the kind of measurement (`records.compare`)
    within: bool = False  # whether the hosts of the base are hosts of the run


PLACEMENT = frozenset(fields_of("placement", "text"))
MESH = frozenset(("host set", "mesh hash", "problem"))
SPEED = frozenset(("host set", "CPU model", "emulated slowness"))
BALANCING = {n for n, field in FIELDS.items() if field.group == "balancing"} - {"blocks_per_rank"}

RANKS = Varying(PLACEMENT, frozenset(("host set",)), within=True)  # speedup
DEVICES = Varying(PLACEMENT | {"device"}, frozenset(("host set", "mesh hash")), within=True)  # other devices
SIZE = Varying(PLACEMENT | {"mesh"}, MESH)  # weak scaling
HOSTS = Varying(PLACEMENT | {"emulate", *fields_of("effort")}, SPEED)  # unequal hosts, and each of them alone
MOVES = Varying(frozenset(BALANCING))  # rebalancing


def difference(base: Record, run: Record, varying: Varying = RANKS) -> str | None:
    """The first field that prevents `base` from being a base of `run`, or None."""
    theirs = base.case.flat()
    for name, value in run.case.flat().items():
        if name not in varying.fields and theirs[name] != value:
            return name
    if varying.within and not set(host_names(base)) <= set(host_names(run)):
        return "host set"
    return same_kind(base, run, but=varying.kind)


def bases(result: Result, everyone: Iterable[Result], varying: Varying) -> list[Result]:
    """The results that may be a base of `result`, itself among them."""
    usable = (r for r in everyone if r.pool.status != "INVALID")
    return [r for r in usable if difference(r.record, result.record, varying) is None]


def base_of(
    result: Result, everyone: Sequence[Result], quantity: str, ranks: int = 0
) -> tuple[Result | None, str]:
    """(the fastest base of `result` in `quantity`, on `ranks` ranks; why there is none).

    `ranks` 0: one rank or, without such a run, the fewest.
    """
    fewer = {1, *(r.ranks for r in everyone if r.ranks < result.ranks)}
    tried = [_on_ranks(n, result, everyone, quantity) for n in ([ranks] if ranks else sorted(fewer))]
    return next((found for found in tried if found[0]), tried[0])


def _on_ranks(
    ranks: int, result: Result, everyone: Iterable[Result], quantity: str
) -> tuple[Result | None, str]:
    mesh = result.pool.case.question.mesh
    same = [r for r in everyone if r.ranks == ranks and r.pool.case.question.mesh == mesh]
    found = bases(result, same, RANKS)
    if found:
        best = fastest(found, quantity)
        return best, "" if best else f"no time of {quantity}"
    if not same:
        return None, f"no run on {ranks_in_words(ranks)}"
    reasons = [difference(r.record, result.record) for r in same if r.pool.status != "INVALID"]
    nearest = next((r for r in reasons if r not in FIELDS), reasons[0] if reasons else None)
    return None, f"base differs in {nearest}" if nearest else "base is INVALID"


def fastest(found: Iterable[Result], quantity: str) -> Result | None:
    """The result with the shortest time of this name; None if none has one."""
    timed = [r for r in found if quantity in r.times and r.times[quantity].median > 0]
    return min(timed, key=lambda r: r.times[quantity].median, default=None)


RANGE = (  # for notes of tables
    "With three or more runs of both, the range is a 95 % interval over runs; for fewer, it combines the "
    "ends of both intervals over sets and says nothing about other runs. "
)


def ratio_range(alone: Time, mine: Time) -> tuple[float, float]:
    """The range of alone / mine: 95 % over three runs of each, else from both intervals."""
    interval = ratio_unpaired(alone.medians, mine.medians).interval
    return (interval.low, interval.high) if interval else (alone.low / mine.high, alone.high / mine.low)


def caveats(result: Result, base: Result) -> list[str]:
    """What a reader must know of the ratio of two results."""
    notes = {
        "runs differ": any(t.apart for r in (result, base) if (t := r.times.get(CG))),
        "PROVISIONAL": "PROVISIONAL" in (result.pool.status, base.pool.status),
        "DISTURBED": result.disturbed or base.disturbed,
    }
    return [note for note, holds in notes.items() if holds]
