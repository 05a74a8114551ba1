"""The plain twin of operations.c: chains of single operations on int, long, float and double."""

import numpy as np

BITS = {"int": 32, "long": 64}
TABLE, REMAINDER = 1024, 40000
PAIRWISE = {
    "sum": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mpy": lambda a, b: a * b,
}
KINDS = (*PAIRWISE, "div", "mod", "assign")
OPERATIONS = (
    *(f"{kind}_{of}" for of in (*BITS, "float", "double") for kind in KINDS),
    *("access", "array_access", "cast", "compare", "loop_iteration", "random_double"),
)


def operation(name, turns, x, y):
    """The last value of 16 `turns` operations from x and y, each waiting for the one before."""
    kind, _, of = name.partition("_")
    if of in (*BITS, "float", "double") and kind in KINDS:
        with np.errstate(over="ignore", invalid="ignore"):
            return _typed(kind, of, turns, x, y)
    return _untyped(name, 16 * turns, round(x), round(y))


def _typed(kind, of, turns, x, y):
    a, b = (_number(of, value) for value in (x, y))
    for _ in range(8 * turns):
        if kind in PAIRWISE:
            a = _number(of, PAIRWISE[kind](a, b))
            b = _number(of, PAIRWISE[kind](b, a))
        elif kind == "div":
            for _ in range(2):
                a = b // a if of in BITS else b / a
        elif kind == "mod":
            for _ in range(2):
                a = _number(of, b % a + REMAINDER)
    return float(a)


def _number(of, value):
    """The value as a number of this type; integers wrap."""
    if of in BITS:
        half = 1 << BITS[of] - 1
        return (int(value) + half) % (2 * half) - half
    return np.float32(value) if of == "float" else np.float64(value)


def _untyped(name, times, x, y):
    state, first = (1 << 32) + ((y & 0xFFFF) << 16) + (x & 0xFFFF), x
    for _ in range(times):
        if name == "compare":
            x = y if x < y else first
        elif name == "random_double":  # erand48
            state = (0x5DEECE66D * state + 0xB) % (1 << 48)
    if name == "array_access":
        return float((x + times * (y | 1)) % TABLE)
    if name == "loop_iteration":
        return float(x + y + times)
    return state / (1 << 48) if name == "random_double" else float(x)
