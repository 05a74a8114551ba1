"""benchmarks/nodes.py on findings whose truth is known."""

import msgspec
import pytest
from planted_nodes import planted_nodes

from fembench.weights.slow_nodes import slow_nodes


@pytest.fixture
def nodes(from_benchmarks):
    return from_benchmarks("nodes")


def judged(nodes, changes=(), seconds=1.0):
    """The judgement on eight planted nodes of which the second, fifth and seventh should be slow."""
    expected = dict(zip(("n2", "n5", "n7"), nodes.CAUSES))
    findings = msgspec.json.encode(slow_nodes(planted_nodes(8, changes))).decode()
    return nodes.judge("unequal", expected, findings, seconds)


def test_three_slow_nodes_with_their_causes_are_right(nodes):
    assert judged(nodes, dict(zip((1, 4, 6), nodes.SLOW))).right


def test_a_missing_node_a_wrong_cause_and_a_node_too_many_are_wrong(nodes):
    slow, memory, load = nodes.SLOW
    for changes in (
        {1: slow, 4: memory},
        {1: slow, 4: slow, 6: load},
        {0: slow, 1: slow, 4: memory, 6: load},
    ):
        assert not judged(nodes, changes).right
    assert judged(nodes, {1: slow}).named("n2")
    assert not judged(nodes, {1: slow}).named("n5")


def test_nine_of_ten_are_promised_and_both_of_two(nodes):
    good, bad = judged(nodes, dict(zip((1, 4, 6), nodes.SLOW))), judged(nodes)
    rows = nodes.promises([good] * 9 + [bad])
    assert [row[1:3] for row in rows[:4]] == [("9 of 10", ">= 9")] * 4
    assert all(row[3] for row in rows)
    assert not all(row[3] for row in nodes.promises([good] * 8 + [bad] * 2))
    assert not all(row[3] for row in nodes.promises([good, bad]))


def test_500_nodes_have_to_be_analysed_in_seconds(nodes):
    for seconds, met in ((9.0, True), (11.0, False)):
        found = nodes.Found(f"{nodes.MANY} equal", {}, {}, seconds)
        assert [row[3] for row in nodes.promises([found])] == [True, met]
