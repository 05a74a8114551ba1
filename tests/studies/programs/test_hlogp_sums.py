"""Rings, forks and joins by HLogP against the printed numbers of thesis-001."""

import pytest

from fembench.records.hlogp import MessageCost
from fembench.studies.programs.hlogp_sums import error_percent, fork_delay, ring_makespan

P0, P1 = (5133257, 5079766, 5057399), (5133257, 8161396, 5057399)
LAM = 10088984
NEAR, FAR = MessageCost(172133, -173024, 178497), MessageCost(3063740, -2781950, 3136989)


@pytest.mark.parametrize(
    ("computing", "messages", "total"),
    [
        (P0, [(20, 6126, 60), (19, 6073, 51), (71, 6044, 281)], 15289167),  # II(a), UFF-UFF
        (P1, [(18, 124914, 58), (52, 149797, 148), (21, 5948, 94)], 18633102),
        (P0, [(20, 6126, 60), (20, 6126, 60), (20, 6126, 60)], 15289040),  # II(b)
        (P1, [(18, 124914, 58), (53, 131723, 147), (20, 6126, 60)], 18615171),
        ([LAM] * 3, [NEAR] * 3, 30799770),
        ([LAM] * 3, [FAR._replace(receive=178497), FAR, NEAR._replace(receive=3136989)], 37282116),
        # version I: L and g; the thesis prints 13650426, which its own summands do not give
        ((4544512, 4544870, 4547739), [(0, 156, 6112), (0, 157, 6112), (0, 156, 6112)], 13655926),
        ((4544870, 6923074, 4544512), [(0, 5871, 192828), (0, 5871, 177890), (0, 156, 6112)], 16401184),
        # analytic: printed 31549625 and 38027918
        ((10331554, 10331554, 10351651), [(37, 181712, 3438)] * 3, 31570320),
        ((10331554,) * 3, [(35, 3417691, 3438), (35, 3417691, 6307), (35, 181712, 6307)], 38027913),
    ],
)
def test_the_ring_ends_when_its_timeline_says(computing, messages, total):
    assert ring_makespan(computing, [MessageCost(*m) for m in messages]) == total


@pytest.mark.parametrize(
    ("measured", "estimated", "percent"),
    [
        (13782189, 13650426, 0.96),
        (17171094, 16401184, 4.48),
        (15320844, 15289167, 0.21),
        (19021120, 18633102, 2.04),
        (15320844, 15289040, 0.21),
        (19021120, 18615171, 2.13),
        (31408734, 31549625, 0.45),
        (37814766, 38027918, 0.56),
        (30093816, 30799770, 2.35),
        (36424200, 37282116, 2.36),
        (50193367, 50153376, 0.08),
        (50193367, 51474996, 2.55),
        (57476327, 47238064, 17.81),
    ],
)
def test_errors_are_percent_of_what_was_measured(measured, estimated, percent):
    assert error_percent(measured, estimated) == pytest.approx(percent, abs=0.01)


def test_overheads_of_a_fork_and_a_join_add_up():
    assert fork_delay([357241] * 8, 8136) == 2866064
    assert error_percent(2866306, 2866064) <= 0.01
    assert fork_delay([361216] * 8, 12126) == 2901854
    assert error_percent(2906737, 2901854) <= 0.2
