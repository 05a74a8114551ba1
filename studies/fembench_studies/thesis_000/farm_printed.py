"""The applications and tables of Herai (2005), and the scores that
follow from the printed numbers."""

import functools
from typing import NamedTuple

from fembench.model.closed_form import TimeRange
from fembench_studies.layout import source_table
from fembench_studies.pamela.farm_models import App
from fembench_studies.pamela.interval_score import IntervalScore, score

printed = functools.partial(source_table, "thesis_000")
# name in the source -> application, whether Q is used, description, tables, figures
KINDS: dict[str, tuple[App, bool, str, str, str]] = {
    "pi": ("pi", False, "Monte-Carlo π", "5.7, 5.8, C.1–C.3", "5.1, 5.2"),
    "prim": ("prim", False, "primes, conditionals at their worst", "5.9, 5.10, C.4–C.6", "5.3, 5.4"),
    "primQ": ("prim", True, "primes, with Q", "5.11, 5.12, C.7–C.9", "5.5, 5.6"),
    "mat": ("mat", False, "whole matrices", "5.13, 5.14, C.10–C.12", "5.7, 5.8"),
    "rand": (
        "rand",
        False,
        "selected elements, conditionals at their worst",
        "5.15, 5.16, C.13–C.15",
        "5.9, 5.10",
    ),
}
BEYOND: dict[str, tuple[App, bool]] = {
    "mat by phase": ("mat", False),
    "rand with Q, by phase": ("rand", True),
}


# tasks of the fastest machine, by all tasks and number of machines: those of which all printed intervals of π
# are the same multiple; Eq. 3.6 with the printed W gives one more on four machines
FASTEST = {100: (51, 26, 14, 7, 4), 200: (101, 52, 27, 14, 8)}


class PrintedRuns(NamedTuple):
    """The printed interval of one version on one number of machines,
    and its four runs; seconds."""

    low: float
    high: float
    measured: tuple[float, ...]  # (4,)
    mean_error_percent: float


@functools.cache
def printed_runs() -> dict[tuple[str, int], PrintedRuns]:
    """(version, machines) -> printed numbers."""
    return {
        (row["version"], int(row["machines"])): PrintedRuns(
            float(row["estimate_min_s"]),
            float(row["estimate_max_s"]),
            tuple(float(row[f"measured_{k}_s"]) for k in range(1, 5)),
            float(row["mean_error_printed_percent"]),
        )
        for row in printed("farm_results")
    }


def thesis_scores() -> dict[tuple[str, int], IntervalScore]:
    """(version, machines) -> score of the printed intervals
    and times by Eqs 5.2 and 5.3."""
    return {
        key: score(r.measured, [TimeRange(r.low, r.high)] * len(r.measured))
        for key, r in printed_runs().items()
    }
