"""The tracer: traces computed by hand."""

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.records import phases
from fembench.records.phases import ALLREDUCE, CG, DOT, READ, SEND
from fembench.synthetic.waits import HeardTracer
from fembench.timing import tracer
from fembench.timing.tracer import NullTracer, Traffic, chain, make_tracer, span


def counting(capacity=100, ticks_per_second=1.0):
    """A tracer whose clock is one more at every reading, and 0 at its origin."""
    made = make_tracer("counter", capacity, ticks_per_second)
    made.origin = made.now()
    return made


def heard():
    """The same behind a tracer that reports spans, whose chains run in Python."""
    return HeardTracer(counting(), *[lambda number: None] * 3)


def test_a_long_trace_has_the_sums_and_spans_that_its_stamps_say():
    """Summed here from the numbers of the readings: begin and end take one each."""
    rng, t = np.random.default_rng(3), counting(capacity=40, ticks_per_second=3.0)
    sums, kept, now, open_spans = np.zeros(len(phases.NAMES)), [], 0, []
    for step in range(400):
        choice, phase = rng.random(), int(rng.integers(len(phases.NAMES)))
        t.iteration, t.recording = step, bool(rng.random() < 0.7)
        if open_spans and choice < 0.5:
            done, begin = open_spans.pop()
            now += 1
            t.end(done)
            sums[done] += now - begin
            kept += [(done, step, begin / 3, now / 3, 0)] if t.recording else []
        elif phase not in [one for one, _ in open_spans] and len(open_spans) < 16:
            now += 1
            open_spans.append((phase, now))
            t.begin(phase)
    assert (t.stored, t.dropped, t.depth) == (40, len(kept) - 40, len(open_spans))
    assert t.dropped > 0
    np.testing.assert_array_equal(t.ticks(), sums)
    np.testing.assert_array_equal(t.seconds(), sums / 3)
    assert t.events().tolist() == kept[:40]


@pytest.mark.parametrize("capacity", [0, 2])
def test_a_full_buffer_stops_storing_and_goes_on_counting(capacity):
    t = counting(capacity=capacity)
    t.recording = True
    for _ in range(5):
        t.begin(READ)
        t.end(READ)
    assert (t.stored, t.dropped, len(t.events())) == (capacity, 5 - capacity, capacity)
    assert (t.counts()[READ], t.ticks()[READ]) == (5, 5)


def test_misuse_is_an_error_that_names_the_phase():
    t = counting()
    with pytest.raises(RuntimeError, match=r"end\(cg\) does not nest; open spans: none"):
        t.end(CG)
    t.begin(CG)
    with pytest.raises(RuntimeError, match=r"begin\(cg\) does not nest; open spans: \['cg'\]"):
        t.begin(CG)
    t.begin(DOT)
    with pytest.raises(RuntimeError, match=r"end\(cg\) does not nest; open spans: \['cg', 'cg.dot'\]"):
        t.end(CG)
    for wrong in (-1, len(phases.NAMES)):
        for call in (lambda p: t.begin(p), lambda p: t.add(p, 0, 1)):
            with pytest.raises(RuntimeError, match="phases are 0 … "):
                call(wrong)
    t.end(DOT)
    t.end(CG)
    assert t.counts().sum() == 2


def test_sixteen_spans_may_be_open_and_no_more():
    t = counting()
    for phase in range(16):
        t.begin(phase)
    with pytest.raises(RuntimeError, match="does not nest"):
        t.begin(16)
    assert t.depth == 16


def test_a_span_stamped_elsewhere_counts_like_one_of_its_own():
    t = counting(ticks_per_second=2.0)
    t.recording = True
    t.add(READ, t.origin + 4, t.origin + 10)
    assert t.seconds()[READ] == 3.0
    assert t.events().tolist() == [(READ, -1, 2.0, 5.0, 0)]


def test_reset_forgets_sums_and_open_spans_and_keeps_events_if_told():
    t = counting()
    t.recording = True
    t.begin(CG)
    t.end(CG)
    t.begin(CG)
    t.reset(events=False)
    assert (t.depth, t.counts().sum(), t.stored) == (0, 0, 1)
    t.begin(CG)  # the one left open is forgotten
    t.end(CG)
    t.reset()
    assert (t.counts().sum(), t.stored, t.dropped) == (0, 0, 0)


