"""Verdicts on planted cases, and replays of recorded times of one configuration against itself."""

import csv
from pathlib import Path

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.advice import advise, largest_gains

HOSTS = ("a", "a", "b", "b")


def noisy(middle, seed, n=15, spread=0.01):
    return middle * (1 + spread * np.random.default_rng(seed).standard_normal(n))


def recorded():
    """Seconds of CG in 120 sets of one configuration, as they followed each other."""
    path = Path(__file__).parent.parent / "data" / "recorded_cg_sets.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        return np.array([float(row["cg_s"]) for row in csv.DictReader(stream)])


@pytest.mark.row("004:9.1.11c")
@pytest.mark.parametrize(
    ("weighted", "shares", "noise", "text"),
    [
        (13, (1, 1, 0.5, 0.5), 0.0, "use these weights: 35"),
        (20, (1, 1, 1, 1), 0.0, "no detectable gain"),
        (24, (1, 1, 0.9, 0.9), 0.0, "no detectable gain"),  # they cost time
        (19, (1, 1, 0.9, 0.9), 0.08, "no detectable gain"),  # within the noise of the session
    ],
)
def test_weights_that_save_more_time_than_the_noise_are_to_be_used(weighted, shares, noise, text):
    found = advise(noisy(20, 1), noisy(weighted, 2), shares, HOSTS, noise=noise)
    assert found.text.startswith(text)
    assert found.kind == ("use" if "use" in text else "no gain")


def test_too_few_turns_say_what_was_seen_and_how_many_would_prove_it():
    equal, weighted = [2.11, 2.30, 2.51, 2.40], [1.04, 1.15, 1.30, 1.20]
    found = advise(equal, weighted, (1, 0.5), ("a", "b"), captured=0.944)
    assert found.kind == "not proven"
    assert found.text == (
        "not proven: weighted was faster in 4 of 4 turns (50.0 % less time, captured gain 0.94); "
        "4 turns cannot prove it at 95 %: repeat with --pairs 6"
    )
    one = advise([10.0], [12.5], (1, 0.5), ("a", "b"), captured=-0.5)
    assert one.kind == "none"
    assert "needs at least 2 pairs" in one.text


def test_where_weighted_was_not_faster_more_turns_would_decide_and_prove_nothing():
    found = advise([10.0, 10.1], [10.2, 10.3], (1, 0.9), ("a", "b"), noise=0.001)
    assert found.text.endswith(" % more time); 2 turns cannot decide at 95 %: repeat with --pairs 6")


def test_a_loss_at_the_speeds_of_each_run_is_not_named_beside_a_gain():
    found = advise([10.0, 10.0], [9.0, 9.0], (1, 0.5), ("a", "b"), noise=0.01, captured=-0.26)
    assert "in 2 of 2 turns (10.0 % less time); 2 turns" in found.text


def test_where_the_noise_exceeds_the_gain_more_turns_alone_are_not_the_advice():
    found = advise([10.0, 10.0], [9.0, 9.0], (1, 0.5), ("a", "b"), noise=0.193)
    assert "noise of 19.3 %: repeat with --pairs 6 on quieter hosts" in found.text


def test_a_gain_that_one_of_six_turns_denies_says_so_and_asks_for_more():
    equal = [2.0, 2.01, 2.0, 2.01, 2.0, 2.01]
    assert advise(equal, [1.0] * 6, (1, 0.5), ("a", "b")).kind == "use"  # as many as were asked for
    found = advise(equal, [1.0, 1.0, 1.0, 1.0, 1.0, 2.5], (1, 0.5), ("a", "b"))
    assert found.kind == "no gain"
    assert "weighted was faster in 5 of 6 turns (50.0 % less time), 95 %: -24.4 % to 50.2 %" in found.text
    assert found.text.endswith("run more --pairs to decide)")


