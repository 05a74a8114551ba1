"""Tables for unequal hosts: comparison with each host alone, with the summed speed, and with bounds."""

from collections.abc import Sequence

import numpy as np

from fembench.report.measures import SOLVE
from fembench.report.speedup import Speedup
from fembench.report.table import Column, Table, case_columns, case_of, ratio, time, words
from fembench.report.unequal import Unequal, bounds_of

_BOUNDS = (
    ratio("bound: computing", "bound_work"),
    ratio("bound: + waiting, messages", "bound_waiting"),
    ratio("bound: + extra work", "bound_extra"),
)


def against_alone(found: Sequence[Unequal]) -> Table:
    """One row per run on unequal hosts and per host: speedup and speedup per rank."""
    rows = [
        (*case_of(u.result), u.seconds, name, u.alone[name].times[SOLVE].median, *each)
        for u in found
        for name, each in u.against.items()
    ]
    return Table(
        "speedup_alone",
        "Unequal hosts: speedup over each host alone",
        "Each run on unequal ranks is compared with one rank on each of its hosts, as in Ferreira "
        "(2006), Figs 5.37 to 5.42. Speedup is the time of that host alone over the time of the run; "
        "below 1, the host alone is faster. Times are those of one set, assembly + CG.",
        (
            *case_columns(),
            time("run", "run"),
            words("host", "machine"),
            time("alone", "alone"),
            ratio("speedup", "speedup"),
            ratio("speedup / ranks", "speedup_per_rank"),
        ),
        tuple(rows),
    )


def efficiency(found: Sequence[Unequal]) -> Table:
    """One row per run: the number of ranks in units of the fastest, their efficiency, and its bounds."""
    rows = []
    for u in found:
        bounds = u.bounds or (np.nan,) * 3
        fastest = next(iter(u.alone), None)
        rows.append(
            (
                *case_of(u.result),
                u.seconds,
                u.equivalent,
                u.e_het,
                u.e_het_ends,
                fastest,
                u.fastest[0],
                *bounds,
            )
            + (u.source or None, "; ".join(u.notes))
        )
    return Table(
        "speedup_unequal",
        "Unequal hosts: efficiency relative to their summed speed",
        "E_het is the time that the work would take if all ranks computed from beginning to end, over the "
        "time that it took; 1 is perfect. P_eq is the number of ranks in units of the fastest. Speeds are "
        "cells per second of computing in the run with equal shares on the same ranks, named under 'speeds "
        "from'. (Shares chosen from that very run are tested on the data they were fitted to.) The three "
        "bounds are upper limits of the speedup over the fastest host alone (Ferreira 2006, Eqs 3.7 to "
        "3.9): the time of that host alone over the largest time of any rank. The first counts computing; "
        "the second also waiting and messages; the third also work that a single rank would not do. A bound "
        "well below the one before it shows what costs time.",
        (
            *case_columns(),
            time("run", "run"),
            ratio("P_eq", "equivalent_ranks"),
            ratio("E_het", "e_het", 3),
            Column("95 % interval", "e_het_low e_het_high", lambda v: f"{v[0]:.3f}–{v[1]:.3f}", number=True),
            words("fastest alone", "fastest_alone"),
            ratio("speedup", "speedup"),
            *_BOUNDS,
            words("speeds from", "speeds_from"),
            words("remarks"),
        ),
        tuple(rows),
    )


def bounds(found: Sequence[Speedup], unequal: Sequence[Unequal]) -> Table:
    """One row per run that has a speedup over one rank and is not among the unequal ones: its bounds."""
    apart = {id(u.result) for u in unequal}
    judged = [s for s in found if s.base and s.base.ranks == 1 and id(s.result) not in apart]
    rows = [(*case_of(s.result), s.ratio, *bounds_of(s.result, s.base)) for s in judged if s.base]
    return Table(
        "speedup_bounds",
        "Bounds on the speedup",
        "Upper limits of the speedup of assembly + CG over one rank (Ferreira 2006, Eqs 3.7 to 3.9): the "
        "time on one rank over the largest time of any rank. The first counts computing; the second also "
        "waiting and messages; the third also work that a single rank would not do.",
        (*case_columns(), ratio("speedup", "speedup"), *_BOUNDS),
        tuple(rows),
    )
