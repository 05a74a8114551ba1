"""benchmarks/truth.py on machines whose truth is known, and its job on this one."""

import numpy as np
import pytest

from fembench.records.case import Case


@pytest.fixture
def truth(from_benchmarks):
    return from_benchmarks("truth")


def sessions(truth, slower, seeds=range(20), most=660):
    """Verdicts on a machine that is at one of two speeds, 1 : 1.5, for 60 sets on end, each set 4 % off.

    Measured on as the job does, up to `most` turns.
    """
    from truth_turns import Pairs, Took, enough

    job = Pairs(Case(), slower, truth.WITHIN, truth.LEAST, 1e9)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        change = np.cumsum(rng.random(2 * most) < 1 / 60) + rng.integers(2)
        times = 0.02 * 1.5 ** (change % 2) * np.exp(0.04 * rng.standard_normal(2 * most))
        late = np.arange(most) % 2 == 1
        first, second = np.where(late, times[1::2], times[::2]), np.where(late, times[::2], times[1::2])
        for turns in range(truth.LEAST, most + 1, truth.LEAST):
            took = Took((slower * first[:turns]).tolist(), second[:turns].tolist())
            if enough(job, took, 0.0):
                break
        yield truth.judge(took, slower > 1, 1.0)


def test_on_a_machine_of_two_speeds_it_finds_nothing_where_nothing_is(truth):
    found = list(sessions(truth, 1.0, range(100)))
    assert sum(f.kept for f in found) >= 99
    assert sum(f.report == "no difference shown" for f in found) == 100


def test_on_a_machine_of_two_speeds_it_finds_5_percent_and_its_promises_are_19_of_20(truth):
    slower = list(sessions(truth, 1.05))
    assert [f.ratio for f in slower] == pytest.approx([1.05] * 20, rel=0.02)
    said = truth.promises([*sessions(truth, 1.0), *slower])
    assert [row[2] for row in said] == [">= 19", ">= 19", ">= 19", ""]
    assert all(row[3] for row in said)


def test_a_short_form_has_to_keep_its_promises_always(truth):
    blind = [*sessions(truth, 1.0, range(3)), *sessions(truth, 1.05, range(3))]
    blind[-1] = blind[-1].__class__(**(vars(blind[-1]) | {"tune": "no difference shown"}))
    assert [row[3] for row in truth.promises(blind)] == [True, True, False, True]


@pytest.mark.slow
def test_a_job_measures_both_in_turns(truth, monkeypatch):
    monkeypatch.setattr(truth, "LEAST", 6)
    monkeypatch.setattr(truth, "LONGEST", 0.1)
    case = Case.of(mesh="m1", ranks=1, iterations=5, sets=1, warmups=0, trace_iterations=0)
    took = truth.measure(case, 1.05)
    assert len(took.first) == len(took.second) >= truth.LEAST
    assert min(took.first + took.second) > 0