def test_a_host_is_left_out_for_runs_in_turns_only_if_all_of_six_agree():
    weighted, without = [2.0, 3.0, 2.0, 3.0, 2.0, 3.0], [1.8, 2.7, 1.8, 2.7, 1.8, 2.7]
    shares, owners = (3, 1), ("a", "b")
    equal = [2 * t for t in weighted]
    assert advise(equal, weighted, shares, owners, noise=0.01, without={"b": without}).kind == "leave out"
    without[3] = 3.1
    assert advise(equal, weighted, shares, owners, noise=0.01, without={"b": without}).kind == "use"


@pytest.mark.row("004:7.5")
def test_a_host_without_which_the_run_is_faster_is_to_be_left_out():
    # Ferreira (2006): run 3 takes 49.8 s, the fast machine alone 24.4 s; adding node00 gains 7.2 % at most
    shares, without = (1 / 316.657648, 1 / 24.417126), {"node00": noisy(24.4, 3)}
    found = advise(noisy(80, 1), noisy(49.8, 2), shares, ("node00", "node8"), without=without)
    start, _, measured = found.text.partition(" (")
    assert start == "leave node00 out: adding it can gain at most 7.2 %"
    assert measured.startswith("without node00 5")  # 51 %
    assert measured.endswith("less time than with these)")


def test_a_host_without_which_the_run_is_slower_stays():
    found = advise(noisy(80, 1), noisy(20, 2), (1, 3), ("a", "b"), without={"a": noisy(26, 3)})
    assert found.kind == "use"
    assert advise(noisy(20, 1), noisy(13, 2), (1, 1), ("a", "a")).kind == "use"  # the only one


def test_a_host_without_which_the_run_may_be_faster_is_doubted():
    without = {"b": [12.0, 14.5, 12.2]}
    found = advise(noisy(20, 1), noisy(13, 2, spread=0.1), (1, 1, 0.5, 0.5), HOSTS, without=without)
    assert found.kind == "use"
    assert "less time than with these, but not beyond the noise" in found.text


def test_gains_of_hosts_are_their_summed_shares():
    assert largest_gains((2, 1, 1), ("a", "b", "b")) == {"a": 0.5, "b": 0.5}


def test_times_without_a_host_that_is_not_there_are_refused():
    with pytest.raises(InputError, match="it has no rank"):
        advise([1.0], [1.0], (1, 1), ("a", "b"), without={"c": [1.0]})


def replay(seed, gain):
    """Recorded sets dealt to two configurations, the second faster by `gain`; noise from pairs of A and A."""
    rng = np.random.default_rng(seed)
    fours = recorded().reshape(-1, 4)  # sets that followed each other
    blocks = rng.permuted(fours[rng.permutation(len(fours))[:15]], axis=1)
    noise = abs(np.median(blocks[:, 0]) / np.median(blocks[:, 1]) - 1)
    return advise(blocks[:, 2], blocks[:, 3] * (1 - gain), (1, 1, 1, 1), HOSTS, noise=noise)


def test_a_configuration_against_itself_shows_no_difference_in_19_of_20_replays():
    found = [replay(seed, gain=0.0) for seed in range(20)]
    assert sum(f.kind == "no gain" and f.comparison.verdict == "no difference shown" for f in found) >= 19


def test_a_planted_gain_of_5_percent_is_found_in_every_replay():
    assert [replay(seed, gain=0.05).kind for seed in range(20)] == ["use"] * 20


def test_too_few_turns_still_name_the_rank_without_which_it_was_faster():
    shares, owners = (0.5, 0.5), ("rank 0", "rank 1")
    fast, slow = {"rank 1": [0.67, 0.68, 0.66]}, {"rank 1": [20.0, 21.0, 20.5]}
    equal, weighted = [10.5, 10.4, 10.6], [10.3, 10.5, 10.6]
    found = advise(equal, weighted, shares, owners, without=fast)
    assert found.kind == "not proven"
    assert "without rank 1 93.5 % less time than with these" in found.text
    assert "to decide whether to leave rank 1 out, run more --pairs" in found.text
    assert "leave rank 1 out" not in advise(equal, weighted, shares, owners, without=slow).text
