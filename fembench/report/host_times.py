"""Times of hosts: in which phase a host differs.

The time of a phase on a host is that of its median rank, over the median host.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from fembench.base.arrays import F64
from fembench.records import phases as ph
from fembench.records.binding import taking_turns
from fembench.records.times import Times
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, VECTORS, rank_times
from fembench.report.results import CASE, Result, case_of
from fembench.report.table import Rows, declared
from fembench.weights.host_speed import HostSpeeds

COLUMNS = {
    ASSEMBLY: (ph.ASSEMBLY,),
    PRODUCT: ph.PRODUCT_PARTS,
    VECTORS: ph.VECTOR_PARTS,
    "computing": ph.COMPUTING,
    "send + unpack": ph.OWN_MESSAGES,
    "wait": (ph.WAIT,),
    "all-reduce": (ph.ALLREDUCE,),
    CG: (ph.CG,),
}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HostTimes:
    """Times of the hosts of one result."""

    result: Result
    hosts: tuple[str, ...]  # (H,) in the order of their first rank
    ranks: tuple[int, ...]  # (H,) ranks on each
    seconds: F64  # (H, n_columns) of one set, by COLUMNS

    @property
    def relative(self) -> F64:
        """(H, n_columns) over the median host; nan where that spent no time."""
        middle = np.broadcast_to(np.median(self.seconds, axis=0), self.seconds.shape)
        return np.divide(self.seconds, middle, out=np.full_like(middle, np.nan), where=middle > 0)


def host_times(found: Sequence[Result]) -> list[HostTimes]:
    """Of every result on several hosts whose ranks have a core each."""
    return [
        _times(r)
        for r in found
        if r.pool.status != "INVALID"
        and CG in r.times
        and len(set(r.record.environment.rank_host)) > 1
        and not taking_turns(r.record.environment)
    ]


def _times(result: Result) -> HostTimes:
    environment = result.record.environment
    of_rank, hosts = np.asarray(environment.rank_host), _hosts(result)
    return HostTimes(
        result=result,
        hosts=tuple(environment.hosts[h].name for h in hosts),
        ranks=tuple(int((of_rank == h).sum()) for h in hosts),
        seconds=_by_host(result, result.runs),
    )


def _hosts(result: Result) -> list[int]:
    return list(dict.fromkeys(result.record.environment.rank_host))


def _by_host(result: Result, runs: Sequence[Times]) -> F64:
    """(H, n_columns) seconds of the median rank of each host, over these runs."""
    of_rank = np.asarray(result.record.environment.rank_host)
    by_rank = np.stack([rank_times(runs, *phases) for phases in COLUMNS.values()], axis=1)
    return np.stack([np.median(by_rank[of_rank == h], axis=0) for h in _hosts(result)])


@declared(
    "host_times",
    "Phases by host",
    "Each phase on each host, over the same phase on the median host: 1.50 takes half as long again. The "
    "time of a host is that of its median rank in one set: the median over the sets of a run, then over "
    "runs. These are times of one case; the speed of a host is stated once, from all that was measured, "
    "with its 95 % interval, and slow hosts come first. A host that computes longer waits less: long "
    "waits are a sign of fast hosts. Runs whose ranks take turns on cores are left out.",
    CASE,
    "host; ranks_on_host: ranks on it",
    "host_speed host_speed_low host_speed_high: host speed | .2f",
    "computing_s: computing time",
    *(f"{name.replace(' + ', '_').replace('-', '')}_relative: {name}" for name in COLUMNS),
)
def host_table(found: Sequence[HostTimes], speeds: HostSpeeds) -> Rows:
    """One row per result and host, the slow hosts first, then in the order of ranks."""
    slow = {host.name: k for k, host in enumerate(speeds.slow)}
    said = {host.name: (host.speed, host.low, host.high) for host in speeds.hosts}
    return [
        (*case_of(one.result), one.hosts[h], one.ranks[h], said.get(one.hosts[h]))
        + (float(one.seconds[h, list(COLUMNS).index("computing")]), *relative[h].tolist())
        for one in found
        for relative in (one.relative,)
        for h in sorted(range(len(one.hosts)), key=lambda h: slow.get(one.hosts[h], len(slow)))
    ]
