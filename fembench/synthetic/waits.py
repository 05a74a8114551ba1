"""Waiting until a given moment, asleep or spinning, to within a microsecond.

Moments are readings of time.perf_counter_ns.
"""

import ctypes
import sys
import time

SPIN = 30_000  # ns before the end at which sleeping becomes too coarse and the rank spins
GLANCES = 200  # readings of the processor clock, of which the cheapest counts
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30  # linux/prctl.h
FINE = 1  # ns by which a sleep may end late
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def glance_at_clock() -> int:
    """Processor time in ns that one reading of the processor clock takes, the least of many.

    Stretched a hundred times, it would be a tenth of an iteration.
    """
    return min(-(time.thread_time_ns() - time.thread_time_ns()) for _ in range(GLANCES))


def timer_slack(slack: int) -> int:
    """Let this thread's sleeps end up to `slack` ns late; the slack before, 0: no Linux.

    Linux's default is 50 microseconds, to save power.
    """
    if _prctl is None:
        return 0
    before = int(_prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))
    _prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0)
    return before


def sleep_until(moment: int) -> None:
    """Give the processor away until `moment`, spinning over the last 30 microseconds.

    The thread's other sleeps stay as coarse as they are: ranks that wait for messages
    take naps, and more frequent naps take more processor time from ranks that compute.
    """
    left = moment - time.perf_counter_ns()
    if left > SPIN:
        before = timer_slack(FINE)
        time.sleep((left - SPIN) * 1e-9)
        timer_slack(before)
    spin_until(moment)


def spin_until(moment: int) -> None:
    """Keep the processor busy until `moment`."""
    while time.perf_counter_ns() < moment:
        pass
