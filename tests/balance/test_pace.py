"""Speeds and weights from noisy windows: noise is damped, a change is believed at once."""

import numpy as np
import pytest

from fembench.balance.control import Control, Settings, steady
from fembench.balance.driver import Pace
from fembench.balance.observation import Stats, Tuning, applied

OWNER = np.array([0, 0, 1, 1])


def seconds(speed, weight=(1, 1, 1, 1)):
    return np.asarray(weight) / np.asarray(speed)[OWNER]


@pytest.mark.row("002:F3")
def test_the_first_window_is_believed():
    pace = Pace(np.ones(4), 2)
    pace.learn(seconds([1.0, 0.5]), OWNER)
    assert pace.speed == pytest.approx([1, 0.5])
    assert pace.times(OWNER) == pytest.approx([1, 1, 2, 2])
    assert pace.noise == 0.1  # one window says nothing of it


def test_noise_is_damped_and_known():
    pace, rng = Pace(np.ones(4), 2), np.random.default_rng(0)
    found = []
    for _ in range(60):
        pace.learn(seconds([1 + 0.1 * rng.uniform(-1, 1), 1.0]), OWNER)
        found.append(pace.speed[0])
    assert np.std(found[5:]) < 0.6 * 0.1 / np.sqrt(3)
    assert 0.02 < pace.noise < 0.1


def test_a_host_that_slows_by_three_is_believed_at_once():
    pace = Pace(np.ones(4), 2)
    for speed in (1.0, 1.0, 1 / 3):
        pace.learn(seconds([speed, 1.0]), OWNER)
    assert pace.speed == pytest.approx([1 / 3, 1])
    assert pace.noise < 0.01


def test_what_noise_cannot_explain_is_believed_at_once():
    quiet, noisy = Pace(np.ones(4), 2), Pace(np.ones(4), 2)
    rng = np.random.default_rng(1)
    for _ in range(20):
        quiet.learn(seconds([1 + 0.01 * rng.uniform(-1, 1), 1.0]), OWNER)
        noisy.learn(seconds([1 + 0.2 * rng.uniform(-1, 1), 1.0]), OWNER)
    for pace in (quiet, noisy):
        pace.learn(seconds([0.8, 1.0]), OWNER)
    assert quiet.speed[0] == pytest.approx(0.8)
    assert noisy.speed[0] > 0.85


@pytest.mark.row("002:3.3b")
def test_with_ageing_windows_count_as_in_migbsp_and_no_change_is_believed_at_once():
    """I = 8, 16, 4, 4 gives PI = 8, 12, 8, 6 (Gomes 2014, 2.11)."""
    pace, seen = Pace(np.ones(4), 2, ageing=0.5), []
    for speed in (8.0, 16.0, 4.0, 4.0):
        pace.learn(seconds([speed, 1.0]), OWNER)
        seen.append(pace.speed[0])
    assert seen == pytest.approx([8, 12, 8, 6])


def test_a_heavy_block_stands_out_among_those_of_its_rank():
    pace = Pace(np.ones(4), 2)
    pace.learn(seconds([1.0, 1.0], (3, 1, 1, 1)), OWNER)
    assert pace.times(OWNER) == pytest.approx([3, 1, 1, 1])
    assert pace.weight[0] == pytest.approx(3 * pace.weight[1])


def test_an_empty_rank_keeps_its_speed_and_an_unseen_one_gets_the_mean():
    pace = Pace(np.ones(4), 3)
    pace.learn(seconds([1.0, 0.5]), OWNER)
    assert pace.speeds == pytest.approx([1, 0.5, 0.75])
    pace.learn(np.ones(4), np.zeros(4, np.int64))
    assert pace.speed[1] == 0.5


def test_noise_raises_the_hysteresis_where_there_is_one():
    assert steady(Tuning(hysteresis=0.05), 0.1).hysteresis == pytest.approx(0.15)
    assert steady(Tuning(hysteresis=0.0), 0.1).hysteresis == 0.0


@pytest.mark.parametrize("slow", [0.5, 0.6, 1.0])
@pytest.mark.parametrize("noise", [0.02, 0.08])
def test_one_block_a_rank_is_never_worse_off_whatever_windows_say(slow, noise):
    """At 0.5 the slow rank's block is as well off with a fast one; in all other cases it stays."""
    speed, n_moves = np.array([slow, 1.0, 1.0, 1.0]), 0
    for seed in range(3):
        pace, control, rng = Pace(np.ones(4), 4), Control(Settings(gamma=1)), np.random.default_rng(seed)
        owner = np.arange(4)
        for k in range(1, 200):
            took = ((1 + noise * rng.uniform(-1, 1, 4)) / speed)[owner]
            pace.learn(took, owner)
            stats = Stats(
                owner, pace.times(owner), pace.speeds, np.ones(4), remaining=200 - k, noise=pace.noise
            )
            if control.due(k):
                look = control.look(stats, k, float(took.max()))
                assert look.bound == -1.0 or look.bound <= look.predicted
                owner = applied(owner, [(m.block, m.target) for m in look.moves])
                n_moves += len(look.moves)
                assert np.bincount(owner, 1 / speed[owner]).max() <= 1 / slow + 1e-12
    assert n_moves <= (2 if slow == 0.5 else 0)