@pytest.mark.parametrize("make", [counting, heard])
def test_a_chain_stamps_its_steps_and_sums_their_numbers(make):
    t, said = make(), []
    run = chain(t, (DOT, lambda: said.append("a"), lambda: 0.25), (READ,), (ALLREDUCE, lambda: 0.5))
    assert run() == 0.75
    assert said == ["a"]
    assert t.counts()[[DOT, READ, ALLREDUCE]].tolist() == [1, 1, 1]
    assert t.ticks().sum() == 3  # the clock goes one on from each begin to its end


@pytest.mark.parametrize("make", [NullTracer, counting, heard])
def test_a_chain_without_numbers_returns_none_and_an_error_comes_through(make):
    t = make()
    assert chain(t, (DOT, lambda: None), (READ,))() is None
    with pytest.raises(ZeroDivisionError):
        chain(t, (DOT, lambda: 1 / 0))()


def test_a_chain_may_have_any_number_of_steps():
    t = counting()
    chain(t, *[(DOT,)] * 500)()
    assert t.counts()[DOT] == 500


@pytest.mark.parametrize("make", [counting, heard])
def test_spans_of_traffic_name_partners_and_bytes_and_others_do_not(make):
    t = make()
    t.recording = True
    sent, summed = Traffic(SEND, (1, 4), (48, 24)), Traffic(ALLREDUCE, (), (8,))
    run = chain(t, (sent, lambda: None), (DOT,), (summed,), (sent,))
    run()
    t.begin(DOT)
    t.end(DOT)
    told = [(e["phase"], t.messages[e["message"]]) for e in t.events()]
    nothing = ((), ())
    assert told == [
        (SEND, ((1, 4), (48, 24))),
        (DOT, nothing),
        (ALLREDUCE, ((), (8,))),
        (SEND, ((1, 4), (48, 24))),
        (DOT, nothing),
    ]
    assert len(t.messages) == 3  # each once


def test_room_is_made_for_as_many_spans_as_a_rehearsal_had_and_those_before_it_stay():
    t = counting(capacity=3)
    t.recording = True
    for phase in (READ, CG, CG, DOT, DOT, DOT):
        t.begin(phase)
        t.end(phase)
    assert (t.stored, t.dropped) == (3, 3)
    t.make_room(1, t.stored - 1 + t.dropped)
    assert (t.stored, t.dropped, t.capacity) == (1, 0, 6)
    for _ in range(5):
        t.begin(DOT)
        t.end(DOT)
    assert t.events()["phase"].tolist() == [READ, *[DOT] * 5]
    assert t.dropped == 0


def test_the_null_tracer_has_every_name_of_the_others_and_measures_nothing():
    t = NullTracer()
    t.begin(CG)
    t.recording = True
    t.iteration = 3
    t.end(DOT)
    t.add(CG, 0, 1)
    t.reset()
    assert (t.now(), t.stored, t.counts().sum(), t.seconds().sum(), len(t.events())) == (0, 0, 0, 0, 0)
    public = {name for name in dir(make_tracer()) if not name.startswith("_")}
    assert public <= set(dir(t))


def test_a_span_ends_also_when_its_body_raises():
    t = counting()
    with pytest.raises(KeyError), span(t, READ):
        raise KeyError
    assert (t.depth, t.counts()[READ]) == (0, 1)


def test_a_clock_that_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="no clock 'sundial'"):
        make_tracer("sundial")


def test_without_the_compiled_module_nothing_is_traced(monkeypatch):
    monkeypatch.setattr(tracer, "compiled", None)
    with pytest.raises(InputError, match="not compiled"):
        make_tracer("perf_counter_ns")


def test_a_span_also_belongs_to_the_level_entered_last():
    t = counting()
    t.level_nodes = (900, 80)
    t.begin(DOT)  # 1
    t.enter(1, DOT)  # 2, 3
    t.enter(2, DOT)  # 4, 5
    t.end(DOT)  # 6
    t.begin(SEND)  # 7
    t.end(SEND)  # 8
    t.begin(DOT)  # 9
    t.enter(0, DOT)  # 10, 11
    t.end(DOT)  # 12
    assert t.level_ticks()[:, [DOT, SEND]].tolist() == [[1, 0], [1 + 1, 1]]
    assert t.ticks()[[DOT, SEND]].tolist() == [5, 1]
    t.reset()
    assert not t.level_ticks().any()
