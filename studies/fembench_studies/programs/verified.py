"""All results of a farm program, checked in another way than the workers computed them.

pi         the number of points inside the circle is binomial: at most six standard deviations off
primes     per task, the number of primes by a sieve of the whole range; the block's results by a closed form:
           4 times x² + 1 from 1 gives 677, so the remainder of 677
matrices   every matrix: A^7 follows from the result, and A^7 X from seven products with vectors (Freivalds
           1977); the sum of all entries from 1^T A^3 and A^4 1
partial    every element: A^7 by squaring, and the chain of x -> 2 (x + 1) / 3 - 1/2, whose fixed point is
           1/2, in closed form: 1/2 + (2/3)^60 (x - 1/2)
integral   per task, 4 arctan
product    all rows, times vectors
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from fembench_studies.programs.kernels import KERNELS, Array, part, small_primes

VECTORS = 4
EPS = float(np.finfo(float).eps)
Check = Callable[[list[Array], int, int, int], tuple[float, float]]


def verified(program: str, outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    """(value, largest error / tolerance) of the outputs of all tasks; the
    results are right up to 1."""
    value, error = CHECKS[program](outputs, tasks, size, seed)
    return value, error if math.isfinite(error) else math.inf


def _pi(outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    inside = float(sum(o[0] for o in outputs))
    deviation = math.sqrt(size * math.pi / 4 * (1 - math.pi / 4))
    return 4 * inside / size, abs(inside - size * math.pi / 4) / (6 * deviation)


def _primes(outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    every = np.array(small_primes(size))
    ends = np.searchsorted(every, [part(t, tasks, size)[1] for t in range(tasks)])
    found, blocks = np.array(outputs).T
    counted = np.diff(ends, prepend=0)
    summed = np.diff(np.concatenate([[0], np.cumsum(677 % every)])[ends], prepend=0)
    wrong = np.abs(found - counted).max() + np.abs(blocks - summed).max()
    return float(found.sum()), 2.0 * float(wrong)


def _matrices(outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    errors = []
    for task, a in enumerate(_matrices_in("matrices", tasks, size, seed)):
        powered = (outputs[task].reshape(size, size) + a) * 1.5 - 1.0
        x = _vectors(size, seed, task)
        right, left, ones = x, np.ones(size), np.ones(size)
        for k in range(7):
            right = a @ right
            left = left @ a if k < 3 else left
            ones = a @ ones if k < 4 else ones
        errors.append(np.abs(powered @ x - right).max() / (8 * EPS * size))
        errors.append(abs(math.fsum(powered.ravel()) - left @ ones) / (8 * EPS * size * size))
    return float(np.concatenate(outputs).sum()), float(np.max(errors))


def _partial(outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    errors = []
    for task, a in enumerate(_matrices_in("partial", tasks, size, seed)):
        squared = a @ a
        right = (squared @ squared @ (squared @ a)).ravel()
        chosen = np.random.default_rng(int(1e6 * a[0, 0])).random(size * size) < 0.25
        right[chosen] = 0.5 + (2 / 3) ** 60 * (right[chosen] - 0.5)
        errors.append(np.abs(outputs[task] - right).max() / (8 * EPS))
    return float(np.concatenate(outputs).sum()), float(np.max(errors))


def _integral(outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    ends = [[4 * math.atan(k / size) for k in part(t, tasks, size)] for t in range(tasks)]
    errors = [abs(o[0] - (b - a)) for o, (a, b) in zip(outputs, ends, strict=True)]
    value = math.fsum(o[0] for o in outputs)
    return float(value), float(np.max([*errors, abs(value - math.pi)]) / 1e-8)


def _product(outputs: list[Array], tasks: int, size: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    a, b = rng.random((size, size)), rng.random((size, size))
    x = _vectors(size, seed, 0)
    found, right = np.concatenate(outputs).reshape(size, size), a @ (b @ x)
    return float(found.sum()), float(np.abs(found @ x - right).max() / (8 * EPS * size * size))


def _matrices_in(program: str, tasks: int, size: int, seed: int) -> Sequence[Array]:
    """[task] input, (size, size)."""
    return [KERNELS[program].make(t, tasks, size, seed).reshape(size, size) for t in range(tasks)]


def _vectors(size: int, seed: int, task: int) -> Array:
    """(size, VECTORS) random factors of size 1/2 to 1, so that no
    error of one element vanishes."""
    rng = np.random.default_rng([seed, task, 1977])
    return rng.uniform(0.5, 1.0, (size, VECTORS)) * rng.choice([-1.0, 1.0], (size, VECTORS))


CHECKS: dict[str, Check] = {
    "pi": _pi,
    "primes": _primes,
    "matrices": _matrices,
    "partial": _partial,
    "integral": _integral,
    "product": _product,
}
