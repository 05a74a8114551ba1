"""A single wrong entry in the results of a farm program is found."""

import math

import numpy as np
import pytest

from fembench_studies.programs import farm, kernels
from fembench_studies.programs.kernels import KERNELS, just
from fembench_studies.programs.verified import verified

CASES = {  # tasks, size
    "pi": (4, 1000),
    "primes": (3, 1000),
    "matrices": (3, 24),
    "partial": (3, 24),
    "integral": (3, 20_000),
    "product": (4, 9),
}


def results(program, seed=5):
    tasks, size = CASES[program]
    inputs = farm.inputs_of(program, tasks, size, seed)
    return [KERNELS[program].run(just, data, size) for data in inputs]


def error(program, outputs, seed=5):
    return verified(program, outputs, *CASES[program], seed)[1]


@pytest.mark.parametrize("program", CASES)
def test_right_results_are_right(program):
    assert error(program, results(program)) <= 1


@pytest.mark.parametrize("program", ["primes", "matrices", "partial", "integral", "product"])
@pytest.mark.parametrize("by", [1e-6, -1.0, math.nan])
def test_one_wrong_entry_is_found_wherever_it_is(program, by):
    """Tasks of primes count whole numbers: 1e-6 off is two millionths of the tolerance."""
    by = 1.0 if program == "primes" and by == 1e-6 else by
    rng = np.random.default_rng(0)
    for task, one in enumerate(results(program)):
        for entry in rng.integers(len(one), size=min(len(one), 8)):
            outputs = results(program)
            outputs[task][entry] += by
            assert error(program, outputs) > 1


@pytest.mark.parametrize("program", ["matrices", "partial", "product"])
def test_two_entries_in_each_others_place_are_found(program):
    outputs = results(program)
    one = outputs[1]
    one[[2, 5]] = one[[5, 2]]
    assert error(program, outputs) > 1


@pytest.mark.parametrize("program", ["primes", "matrices", "partial", "integral", "product"])
def test_results_of_two_tasks_in_each_others_place_are_found(program):
    outputs = results(program)
    assert error(program, [outputs[1], outputs[0], *outputs[2:]]) > 1


def test_too_many_points_inside_the_circle_are_found():
    assert error("pi", [o + 60 for o in results("pi")]) > 1


@pytest.mark.parametrize(
    ("program", "name", "value"),
    [
        ("matrices", "POWER", 5),
        ("partial", "POWER", 5),
        ("partial", "CHAIN", 20),
        ("partial", "SELECTED", 0.2),
        ("primes", "TURNS", 3),
    ],
)
def test_a_kernel_that_computes_something_else_is_found(monkeypatch, program, name, value):
    monkeypatch.setattr(kernels, name, value)
    assert error(program, results(program)) > 1
