"""H(p), how slow a rank is (thesis-001, 3.3): from kernels, brought up to date from what the system says.

Larger is slower or more loaded; only ratios mean anything. A task takes work x H(p).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.records.profile import Level, Profile, speed_matrix

Array = npt.NDArray[np.float64]


def from_product(profile: Profile, storage: str = "sym", level: Level = "memory") -> Array:
    """(P,) H from the product kernel, all ranks of a host at once; the fastest rank has 1."""
    matrix = speed_matrix(profile, level)
    name = f"product {storage}"
    if name not in matrix.names:
        raise InputError(f"the profile has no {name} in {level}; it has {', '.join(matrix.names) or 'none'}")
    return relative(1 / matrix.speed[:, matrix.names.index(name)])


def from_kernels(seconds: npt.ArrayLike) -> Array:
    """(P,) H from the times (P, n_kernels) of several kernels: geometric means, the fastest rank has 1."""
    times = np.asarray(seconds, float)
    if times.ndim != 2 or not np.all(times > 0):
        raise InputError(
            f"times of kernels of shape {times.shape}; expected positive seconds, rank by kernel"
        )
    return relative(np.exp(np.log(times).mean(axis=1)))


def relative(slowness: Array) -> Array:
    """The same with the smallest as 1."""
    return slowness / np.nanmin(slowness)


def by_queue(calibrated: float, queue_then: float, queue_now: float) -> float:
    """(4.1): H grows as the run queue."""
    return calibrated * queue_now / queue_then


def by_load(calibrated: float, load: float) -> float:
    """(4.2): H grows as the load; an idle host does not get faster than calibrated."""
    return calibrated * max(1.0, load)


def by_clock(calibrated: float, wall: float, cpu: float) -> float:
    """(4.3), the best of the three: by the time that a fragment of code took and the time it was served."""
    return calibrated * wall / cpu


def shares_of(H: Sequence[float]) -> Array:
    """(P,) shares of the work with which all ranks finish at once."""
    speeds = 1 / np.asarray(H, float)
    return speeds / speeds.sum()


def gain_over_equal(H: Sequence[float]) -> float:
    """Time of equal shares over time of shares_of(H), computing alone."""
    h = np.asarray(H, float)
    return float(h.max() / len(h) * (1 / h).sum())
