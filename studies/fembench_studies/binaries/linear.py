"""How values, counts and tests continue in iterations of a loop that change linearly."""

import math
from collections.abc import Sequence

from fembench_studies.binaries.emulator import BranchTest, Value
from fembench_studies.binaries.walk import Counts


def add(to: Counts, more: Counts) -> None:
    for key, n in more.items():
        to[key] = to.get(key, 0) + n


def linear(
    first: Sequence[tuple[int, BranchTest]],
    second: Sequence[tuple[int, BranchTest]],
    third: Sequence[tuple[int, BranchTest]],
) -> list[tuple[BranchTest, int, int]] | None:
    """(last test, change of x, change of y) of all tests, if they are the same and change linearly."""
    if not len(first) == len(second) == len(third):
        return None
    found = []
    for (a, p), (b, q), (c, r) in zip(first, second, third):
        same = a == b == c and p.holds == q.holds == r.holds
        if not same or r.x - q.x != q.x - p.x or r.y - q.y != q.y - p.y:
            return None
        found.append((r, r.x - q.x, r.y - q.y))
    return found


def further(test: BranchTest, dx: int, dy: int) -> float:
    """How often more a test has the same result, if its sides change by dx and dy each time; may be inf."""
    d, step, relation = test.x - test.y, dx - dy, test.relation
    if relation in ("==", "!="):
        if d == 0:
            return 0 if step else math.inf
        ends = step != 0 and -d % step == 0 and -d // step > 0
        return -d // step - 1 if ends else math.inf
    if relation in (">", "<="):
        d, step = -d, -step
    if d < 0:
        return (-d - 1) // step if step > 0 else math.inf
    return d // -step if step < 0 else math.inf


def ahead(v0: Value | None, v1: Value | None, v2: Value | None, k: int, width: int) -> Value | None:
    """The value after k more iterations; None if it does not change linearly. Values wrap at their width."""
    if v0 is None or v1 is None or v2 is None:
        return None
    size = 1 << (32 if width == 8 and max(v0.n, v1.n, v2.n) < 2**32 else 8 * width)
    if (v2.n - 2 * v1.n + v0.n) % size:
        return None
    return Value((v2.n + k * (v2.n - v1.n)) % size, v2.rank)
