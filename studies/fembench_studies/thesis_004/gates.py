"""What the study claims of its own results: limits on E6, E9, E10, E13 and E14."""

from collections.abc import Iterator, Sequence

import numpy as np

from fembench_studies.claims import StudyClaim, error_claim, least_claim, most_claim
from fembench_studies.study import wanted
from fembench_studies.thesis_004.overview import DISPLACEMENT, EXPECTED, LOAD
from fembench_studies.thesis_004.pair_tables import apart
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import ONE_HOST, RUNS, StudyPlan
from fembench_studies.thesis_004.split import bottleneck_time
from fembench_studies.thesis_004.storage_tables import gains_of, work_of
from fembench_studies.thesis_004.thesis import MESHES
from fembench_studies.thesis_004.weighted import Weighted, results

ITERATIONS, DIGITS, BALANCE = 2.0, 1e-4, 1e-5  # iterations; per cent of the displacement; newton
REPEATED, MODEL = 5.0, 15.0  # per cent
OF_PREDICTED, SPARSE = 0.7, 1.1  # gains on one core: of the dense prediction; of csr, where nothing is saved
OF_IDEAL, COMPUTING = (
    1.25,
    20.0,
)  # time over that of the ideal split, where computing exceeds messages so much


def claims(plan: StudyPlan, found: StudyRecords, only: Sequence[str] = ()) -> list[StudyClaim]:
    """The claims of the experiments in `only`; () means all."""
    gates = {"E6": _solutions, "E9": _repeated, "E10": _model, "E13": _weighted, "E14": _storage}
    return [c for name, made in gates.items() if wanted(name, only) for c in made(plan, found)]


def _solutions(plan: StudyPlan, found: StudyRecords) -> Iterator[StudyClaim]:
    """Iterations and displacement of an independent solver; reactions that balance the load."""
    for mesh in MESHES:
        pool = found.pool(plan.sparse(mesh))
        checks = [r.verification for r in pool]
        more = [float(r.solve.iterations - EXPECTED[mesh]) for r in pool]
        off = [
            100 * abs(c.load_displacement[1] / DISPLACEMENT[mesh] - 1) for c in checks if c.load_displacement
        ]
        rest = [float(np.abs(np.subtract(c.reactions, LOAD)).max()) for c in checks]
        yield StudyClaim(f"E6, {mesh}: iterations beyond those expected", ITERATIONS, _first(more), unit="")
        yield StudyClaim(f"E6, {mesh}: displacement of the loaded node", DIGITS, _first(off))
        yield StudyClaim(f"E6, {mesh}: reactions against the load", BALANCE, _first(rest), unit="N")


def _first(values: Sequence[float]) -> float:
    return values[0] if values else np.nan


def _repeated(plan: StudyPlan, found: StudyRecords) -> Iterator[StudyClaim]:
    """The slowness of node00 is the same whenever it is measured."""
    for tasks in ONE_HOST:
        far = max((apart(plan, found, mesh, tasks) for mesh in MESHES), key=lambda each: each.found)
        noisy = far.low <= REPEATED < far.found
        yield StudyClaim(
            f"E9, {tasks} + {tasks} tasks: slowness repeated, largest difference",
            REPEATED,
            *far,
            reason=f"too noisy, between {far.low:.3g} and {far.high:.3g}" if noisy else "",
        )


def _model(plan: StudyPlan, found: StudyRecords) -> Iterator[StudyClaim]:
    """The slower host decides the time of a run on both."""
    for mesh in MESHES:
        errors = [_model_error(plan, found, mesh, k) for k in range(plan.effort.repetitions)]
        yield error_claim(f"E10, {mesh}: bottleneck model, mean error of 11 runs", MODEL, errors)


def _model_error(plan: StudyPlan, found: StudyRecords, mesh: str, repetition: int) -> float:
    """Mean |error| over the runs, in per cent, all of one repetition; nan if one is missing."""

    def total(on_slow: int, on_fast: int) -> float:
        times = found.totals(plan.on_hosts(mesh, plan.machines.mixed(on_slow, on_fast)))
        return times[repetition] if repetition < len(times) else np.nan

    errors = [
        bottleneck_time((a, b), (total(a + b, 0), total(0, a + b))) / total(a, b) - 1
        for a, b in RUNS.values()
    ]
    return 100 * float(np.mean(np.abs(errors)))


def _weighted(plan: StudyPlan, found: StudyRecords) -> Iterator[StudyClaim]:
    """Weighted parts take hardly longer than the ideal split, and the slow host does no harm, where an
    iteration computes much longer than it communicates."""
    for w in _best_rounds(results(plan, found)):
        if (1 - w.communication) < COMPUTING * w.communication:
            continue
        name = f"E13, {w.mesh}, {w.kind.storage}, {w.kind.tasks} tasks"
        yield most_claim(
            f"{name}: time over that of the ideal split", OF_IDEAL, [w.seconds / w.ideal], unit=""
        )
        yield most_claim(f"{name}: time over that of node8 alone", 1.0, [w.seconds / w.fast_alone], unit="")
        if w.kind.run:
            yield most_claim(
                f"{name}: time over the best of runs 1 to 11", 1.0, [w.seconds / w.best_seconds], unit=""
            )


def _best_rounds(runs: Sequence[Weighted]) -> list[Weighted]:
    """The faster round of each mesh and storage."""
    best: dict[tuple[str, str], Weighted] = {}
    for w in sorted(runs, key=lambda w: -w.seconds):
        best[w.mesh, w.kind.storage] = w
    return [best[key] for key in sorted(best)]


def _storage(plan: StudyPlan, found: StudyRecords) -> Iterator[StudyClaim]:
    """On one core, splitting a dense matrix gains what its work predicts; csr gains nothing."""
    work = work_of(plan, found)
    for tasks in ONE_HOST[1:]:
        predicted = work[tasks].dense.gain_on_one if tasks in work else np.nan
        dense, sparse = (gains_of(plan, found, tasks, storage) for storage in ("dense", "csr"))
        name = f"E14, m3, {tasks} tasks on one core"
        yield least_claim(
            f"{name}: dense gain over that of its work", OF_PREDICTED, [g / predicted for g in dense], unit=""
        )
        yield most_claim(f"{name}: csr gain", SPARSE, sparse, unit="")
