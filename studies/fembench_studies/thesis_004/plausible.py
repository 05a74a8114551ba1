"""Consistency checks of printed times: do the numbers of a table contradict each other?

They found the errata of Ferreira (2006; see docs/sources.md).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

PHASE_TOLERANCE = 1e-4  # of the total; correct rows of Ferreira (2006) differ by 1e-8 to 1e-5
TIMER_TOLERANCE = 0.01


def phase_gap(phases: Sequence[float], total: float) -> float:
    """Total minus the sum of its phases."""
    return total - sum(phases)


def phases_disagree(phases: Sequence[float], total: float) -> bool:
    """Whether the gap exceeds PHASE_TOLERANCE times the total."""
    return abs(phase_gap(phases, total)) > PHASE_TOLERANCE * abs(total)


def communication_share(communication: float, whole: float) -> float:
    """Communication as a fraction of the time that contains it, 0 to 1."""
    return communication / whole


def compute_speedup(alone: float, whole: float, communication: float) -> float:
    """Speedup of a run without its communication."""
    return alone / (whole - communication)


def exceeds_work_ratio(
    alone: float, whole: float, communication: float, tasks: int, power: float = 2
) -> bool:
    """Whether computing fell by more than a factor of tasks^power, the most that splitting can save.

    power: 1 for sparse storage, 2 for dense blocks, whose work is n^2. If so, the communication is
    overstated, or the data fit into a cache only after splitting.
    """
    return compute_speedup(alone, whole, communication) > tasks**power


def timer_error(cycles: npt.ArrayLike, mhz: npt.ArrayLike, printed: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """printed / (cycles / clock) - 1, for times printed in milliseconds; broadcasts."""
    expected = np.asarray(cycles, float) / np.asarray(mhz, float) / 1e3
    return np.asarray(np.asarray(printed, float) / expected - 1)
