"""How far a run is, as rank 0 tells it between sets."""

import itertools
import re
import sys

import numpy as np
import pytest
from planted_records import planted

from fembench.base.units import clock
from fembench.bench import duration, measure
from fembench.bench.duration import about
from fembench.bench.measure import HowFar, enough, expected_sets
from fembench.launch.case_job import launch
from fembench.ranks.comm import alone
from fembench.records.case import Case
from fembench.records.store import save


@pytest.mark.parametrize(
    ("effort", "spent", "n"),
    [
        ({"sets": 3}, [], 3),
        ({"sets": 3}, [1.0] * 2, 3),
        ({"sets": 3, "seconds": 10.0}, [], 3),  # not known before the first
        ({"sets": 3, "seconds": 10.0}, [2.0, 2.0], 5),
        ({"sets": 3, "seconds": 1e9}, [1.0], 10_000),
        ({"sets": 6, "precision": 2.0}, [1.0] * 3, 6),  # too few for an interval
        ({"sets": 10, "precision": 2.0}, [1.0] * 8, 10),
        ({"sets": 6, "precision": 2.0}, [1.0] * 8, 8),  # precise, but times drift
        ({"sets": 6, "precision": 2.0}, [0.97, 1.0, 1.0, 1.0, 1.0, 1.03], 14),  # 1.5² · 6
        ({"sets": 6, "precision": 2.0, "max_seconds": 10.5}, [0.97, 1.0, 1.0, 1.0, 1.0, 1.03], 11),
    ],
)
def test_the_number_of_sets_follows_from_those_that_have_run(effort, spent, n):
    assert expected_sets(Case.of(**effort).effort, spent) == n


def test_the_number_of_sets_to_come_seldom_grows_though_any_set_may_be_the_last(monkeypatch):
    """Of sets of 0.3 s that scatter by 5 %; without a margin, it grows six times."""
    now, rng, grown = [0.0], np.random.default_rng(1), []
    monkeypatch.setattr(measure.time, "monotonic", lambda: now[0])
    effort = Case.of(sets=10, warmups=2, precision=2.0, max_seconds=1e3).effort
    for _ in range(30):
        spent, told = [], []
        one = HowFar(effort, told.append)
        while not enough(alone(), effort, spent, 0.3 * float(np.exp(0.05 * rng.standard_normal()))):
            now[0] += 0.3
            one.say(len(spent) + 2, spent, 1e-9)
        counts = [int(re.search(r"of about (\d+)", line)[1]) for line in told]
        grown.append(sum(after > before for before, after in itertools.pairwise(counts)))
    assert np.mean(grown) <= 3


def test_a_line_comes_once_a_second_with_the_set_its_number_residual_and_time_left(monkeypatch):
    now, told = [100.0], []
    monkeypatch.setattr(measure.time, "monotonic", lambda: now[0])
    one = HowFar(Case.of(sets=10, warmups=2).effort, told.append)
    for done in range(1, 5):
        now[0] += 0.6
        one.say(done, [0.5] * max(0, done - 2), 3.14e-9)
    assert told == [
        "set 1 of 10, 0:06 left; residual 3.1e-09",
        "set 3 of 10, 0:05 left; residual 3.1e-09",
    ]
    assert one.page.line() == "set 3 of 10, 0:05 left"


def test_warm_ups_are_counted_apart_from_sets(monkeypatch):
    now, told = [100.0], []
    monkeypatch.setattr(measure.time, "monotonic", lambda: now[0])
    one = HowFar(Case.of(sets=3, warmups=2, seconds=9.0).effort, told.append)
    for done in (1, 2):
        now[0] += 2.0
        one.say(done, [], 3.14e-9)
    assert [line.partition(",")[0] for line in told] == ["warm-up 2 of 2", "set 1 of about 3"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a file in memory is of Linux")
def test_a_set_of_seconds_shows_its_iteration_and_residual_from_the_first_one_on(tmp_path):
    told = []
    case = Case.of(mesh="s", ranks=1, iterations=4000, sets=1, warmups=0)
    launch(case, id="x", command="", scratch=tmp_path, tell=told.append).content()
    form = r"set 1 of 1, \d:\d\d left, iteration (\d+) of 4000; residual \d\.\de-\d+"
    seen = [int(found[1]) for line in told if (found := re.fullmatch(form, line))]
    assert seen, told
    assert seen == sorted(set(seen))
    assert not list(tmp_path.iterdir())


def test_before_the_first_set_a_run_is_expected_to_take_as_long_as_the_stated_rates_say(tmp_path):
    assert about(Case.of(mesh="m1", ranks=1, sets=3), tmp_path).startswith("about 0:0")
    assert about(Case.of(mesh="unknown.vtu", ranks=1), tmp_path) == ""


def test_a_run_like_one_in_the_folder_is_expected_to_take_as_long_and_others_do_not_count(tmp_path):
    """A record of 630 equations says nothing about 200 thousand."""
    record = planted((1.0, 1.0), sets=3)
    (tmp_path / "damaged.json").write_text("{")
    large = Case.of(mesh="m", ranks=2)
    stated = about(large, tmp_path)
    save(record, tmp_path)
    assert about(large, tmp_path) == stated
    seconds = duration.expected_seconds(record.case, [record])
    assert about(record.case, tmp_path) == f"about {clock(seconds)} in all"
    assert duration.expected_seconds(large, [record]) != duration.expected_seconds(large)
