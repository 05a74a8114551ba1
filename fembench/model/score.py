"""Score predictions: error, bias, coverage, rank correlation; beside a simpler model.

The error is predicted / measured - 1, for the time of an iteration. A cell is one
configuration; its measured time is the median of its runs. Coverage counts single runs
inside the interval. Cells whose sets have a coefficient of variation above NOISY are
too noisy to test a prediction; they are counted and left out.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import percent
from fembench.records.case import Case
from fembench.records.prediction import SIMULATION

NOISY = 0.10
TOO_MANY = 0.20  # if a larger fraction of cells is left out, a grid is INVALID
BASELINE = "ideal sum of speeds"  # the simple model to be better than (docs/decisions/0019)
HELD_OUT = 0.40  # least fraction of held-out cells


class ScoredConfiguration(NamedTuple):
    """One configuration, predicted and measured."""

    mesh: str  # or the program and its size
    ranks: int
    shares: str
    predicted: float
    low: float
    high: float
    measured: float
    variation: float  # standard deviation over mean of its sets; 0 for a single one
    method: str = SIMULATION
    runs: tuple[float, ...] = ()  # seconds of each run

    @property
    def inside(self) -> float:
        """Fraction of its runs inside the interval."""
        return float(np.mean([self.low <= took <= self.high for took in self.runs or (self.measured,)]))

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def outside(self) -> float:
        """Distance of the time from the interval, over its middle; nan without one."""
        beyond = max(self.low - self.measured, self.measured - self.high, 0.0)
        return beyond / ((self.low + self.high) / 2) if self.low == self.low else math.nan


class PredictionScore(NamedTuple):
    cells: int
    left_out: int  # too noisy
    median: float  # of |error|
    p90: float
    bias: float  # median of error
    coverage: float  # fraction of runs inside their interval
    tau: float  # Kendall's tau of predicted and measured times
    outside: float  # mean distance over the middle, 0 inside (Herai 2005, Eq. 5.3)
    half_width: float  # of the intervals, relative to the prediction; median

    @property
    def invalid(self) -> bool:
        """Whether too many cells are too noisy."""
        return not self.cells or self.left_out > TOO_MANY * (self.cells + self.left_out)


class Grid(NamedTuple):
    """The data of a configuration that the baseline may use."""

    ranks: int
    work: float  # blocks of the whole mesh
    speeds: Sequence[float]  # [rank] relative
    measured: float  # seconds per iteration


def score(cells: Sequence[ScoredConfiguration]) -> PredictionScore:
    """All measures, over the cells that are not too noisy."""
    kept = [c for c in cells if c.variation <= NOISY]
    errors = np.array([c.error for c in kept])
    if not kept:
        return PredictionScore(0, len(cells), *[math.nan] * 7)
    size = np.abs(errors)
    return PredictionScore(
        cells=len(kept),
        left_out=len(cells) - len(kept),
        median=float(np.median(size)),
        p90=float(np.quantile(size, 0.9)),
        bias=float(np.median(errors)),
        coverage=float(np.mean([c.inside for c in kept])),
        tau=kendall([c.predicted for c in kept], [c.measured for c in kept]),
        outside=float(np.mean([c.outside for c in kept])),
        half_width=float(np.median([(c.high - c.low) / 2 / c.predicted for c in kept])),
    )


def kendall(a: Sequence[float], b: Sequence[float]) -> float:
    """Kendall's tau-b: concordant minus discordant pairs over untied ones; nan below two."""
    x, y = np.asarray(a, float), np.asarray(b, float)
    i, j = np.triu_indices(len(x), 1)
    sx, sy = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
    norm = math.sqrt(float(np.count_nonzero(sx)) * float(np.count_nonzero(sy)))
    return float((sx * sy).sum() / norm) if norm else math.nan


def _ranks(asked: ScoredConfiguration | Grid | Case) -> int:
    return asked.placement.ranks if isinstance(asked, Case) else asked.ranks


def check_held_out(
    training: Sequence[ScoredConfiguration | Grid | Case],
    held_out: Sequence[ScoredConfiguration | Case],
    meshes: Sequence[str],
) -> None:
    """Raises InputError if the held-out cells are too few, or share a mesh or number of
    ranks with the training cells."""
    total = len(training) + len(held_out)
    if len(held_out) < HELD_OUT * total:
        least = percent(HELD_OUT, 0)
        raise InputError(f"{len(held_out)} of {total} cells held out; expected at least {least}")
    ranks = {_ranks(c) for c in training} & {_ranks(c) for c in held_out}
    shared = set(meshes) & {c.question.mesh if isinstance(c, Case) else c.mesh for c in held_out}
    if ranks or shared:
        what = f"ranks {sorted(ranks)}" if ranks else f"meshes {', '.join(sorted(shared))}"
        raise InputError(f"{what} occur in training and held out; expected other ranks, meshes and shares")


def ideal(training: Sequence[Grid], held_out: Sequence[Grid]) -> list[float]:
    """Work over the sum of all speeds, with a constant fitted to the training runs."""
    rate = float(np.median([g.measured * sum(g.speeds) / g.work for g in training]))
    return [rate * g.work / sum(g.speeds) for g in held_out]


def baseline_cells(
    training: Sequence[Grid], held_out: Sequence[Grid], cells: Sequence[ScoredConfiguration]
) -> list[ScoredConfiguration]:
    """The held-out cells, predicted by the baseline; without intervals."""
    times = zip(cells, ideal(training, held_out))
    return [c._replace(predicted=t, low=math.nan, high=math.nan) for c, t in times]


def too_noisy(cells: Sequence[ScoredConfiguration], scores: dict[str, PredictionScore]) -> str:
    """Why these cells cannot test the predictions of fembench; "" if they can."""
    ours = [s for name, s in scores.items() if name != BASELINE]
    if not any(s.invalid for s in ours):
        return ""
    left_out = sum(s.left_out for s in ours)
    return f"INVALID: {left_out} of {len(cells)} cells vary too much to test predictions"


def score_table(scores: dict[str, PredictionScore]) -> str:
    """One row per model."""
    rows = [
        [name, s.cells, s.left_out]
        + [_percent(s.median), _percent(s.p90), _percent(s.bias, "+.1f"), _percent(s.half_width)]
        + [None if math.isnan(s.outside) else percent(s.coverage, 0), _percent(s.outside)]
        + [None if math.isnan(s.tau) else f"{s.tau:.2f}"]
        for name, s in scores.items()
    ]
    heads = ["model", "cells", "too noisy", "median |error|", "p90", "bias", "half-width", "inside"]
    return table([*heads, "outside by", "tau"], rows, align="lrrrrrrrrr")


def _percent(value: float, form: str = ".1f") -> str | None:
    return None if math.isnan(value) else f"{100 * value:{form}} %"


def cell_table(cells: Sequence[ScoredConfiguration]) -> str:
    """One row per configuration."""
    rows = [
        [c.mesh, c.ranks, c.shares or "equal", c.method, c.predicted, c.low, c.high, c.measured]
        + [f"{100 * c.error:+.1f} %", percent(c.variation)]
        for c in cells
    ]
    heads = ["run", "ranks", "shares", "method", "predicted", "low", "high", "measured", "error", "variation"]
    return table(heads, rows, align="lrllrrrrrr")
