"""A task of the user's own, from a Python file or a shared library (Herai 2005, 3.3: taskrun(data) -> data).

Python   work(data, size)                  a vector of float64 and the size -> a number, or a vector
         make(task, tasks, size, seed)     its input; without it [task, tasks, seed]
         results(size)                     the length of a result; without it 1
C        void work(const double *data, long n, double *result, long m, long size)
         void make(long task, long tasks, long size, long seed, double *data, long n); long inputs(long size)
         long results(long size)

`make`, `inputs` and `results` are optional. All tasks count as one operation `task`, so they should take
about equally long. The file must be visible to all hosts under the same path.
"""

import ctypes
import functools
import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fembench.errors import InputError
from fembench.kernels.backend import kernels
from fembench_studies.programs.kernels import KERNELS, Array, Do, Kernel, just

TASK = "task"  # the only operation
TASKS, SIZE = 100, 1  # defaults
LANGUAGES = {".py": "Python", ".so": "a shared library"}
SAME = 1e-12  # tolerance, relative to the largest value of a task


def is_code(program: str) -> bool:
    """Whether a program is a file of the user's own."""
    return _split(program)[0].suffix in LANGUAGES


def is_farm(program: str) -> bool:
    """Whether a program is a farm; all others are task graphs."""
    return program in KERNELS or is_code(program)


def kernel_of(program: str) -> Kernel:
    """The kernel of a farm. Raises InputError if the user's file cannot be loaded."""
    return KERNELS[program] if program in KERNELS else _loaded(program)


def digest(program: str) -> str:
    """The beginning of the SHA-256 of a user's file; "" for other programs. Raises InputError."""
    if not is_code(program):
        return ""
    path = _split(program)[0]
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected {' or '.join(LANGUAGES)}") from None


def same_code(program: str, expected: str) -> None:
    """Raises InputError if the file is not the one that the case was made from."""
    if digest(program) != expected:
        raise InputError(f"{program}: not the file that was there when the case was made or calibrated")


def computed_again(
    program: str, outputs: list[Array], tasks: int, size: int, seed: int
) -> tuple[float, float]:
    """(sum of all results, error / tolerance) with the first, middle and last task computed again."""
    kernel, worst = kernel_of(program), 0.0
    for task in {0, tasks // 2, tasks - 1}:
        right = kernel.run(just, kernel.make(task, tasks, size, seed), size)
        largest = max(float(np.abs(right).max(initial=0.0)), 1e-300)
        worst = max(worst, float(np.abs(outputs[task] - right).max(initial=0.0)) / (SAME * largest))
    return float(sum(o.sum() for o in outputs)), worst


def _split(program: str) -> tuple[Path, str]:
    """(file, function) of FILE or FILE:FUNCTION."""
    path, colon, name = program.rpartition(":")
    return (Path(path), name) if colon else (Path(program), "work")


@functools.cache
def _loaded(program: str) -> Kernel:
    path, name = _split(program)
    work, make, results = (_python if path.suffix == ".py" else _library)(path, name)

    def run(do: Do, data: Array, size: int) -> Array:
        result = np.atleast_1d(np.asarray(do(TASK, 1, work, data, size), dtype=float)).ravel()
        if len(result) != results(size):
            raise InputError(
                f"{program}: a result of {len(result)} numbers; expected results(size) = {results(size)}"
            )
        return result

    return Kernel(TASKS, SIZE, make, run, lambda task, tasks, size: results(size), lambda n, s: {TASK: 1.0})


def _plain(task: int, tasks: int, size: int, seed: int) -> Array:
    """The input of a task without `make`."""
    return np.array([task, tasks, seed], float)


def _one(size: int) -> int:
    """The length of a result without `results`."""
    return 1


Parts = tuple[Callable[[Array, int], Any], Callable[[int, int, int, int], Array], Callable[[int], int]]


def _python(path: Path, name: str) -> Parts:
    spec = importlib.util.spec_from_file_location("fembench_user_task", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        work = getattr(module, name)
    except Exception as error:
        raise InputError(f"{path}: {type(error).__name__}: {error}; expected a function {name}") from error
    make = getattr(module, "make", _plain)
    results = getattr(module, "results", _one)
    return work, lambda *at: np.asarray(make(*at), dtype=float).ravel(), lambda size: int(results(size))


def _library(path: Path, name: str) -> Parts:
    long, pointer = ctypes.c_long, np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
    try:
        library = ctypes.CDLL(str(path.resolve()))
        call = _function(library, name, None, pointer, long, pointer, long, long)
    except (OSError, AttributeError) as error:
        raise InputError(f"{path}: {error}; expected a shared library with a function {name}") from error
    results = _function(library, "results", long, long) if hasattr(library, "results") else _one

    def work(data: Array, size: int) -> Array:
        result = kernels.zeros(results(size))
        call(data, len(data), result, len(result), size)
        return np.asarray(result)

    if not hasattr(library, "make"):
        return work, _plain, results
    if not hasattr(library, "inputs"):
        raise InputError(f"{path}: make without inputs; expected long inputs(long size)")
    inputs = _function(library, "inputs", long, long)
    fill = _function(library, "make", None, long, long, long, long, pointer, long)

    def make(task: int, tasks: int, size: int, seed: int) -> Array:
        data = np.zeros(inputs(size))
        fill(task, tasks, size, seed, data, len(data))
        return data

    return work, make, results


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    found = library[name]
    found.argtypes, found.restype = arguments, result
    return found
