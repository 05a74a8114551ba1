"""A task of the user's own, from a Python file (Herai 2005,
3.3: taskrun(data) -> data).

work(data, size)                  a vector of float64 and the size -> a number, or a vector
make(task, tasks, size, seed)     its input; without it [task, tasks, seed]
results(size)                     the length of a result; without it 1

All tasks count as one operation `task`, so they should take about equally long. The
file must be visible to all hosts under the same path.
"""

import functools
import hashlib
import importlib.util
from pathlib import Path

import numpy as np

from fembench.errors import InputError
from fembench_studies.programs.kernels import KERNELS, Array, Do, Kernel, just

TASK = "task"  # the only operation
TASKS, SIZE = 100, 1  # defaults
SAME = 1e-12  # tolerance, relative to the largest value of a task


def is_code(program: str) -> bool:
    """Whether a program is a file of the user's own."""
    return Path(program).suffix == ".py"


def is_farm(program: str) -> bool:
    """Whether a program is a farm; all others are task graphs."""
    return program in KERNELS or is_code(program)


def kernel_of(program: str) -> Kernel:
    """The kernel of a farm. Raises InputError if the user's file cannot be loaded."""
    return KERNELS[program] if program in KERNELS else _loaded(program)


def digest(program: str) -> str:
    """The beginning of the SHA-256 of a user's file; "" for other
    programs. Raises InputError."""
    if not is_code(program):
        return ""
    try:
        return hashlib.sha256(Path(program).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise InputError(f"{program}: {error.strerror}; expected a Python file") from None


def same_code(program: str, expected: str) -> None:
    """Raises InputError if the file is not the one that the case was made from."""
    if digest(program) != expected:
        raise InputError(f"{program}: not the file that was there when the case was made or calibrated")


def computed_again(
    program: str, outputs: list[Array], tasks: int, size: int, seed: int
) -> tuple[float, float]:
    """(sum of all results, error / tolerance) with the first, middle
    and last task computed again."""
    kernel, worst = kernel_of(program), 0.0
    for task in {0, tasks // 2, tasks - 1}:
        right = kernel.run(just, kernel.make(task, tasks, size, seed), size)
        largest = max(float(np.abs(right).max(initial=0.0)), 1e-300)
        worst = max(worst, float(np.abs(outputs[task] - right).max(initial=0.0)) / (SAME * largest))
    return float(sum(o.sum() for o in outputs)), worst


@functools.cache
def _loaded(program: str) -> Kernel:
    spec = importlib.util.spec_from_file_location("fembench_user_task", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        work = module.work
    except Exception as error:
        raise InputError(f"{program}: {type(error).__name__}: {error}; expected a function work") from error
    results = getattr(module, "results", lambda size: 1)
    make = getattr(module, "make", lambda task, tasks, size, seed: [task, tasks, seed])

    def inputs(task: int, tasks: int, size: int, seed: int) -> Array:
        return np.asarray(make(task, tasks, size, seed), dtype=float).ravel()

    def run(do: Do, data: Array, size: int) -> Array:
        result = np.atleast_1d(np.asarray(do(TASK, 1, work, data, size), dtype=float)).ravel()
        if len(result) != int(results(size)):
            raise InputError(
                f"{program}: a result of {len(result)} numbers; expected results(size) = {results(size)}"
            )
        return result

    return Kernel(
        TASKS, SIZE, inputs, run, lambda task, tasks, size: int(results(size)), lambda n, s: {TASK: 1.0}
    )
