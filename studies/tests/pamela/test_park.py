"""Tier B of thesis-000: predictions tested on a virtual park whose truth has another generator."""

import ast
import inspect

import numpy as np
import pytest

from fembench_studies.pamela import true_park
from fembench_studies.pamela.costs import count
from fembench_studies.pamela.farm_models import SIZES, VERSIONS, program
from fembench_studies.pamela.park import experiment, pooled, sampled
from fembench_studies.pamela.true_park import SPEEDS, TrueFarm, counts, run


def by_version(outcomes):
    return [pooled([o for o in outcomes if o.version == v]) for v in "ABCD"]


def coverage(score):
    return score.hits / len(score.errors)


@pytest.mark.row("000:apps virtual")
def test_the_truth_uses_nothing_of_the_package_that_predicts():
    tree = ast.parse(inspect.getsource(true_park))
    imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    names = [n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in imports]
    assert "numpy" in names
    assert not [name for name in names if name.startswith("fembench")]


def test_speeds_are_measured_on_the_park_and_not_copied_from_it():
    found = sampled().factors
    errors = [found[p] / speed - 1 for p, speed in enumerate(SPEEDS, 1)]
    assert 0 < max(map(abs, errors)) < 0.06
    assert len(set(found.values())) == len(SPEEDS)


@pytest.mark.parametrize("app", SIZES)
def test_operations_counted_by_hand_are_those_that_are_read_from_the_source(app):
    """Of all tasks together: the hand count leaves out what runs once per row or less."""
    tasks, which = VERSIONS["A"]
    made, rng = program(app, "A"), np.random.default_rng(0)
    by_hand = [counts(TrueFarm(app, tasks, SIZES[app][which]), t, rng) for t in range(tasks)]

    def seconds(cost):
        inner = sum(turns * seconds(each) for turns, each in cost.loops)
        drawn = sum(made.q * seconds(c.then) + (1 - made.q) * seconds(c.other) for c in cost.choices)
        return sum(k * true_park.COSTS[o] for o, k in cost.operations.items()) + inner + drawn

    read = seconds(count(made.model.parts["Work"], made.model))
    mean = np.mean([sum(k * true_park.COSTS[o] for o, k in one.items()) for one in by_hand])
    assert mean == pytest.approx(read, rel=0.012)


def test_a_run_is_as_long_as_its_slowest_worker(monkeypatch):
    """Without noise: two workers, four tasks, messages of known length, one at a time."""
    for name in ("SPREAD", "CONTEXT", "RUN", "TASK", "BYTES"):
        monkeypatch.setattr(true_park, name, 0.0)
    for name in ("SHAPE", "QUIET"):
        monkeypatch.setattr(true_park, name, 1e12)
    farm, rng = TrueFarm("prim", 4, 4000), np.random.default_rng(0)
    task = [sum(k * true_park.COSTS[o] for o, k in counts(farm, t, rng).items()) for t in range(4)]
    message, code = (true_park.LATENCY + true_park.PER_BYTE * n for n in (64, 879))
    # tasks 0 and 2 go to machine 1 of speed 1, tasks 1 and 3 to machine 21 of speed 0.635
    expected = 2 * code + 2 * message + (task[1] + task[3]) / 0.635 + message
    assert run(farm, [1, 21], [2, 2], 0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.row("000:apps virtual")
def test_pi_is_predicted_in_every_version():
    outcomes = experiment("pi")
    assert max(s.mean_error for s in by_version(outcomes)) <= 0.023
    whole = pooled(outcomes)
    assert coverage(whole) >= 0.6875
    assert whole.half_width <= 0.08
