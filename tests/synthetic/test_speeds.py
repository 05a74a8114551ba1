"""Emulated speeds as users write them."""

import pytest

from fembench.base.errors import InputError
from fembench.synthetic.speeds import (
    Change,
    NodeSpeed,
    label,
    parse_changes,
    parse_hot_spots,
    parse_nodes,
    parse_speeds,
    weights_at,
)


def test_what_is_emulated_is_read_and_the_label_says_it():
    assert parse_speeds("1,0.5", 2) == (1.0, 0.5)
    assert parse_speeds("", 3) == (1.0, 1.0, 1.0)
    assert label("", 1.0) == ""
    assert label("1,0.5", 4.0) == "emulated speeds 1,0.5, dilated 4 times"


ONES = (1.0, 1.0)
SPEEDS = "1,1e-320 1 1,2 0,1 -1,1 a,b nan,1 1,1,1"
NODES = "1, 2 0 1:0 1:2 1:1:1 1:1:-0.1 1:1:0:0 x nan 1:nan"
CHANGES = "x:1,1 :1,1 10 ²:1,1 10:1,1;10:1,0.5 1,0.5 5:1 5:1,2"
SPOTS = "3 3: x:1x2 3:1 3:1x0.5 3:1xnan 3:4x2 3:2-1x2 3:1x2;3:2x2 3:1x2.. -1:1x2"


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        *((lambda text: parse_speeds(text, 2), text, "emulate") for text in SPEEDS.split()),
        *((parse_nodes, text, "expected SPEED") for text in ["", *NODES.split()]),
        *((lambda text: parse_changes(text, ONES), text, "emulate") for text in CHANGES.split()),
        (lambda text: parse_changes(text, ONES), "9" * 5000 + ":1,1", "emulate_change"),
        *((lambda text: parse_hot_spots(text, 4), text, "hot_spot") for text in SPOTS.split()),
    ],
)
def test_what_means_nothing_is_refused(parse, text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


def test_a_node_has_a_speed_of_cores_and_of_memory_and_another_load():
    expected = ((1.0, 1.0, 0.0), (0.85, 0.85, 0.0), (1.0, 0.7, 0.0), (1.0, 1.0, 0.3))
    assert parse_nodes("1,0.85,1:0.7,1:1:0.3") == tuple(NodeSpeed(*one) for one in expected)


def test_changes_are_sorted_and_begin_with_the_speeds_of_the_start():
    changes = parse_changes("20:1,0.25;10:1,0.5", ONES)
    assert changes == (Change(0, ONES), Change(10, (1.0, 0.5)), Change(20, (1.0, 0.25)))
    assert parse_changes("", ONES) == ()


def test_blocks_of_a_hot_spot_cost_more_until_the_next_one():
    spots = parse_hot_spots("100:0-1x3,3x1.5;50:2x2", 4)
    assert [spot.at for spot in spots] == [50, 100]
    assert weights_at(spots, 49, 4) == (1, 1, 1, 1)
    assert weights_at(spots, 50, 4) == weights_at(spots, 99, 4) == (1, 1, 2, 1)
    assert weights_at(spots, 100, 4) == (3, 3, 1, 1.5)
    assert parse_hot_spots("", 4) == ()


@pytest.mark.parametrize("text", ["4:1", "4,1"])
def test_speeds_above_1_are_refused_with_what_they_refer_to(text):
    with pytest.raises(InputError, match=r"such as 1,1,0\.5,0\.25, where the fastest rank has 1"):
        parse_speeds(text, 2)
