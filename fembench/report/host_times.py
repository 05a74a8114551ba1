"""Times of hosts: which host is slow, and in which phase.

The time of a phase on a host is that of its median rank. Hosts are compared with the median host of the run.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from fembench.records import phases as ph
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, VECTORS, Floats, rank_times
from fembench.report.results import Result
from fembench.report.table import Column, Table, case_columns, case_of, integer, time, words

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
COMPUTING = (ASSEMBLY, PRODUCT, VECTORS, "computing")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HostTimes:
    """Times of the hosts of one result."""

    result: Result
    hosts: tuple[str, ...]  # (H,) in the order of their first rank
    ranks: tuple[int, ...]  # (H,) ranks on each
    seconds: Floats  # (H, n_columns) of one set, by COLUMNS

    @property
    def relative(self) -> Floats:
        """(H, n_columns) over the median host; nan where that spent no time."""
        middle = np.broadcast_to(np.median(self.seconds, axis=0), self.seconds.shape)
        return np.divide(self.seconds, middle, out=np.full_like(middle, np.nan), where=middle > 0)

    @property
    def slowest(self) -> int:
        """The host that computes longest."""
        return int(self.seconds[:, list(COLUMNS).index("computing")].argmax())


def host_times(found: Sequence[Result]) -> list[HostTimes]:
    """Of every result on several hosts."""
    return [
        _times(r)
        for r in found
        if r.pool.status != "INVALID" and CG in r.times and len(set(r.record.environment.rank_host)) > 1
    ]


def _times(result: Result) -> HostTimes:
    environment = result.record.environment
    of_rank = np.asarray(environment.rank_host)
    hosts = list(dict.fromkeys(environment.rank_host))
    by_rank = np.stack([rank_times(result.runs, *phases) for phases in COLUMNS.values()], axis=1)
    return HostTimes(
        result=result,
        hosts=tuple(environment.hosts[h].name for h in hosts),
        ranks=tuple(int((of_rank == h).sum()) for h in hosts),
        seconds=np.stack([np.median(by_rank[of_rank == h], axis=0) for h in hosts]),
    )


def host_speeds(result: Result) -> tuple[tuple[str, ...], Floats]:
    """Names of the hosts, and the speed of the median rank of each: cells per second of computing."""
    environment = result.record.environment
    of_rank = np.asarray(environment.rank_host)
    speeds = np.asarray(result.record.partition.cells, float) / rank_times(result.runs, *ph.COMPUTING)
    hosts = list(dict.fromkeys(environment.rank_host))
    names = tuple(environment.hosts[h].name for h in hosts)
    return names, np.array([np.median(speeds[of_rank == h]) for h in hosts])


def host_table(found: Sequence[HostTimes]) -> Table:
    """One row per result and host, the host that computes longest first."""
    rows = [
        (*case_of(one.result), one.hosts[h], one.ranks[h], float(one.seconds[h, computing]))
        + tuple(relative[h].tolist())
        for one in found
        for relative in (one.relative,)
        for computing in (list(COLUMNS).index("computing"),)
        for h in np.argsort(-one.seconds[:, computing], kind="stable").tolist()
    ]
    return Table(
        "host_times",
        "Phases by host",
        "Each phase on each host, over the same phase on the median host: 1.50 takes half as long again. The "
        "time of a host is that of its median rank in one set: the median over the sets of a run, then over "
        "runs. Hosts are in the order of their computing time (assembly, product and vectors), the slowest "
        "first. A host that computes longer waits less: long waits are a sign of fast hosts.",
        (
            *case_columns(),
            words("host"),
            integer("ranks on it", "ranks_on_host"),
            time("computing time", "computing"),
            *(Column(name, f"{_key(name)}_relative", lambda v: f"{v:.2f}", number=True) for name in COLUMNS),
        ),
        tuple(rows),
    )


def _key(name: str) -> str:
    return name.replace(" + ", "_").replace("-", "")
