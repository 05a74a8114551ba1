"""What the study claims: limits on predictions of the virtual
park, and of farms under MPI.

The limits are those that the source's own tables reach: 2.3 % in the worst version of π
with 68.75 % of the runs inside, 4.2 % and 36 % for matrices; every miss of the primes
an overestimate, and half of the runs inside with Q.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fembench.stats.student import student_factor
from fembench_studies.claims import StudyClaim
from fembench_studies.declared import captions
from fembench_studies.pamela.farm_models import VERSIONS
from fembench_studies.pamela.interval_score import IntervalScore
from fembench_studies.pamela.park import ParkOutcome, pooled
from fembench_studies.programs.cases import other_speed
from fembench_studies.programs.record import unfit
from fembench_studies.thesis_000.farm_live import FarmRun

Measured = Callable[[Sequence[ParkOutcome]], float]


def largest(found: Sequence[ParkOutcome]) -> float:
    """Mean error of the worst version, per cent."""
    return max(100 * pooled([o for o in found if o.version == v]).mean_error for v in VERSIONS)


def mean(found: Sequence[ParkOutcome]) -> float:
    """Mean error, per cent."""
    return 100 * pooled(found).mean_error


def inside(found: Sequence[ParkOutcome]) -> float:
    """Runs inside their interval, per cent."""
    score = pooled(found)
    return 100 * score.hits / len(score.errors)


def width(found: Sequence[ParkOutcome]) -> float:
    """Half the width of the intervals, per cent of their middles."""
    return 100 * pooled(found).half_width


def over(found: Sequence[ParkOutcome]) -> float:
    """Misses that were predicted too long, per cent."""
    missed = [e for e in pooled(found).errors if e]
    return 100 * sum(e < 0 for e in missed) / len(missed) if missed else 100.0


MEASURED: dict[str, Measured] = {f.__name__: f for f in (largest, mean, inside, width, over)}
LIVE = {"pi": 2.3, "primes": 6.0, "matrices": 4.2, "partial": 5.0}  # mean error, per cent
INSIDE, WIDTH = 50.0, 8.0  # of farms under MPI


def park_claims(results: dict[str, list[ParkOutcome]]) -> list[StudyClaim]:
    """The claims of the requested applications. Nothing in them is
    measured, so they have no interval."""
    made = [
        StudyClaim(f"park, {name}: {what}", limit, MEASURED[by](results[name]), least=least)
        for name, what, by, limit, least in captions("thesis_000").limits
        if name in results
    ]
    if {"prim", "primQ"} <= set(results):
        half = mean(results["prim"]) / 2
        made.append(StudyClaim("park, primQ: half of the mean error without Q", half, mean(results["primQ"])))
    return made


def live_claims(live: Sequence[FarmRun]) -> list[StudyClaim]:
    """Farms under MPI: the mean error of each program, and its runs inside
    intervals that are narrow."""
    made = []
    for program, limit in LIVE.items():
        mine = [one for one in live if one.program == program]
        if not mine:
            continue
        scores = [one.score for one in mine]
        reason = next(filter(None, (_untested(one, limit) for one in mine)), "")
        errors = [100 * abs(e) for s in scores for e in s.errors]
        hits = 100 * sum(s.hits for s in scores) / len(errors)
        name = f"MPI, {program}"
        made += [
            StudyClaim(f"{name}: mean error", limit, *_mean(errors), reason),
            StudyClaim(f"{name}: runs inside", INSIDE, hits, reason=reason, least=True),
            StudyClaim(f"{name}: half width of the intervals", WIDTH, _half(scores), reason=reason),
        ]
    return made


def _untested(run: FarmRun, limit: float) -> str:
    """Why a run judges no prediction to within `limit` per cent; "" if it does."""
    return unfit(run.record) or other_speed(run.record, run.calibration, limit / 100)


def _half(scores: Sequence[IntervalScore]) -> float:
    return 100 * float(np.mean([s.half_width for s in scores]))


def _mean(errors: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and Student's interval of it; nan for fewer than three."""
    middle = float(np.mean(errors))
    if len(errors) < 3:
        return middle, np.nan, np.nan
    far = student_factor(len(errors) - 1) * float(np.std(errors, ddof=1)) / len(errors) ** 0.5
    return middle, max(0.0, middle - far), middle + far
