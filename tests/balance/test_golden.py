"""Examples of Gomes (2014): detection, alpha, band, ageing, potential of migration, APBSP, tie stall."""

import dataclasses

import numpy as np
import pytest
from golden import job, three_ranks

from fembench.balance.choose import (
    amortised,
    apbsp,
    balanced_blocks,
    balanced_ranks,
    best_potential,
    by_finish,
    candidates,
    forecast,
    next_alpha,
    reachable,
    wider,
)
from fembench.balance.observation import Links, Tuning

LITERAL = Tuning(band=0.3)


@pytest.mark.row("002:F6")
@pytest.mark.parametrize(
    ("owner", "times", "by_blocks", "by_ranks"),
    [
        ([0, 0, 1, 1], [1, 3, 2, 2], False, True),  # a false alarm: 3 >= 2.6, but 4 and 4
        ([0, 0, 1], [2, 2, 2], True, False),  # missed: 4 >= 3.9
    ],
)
def test_migbsp_looks_at_blocks_where_ranks_decide(owner, times, by_blocks, by_ranks):
    stats = job(owner, times)
    assert (balanced_blocks(stats, 0.3), balanced_ranks(stats, 0.3)) == (by_blocks, by_ranks)


@pytest.mark.row("002:F5", "002:3.3b")
@pytest.mark.parametrize(
    ("alpha", "fine", "options", "expected"),
    [
        (2, "yynyyyn", (), [4, 8, 1, 2, 4, 8, 1]),
        (4, "ynnnnn", ("halve",), [8, 4, 2, 1, 1, 1]),  # of version A
        (2, "yynnny", ("step", 2), [3, 4, 3, 2, 2, 3]),  # of MigBSP: not below the first
    ],
)
def test_alpha_grows_while_ranks_are_balanced_and_falls_to_its_least(alpha, fine, options, expected):
    seen = []
    for word in fine:
        alpha = next_alpha(alpha, word == "y", *options)
        seen.append(alpha)
    assert seen == expected


@pytest.mark.row("002:3.3b")
def test_the_band_widens_by_half_and_not_beyond_one():
    bands = [0.3]
    for _ in range(3):
        bands.append(wider(bands[-1]))
    assert bands == pytest.approx([0.3, 0.45, 0.675, 0.675])


@pytest.mark.row("002:F7", "002:F8", "002:7.5")
def test_potentials_of_the_worked_example():
    stats = three_ranks()
    assert stats.rank_time.tolist() == [5, 3, 1]
    assert not balanced_ranks(stats, 0.3)
    found = {(c.block, c.target): c.potential for c in candidates(stats, LITERAL)}
    assert found == pytest.approx({(1, 2): 2.80, (0, 2): 2.45})  # to rank 1 both are negative


@pytest.mark.row("002:F11", "002:F13")
def test_the_prediction_algorithm_stops_where_the_next_iteration_would_be_longer():
    stats = three_ranks()
    assert forecast(stats, []) == pytest.approx(5.1)
    assert forecast(stats, [(1, 2)]) + 0.2 == pytest.approx(3.3)
    assert forecast(stats, [(1, 2), (0, 2)]) + 0.3 == pytest.approx(3.9)
    assert apbsp(stats, LITERAL) == [(1, 2)]
    assert best_potential(stats, LITERAL) == [(1, 2)]


def test_two_equal_bottlenecks_stall_the_literal_algorithm_and_not_the_amortised_one():
    stats = job(np.repeat(range(4), 2), [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5], [1, 1, 2, 2], size=np.ones(8),
                second_per_byte=0.01, remaining=100)  # fmt: skip
    assert apbsp(stats, Tuning()) == []
    moves = amortised(stats, Tuning())
    assert len(moves) >= 2
    assert forecast(stats, moves) == pytest.approx(0.75 * forecast(stats, []))


def test_scan_goes_on_where_the_literal_algorithm_stops():
    stats, tuning = job([0, 0, 0, 1, 2], [1, 3, 2, 1, 1]), Tuning(band=0.1)
    literal = [(0, 1), (2, 1)]  # 6, 1, 1 s become 3, 4, 1; block 1 would make that 0, 7, 1
    assert apbsp(stats, tuning) == literal
    assert apbsp(stats, tuning, scan=True) == [*literal, (1, 2)]


@pytest.mark.row("002:F10", "002:F22")
@pytest.mark.parametrize("field", ["size", "bytes", "time"])
def test_the_potential_falls_with_size_and_rises_with_traffic_and_with_the_time_of_the_source(field):
    def potential(factor):
        stats = three_ranks()
        if field == "size":
            stats = dataclasses.replace(stats, size=stats.size * factor)
        elif field == "bytes":
            links = dataclasses.replace(stats.links, bytes=stats.links.bytes * factor)
            stats = dataclasses.replace(stats, links=links)
        else:  # another block of the source rank takes longer
            stats = dataclasses.replace(stats, time=stats.time + np.array([0, 0.1 * factor, 0, 0]))
        return next(c.potential for c in candidates(stats, LITERAL) if (c.block, c.target) == (0, 2))

    series = np.diff([potential(factor) for factor in (1, 2, 3, 4)])
    assert (series < 0).all() if field == "size" else (series > 0).all()


def test_what_becomes_remote_is_counted_on_request():
    stats = three_ranks()
    plain = candidates(stats, LITERAL)[0]
    old = stats.links
    links = Links(np.append(old.to, 1), np.append(old.source, 0), np.append(old.bytes, 4e4))
    with_loss = dataclasses.replace(stats, links=links)
    assert candidates(with_loss, LITERAL)[0].comm == plain.comm
    net = next(c for c in candidates(with_loss, Tuning(band=0.3, net=True)) if c.block == 1)
    assert net.comm == pytest.approx(plain.comm - 0.04)


def test_the_origin_may_be_above_the_mean_instead_of_above_the_band():
    stats = job([0, 0, 1, 1, 2], [1.1, 1.1, 1, 1, 0.9])  # times 2.2, 2, 0.9: mean 1.7
    for origin, sources in (("strict", {0}), ("mean", {0, 1})):
        assert {c.source for c in candidates(stats, Tuning(band=0.2, origin=origin))} == sources


@pytest.mark.row("002:7.7-4")
def test_whether_the_band_can_be_reached_depends_on_the_blocks():
    slow = [0.5, 1, 1, 1]
    few = job(np.repeat(range(4), 2), np.r_[2, 2, np.ones(6)], slow)
    many = job(np.repeat(range(4), 8), np.r_[np.full(8, 2.0), np.ones(24)], slow)
    assert not reachable(few, by_finish(few), 0.1)
    assert reachable(many, by_finish(many), 0.2)
