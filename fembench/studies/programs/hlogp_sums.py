"""Run times of a ring and a fork as sums of HLogP parameters (Mendes 2004, 3.10 and 6.1)."""

from collections.abc import Sequence

from fembench.records.hlogp import MessageCost


def ring_makespan(computing: Sequence[float], messages: Sequence[MessageCost]) -> float:
    """Rank k computes, then sends to rank k + 1; the last one back to the first (3.10)."""
    return sum(computing) + sum(cost.total for cost in messages)


def fork_delay(overheads: Sequence[float], local: float) -> float:
    """By what a task on the sender's own host starts later, where it is sent to last (6.1): Os add up.

    Of a join the same with Or.
    """
    return sum(overheads) + local


def error_percent(measured: float, estimated: float) -> float:
    """|estimated - measured| in percent of the measured value."""
    return 100 * abs(estimated - measured) / measured
