"""Whether the ranks of a run are equally fast, according to triads repeated in many runs.

A run is one sample, however many triads it has: a core may run at two thirds of its speed for some seconds.
Runs on the same cores are pooled, whatever they solve. If ranks are on several hosts, the hosts are compared,
each by its median rank.
"""

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from math import nan

import numpy as np

from fembench.base.units import few, plural
from fembench.records.binding import oversubscribed
from fembench.records.compare import cpu_models, host_names
from fembench.records.quiet import narrow_quotas
from fembench.records.record import Record
from fembench.report.measures import Floats
from fembench.report.results import Result
from fembench.report.table import Column, Table, integer, words
from fembench.stats.summary import LEVEL, fewest_for, median_interval

UNEQUAL = 1.25  # ratio of speeds; smaller ratios count as equal


@dataclasses.dataclass(frozen=True, slots=True)
class Equality:
    """The fastest and the slowest of a set of ranks or hosts, over all runs on the same cores."""

    runs: int  # with repeated triads
    needed: int  # runs for an interval
    fastest: str = ""
    slowest: str = ""
    ratio: float = nan  # triad of the fastest over that of the slowest, median over runs
    low: float = nan  # interval of that median, 95 % for all pairs together; nan if there are too few runs
    high: float = nan

    @property
    def judged(self) -> str:
        """'equal', 'unequal' or 'not known'."""
        if self.low > UNEQUAL:
            return "unequal"
        return "equal" if self.high <= UNEQUAL else "not known"

    @property
    def remark(self) -> str:
        """A caveat for an efficiency that assumes equal ranks; "" if they are equal."""
        if self.judged == "equal":
            return ""
        if self.judged == "unequal":
            seen = f"triad differs by {self.ratio - 1:.0%} in {plural(self.runs, 'run')}"
            return f"unequal ranks ({seen}): no efficiency"
        if not self.runs:
            return "ranks not yet shown to be equal: triads not repeated"
        if self.runs < self.needed:
            return f"ranks not yet shown to be equal: {self.runs} of the {self.needed} runs needed"
        return f"ranks not shown to be equal: triads differ by a factor of {self.low:.2f} to {self.high:.2f}"


def why_unequal(record: Record) -> str:
    """Why T1 / (P Tp) is meaningless for this run, as known in advance (rule C4, unequal ranks), or ""."""
    environment = record.environment
    if oversubscribed(environment, record.case.synthetic.dilate):
        return "OVERSUBSCRIBED: functional only, no efficiency"
    if environment.synthetic:
        return "SYNTHETIC: ranks made unequal, no efficiency"
    models = cpu_models(record)
    apart = [f"{len(models)} CPU models"] if len(models) > 1 else []
    apart += [few(found, 3)] if (found := narrow_quotas(environment)) else []
    return f"unequal ranks ({'; '.join(apart)}): no efficiency" if apart else ""


def unequal_ranks(record: Record, everyone: Iterable[Result]) -> str:
    """Why T1 / (P Tp) is meaningless for this run, as known in advance or measured, or ""."""
    known = why_unequal(record)
    measured = equality(record, everyone)
    return known or (measured.remark if measured.judged == "unequal" else "")


def equality(record: Record, everyone: Iterable[Result]) -> Equality:
    """How equal the ranks of `record` are, from all valid runs on the same cores among `everyone`."""
    cores = _cores(record)
    names = _names(record)
    speeds = np.array([_speeds(r) for r in _measured(everyone) if _cores(r) == cores]).reshape(-1, len(names))
    return _judge(speeds, names)


def rank_speeds(found: Sequence[Result]) -> Table:
    """One row per set of cores on which several ranks ran."""
    records = {_cores(r): r for r in _measured(found)}
    rows = []
    for record in records.values():
        e = equality(record, found)
        rows.append(
            (
                ", ".join(hosts := host_names(record)),
                record.case.placement.ranks if len(hosts) == 1 else None,
                e.runs,
                e.fastest,
                e.slowest,
                e.ratio,
            )
            + ((e.low, e.high), e.judged)
        )
    return Table(
        "rank_speeds",
        "Speeds of ranks",
        "Whether the ranks are equally fast. Each run times a triad (a = b + s c) many times on every "
        "rank, before and after the sets; a run is one sample, and all runs on the same cores are pooled. "
        "If ranks are on several hosts, the hosts are compared. Ranks are unequal if the whole interval of "
        f"fastest / slowest lies above {UNEQUAL:g}, and equal if it lies below. The interval is that of the "
        "median over runs, at 95 % for all pairs together, and needs at least six runs.",
        (
            words("hosts"),
            integer("ranks"),
            integer("runs"),
            words("fastest"),
            words("slowest"),
            Column("fastest / slowest", "triad", lambda v: f"{v:.2f}", number=True),
            Column("interval", "triad_low triad_high", lambda v: f"{v[0]:.2f}–{v[1]:.2f}", number=True),
            words("ranks are", "judged"),
        ),
        tuple(rows),
    )


def _measured(found: Iterable[Result]) -> list[Record]:
    """Records with repeated triads of several ranks, each on a core of its own."""
    return [
        record
        for result in found
        if result.ranks > 1 and result.pool.status != "INVALID"
        for record in result.pool.records
        if record.solve.triads and not oversubscribed(record.environment)
    ]


def _cores(record: Record) -> Hashable:
    """The key by which runs are pooled: the hosts or, on a single host, the cores of each rank."""
    hosts = host_names(record)
    return hosts if len(hosts) > 1 else (hosts, record.environment.affinity)


def _names(record: Record) -> tuple[str, ...]:
    """Names of what is compared: hosts or, on a single host, ranks."""
    hosts = host_names(record)
    return hosts if len(hosts) > 1 else tuple(f"rank {rank}" for rank in range(record.case.placement.ranks))


def _speeds(record: Record) -> Floats:
    """Median triad of each of `_names`, bytes/s."""
    by_rank = np.array([np.median(row) for row in record.solve.triads])
    hosts = host_names(record)
    if len(hosts) == 1:
        return by_rank
    where = [record.environment.hosts[i].name for i in record.environment.rank_host]
    return np.array([np.median([v for v, host in zip(by_rank, where) if host == name]) for name in hosts])


def _judge(speeds: Floats, names: Sequence[str]) -> Equality:
    """Equality from (n_runs, n) speeds; the level of the interval allows for the choice among all pairs."""
    pairs = len(names) * (len(names) - 1) // 2
    level = 1 - (1 - LEVEL) / max(pairs, 1)
    if not len(speeds):
        return Equality(0, fewest_for(level))
    relative = np.median(speeds / speeds.mean(axis=1, keepdims=True), axis=0)
    fast, slow = int(relative.argmax()), int(relative.argmin())
    ratios = speeds[:, fast] / speeds[:, slow]
    interval = median_interval(ratios, level)
    low, high = (interval.low, interval.high) if interval else (nan, nan)
    return Equality(
        len(speeds), fewest_for(level), names[fast], names[slow], float(np.median(ratios)), low, high
    )
