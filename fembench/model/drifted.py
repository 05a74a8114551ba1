"""Whether a machine is in the state in which a prediction was made or learned.

Two states are compared by the readings that profiles and records contain: core, memory,
and triads at the size of the mean rank's matrix. Each kind of reading on each host is
one comparison. Neighbours in time are alike, so consecutive readings are averaged in up
to eight batches (batch means; a disturbance of a few runs counts, too), and the ratio
of the batches of both states gets Welch's interval. Fewer than three new readings are
compared with the prediction interval for one more reading. All m comparisons together
are wrong with probability ALPHA (Bonferroni: level 1 - ALPHA / m). A state differs if
an interval excludes 1 and the change is larger than LEAST.
"""

import datetime
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.base.units import percent
from fembench.records.record import Record, StateReading, triad_bytes
from fembench.stats.student import FEWEST, next_interval, ratio_unpaired
from fembench.stats.summary import ends_of, median

ALPHA = 0.01  # probability of a wrong verdict on an unchanged machine
LEAST = 0.02  # relative; a smaller change does not matter to a prediction
BATCHES = 8
DEGREE, POINTS = 4, 3  # largest degree of the curve over sizes; sizes per degree
EDGE = 1.1  # readings are compared up to this factor outside the known sizes
NAMES = {
    "core": "speed of one core",
    "memory": "memory bandwidth of one rank",
    "matrix": "bandwidth of {ranks} at once",
}
AGAIN = "measure the profile again"
Curve = Callable[[F64], F64]  # (n,) logarithms of sizes -> (n,) logarithms of speed


class StateChange(NamedTuple):
    """One kind of reading on one host, now relative to before."""

    host: str
    what: str
    ratio: float  # now over before
    low: float  # interval of the ratio
    high: float
    before: int  # number of readings
    now: int
    ranks: int = 1  # at once

    @property
    def beyond(self) -> bool:
        """Whether the change is larger than chance explains, and larger than LEAST."""
        return not self.low <= 1 <= self.high and abs(self.ratio - 1) > LEAST

    def text(self, before: str) -> str:
        """'memory bandwidth of a rank on n1 is 4.1 % below that of the profile (spread
        2.0 %)'."""
        named = NAMES[self.what].format(ranks=f"{self.ranks} ranks")
        way = "below" if self.ratio < 1 else "above"
        spread = math.sqrt(self.high / self.low) - 1
        change = f"{percent(abs(self.ratio - 1))} {way} that of the {before} (spread {percent(spread)})"
        return f"{named} on {self.host} is {change}"


def readings_of(records: Sequence[Record]) -> tuple[StateReading, ...]:
    """The readings of runs, in the order of time."""
    ordered = sorted(records, key=lambda r: datetime.datetime.fromisoformat(r.created))
    return tuple(reading for r in ordered for reading in (*r.solve.state, *_matrix_readings(r)))


def _matrix_readings(record: Record) -> list[StateReading]:
    """The triads of all ranks; of ranks that share cores, as many at once as cores."""
    environment = record.environment
    triads = record.solve.triads
    found = []
    for k, host in enumerate(environment.hosts if triads else ()):
        rows = [row for row, at in zip(triads, environment.rank_host) if at == k]
        if rows:
            at_once = min(len(rows), max(host.cores, 1))
            found.append(
                StateReading(
                    host=host.name,
                    what="matrix",
                    ranks=at_once,
                    n_bytes=triad_bytes(record.partition.blocks),
                    speed=float(np.median(rows)),
                )
            )
    return found


def changes(before: Sequence[StateReading], now: Sequence[StateReading]) -> list[StateChange]:
    """Every kind of reading that both states have. Readings are in the order of time."""
    known, seen = _by_kind(before), _by_kind(now)
    pairs = {kind: _relative(known[kind], seen[kind]) for kind in seen if kind in known}
    pairs = {kind: pair for kind, pair in pairs.items() if len(pair[0]) >= FEWEST and len(pair[1])}
    level = 1 - ALPHA / max(len(pairs), 1)
    made = (_change(kind, *pair, level) for kind, pair in pairs.items())
    return [change for change in made if change is not None]


def known_from(learned: Sequence[str]) -> str:
    """Where the state before is from: the profile alone, if there are no learned runs."""
    return "training" if learned else "profile"


def stale(found: Sequence[StateChange], before: str = "training") -> str:
    """Why predictions made `before` cannot be tested now, in one line; "" if they can."""
    beyond = sorted((c for c in found if c.beyond), key=lambda c: -abs(math.log(c.ratio)))
    if not beyond:
        return ""
    more = f", and {len(beyond) - 1} more of {len(found)} readings differ" if beyond[1:] else ""
    return f"{beyond[0].text(before)}{more}: {AGAIN}"


def state_text(found: Sequence[StateChange], before: str = "training") -> str:
    """One line on the state: unchanged, changed, or not known."""
    if not found:
        return f"state of the machine: not known (no readings that both the {before} and the runs have)"
    if reason := stale(found, before):
        return f"INVALID: {reason}"
    largest = max(found, key=lambda c: abs(math.log(c.ratio)))
    return f"state of the machine: as in the {before}; largest change: {largest.text(before)}"


def _by_kind(readings: Sequence[StateReading]) -> dict[tuple[str, str, int], list[StateReading]]:
    found: dict[tuple[str, str, int], list[StateReading]] = defaultdict(list)
    for r in readings:
        found[r.host, r.what, r.ranks].append(r)
    return dict(found)


def _relative(before: Sequence[StateReading], now: Sequence[StateReading]) -> tuple[F64, F64]:
    """Speeds of both states over those expected, without sizes unknown before."""
    x, y = _logs(before)
    other, speeds = _logs(now)
    kept = (other >= x.min() - math.log(EDGE)) & (other <= x.max() + math.log(EDGE))
    curve = _curve(x, y)
    return np.exp(y - curve(x)), np.exp(speeds[kept] - curve(other[kept]))


def _logs(readings: Sequence[StateReading]) -> tuple[F64, F64]:
    pairs = np.log([[r.n_bytes, r.speed] for r in readings])
    return pairs[:, 0], pairs[:, 1]


def _curve(x: F64, y: F64) -> Curve:
    """A polynomial through the speeds over sizes; their mean for too few sizes."""
    sizes = len(np.unique(np.round(x, 2)))
    fitted = np.polynomial.Polynomial.fit(x, y, min(DEGREE, sizes // POINTS)) if sizes > 1 else None
    return lambda at: np.full(len(at), y.mean()) if fitted is None else fitted(at)


def _change(kind: tuple[str, str, int], before: F64, now: F64, level: float) -> StateChange | None:
    host, what, ranks = kind
    if len(now) >= FEWEST:
        found = ratio_unpaired(_batches(now), _batches(before), level)
        value, (low, high) = found.value, ends_of(found.interval)
    else:
        low, high = ends_of(next_interval(before, level))
        taken = float(np.exp(np.log(now).mean()))
        value, low, high = taken / median(before), taken / high, taken / low
    if math.isnan(low):
        return None
    return StateChange(host, what, value, low, high, len(before), len(now), ranks)


def _batches(values: F64) -> F64:
    """Means of consecutive values, in up to BATCHES groups of about equal size."""
    return np.array([part.mean() for part in np.array_split(values, min(BATCHES, len(values)))])
