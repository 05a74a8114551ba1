"""The kernels of the farm programs, and the operations per task.

program    task                                          operations                  thesis
pi         points in the unit square                     pi_point                    000
primes     a sieve of numbers, a block for each prime    sieve_number, prime_block   000
matrices   powers of a matrix, + - * / on every element  matrix_N                    000
partial    the same on randomly selected elements        power_N, element            000
integral   trapezoids                                    trapezoid                   003
product    rows of a matrix times a matrix               row_N                       003

Working arrays are aligned to 64 bytes (kernels.empty). Otherwise every second
load touches two cache lines, and the same operation takes up to a fifth longer in
one process than in another.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fembench.kernels.backend import kernels

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
CHUNK = 8192  # points at a time, which stay in the cache
TURNS = 4  # iterations of the block that runs for primes
CHAIN = 60  # repetitions of the operations on selected elements
SELECTED = 0.25
POWER = 6  # products of a matrix


class Do(Protocol):
    """Runs a function that does `times` operations of a name:
    Worker.compute, or `just`."""

    def __call__(
        self, operation: str, times: float, function: Callable[..., Any], /, *arguments: object
    ) -> Any: ...


def just(operation: str, times: float, function: Callable[..., Any], /, *arguments: object) -> Any:
    """The function's result, without emulation."""
    return function(*arguments)


@dataclass(frozen=True)
class Kernel:
    """One farm program. Inputs and outputs are float64 vectors."""

    tasks: int  # default number; 0: one per worker
    size: int  # default size
    make: Callable[[int, int, int, int], Array]  # task, tasks, size, seed -> input
    run: Callable[[Do, Array, int], Array]  # executor, input, size -> output
    out: Callable[[int, int, int], int]  # task, tasks, size -> length of the output
    counts: Callable[[int, int], dict[str, float]]  # tasks, size -> unconditional operations of a task
    chance: Callable[[int, int], tuple[str, float, float]] | None = None  # -> conditional operation, times, Q


def part(task: int, tasks: int, size: int) -> tuple[int, int]:
    """The task's range of `size` items."""
    return size * task // tasks, size * (task + 1) // tasks


def pi_input(task: int, tasks: int, size: int, seed: int) -> Array:
    first, last = part(task, tasks, size)
    return np.array([last - first, seed * 1_000_003 + task], float)


def pi_run(do: Do, data: Array, size: int) -> Array:
    """The number of points inside the circle."""
    points, seed = int(data[0]), int(data[1])
    return np.array([float(do("pi_point", points, points_inside, points, seed))])


def points_inside(left: int, seed: int) -> int:
    """Points inside the circle, of `left` random points in the unit square."""
    rng, inside = np.random.default_rng(seed), 0
    chunk = kernels.empty((2, CHUNK))
    while left:
        n = min(CHUNK, left)
        x, y = chunk[:, :n]
        for coordinate in (x, y):
            rng.random(out=coordinate)
            coordinate *= coordinate
        x += y
        inside += int(np.count_nonzero(x < 1.0))
        left -= n
    return inside


def range_input(task: int, tasks: int, size: int, seed: int) -> Array:
    return np.array(part(task, tasks, size), float)


def primes_run(do: Do, data: Array, size: int) -> Array:
    """(number of primes in the range, sum of the block's results)."""
    first, last = int(data[0]), int(data[1])
    found = do("sieve_number", last - first, sieve, first, last, size)
    return np.array([float(len(found)), float(do("prime_block", len(found), prime_block, found).sum())])


