"""The quantities of Ferreira's tables from our records: seconds
per phase, means over tasks.

Runs that stop before the tolerance are scaled up: total = partition + assembly
+ CG x k, where k = iterations to the tolerance / iterations timed. All
iterations of CG cost the same.
"""

import functools
from collections.abc import Mapping, Sequence
from math import nan

import numpy as np

from fembench.records.phases import ASSEMBLY, CG, COMMUNICATION, NAMES, PARTITION, SEND, UNPACK, WAIT
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.report.measures import mean_times
from fembench.stats.student import typical_interval
from fembench.synthetic.speeds import parse_speeds
from fembench_studies.thesis_004.plan import StudyPlan, Want
from fembench_studies.thesis_004.quantities import ONE_HOST, PartFacts, Phases, Side
from fembench_studies.thesis_004.thesis import MESHES


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

    def phases(self, want: Want | None, repetition: int | None = None) -> Phases:
        """Times of a case, of one repetition or over all; nan if it has no such record."""
        every = self.pool(want)
        records = every if repetition is None else every[repetition : repetition + 1]
        if not records:
            return Phases()
        found = mean_times([times_of(r) for r in records])
        return phases_of(found, self._scale(records[0]), records[0].solve.iterations)

    def scatter(self, want: Want | None) -> list[float]:
        """Half the width of the interval of each repetition's total, as a
        logarithm; nan: too few sets."""
        each = [times_of(r).seconds(ASSEMBLY, CG).mean(axis=1) for r in self.pool(want)]
        ends = [typical_interval(sets) for sets in each]
        return [float(np.log(e.high / e.low)) / 2 if e else nan for e in ends]

    def at_full_speed(self, want: Want | None) -> list[float]:
        """[repetition] seconds in which this machine would have computed an emulated case: mean over
        tasks; []: nothing was emulated."""
        records = [r for r in self.pool(want) if r.case.synthetic.emulate]
        return [self._computed(r) for r in records]

    def _computed(self, record: Record) -> float:
        case, times = record.case, times_of(record)
        speeds = np.array(parse_speeds(case.synthetic.emulate, times.n_ranks))
        in_cg = times.seconds(CG) - times.seconds(*COMMUNICATION)
        computed = self._scale(record) * in_cg + times.seconds(ASSEMBLY)
        return float(np.mean(computed * speeds)) / case.synthetic.dilate

    def _scale(self, record: Record) -> float:
        """Iterations to the tolerance over those timed."""
        case, timed = record.case, record.solve.iterations
        return self.iterations.get(case.question.mesh, timed) / timed if case.stop.iterations else 1.0

    def side(self, plan: StudyPlan, repetition: int | None = None) -> Side:
        """The cases of all experiments: one repetition, or over all."""
        parts = {tasks: self._parts(plan, tasks) for tasks in ONE_HOST}
        return Side(
            functools.cache(lambda *key: self.phases(plan.case(*key), repetition)),
            {tasks: found for tasks, found in parts.items() if found},
        )

    def _parts(self, plan: StudyPlan, tasks: int) -> list[PartFacts]:
        """The parts of Mesh 3, which are the same wherever its tasks run."""
        wants = [plan.case(platform, 3, tasks) for platform in ("smp", "single_cpu")]
        record = next(filter(None, map(self.record, wants)), None)
        if record is None:
            return []
        f = record.partition
        return [PartFacts(*each) for each in zip(f.cells, f.shared_dofs_all, f.shared_dofs, f.dofs)]


def phases_of(found: Mapping[str, float], scale: float, timed: int) -> Phases:
    """Phases from mean times by name. `scale`: factor on CG; `timed`:
    iterations that were timed."""

    def of(*phases: int) -> float:
        return sum(found.get(NAMES[k], 0.0) for k in phases)

    return Phases(
        partition=of(PARTITION),
        assembly=of(ASSEMBLY),
        cg=scale * of(CG),
        total=of(PARTITION, ASSEMBLY) + scale * of(CG),
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
