"""The quantities of Ferreira's tables from our records: seconds per phase, means over tasks.

Runs that stop before the tolerance are scaled up: total = partition + assembly + CG x k, where k = iterations
to the tolerance / iterations timed. All iterations of CG cost the same.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fembench.records.phases import ASSEMBLY, CG, COMMUNICATION, NAMES, PARTITION, SEND, UNPACK, WAIT
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.report.measures import mean_times
from fembench.stats.student import typical_interval
from fembench_studies.thesis_004.plan import Want
from fembench_studies.thesis_004.thesis import MESHES


class Phases(NamedTuple):
    """Seconds of one solve to the tolerance; means over tasks, medians over sets."""

    partition: float
    assembly: float
    cg: float
    communication: float  # inside CG: send, wait, unpack, all-reduce
    send: float
    receive: float  # including waiting for the partner
    iteration: float  # of CG

    @property
    def total(self) -> float:
        return self.partition + self.assembly + self.cg


NOTHING = Phases(*[np.nan] * 7)


class StudyRecords:
    """The records measured so far."""

    def __init__(self, records: Mapping[Want, Sequence[Record]]) -> None:
        self._records = records
        self.iterations = _iterations(records)

    def pool(self, want: Want | None) -> Sequence[Record]:
        """The records of a case that are not INVALID."""
        found = self._records.get(want, ()) if want else ()
        return [r for r in found if r.verdict.status != "INVALID"]

    def record(self, want: Want | None) -> Record | None:
        """The first of them."""
        return next(iter(self.pool(want)), None)

    def phases(self, want: Want | None) -> Phases:
        """Times of a case; nan if it has no such record."""
        return self._phases(self.pool(want))

    def _phases(self, records: Sequence[Record]) -> Phases:
        if not records:
            return NOTHING
        found = mean_times([times_of(r) for r in records])
        timed = records[0].solve.iterations
        scale = (
            self.iterations.get(records[0].case.question.mesh, timed) / timed
            if records[0].case.stop.iterations
            else 1
        )
        return phases_of(found, scale, timed)

    def total(self, want: Want | None) -> float:
        """Total seconds of a case; nan if it has no such record."""
        return self.phases(want).total

    def totals(self, want: Want | None) -> list[float]:
        """Total seconds of each repetition of a case."""
        return [self._phases([r]).total for r in self.pool(want)]

    def scatter(self, want: Want | None) -> list[float]:
        """Half the width of the interval of each repetition's total, as a logarithm; nan: too few sets."""
        each = [times_of(r).seconds(ASSEMBLY, CG).mean(axis=1) for r in self.pool(want)]
        ends = [typical_interval(sets) for sets in each]
        return [float(np.log(e.high / e.low)) / 2 if e else np.nan for e in ends]

    def iterations_of(self, want: Want | None) -> list[float]:
        """Seconds of an iteration of CG, of each repetition of a case."""
        return [self._phases([r]).iteration for r in self.pool(want)]


def phases_of(found: Mapping[str, float], scale: float, timed: int) -> Phases:
    """Phases from mean times by name. `scale`: factor on CG; `timed`: iterations that were timed."""

    def of(*phases: int) -> float:
        return sum(found.get(NAMES[k], 0.0) for k in phases)

    return Phases(
        partition=of(PARTITION),
        assembly=of(ASSEMBLY),
        cg=scale * of(CG),
        communication=scale * of(*COMMUNICATION),
        send=scale * of(SEND),
        receive=scale * of(WAIT, UNPACK),
        iteration=of(CG) / max(timed, 1),
    )


def _iterations(records: Mapping[Want, Sequence[Record]]) -> dict[str, int]:
    """mesh -> iterations to the tolerance, from runs that reached it."""
    return {
        r.case.question.mesh: r.solve.iterations
        for found in records.values()
        for r in found
        if r.case.question.mesh in MESHES and not r.case.stop.iterations and r.solve.converged
    }
