"""Every rebalancing policy, declared once: how it chooses moves, how the balancer uses it.

none observe              no moves; observe looks and decides nevertheless
migbsp                    one move, detection by the times of blocks            Gomes (2014), version A
migbsp++ migbsp++-scan    APBSP, as published or with all candidates tried      Gomes (2014), version B
amortised                 cost of moves against gain in all remaining iterations
                                                                                the default
greedy greedy-comm refine refine-comm random                                    those of Charm++
rcb metis-shares                                                                repartitioning
"""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

IntervalRule = Literal["policy", "double", "halve", "step"]


class Policy(Struct, frozen=True):
    """How a policy chooses moves, and how the balancer uses it."""

    choose: Callable[..., Any] | str  # of (stats, tuning), or its import path "module:function"
    by_block: bool = False  # detection by the times of blocks (version A)
    interval: IntervalRule = "double"  # rule for alpha
    wholesale: bool = False  # a new assignment, adopted as a whole
    blind: bool = False  # moves whatever the forecast is
    looks: bool = True
    literal: bool = False  # as published: alpha has no limit, and falls to 1 if no move helps


POLICIES = {
    "none": Policy("fembench.balance.choose:stay", looks=False),
    "observe": Policy("fembench.balance.choose:stay"),
    "migbsp": Policy("fembench.balance.choose:best_potential", by_block=True, interval="halve", literal=True),
    "migbsp++": Policy("fembench.balance.choose:apbsp", literal=True),
    "migbsp++-scan": Policy("fembench.balance.choose:apbsp_scan", literal=True),
    "amortised": Policy("fembench.balance.choose:amortised"),
    "greedy": Policy("fembench.balance.natives:greedy", wholesale=True),
    "greedy-comm": Policy("fembench.balance.natives:greedy_comm", wholesale=True),
    "refine": Policy("fembench.balance.natives:refine"),
    "refine-comm": Policy("fembench.balance.natives:refine_comm"),
    "random": Policy("fembench.balance.natives:random", wholesale=True, blind=True),
    "rcb": Policy("fembench.balance.natives:rcb", wholesale=True),
    "metis-shares": Policy("fembench.balance.natives:metis_shares", wholesale=True),
}
