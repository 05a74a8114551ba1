"""Which rank, on which host, do the others wait for? Two estimators that must agree.

    cost     seconds of computing per unit of work, paired within sets like shares: largest on the slow rank
    waiting  fraction of the run spent waiting: smallest on the rank that all others wait for

With equal shares, both point at the same rank. If they do not, either the shares are unequal or the time is
lost in something other than computing, and the answer is "undecided".
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.weights.rules import time_shares

TIE = 0.03  # ranks this close to the extreme count as extreme too


class SlowRank(NamedTuple):
    """What the two estimators found."""

    answer: Literal["rank", "host", "equal", "undecided"]
    rank: int  # -1 unless both name it
    host: str  # "" unless both name it
    by_work: int  # rank with the largest cost
    by_waiting: int  # rank that waits least
    slowness: float  # largest cost / median cost

    def __str__(self) -> str:
        if self.answer == "equal":
            return f"all ranks equally fast (within {TIE:.0%})"
        if self.answer == "undecided":
            return f"undecided: rank {self.by_work} computes slowest, rank {self.by_waiting} waits least"
        who = f"rank {self.rank} on {self.host}" if self.answer == "rank" else f"host {self.host}"
        return f"{who}: {self.slowness:.3g} x the median time per cell"


def slow_rank(cost: npt.ArrayLike, waiting: npt.ArrayLike, hosts: Sequence[str]) -> SlowRank:
    """The slow rank from (n_sets, P) costs and (n_sets, P) waiting shares of the run, and (P,) host names."""
    c = np.array(time_shares(cost).cost)
    w = np.median(np.atleast_2d(np.asarray(waiting, float)), axis=0)
    if not (len(c) == len(w) == len(hosts) and len(c)):
        raise InputError(
            f"{plural(len(c), 'cost')}, {plural(len(w), 'wait')} and {plural(len(hosts), 'host')}; "
            "expected one per rank"
        )
    by_work, by_waiting = int(c.argmax()), int(w.argmin())
    slowness = float(c[by_work] / np.median(c))
    slow = {int(r) for r in np.flatnonzero(c >= (1 - TIE) * c.max())}
    awaited = {int(r) for r in np.flatnonzero(w <= w.min() + TIE)}
    found = SlowRank("undecided", -1, "", by_work, by_waiting, slowness)
    if len(slow) == len(c):
        return found._replace(answer="equal")
    agreed = sorted(slow & awaited, key=lambda r: -c[r])
    if agreed:
        return found._replace(answer="rank", rank=agreed[0], host=hosts[agreed[0]])
    shared = {hosts[r] for r in slow} & {hosts[r] for r in awaited}
    if len(shared) == 1 and len(set(hosts)) > 1:
        return found._replace(answer="host", host=shared.pop())
    return found
