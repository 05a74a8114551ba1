"""Times of a record, which all code reads here: seconds, in read-only arrays.

    P         ranks                n_all     sets, warm-ups included
    n_phases  phases in NAMES      n_sets    timed sets (without warm-ups)

A set is one repetition of assembly and CG, on all ranks at the same time. Phases are
indices into `phases.NAMES`, with groups to add up (COMPUTING, …).
"""

import datetime
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, I64, Mask
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.phases import ASSEMBLY, CG, CG_PARTS, NAMES, TOP_LEVEL
from fembench.records.record import Record
from fembench.records.schema import Packed, numbers

MOST = 1e15  # seconds or spans: no run has as many
Counts = I64
Rows = Sequence[Sequence[Any] | Packed]
T = TypeVar("T", bound=npt.NDArray[Any])


class Times:
    """Times of one record.

    Raises InputError if the phases of the record are not those of `phases.NAMES` (older
    records may lack the last ones: their columns are zero), or if its arrays do not
    cover the same ranks and phases.
    """

    def __init__(self, record: Record) -> None:
        known = len(record.phases)
        if record.phases != NAMES[:known]:
            raise InputError(f"{record.id}: its phases are not those of this fembench; run the case again")
        self.n_ranks = len(record.total)
        self._record = record

    def _table(self, rows: Rows) -> F64:
        """(n, P, n_phases) from tables [rank][phase]."""
        known = len(self._record.phases)
        values = self._array(rows, (len(rows), self.n_ranks, known))
        missing = np.zeros((*values.shape[:2], len(NAMES) - known))
        return fixed(np.concatenate([values, missing], axis=2))

    def _array(self, rows: Rows, shape: tuple[int, ...]) -> F64:
        try:
            values = np.array([numbers(row) for row in rows]) if rows else np.empty(shape)
        except ValueError:  # ragged
            values = np.empty(0)
        except OverflowError:  # a count of hundreds of digits
            values = np.full(shape, np.inf)
        if values.shape != shape:
            expected = f"{plural(self.n_ranks, 'rank')} and {len(self._record.phases)} phases in each set"
            raise InputError(f"{self._record.id}: its times are incomplete; expected {expected}")
        if values.size and not 0 <= values.min() <= values.max() <= MOST:
            raise InputError(f"{self._record.id}: some of its times or counts are not within 0 to {MOST:g}")
        return values

    @property
    def large(self) -> bool:
        """Whether there are so many numbers that the record holds them packed."""
        return any(isinstance(s.seconds, Packed) for s in self._record.sets)

    @cached_property
    def program(self) -> F64:
        """(P,) time of the whole program, from its first line to the end of its output."""
        return fixed(self._array([self._record.total], (1, self.n_ranks))[0])

    @cached_property
    def once(self) -> F64:
        """(P, n_phases) phases outside the sets, each measured once."""
        return self._table([self._record.setup])[0]

    @cached_property
    def warmups(self) -> Mask:
        """(n_all,) whether a set was a warm-up."""
        return fixed(np.array([s.warmup for s in self._record.sets], bool))

    @cached_property
    def all_sets(self) -> F64:
        """(n_all, P, n_phases) every set, warm-ups included."""
        return self._table([s.seconds for s in self._record.sets])

    @cached_property
    def all_counts(self) -> Counts:
        """(n_all, P, n_phases) number of spans."""
        return fixed(self._table([s.counts for s in self._record.sets]).astype(np.int64))

    @cached_property
    def all_walls(self) -> F64:
        """(n_all, P) wall time since the end of the set before."""
        walls = [s.total for s in self._record.sets]
        return fixed(self._array(walls, (len(walls), self.n_ranks)))

    @cached_property
    def all_iterations(self) -> Counts:
        """(n_all,) iterations of CG."""
        return fixed(np.array([s.iterations for s in self._record.sets], np.int64))

    @cached_property
    def timed(self) -> F64:
        """(n_sets, P, n_phases) the timed sets."""
        return fixed(self.all_sets[~self.warmups])

    @cached_property
    def walls(self) -> F64:
        """(n_sets, P) wall time of the timed sets."""
        return fixed(self.all_walls[~self.warmups])

    @cached_property
    def joules(self) -> F64:
        """(n_sets,) energy of all machines in the time of `walls`; nan where not measured.

        Also nan if the counters of two machines differ in what they count.
        """
        sets = [one.joules for one in self._record.sets if not one.warmup]
        hosts = self._record.environment.hosts
        firsts = {h.machine: k for k, h in reversed(list(enumerate(hosts)))}
        used = sorted(firsts.values()) if -1 not in firsts else range(len(hosts))
        readers = {facts.reader for k in used if (facts := hosts[k].energy)}
        if len(readers) != 1 or not all(sets):
            return fixed(np.full(len(sets), np.nan))
        each = np.array(sets, float).reshape(-1, len(hosts))[:, used]
        return fixed(np.where((each < 0).any(axis=1), np.nan, each.sum(axis=1)))

    def seconds(self, *phases: int) -> F64:
        """(n_sets, P) sum over these phases, in the timed sets."""
        return (
            self.timed[:, :, phases[0]] if len(phases) == 1 else fixed(self.timed[:, :, phases].sum(axis=2))
        )

    def slowest(self, *phases: int) -> F64:
        """(n_sets,) sum over these phases on the slowest rank."""
        return fixed(self.seconds(*phases).max(axis=1))

    @cached_property
    def loop(self) -> F64:
        """(n_sets, P) time of CG outside its parts."""
        return fixed(self.seconds(CG) - self.seconds(*CG_PARTS))

    @cached_property
    def unattributed(self) -> F64:
        """(P,) time of the whole program that no phase accounts for."""
        top = list(TOP_LEVEL)
        return fixed(self.program - self.once[:, top].sum(axis=1) - self.all_sets[:, :, top].sum(axis=(0, 2)))

    @cached_property
    def unattributed_share(self) -> F64:
        """(P,) `unattributed` as a fraction of the program; nan if that took no time."""
        nothing = np.full(self.n_ranks, np.nan)
        return fixed(np.divide(self.unattributed, self.program, out=nothing, where=self.program > 0))

    @cached_property
    def _iterated(self) -> Mask:
        """(n_all,) whether a set is timed and has iterations."""
        return fixed(~self.warmups & (self.all_iterations > 0))

    @cached_property
    def each_iteration(self) -> F64:
        """(n, P, n_phases) mean iteration of each timed set with any; assembly whole."""
        return fixed(self._per_iteration(self.all_sets))

    @cached_property
    def spans(self) -> F64:
        """(n, P) spans of CG's parts per iteration, in the sets of `each_iteration`."""
        return fixed(self._per_iteration(self.all_counts)[:, :, CG_PARTS].sum(axis=2))

    def _per_iteration(self, amounts: npt.NDArray[Any]) -> F64:
        divisors = np.repeat(self.all_iterations[self._iterated, None], len(NAMES), axis=1)
        divisors[:, ASSEMBLY] = 1
        return amounts[self._iterated] / divisors[:, None, :]

    @cached_property
    def middle(self) -> F64:
        """(P, n_phases) as `each_iteration`, but of one set only, so that times add up.

        The median set by wall time on the slowest rank. Raises InputError without any.
        """
        ends = self.all_walls[self._iterated].max(axis=1)
        if not len(ends):
            raise InputError(f"record {self._record.id} has no timed iterations; expected a run of CG")
        return self.each_iteration[np.argsort(ends, kind="stable")[len(ends) // 2]]


_READ = "id", "phases", "setup", "total", "sets"  # fields of a record
_last: list[tuple[Record, Times]] = []


def times_of(record: Record) -> Times:
    """The times of a record: if of the same fields, those made last, which took long."""
    if not _last or any(getattr(_last[0][0], name) is not getattr(record, name) for name in _READ):
        _last[:] = [(record, Times(record))]
    return _last[0][1]


def began(record: Record) -> str:
    """When a run began, computed from the creation of its record at the end."""
    end = datetime.datetime.fromisoformat(record.created)
    start = end - datetime.timedelta(seconds=float(times_of(record).program.max(initial=0.0)))
    return start.isoformat(timespec="milliseconds")


def fixed(values: T) -> T:
    """`values`, made read-only."""
    values.setflags(write=False)
    return values
