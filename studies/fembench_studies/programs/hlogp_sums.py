"""Run times of a ring and a fork as sums of HLogP parameters (Mendes 2004, 3.10 and 6.1)."""

from collections.abc import Sequence

from fembench.records.hlogp import MessageCost


def ring_makespan(computing: Sequence[float], messages: Sequence[MessageCost]) -> float:
    """Each rank computes, then sends to the next; the last one sends back to the first (3.10)."""
    return sum(computing) + sum(cost.total for cost in messages)


def fork_delay(overheads: Sequence[float], local: float) -> float:
    """Delay of the sender's own next task, after all its sends (6.1): the sum of Os; for a join, of Or."""
    return sum(overheads) + local


def error_percent(measured: float, estimated: float) -> float:
    """|estimated - measured| in per cent of the measured value."""
    return 100 * abs(estimated - measured) / measured
