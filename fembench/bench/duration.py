"""How long a run will take, and the memory that it needs, before it starts.

The nearest record (methods, numbers of equations and ranks) is scaled by the bytes that
an iteration moves per rank, by iterations and by sets. The number of iterations to a
tolerance grows with the equations as the preconditioner declares. Times are in seconds.

`bytes_per_equation` is an upper bound for tetrahedral boxes: `benchmarks/memory.py`
measures the peak per node, which may be up to 3000 bytes with storage `sym`.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import clock
from fembench.mesh.presets import box_named
from fembench.methods.lookup import MethodChoice, precond_of, storage_of
from fembench.methods.recipe import recipe
from fembench.methods.steps import DOUBLE
from fembench.partition.shares import parse_shares
from fembench.records.case import Case
from fembench.records.case_fields import CaseEffort, CaseMethod
from fembench.records.phases import CG
from fembench.records.record import Record
from fembench.records.store import written
from fembench.records.times import times_of
from fembench.synthetic.speeds import LEARN, LEARNT, parse_speeds

RANK_BYTES = 64 << 20  # of a rank without a mesh: Python, MPI, compiled kernels
NODE_BYTES = 2280  # per mesh node, the matrix apart: mesh, assembly, vectors, verification
WHOLE_BYTES = 2000  # per node of the whole mesh, on a rank that partitions it
LEAST_BYTES = 80  # per equation, without the matrix: 90 to 360 were measured
BLOCKS_PER_NODE = 15  # 3x3 blocks of the stiffness of a box of tetrahedra
DOFS_PER_NODE = 3


def matrix_bytes(choice: MethodChoice, n_equations: float) -> float:
    """The matrix of a rank with so many equations of a tetrahedral box; 0 if not stored."""
    storage = storage_of(choice.storage, choice.solver)
    if storage.unit == "pairs":
        return 8.0 * n_equations**2
    entries = storage.entry_bytes * DOFS_PER_NODE**2 / (2 if storage.half else 1)
    block = 0.0 if storage.unit == "cells" else entries or storage.block_bytes
    return n_equations / DOFS_PER_NODE * BLOCKS_PER_NODE * block


def fewest_bytes(choice: MethodChoice, n_equations: float) -> float:
    """What a rank that has this number of equations of a box certainly takes."""
    return matrix_bytes(choice, n_equations) + LEAST_BYTES * n_equations


def bytes_per_equation(choice: MethodChoice) -> float:
    """Peak memory of a rank per equation. Raises InputError if it grows faster."""
    storage = storage_of(choice.storage, choice.solver)
    if storage.unit == "pairs":
        raise InputError(
            f"memory with storage = '{storage.name}', whose size grows faster than the mesh: expected a mesh"
        )
    block = 0.0 if storage.unit == "cells" else float(storage.block_bytes)
    block += storage.entry_bytes * DOFS_PER_NODE**2
    node = NODE_BYTES + precond_of(choice.precond, choice.solver).node_bytes
    return (node + BLOCKS_PER_NODE * block) / DOFS_PER_NODE


RATE = 8e9  # bytes per second of a rank,
CACHED, FASTER = 16e6, 3.0  # and how much faster those are that caches hold, bytes per product
ASSEMBLY = 5e-7  # per set and equation of a rank
SETUP = 1e-5  # once, per equation of a rank
START = 2.0  # once: Python and its imports, bandwidth of memory, verification
LAUNCH = 1.0  # from the launcher's start to the first line of the program, and from its end
PATIENCE = 0.3  # of the time between --seconds and --max-seconds, until the median is precise
NEWEST = 5  # records of a folder that tell how long another run takes,
ALIKE = 8.0  # if equations and ranks differ by less than this factor
VECTORS = 10  # read or written per iteration, where the cost of a method is not known
STATED = f"at {RATE / 1e9:g} GB/s per rank, {RATE * FASTER / 1e9:g} from caches"
METHOD = ("solver", "storage", "precond", "recurrence")


@dataclass(frozen=True)
class ExpectedPace:
    """What a run is expected to spend."""

    once: float  # set-up and verification
    per_set: float  # beside its iterations: assembly
    rate: float  # bytes per second of a rank in an iteration
    iterations: float  # per set


def equations_of(case: Case, records: Sequence[Record] = ()) -> int | None:
    """Equations of a box, or of a mesh that a record has; None if not known."""
    box = box_named(case.question.mesh)
    if box is not None:
        return box.n_equations
    found = (r.mesh.n_equations for r in records if r.case.question.mesh == case.question.mesh)
    return next(found, None)


def expected_seconds(case: Case, records: Sequence[Record] = (), *, cores: int = 0) -> float | None:
    """Seconds of a run with its launcher; None if its mesh is a file not yet run.

    `cores`: those that its ranks share; 0: a core per rank.
    """
    n = equations_of(case, records)
    if n is None:
        return None
    near = min(filter(_usable, records), key=lambda r: _distance(case, n, r), default=None)
    return _seconds(case, n, near, cores)


def _seconds(case: Case, n: int, near: Record | None, cores: int) -> float:
    """Of a run with n equations, by the record nearest to it, or else by the stated rates."""
    pace = _pace(case, n, near) if near else _stated(case, n)
    turns = max(1.0, case.placement.ranks / cores) if cores else 1.0
    slower = turns * _stretched(case)
    cg = pace.iterations * bytes_moved(case, n) / pace.rate * slower
    least, most = _measuring(case.effort, cg)
    timed = least + (_needed(near) if near else PATIENCE) * (most - least)
    sets = max(case.effort.sets, math.ceil(timed / cg) if cg > 0 else 0) + case.effort.warmups
    once = LAUNCH + pace.once * turns
    return once + _rehearsal(case, cg / slower + pace.per_set) + sets * (cg + pace.per_set * slower)


def _stretched(case: Case) -> float:
    """How many times as long emulated ranks compute: the slowest for its share."""
    emulate = case.synthetic.emulate
    ranks = case.placement.ranks
    shares = case.placement.shares
    if not emulate:
        return case.synthetic.dilate
    parts = parse_shares(shares, ranks) if shares else (1 / ranks,) * ranks
    each = zip(parts, parse_speeds(emulate, ranks))
    return case.synthetic.dilate * max(ranks * part / speed for part, speed in each)


def _rehearsal(case: Case, one: float) -> float:
    """Of emulated ranks, before the warm-ups; `one`: seconds of a set at full speed."""
    emulated = case.synthetic.emulate or case.synthetic.dilate > 1
    return max(one, min(LEARN, LEARNT * one)) if emulated else 0.0


def about(case: Case, folder: Path, cores: int = 0) -> str:
    """'about 0:40 in all', from runs like it in a folder, or stated rates; "" if not known."""
    records = list(_newest(folder))
    n = equations_of(case, records)
    alike = [record for record in records if n and _distance(case, n, record)[1] < math.log(ALIKE)]
    seconds = expected_seconds(case, alike, cores=cores)
    return "" if seconds is None else f"about {clock(seconds)} in all"


def _newest(folder: Path) -> Iterator[Record]:
    """The usable ones of the newest records of a folder."""
    paths = [path for path in folder.glob("[!.]*.json") if not path.name.endswith(".failed.json")]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime)[-NEWEST:]:
        with contextlib.suppress(InputError):  # damaged files are reported elsewhere
            record = written(path)
            if _usable(record):
                yield record


def _measuring(effort: CaseEffort, cg: float) -> tuple[float, float]:
    """Seconds of timed sets of `cg` each: at least, and at most until they are precise."""
    least = max(effort.sets * cg, effort.seconds)
    return least, max(least, effort.max_seconds) if effort.precision else least


def _needed(near: Record) -> float:
    """How much of the time between these two limits a record needed, from 0 to 1."""
    cg = times_of(near).slowest(CG)
    least, most = _measuring(near.case.effort, float(np.median(cg)))
    return min(1.0, max(0.0, (float(cg.sum()) - least) / (most - least))) if most > least else PATIENCE


class Expectations:
    """Seconds of cases, from records; each record is looked at once."""

    def __init__(self, records: list[Record], cores: int, timeout: float) -> None:
        """`cores` as for `expected_seconds`; `timeout`: longest run in seconds, 0: none."""
        self._records = records
        self._cores = cores
        self._timeout = timeout
        self._known: dict[Case, float | None] = {}
        self._seen = 0
        self._usable: list[Record] = []  # of those seen
        self._near: dict[Case, tuple[int, Record | None]] = {}  # the nearest of the first so many

    def __call__(self, cases: Sequence[Case]) -> list[float | None]:
        """Of each case; None if its mesh is a file not yet run."""
        if self._seen != len(self._records):
            self._usable += filter(_usable, self._records[self._seen :])
            self._known, self._seen = {}, len(self._records)
        return [self._of(case) for case in cases]

    def _of(self, case: Case) -> float | None:
        if case not in self._known:
            n = equations_of(case, self._records)
            seconds = None if n is None else _seconds(case, n, self._nearest(case, n), self._cores)
            known = seconds is not None and bool(self._timeout)
            self._known[case] = min(seconds or 0.0, self._timeout) if known else seconds
        return self._known[case]

    def _nearest(self, case: Case, n: int) -> Record | None:
        seen, near = self._near.get(case, (0, None))
        others = [*filter(None, [near]), *self._usable[seen:]]
        found = min(others, key=lambda r: _distance(case, n, r), default=None)
        self._near[case] = len(self._usable), found
        return found


def _stated(case: Case, n: int) -> ExpectedPace:
    """From the stated rates."""
    each = n / case.placement.ranks
    return ExpectedPace(START + SETUP * each, ASSEMBLY * each, stated_rate(case, n), iterations_of(case, n))


def _pace(case: Case, n: int, near: Record) -> ExpectedPace:
    """From a record, its times scaled by the equations of a rank."""
    times = times_of(near)
    each = n / case.placement.ranks
    scale = each / (near.mesh.n_equations / near.case.placement.ranks)
    walls = times.all_walls.max(axis=1)
    cg = times.slowest(CG)
    stretched = _stretched(near.case)
    once = max(0.0, float(times.program.max()) - float(walls.sum()))
    rest = max(0.0, float(np.median(times.walls.max(axis=1) - cg))) / stretched
    moved = bytes_moved(near.case, near.mesh.n_equations) * float(
        np.median(times.all_iterations[~times.warmups])
    )
    rate = moved / (float(np.median(cg)) / stretched)
    once = max(min(once, START), once + SETUP * each * (1 - 1 / scale))
    return ExpectedPace(once, rest * scale, rate, iterations_of(case, n, near))


def iterations_of(case: Case, n: int, near: Record | None = None) -> float:
    """Iterations of a set."""
    if case.stop.iterations:
        return case.stop.iterations
    factor, power = precond_of(case.method.precond).iterations
    if near is not None and near.solve.converged and not near.case.stop.iterations:
        mine, theirs = case, near.case
        if (mine.question, mine.stop, mine.method.precond) == (
            msgspec.structs.replace(theirs.question, mesh=mine.question.mesh),
            theirs.stop,
            theirs.method.precond,
        ):
            factor = near.solve.iterations / near.mesh.n_equations**power
    found = factor * n**power
    return min(found, case.stop.max_iterations or found)


def stated_rate(case: Case, n: int) -> float:
    """Bytes per second of a rank in an iteration, where no record says it."""
    products, _ = _passes(case.method, n, n / case.placement.ranks)
    return RATE * (FASTER if bytes_moved(case, n) / products < CACHED else 1.0)


def _passes(method: CaseMethod, n: float, each: float) -> tuple[float, float]:
    """(products, bytes of vectors and grids per equation) of an iteration, `each` of n."""
    try:
        steps = recipe(method)
    except InputError:  # its cost is not known
        return 1.0, float(VECTORS * DOUBLE)
    vectors = (steps.updates + steps.dots + steps.applied).bytes + steps.on_grids(n, each).bytes / each
    return 1.0 + steps.precond_products, vectors


def bytes_moved(case: Case, n: int) -> float:
    """Bytes that a rank moves per iteration."""
    each = n / case.placement.ranks
    storage = storage_of(case.method.storage, case.method.solver)
    products, vectors = _passes(case.method, n, each)
    if storage.unit == "pairs":
        product = DOUBLE * each
    else:
        block = storage.block_bytes if case.method.solver == "own" else storage.entry_bytes * DOFS_PER_NODE**2
        product = BLOCKS_PER_NODE / DOFS_PER_NODE * block
    return each * (product * products + vectors)


def _usable(record: Record) -> bool:
    """Whether its times say something about another run."""
    times = times_of(record)
    return bool(
        len(times.timed)
        and times.slowest(CG).min() > 0
        and record.solve.iterations
        and record.mesh.n_equations
    )


def _distance(case: Case, n: int, record: Record) -> tuple[int, float]:
    """How far a record is from a case: methods, then ratios of equations and ranks."""
    mine, theirs = case.flat(), record.case.flat()
    other = sum(mine[name] != theirs[name] for name in METHOD)
    ratio = abs(math.log(n / record.mesh.n_equations))
    return other, ratio + abs(math.log(case.placement.ranks / record.case.placement.ranks))
