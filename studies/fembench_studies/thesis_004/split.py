"""Two estimates from the times of machines alone (Ferreira 2006, Sections 5.7 and 5.8).

    T_h      time of machine h alone for the whole work, seconds
    share_h  (1 / T_h) / sum(1 / T): the fraction of the work with which all machines finish together

Each machine alone must run as many tasks as in the joint run; otherwise dense storage makes both meaningless.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.errors import InputError


class Split(NamedTuple):
    """The work divided so that all machines finish together, without communication."""

    seconds: float  # 1 / sum(1 / T)
    shares: tuple[float, ...]  # per machine; also the largest gain from adding that machine to the others


def ideal_split(times: Sequence[float]) -> Split:
    """The split of the work among machines that take these times alone. Raises InputError."""
    t = np.asarray(times, float)
    if t.ndim != 1 or not t.size or not np.all(np.isfinite(t) & (t > 0)):
        raise InputError(f"times of hosts {list(times)}; expected positive seconds, one per host")
    speeds = 1 / t
    return Split(float(1 / speeds.sum()), tuple((speeds / speeds.sum()).tolist()))


def bottleneck_time(tasks: Sequence[int], alone: Sequence[float]) -> float:
    """T = max over hosts of (its tasks / all tasks) x its time alone with all of them, seconds."""
    total = sum(tasks)
    return max(k / total * t for k, t in zip(tasks, alone))
