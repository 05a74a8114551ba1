"""Equal tasks per host, from the time of each host alone (Ferreira 2006, Section 5.7).

Ferreira measured how many times slower one host is than another, and gave the faster one that many times
the equal tasks. Alone, each host must run as many tasks as in the run on all hosts; otherwise the times are
not comparable.
"""

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.base.units import plural

Array = npt.NDArray[np.float64]


def tasks_per_host(times: Sequence[float], total: int) -> tuple[int, ...]:
    """How many of `total` equal tasks each host gets (at least one), to minimise max(tasks x time).

    Each further task goes to the host that would finish all of its tasks soonest. 8 tasks at 7.7 : 1 become
    7 and 1.
    """
    t = _positive(times)
    if total < len(t):
        raise InputError(
            f"{plural(total, 'task')} for {plural(len(t), 'host')}; expected at least one task per host"
        )
    tasks = [1] * len(t)
    queue = [(2 * time, host) for host, time in enumerate(t.tolist())]
    heapq.heapify(queue)
    for _ in range(total - len(t)):
        _, host = heapq.heappop(queue)
        tasks[host] += 1
        heapq.heappush(queue, ((tasks[host] + 1) * t[host], host))
    return tuple(tasks)


def natural_tasks(times: Sequence[float]) -> int:
    """Number of tasks, if the slowest host gets one and each other host as many as it does meanwhile."""
    t = _positive(times)
    return int(np.floor(t.max() / t + 1e-9).sum())


def _positive(times: Sequence[float]) -> Array:
    t = np.asarray(times, float)
    if t.ndim != 1 or not t.size or not np.all(np.isfinite(t) & (t > 0)):
        raise InputError(f"times of hosts {list(times)}; expected positive seconds, one per host")
    return t
