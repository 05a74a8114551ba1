"""From the times of machines alone to tasks, shares and bounds (Ferreira 2006, 5.7 and 5.8).

    T_h      time of machine h alone for the whole work, seconds
    share_h  (1 / T_h) / sum(1 / T): the part of the work with which all finish together

Ferreira measured how many times slower one machine is than another, and gave the other that many more equal
tasks. Compare like with like: each machine alone must run as many tasks as in the run together, or dense
storage makes the bound meaningless.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError

Array = npt.NDArray[np.float64]


class Split(NamedTuple):
    """The work divided so that all machines finish at once, communication not counted."""

    seconds: float  # 1 / sum(1 / T)
    shares: tuple[float, ...]  # of each machine; also the largest gain of adding that one to the others


def slowness(slow: npt.ArrayLike, fast: npt.ArrayLike) -> Array:
    """How many times longer the slow machine takes; any shape, as given."""
    return np.asarray(slow, float) / np.asarray(fast, float)


def ideal_split(times: Sequence[float]) -> Split:
    """The weighted split of the work among machines with these times alone, and its time."""
    speeds = 1 / _positive(times)
    return Split(float(1 / speeds.sum()), tuple((speeds / speeds.sum()).tolist()))


def tasks_per_host(times: Sequence[float], total: int) -> tuple[int, ...]:
    """How many of `total` equal tasks each machine gets, at least one: the slowest finishes first possible.

    Each next task goes to the machine that would finish its own soonest, which minimises max(tasks x time).
    8 tasks at 7.7 : 1 become 7 and 1.
    """
    t = _positive(times)
    if total < len(t):
        raise InputError(f"{total} tasks for {len(t)} hosts; expected at least one task per host")
    tasks = [1] * len(t)
    queue = [(2 * time, host) for host, time in enumerate(t.tolist())]
    heapq.heapify(queue)
    for _ in range(total - len(t)):
        _, host = heapq.heappop(queue)
        tasks[host] += 1
        heapq.heappush(queue, ((tasks[host] + 1) * t[host], host))
    return tuple(tasks)


def natural_tasks(times: Sequence[float]) -> int:
    """Tasks in all when the slowest machine gets one and each other what it can do meanwhile."""
    t = _positive(times)
    return int(np.floor(t.max() / t + 1e-9).sum())


def bottleneck_time(tasks: Sequence[int], alone: Sequence[float]) -> float:
    """T = max over hosts of (its tasks / all tasks) x its time alone with all of them, seconds."""
    total = sum(tasks)
    return max(k / total * t for k, t in zip(tasks, alone))


def largest_gain(times: Sequence[float], host: int) -> float:
    """The part of the others' time that adding `host` can save at most: its share of the ideal split."""
    return ideal_split(times).shares[host]


def _positive(times: Sequence[float]) -> Array:
    t = np.asarray(times, float)
    if t.ndim != 1 or not t.size or not np.all(np.isfinite(t) & (t > 0)):
        raise InputError(f"times of hosts {list(times)}; expected positive seconds, one per host")
    return t
