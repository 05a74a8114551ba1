"""Whether the ranks of a run are equally fast, according to triads repeated in many runs.

A run is one sample, however many triads it has: a core may run at two thirds of its
speed for some seconds. Runs on the same cores are pooled, whatever they solve. If
ranks are on several hosts, the hosts are compared, by the one statement of their
speed (`weights.host_speed`).
"""

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from math import nan

import numpy as np

from fembench.base.arrays import F64
from fembench.base.units import few, percent, plural
from fembench.records.binding import oversubscribed
from fembench.records.compare import cpu_models, host_names
from fembench.records.quiet import narrow_quotas
from fembench.records.record import Record
from fembench.report.results import Result, last_kept
from fembench.report.table import Rows, declared
from fembench.stats.summary import LEVEL, ends_of, fewest_for, median_interval
from fembench.weights.host_speed import HostSpeeds

UNEQUAL = 1.25  # ratio of speeds; smaller ratios count as equal


@dataclasses.dataclass(frozen=True, slots=True)
class Equality:
    """The fastest and the slowest of some ranks or hosts, over all runs on the same cores."""

    runs: int = 0  # with repeated triads
    needed: int = 0  # runs for an interval
    fastest: str = ""
    slowest: str = ""
    ratio: float = nan  # triad of the fastest over that of the slowest, median over runs; of hosts, the speed
    low: float = nan  # its interval, 95 % for all pairs together; nan: too few runs
    high: float = nan
    stated: str = ""  # of hosts: where their speed is from, or why it is not known

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
            what, where = ("speed", self.stated) if self.stated else ("triad", plural(self.runs, "run"))
            return f"unequal ranks ({what} differs by {percent(self.ratio - 1, 0)} in {where}): no efficiency"
        if self.stated and not self.fastest:
            return f"ranks not yet shown to be equal: {self.stated}"
        if self.stated:
            ends = f"{self.low:.2f} to {self.high:.2f}"
            return f"ranks not shown to be equal: speeds differ by a factor of {ends}"
        if not self.runs:
            return "ranks not yet shown to be equal: triads not repeated"
        if self.runs < self.needed:
            return f"ranks not yet shown to be equal: {self.runs} of the {self.needed} runs needed"
        return f"ranks not shown to be equal: triads differ by a factor of {self.low:.2f} to {self.high:.2f}"


def why_unequal(record: Record) -> str:
    """Why T1 / (P Tp) is meaningless for this run (rule C4, unequal ranks), or ""."""
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
    """Why T1 / (P Tp) is meaningless for this run, known in advance or measured; or ""."""
    known = why_unequal(record)
    measured = equality(record, everyone)
    return known or (measured.remark if measured.judged == "unequal" else "")


@last_kept
def _known(found: Sequence[Result]) -> dict[Hashable, Equality]:
    """What is known of cores by these results: every row of every table of speedups asks for it."""
    return {}


def equality(record: Record, everyone: Iterable[Result]) -> Equality:
    """How equal the ranks of `record` are, from all valid runs on the same cores."""
    found = list(everyone)
    key = (record.case.placement.ranks, _cores(record))
    known = _known(found)
    if key not in known:
        known[key] = _equality(record, found)
    return known[key]


def _equality(record: Record, found: Sequence[Result]) -> Equality:
    hosts = host_names(record)
    if len(hosts) > 1:
        return _of_hosts(hosts, found[0].speeds if found else HostSpeeds())
    cores = _cores(record)
    names = [f"rank {rank}" for rank in range(record.case.placement.ranks)]
    speeds = [[np.median(row) for row in r.solve.triads] for r in _measured(found) if _cores(r) == cores]
    return _judge(np.array(speeds).reshape(-1, len(names)), names)


def _of_hosts(names: Sequence[str], speeds: HostSpeeds) -> Equality:
    """From the speed that is stated of hosts; their intervals hold together."""
    found = [host for host in speeds.hosts if host.name in names]
    if len(found) < len(names) or speeds.disturbed:
        return Equality(stated=speeds.disturbed or speeds.unknown or "the speed of some hosts is not known")
    fast = max(found, key=lambda host: host.speed)
    slow = min(found, key=lambda host: host.speed)
    ends = fast.low / slow.high, fast.high / slow.low
    return Equality(0, 0, fast.name, slow.name, fast.speed / slow.speed, *ends, speeds.source)


@declared(
    "rank_speeds",
    "Speeds of ranks",
    "Whether the ranks are equally fast. Each run times a triad (a = b + s c) many times on every "
    "rank, before and after the sets; a run is one sample, and all runs on the same cores are pooled. "
    "If ranks are on several hosts, the hosts are compared by their stated speed, as in other tables. "
    "Ranks are unequal if the whole interval of fastest / slowest lies above "
    f"{UNEQUAL:g}, and equal if it lies below. The interval is at 95 % for all pairs together. For ranks "
    "of one host, it is that of the median over runs, and needs at least six.",
    "hosts; ranks; source; fastest; slowest; triad: fastest / slowest; triad_low triad_high: interval",
    "judged: ranks are",
)
def rank_speeds(found: Sequence[Result]) -> Rows:
    """One row per set of cores on which several ranks ran."""
    records = {_cores(r): r for r in _measured(found)}
    for record in records.values():
        e = equality(record, found)
        yield (
            (
                ", ".join(hosts := host_names(record)),
                record.case.placement.ranks if len(hosts) == 1 else None,
                e.stated or plural(e.runs, "run"),
                e.fastest,
                e.slowest,
                e.ratio,
            )
            + ((e.low, e.high), e.judged)
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
    """The key by which runs are pooled: hosts or, on a single one, cores of each rank."""
    hosts = host_names(record)
    return hosts if len(hosts) > 1 else (hosts, record.environment.affinity)


def _judge(speeds: F64, names: Sequence[str]) -> Equality:
    """Equality from (n_runs, n) speeds; the interval's level allows for all pairs."""
    pairs = len(names) * (len(names) - 1) // 2
    level = 1 - (1 - LEVEL) / max(pairs, 1)
    if not len(speeds):
        return Equality(0, fewest_for(level))
    relative = np.median(speeds / speeds.mean(axis=1, keepdims=True), axis=0)
    slow, *_, fast = relative.argsort(kind="stable").tolist()  # two ranks, even if all have the same median
    ratios = speeds[:, fast] / speeds[:, slow]
    low, high = ends_of(median_interval(ratios, level))
    return Equality(
        len(speeds), fewest_for(level), names[fast], names[slow], float(np.median(ratios)), low, high
    )
