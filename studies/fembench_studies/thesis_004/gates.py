"""What the study claims of its own results: limits on E6, E9, E10, E13 and E14."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fembench.base.units import seconds
from fembench_studies.claims import StudyClaim, error_claim, least_claim, most_claim
from fembench_studies.study import wanted
from fembench_studies.thesis_004.findings import model_error
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ALL, JUDGED, StudyPlan
from fembench_studies.thesis_004.quantities import HOSTS, ONE_HOST, Side
from fembench_studies.thesis_004.tables import DISPLACEMENT
from fembench_studies.thesis_004.thesis import EXPECTED, MESHES
from fembench_studies.thesis_004.weighted import best_rounds, results

ITERATIONS, DIGITS, BALANCE = 2.0, 1e-4, 1e-5  # iterations; per cent of the displacement; newton
REPEATED, MODEL = 5.0, 15.0  # per cent
OF_PREDICTED, SPARSE = 0.7, 1.1  # gains on one core: of the dense prediction; of csr, where nothing is saved
OF_IDEAL, COMPUTING = (
    1.25,
    20.0,
)  # time over that of the ideal split, where computing exceeds messages so much
LOAD = (0.0, 500.0, 0.0)  # newton, that the supports bear


class Apart(NamedTuple):
    """Largest over smallest ratio of single repetitions, minus 1, in
    per cent; nan: not repeated."""

    found: float
    low: float  # what the sets of these runs leave open; nan: too few sets
    high: float


@dataclass(frozen=True)
class Gates:
    """What was measured, and the quantities of each repetition."""

    plan: StudyPlan
    found: StudyRecords

    def claims(self, only: Sequence[str] = ()) -> list[StudyClaim]:
        """The claims of the experiments in `only`; () means all."""
        gates = {
            "E6": self._solutions,
            "E9": self._repeated,
            "E10": self._model,
            "E13": self._weighted,
            "E14": self._storage,
        }
        return [c for name, made in gates.items() if wanted(name, only) for c in made()]

    @cached_property
    def _each(self) -> list[Side]:
        """The quantities of each repetition."""
        most = max(self.plan.effort.again, self.plan.effort.repetitions, JUDGED)
        return [self.found.side(self.plan, k) for k in range(most)]

    def _solutions(self) -> Iterator[StudyClaim]:
        """Iterations and displacement of an independent solver;
        reactions that balance the load."""
        for mesh in MESHES:
            pool = self.found.pool(self.plan.sparse(mesh))
            checks = [r.verification for r in pool]
            more = [float(r.solve.iterations - EXPECTED[mesh]) for r in pool]
            moved = [c.load_displacement[1] for c in checks if c.load_displacement]
            off = [100 * abs(y / DISPLACEMENT[mesh] - 1) for y in moved]
            rest = [float(np.abs(np.subtract(c.reactions, LOAD)).max()) for c in checks]
            yield StudyClaim(
                f"E6, {mesh}: iterations beyond those expected", ITERATIONS, _first(more), unit=""
            )
            yield StudyClaim(f"E6, {mesh}: displacement of the loaded node", DIGITS, _first(off))
            yield StudyClaim(f"E6, {mesh}: reactions against the load", BALANCE, _first(rest), unit="N")

    def _repeated(self) -> Iterator[StudyClaim]:
        """The slowness of node00 is the same whenever it is measured."""
        for tasks in ONE_HOST:
            far = max((self.apart(mesh, tasks) for mesh in ALL), key=lambda each: each.found)
            noisy = far.low <= REPEATED < far.found
            scatter = f"too noisy, between {far.low:.3g} and {far.high:.3g}" if noisy else ""
            yield StudyClaim(
                f"E9, {tasks} + {tasks} tasks: slowness repeated, largest difference",
                REPEATED,
                *far,
                reason=self._other_speed(tasks) or scatter,
            )

    def _other_speed(self, tasks: int) -> str:
        """Why emulated hosts do not show whether their slowness repeats: this machine, which computed
        for them, did the same work at another speed each time; "" if they show it.

        Both hosts do the same work, and the sets of a run have the speed that it learned
        before them, so their scatter does not show this.
        """
        far, mesh = max((self._machine_apart(mesh, tasks), mesh) for mesh in ALL)
        if far <= REPEATED:
            return ""
        each = [t for times in self._at_full_speed(mesh, tasks) for t in times]
        return (
            f"this machine, which emulates both hosts, computes {MESHES[mesh - 1]} at full speed in "
            f"{seconds(min(each))} to {seconds(max(each))}, which makes a difference of {far:.3g} %"
        )

    def _machine_apart(self, mesh: int, tasks: int) -> float:
        """The difference of ratios that the speed of this machine makes, per cent."""
        ratios = [np.log(slow / fast) for fast, slow in zip(*self._at_full_speed(mesh, tasks))]
        return 100 * float(np.expm1(np.ptp(ratios))) if ratios else 0.0

    def _at_full_speed(self, mesh: int, tasks: int) -> list[list[float]]:
        """[host][repetition] seconds of computing."""
        return [self.found.at_full_speed(self.plan.case(host, mesh, tasks)) for host in HOSTS]

    def apart(self, mesh: int, tasks: int) -> Apart:
        """How far apart the ratios of the two hosts are."""
        ratios = _finite([np.log(side.slowness(mesh, tasks)) for side in self._each])
        if len(ratios) < 2:
            return Apart(np.nan, np.nan, np.nan)
        most, least = int(np.argmax(ratios)), int(np.argmin(ratios))
        scatter = [self.found.scatter(self.plan.case(host, mesh, tasks)) for host in HOSTS]
        far = ratios[most] - ratios[least]
        half = float(np.linalg.norm([one[k] for one in scatter for k in (most, least)]))
        return Apart(*(100 * float(np.expm1(x)) for x in (far, far - half, far + half)))

    def _model(self) -> Iterator[StudyClaim]:
        """The slower host decides the time of a run on both."""
        for k, mesh in zip(ALL, MESHES):
            errors = [model_error(side, k) for side in self._each[: self.plan.effort.repetitions]]
            yield error_claim(f"E10, {mesh}: bottleneck model, mean error of 11 runs", MODEL, errors)

    def _weighted(self) -> Iterator[StudyClaim]:
        """Weighted parts take hardly longer than the ideal split, and the slow host
        does no harm, where an iteration computes much longer than it communicates."""
        for w in best_rounds(results(self.plan, self.found)):
            if (1 - w.communication) < COMPUTING * w.communication:
                continue
            name = f"E13, {w.mesh}, {w.kind.storage}, {w.kind.tasks} tasks: time over"
            yield most_claim(f"{name} that of the ideal split", OF_IDEAL, [w.seconds / w.ideal], unit="")
            yield most_claim(f"{name} that of node8 alone", 1.0, [w.seconds / w.fast_alone], unit="")
            if w.kind.run:
                ratio = w.seconds / w.best_seconds
                yield most_claim(f"{name} the best of runs 1 to 11", 1.0, [ratio], unit="")

    def _storage(self) -> Iterator[StudyClaim]:
        """On one core, splitting a dense matrix gains what its work
        predicts; csr gains nothing."""
        for tasks in ONE_HOST[1:]:
            dense = _finite([side.gain("single_cpu", tasks) * side.work(tasks).total for side in self._each])
            sparse = _finite([side.gain("single_cpu csr", tasks) for side in self._each])
            name = f"E14, m3, {tasks} tasks on one core"
            yield least_claim(f"{name}: dense gain over that of its work", OF_PREDICTED, dense, unit="")
            yield most_claim(f"{name}: csr gain", SPARSE, sparse, unit="")


def _first(values: Sequence[float]) -> float:
    return values[0] if values else np.nan


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if np.isfinite(value)]