def sieve(low: int, high: int, size: int) -> Whole:
    """The primes from low to high - 1; high is at most `size`."""
    numbers = np.arange(low, high)
    prime = numbers >= 2
    for p in small_primes(math.isqrt(max(size, 4)) + 1):
        first = max(p * p, (low + p - 1) // p * p)
        prime[first - low :: p] = False
    return numbers[prime]


def prime_block(found: Whole) -> Whole:
    """The block that runs for every prime: repeated squares modulo the prime."""
    state = np.ones(len(found), np.int64)
    for _ in range(TURNS):
        state = (state * state + 1) % found
    return state


def small_primes(limit: int) -> list[int]:
    """All primes below `limit`."""
    prime = np.ones(max(limit, 2), bool)
    prime[:2] = False
    for k in range(2, math.isqrt(limit) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    return [int(p) for p in np.flatnonzero(prime)]


def matrix_input(task: int, tasks: int, size: int, seed: int) -> Array:
    data = np.random.default_rng([seed, task]).random(out=kernels.empty(size * size))
    data /= size
    return data


def matrices_run(do: Do, data: Array, size: int) -> Array:
    """(A^7 + 1) * 2 / 3 - A, element by element."""
    return np.ravel(do(f"matrix_{size}", 1, power_and_chain, data.reshape(size, size)))


def power_and_chain(a: Array) -> Array:
    """A^7, then + * / - on every element."""
    b = power(a)
    b += 1.0
    b *= 2.0
    b /= 3.0
    b -= a
    return b


def power(a: Array) -> Array:
    """A^7, by POWER repeated products."""
    b, room = a, kernels.empty((2, *a.shape))
    for turn in range(POWER):
        b = np.matmul(b, a, out=room[turn % 2])
    return b


def partial_run(do: Do, data: Array, size: int) -> Array:
    """A^7, then a chain of + * / - on randomly selected elements."""
    raised, chosen = do(f"power_{size}", 1, power_and_choose, data.reshape(size, size))
    do("element", len(chosen), element_chain, raised, chosen)
    return raised


def power_and_choose(a: Array) -> tuple[Array, Whole]:
    """(A^7 as a vector, randomly selected indices); the same
    selection for the same matrix."""
    chance = np.random.default_rng(int(1e6 * a[0, 0]))
    return power(a).ravel(), np.flatnonzero(chance.random(a.size) < SELECTED)


def element_chain(values: Array, chosen: Whole) -> None:
    """+ * / - on each selected element, several times."""
    picked = np.take(values, chosen, out=kernels.empty(len(chosen)))
    for _ in range(CHAIN):
        picked += 1.0
        picked *= 2.0
        picked /= 3.0
        picked -= 0.5
    values[chosen] = picked


def integral_run(do: Do, data: Array, size: int) -> Array:
    """The integral of 4 / (1 + x²) over the task's part of [0, 1]."""
    first, last = int(data[0]), int(data[1])
    return np.array([do("trapezoid", last - first, trapezoids, first, last, size)])


def trapezoids(first: int, last: int, size: int) -> float:
    """The sum over subintervals first to last - 1, of `size`."""
    total = 0.0
    for begin in range(first, last, CHUNK):
        k = np.arange(begin, min(begin + CHUNK, last) + 1)
        y = 4.0 / (1.0 + (k / size) ** 2)
        total += float(y.sum() - 0.5 * (y[0] + y[-1]))
    return total / size


def product_input(task: int, tasks: int, size: int, seed: int) -> Array:
    first, last = part(task, tasks, size)
    rng = np.random.default_rng(seed)
    a, b = rng.random((size, size)), rng.random((size, size))
    return np.concatenate([a[first:last].ravel(), b.ravel()], out=kernels.empty((last - first + size) * size))


def product_run(do: Do, data: Array, size: int) -> Array:
    """The task's rows of A B."""
    n = size * size
    rows, b = data[: len(data) - n].reshape(-1, size), data[len(data) - n :].reshape(size, size)
    return do(f"row_{size}", len(rows), rows_times, rows, b).ravel()


def rows_times(rows: Array, b: Array) -> Array:
    """Rows times a matrix, one row after the other."""
    product = kernels.empty(rows.shape)
    for row, out in zip(rows, product):
        np.dot(row, b, out)
    return product


def _share(task: int, tasks: int, size: int) -> int:
    first, last = part(task, tasks, size)
    return last - first


def prime_share(tasks: int, size: int) -> float:
    """Fraction of the numbers below `size` that is prime (Herai
    2005, 5.4.3: x / (log x - 1))."""
    return 1 / (math.log(size) - 1) if size >= 8 else 0.5


KERNELS = {
    "pi": Kernel(100, 20_000_000, pi_input, pi_run, lambda t, n, s: 1, lambda n, s: {"pi_point": s / n}),
    "primes": Kernel(
        100,
        20_000_000,
        range_input,
        primes_run,
        lambda t, n, s: 2,
        lambda n, s: {"sieve_number": s / n},
        lambda n, s: ("prime_block", s / n, prime_share(n, s)),
    ),
    "matrices": Kernel(
        100, 256, matrix_input, matrices_run, lambda t, n, s: s * s, lambda n, s: {f"matrix_{s}": 1.0}
    ),
    "partial": Kernel(
        100,
        256,
        matrix_input,
        partial_run,
        lambda t, n, s: s * s,
        lambda n, s: {f"power_{s}": 1.0},
        lambda n, s: ("element", float(s * s), SELECTED),
    ),
    "integral": Kernel(
        0, 40_000_000, range_input, integral_run, lambda t, n, s: 1, lambda n, s: {"trapezoid": s / n}
    ),
    "product": Kernel(
        0,
        600,
        product_input,
        product_run,
        lambda t, n, s: _share(t, n, s) * s,
        lambda n, s: {f"row_{s}": s / n},
    ),
}
