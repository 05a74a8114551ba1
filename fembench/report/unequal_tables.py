"""Tables of unequal machines: against each alone, against the summed speed, bounds."""

from collections.abc import Sequence

import numpy as np

from fembench.report.measures import SOLVE
from fembench.report.table import Table, case_columns, case_of, ratio, time, words
from fembench.report.unequal import Unequal


def against_alone(found: Sequence[Unequal]) -> Table:
    """A row a run and machine: the thesis' two speedups of every heterogeneous run."""
    rows = [
        (*case_of(u.result), u.seconds, name, u.alone[name].times[SOLVE].median, *each)
        for u in found
        for name, each in u.against.items()
    ]
    return Table(
        "speedup_alone",
        "Unequal machines: speedup against each alone",
        "Every run on unequal ranks held against one rank of each of its machines, as the source thesis does "
        "(its Figures 5.37 to 5.42): speedup is the time of that machine alone over the time of the run, "
        "efficiency is that over the number of ranks. Below 1 the machine alone is faster. Times are "
        "those of a set, assembly and CG.",
        (
            *case_columns(),
            time("run", "run"),
            words("machine"),
            time("alone", "alone"),
            ratio("speedup", "speedup"),
            ratio("speedup / ranks", "thesis_efficiency"),
        ),
        tuple(rows),
    )


def efficiency(found: Sequence[Unequal]) -> Table:
    """A row a run: what the ranks amount to together, how well they were used, and what bounded it."""
    rows = []
    for u in found:
        bounds = u.bounds or (np.nan,) * 3
        fastest = next(iter(u.alone), None)
        rows.append(
            (*case_of(u.result), u.seconds, u.equivalent, u.e_het, fastest, u.fastest[0], *bounds)
            + (u.source or None, "; ".join(u.notes))
        )
    return Table(
        "speedup_unequal",
        "Unequal machines: efficiency against their summed speed",
        "E_het is the time in which the ranks would do the work if all computed from beginning to end, over "
        "the time that they took. P_eq says how many of the fastest rank they amount to. Speeds are cells a "
        "second of computing, from the run with equal shares on the same ranks (named in the last column but "
        "one): no timing has chosen those; shares that were made of that very run are judged in-sample. "
        "The bounds of the source thesis on the speedup against the fastest machine alone count what each "
        "rank does: work (3.7), with waiting and communication (3.8), with work that one rank would not have "
        "done (3.9); where a bound falls, there the time went.",
        (
            *case_columns(),
            time("run", "run"),
            ratio("P_eq", "equivalent_ranks"),
            ratio("E_het", "e_het", 3),
            words("fastest alone", "fastest_alone"),
            ratio("speedup", "speedup"),
            ratio("≤ (3.7)", "bound_work"),
            ratio("≤ (3.8)", "bound_waiting"),
            ratio("≤ (3.9)", "bound_extra"),
            words("speeds from", "speeds_from"),
            words("remarks"),
        ),
        tuple(rows),
    )
