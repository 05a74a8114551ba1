"""H(p), the slowness of a rank (Mendes 2004, 3.3): by kernels, updated for the load.

Larger is slower. Only ratios are meaningful: a task takes work x H(p).
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.records.network import HostLoad
from fembench.records.profile import Profile, speed_matrix

MOST_SHOWN = 8  # shares in a line of text


def from_product(profile: Profile, storage: str = "sym") -> F64:
    """(n_ranks,) H from the product while all ranks of a host compute; the fastest: 1."""
    matrix = speed_matrix(profile)
    name = f"product {storage}"
    if name not in matrix.names:
        raise InputError(f"the profile has no {name} in memory; it has {', '.join(matrix.names) or 'none'}")
    return relative(1 / matrix.speed[:, matrix.names.index(name)])


def from_kernels(seconds: npt.ArrayLike) -> F64:
    """(n_ranks,) H as the geometric mean of times (n_ranks, n_kernels); the fastest: 1."""
    times = np.asarray(seconds, float)
    if times.ndim != 2 or not np.all(times > 0):
        raise InputError(f"kernel times of shape {times.shape}; expected positive seconds, ranks by kernels")
    return relative(np.exp(np.log(times).mean(axis=1)))


def kernel_seconds(profile: Profile, *, processor: bool = False) -> F64 | None:
    """(n_ranks, n_kernels) seconds of the kernels (Mendes 2004,
    4.2.2); None if not measured.

    `processor`: processor time instead of elapsed time.
    """
    network = profile.network
    if network is None or not network.kernels:
        return None
    names = list(dict.fromkeys(k.kernel for k in network.kernels))
    found = np.full((len(profile.environment.rank_host), len(names)), np.nan)
    for k in network.kernels:
        found[k.rank, names.index(k.kernel)] = k.cpu if processor else k.seconds
    return found if np.all(found > 0) else None


def slowness_rows(profile: Profile) -> list[list[object]]:
    """One row per rank: rank, host, H by product, by kernels, and by their processor
    time (as if the host were idle); then the last H updated by the laws (4.1), (4.2)
    and (4.3), with queue and load per core. [] if no kernels were measured."""
    seconds = kernel_seconds(profile)
    processor = kernel_seconds(profile, processor=True)
    if seconds is None or processor is None or profile.network is None:
        return []
    elapsed = from_kernels(seconds)
    calibrated = from_kernels(processor)
    loads = {one.rank: one for one in profile.network.loads}
    try:
        product = from_product(profile).tolist()
    except InputError:  # a profile may lack the storage or the level
        product = [None] * len(seconds)
    environment = profile.environment
    facts = [environment.hosts[host] for host in environment.rank_host]
    rows: list[list[object]] = []
    for rank, host in enumerate(environment.host_of_rank):
        h = float(calibrated[rank])
        one = loads.get(rank)
        cores = max(facts[rank].cores, 1)
        queue, load = (max(one.queue / cores, 1.0), one.load / cores) if one else (1.0, 0.0)
        laws = [by_queue(h, 1.0, queue), by_load(h, load)] if one else [None, None]
        clock = by_clock(h, float(seconds[rank].sum()), float(processor[rank].sum()))
        rows.append([rank, host, product[rank], float(elapsed[rank]), h, *laws, clock])
    return rows


def relative(slowness: F64) -> F64:
    """Slowness relative to the smallest."""
    return slowness / np.nanmin(slowness)


def hosts_to_ask(profile: Profile, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The named hosts of the profile, or all. Raises InputError for an unknown one."""
    known = tuple(dict.fromkeys(profile.environment.host_of_rank))
    for name in names:
        if name not in known:
            raise InputError(f"the profile has no host {name}; expected one of {', '.join(known)}")
    return tuple(names) or known


class Slowdown(NamedTuple):
    """The time of computing now over that in the profile."""

    factor: float  # median of the samples
    low: float  # their smallest and largest
    high: float

    @property
    def uncertain(self) -> float:
        """Half-width of the logarithm of the factor."""
        return math.log(max(self.high / self.factor, self.factor / self.low))


def brought_up_to_date(profile: Profile, samples: Sequence[HostLoad]) -> dict[int, Slowdown]:
    """{rank: slowdown by (4.3)} on one host, from samples of it now. Raises InputError."""
    (host,) = hosts_to_ask(profile, [samples[0].host])
    ranks = [r for r, name in enumerate(profile.environment.host_of_rank) if name == host]
    now = [by_clock(1.0, each.seconds, each.cpu) for each in samples]
    then = calibrated_at(profile)
    return {r: _slowdown([x / then.get(r, 1.0) for x in now]) for r in ranks}


def calibrated_at(profile: Profile) -> dict[int, float]:
    """{rank: slowdown by (4.3) while the profile was measured} of ranks with kernels."""
    seconds = kernel_seconds(profile)
    processor = kernel_seconds(profile, processor=True)
    if seconds is None or processor is None:
        return {}
    return dict(enumerate((seconds.sum(axis=1) / processor.sum(axis=1)).tolist()))


def _slowdown(factors: Sequence[float]) -> Slowdown:
    return Slowdown(median(factors), min(factors), max(factors))


def by_queue(calibrated: float, queue_then: float, queue_now: float) -> float:
    """(4.1): H grows with the run queue."""
    return calibrated * queue_now / queue_then


def by_load(calibrated: float, load: float) -> float:
    """(4.2): H grows with the load; an idle host is exactly as fast as calibrated."""
    return calibrated * max(1.0, load)


def by_clock(calibrated: float, wall: float, cpu: float) -> float:
    """(4.3), the most accurate: H grows with elapsed over processor time of a fragment."""
    return calibrated * wall / cpu


def shares_of(H: Sequence[float]) -> F64:
    """(n_ranks,) shares of the work with which all ranks finish together."""
    speeds = 1 / np.asarray(H, float)
    return speeds / speeds.sum()


def gain_over_equal(H: Sequence[float]) -> float:
    """Time with equal shares over time with shares_of(H), computing only."""
    h = np.asarray(H, float)
    return float(h.max() / len(h) * (1 / h).sum())


def shares_text(H: Sequence[float]) -> str:
    """One line: the shares, and the cost of equal shares."""
    shares = " : ".join(f"{share:.3f}" for share in shares_of(H)[:MOST_SHOWN])
    more = " : …" if len(H) > MOST_SHOWN else ""
    return (
        f"shares of the work at these speeds: {shares}{more}; computing with equal shares would take "
        f"{gain_over_equal(H):.2f} times as long"
    )
