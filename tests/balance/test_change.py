"""Emulated speeds that change while a job runs."""

import pytest

from fembench.balance.change import changing, follow, parse_changes
from fembench.base.errors import InputError
from fembench.synthetic.emulate import StretchingTracer, stretched
from fembench.timing.tracer import NullTracer


def factors(tracer, changes, rank, dilate, iterations):
    """Times as long that phases of the rank last after each of these iterations."""
    found = []
    for iteration in iterations:
        follow(tracer, changes, rank, dilate, iteration)
        found.append(tracer._factor)
    return found


def test_a_rank_goes_on_at_the_speed_that_it_has_from_an_iteration_on():
    changes = parse_changes("20:1,0.25;10:1,0.5", (1.0, 1.0))
    tracer = stretched(NullTracer(), 1.0, 2.0)
    assert factors(tracer, changes, 1, 2.0, (0, 9, 10, 19, 20, 21)) == [2, 2, 4, 4, 8, 8]
    assert factors(tracer, changes, 0, 2.0, (0, 10, 20)) == [2, 2, 2]


def test_the_next_solve_begins_at_the_speeds_of_the_start():
    changes = parse_changes("10:0.5,1", (1.0, 1.0))
    tracer = stretched(NullTracer(), 1.0, 3.0)
    assert factors(tracer, changes, 0, 3.0, (0, 10, 0)) == [3, 6, 3]


@pytest.mark.parametrize("text", ["x:1,1", ":1,1", "10", "²:1,1", "10:1,1;10:1,0.5", "9" * 5000 + ":1,1"])
def test_wrong_changes_are_refused(text):
    with pytest.raises(InputError, match="emulate_change"):
        parse_changes(text, (1.0, 1.0))


def test_a_rank_may_get_faster_than_it_was_at_the_start():
    changes = parse_changes("10:1,1", (0.5, 1.0))
    assert factors(stretched(NullTracer(), 0.5, 4.0), changes, 0, 4.0, (0, 10)) == [8, 4]


def test_a_tracer_that_stretches_nothing_yet_is_made_to_where_speeds_change():
    plain = NullTracer()
    assert changing(plain, ()) is plain
    changes = parse_changes("10:0.5", (1.0,))
    tracer = changing(plain, changes)
    assert isinstance(tracer, StretchingTracer)
    assert changing(tracer, changes) is tracer
    assert factors(tracer, changes, 0, 1.0, (0, 10)) == [1, 2]


@pytest.mark.parametrize("text", ["1,0.5", "x:1,1", "5:1", "5:1,2"])
def test_bad_changes_are_refused(text):
    with pytest.raises(InputError, match="emulate"):
        parse_changes(text, (1.0, 1.0))
