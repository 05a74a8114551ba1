"""What the results show in each plot: one sentence, computed from them.

No extreme is one of results that are OVERSUBSCRIBED or DISTURBED while there are others;
wherever a sentence has a number of such a result, or of one that is PROVISIONAL, it has the word.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.units import count, percent, seconds
from fembench.records import phases as ph
from fembench.records.compare import ranks_in_words
from fembench.records.record import Event
from fembench.report.factors import EfficiencyFactors
from fembench.report.measures import PRODUCT, SOLVE
from fembench.report.results import Result, flaws, unfit
from fembench.report.roofline import ITERATION as WHOLE
from fembench.report.roofline import RooflinePoint
from fembench.report.speedup import Speedup
from fembench.report.unequal import Unequal
from fembench.report.weak import ITERATION, WeakPoint

T = TypeVar("T")
EVEN = 0.02  # of the mean: ranks that differ less from it compute about equally long
WAITS = ("wait", "all-reduce")  # bands that are waiting


def _ranks(result: Result, *others: Result | None) -> str:
    """'4 ranks', '2 ranks (7:1)', '4 ranks, DISTURBED' if that or one of the others is."""
    return ", ".join([result.in_words, *flaws(result, *filter(None, others))])


def _case(result: Result, *others: Result | None) -> str:
    """'m3 · sym on 4 ranks'."""
    return f"{' · '.join(result.series)} on {_ranks(result, *others)}"


def _fit(
    found: Sequence[T], results_of: Callable[[T], Sequence[Result | None]], least: int = 1
) -> tuple[Sequence[T], str]:
    """(those to conclude from: all, if fewer than `least` are fit; a sentence on those left out)."""
    labels = [unfit(*filter(None, results_of(one))) for one in found]
    fit = [one for one, words in zip(found, labels) if not words]
    left_out = " or ".join(dict.fromkeys(word for words in labels for word in words))
    enough = left_out and len(fit) >= least
    return (fit, f" Runs that are {left_out} do not count.") if enough else (found, "")


def of_stacks(
    what: str, group: Sequence[Result], bands: Mapping[str, npt.ArrayLike], seconds_of: Sequence[float] = ()
) -> str:
    """Of results of one mesh: how long each took (else: the sum), and its seconds by label of the band.

    They are the first and the one that it is compared with.
    """
    heights = np.array([np.asarray(values, float) for values in bands.values()])
    at = _compared(group)
    if not heights[:, at].any():
        return ""
    took = seconds_of or heights.sum(axis=0).tolist()
    last: dict[str, float] = {}
    for label, height in zip(bands, heights[:, at].tolist()):
        name = f"waiting ({' and '.join(WAITS)})" if label in WAITS else label
        last[name] = last.get(name, 0.0) + height
    highest = max(last, key=last.__getitem__)
    part = percent(last[highest] / sum(last.values()), 0)
    comma = "," * bool(flaws(group[0]))
    first = f"{seconds(took[0])} on {_ranks(group[0])}{comma} and " if at else ""
    bar = f"{seconds(took[at])} on {_ranks(group[at])}; {part} of {'the latter' if at else 'the bar'}"
    return f"On {group[0].mesh}, {what} {first}{bar} is {highest}."


def _compared(group: Sequence[Result]) -> int:
    """The index of the fastest on the most ranks, but the first; of those without foreign work, if any."""
    others = [k for k, r in enumerate(group) if k and r.ranks == group[-1].ranks]
    return min(others, key=lambda k: (bool(unfit(group[k])), group[k].times[SOLVE].median), default=0)


def _labelled(result: Result, said: str) -> str:
    """'PROVISIONAL, DISTURBED: all ranks …' if it is."""
    words = ", ".join(flaws(result))
    return f"{words}: {said[0].lower()}{said[1:]}" if words else said


def of_ranks(result: Result, work: F64, waits: F64) -> str:
    """Which rank computes longest, if one does, and which waits longest, by their seconds in the plot."""
    slow, idle = int(work.argmax()), int(waits.argmax())
    mean, longest = float(work.mean()), float(work[slow])
    computes = (
        f"Rank {slow} computes longest: {seconds(longest)} per set, {longest / mean:.2f} times the mean"
    )
    if np.abs(work - mean).max() < EVEN * mean:
        computes = f"All ranks compute about equally long: {seconds(mean)} per set"
    waiting = f"waits longest, for neighbours and in all-reduces: {seconds(float(waits[idle]))}"
    return _labelled(result, f"{computes}. Rank {idle} {waiting}.")


def of_speedups(found: Sequence[Speedup]) -> str:
    """The largest one."""
    found, left_out = _fit(found, lambda s: (s.result, s.base))
    best = max(found, key=lambda s: s.ratio)
    efficiency = f", an efficiency of {best.efficiency:.2f}" if np.isfinite(best.efficiency) else ""
    case = _case(best.result, best.base)
    return f"The largest speedup is {best.ratio:.2f}, of {case}{efficiency}.{left_out}"


def of_factors(group: Sequence[EfficiencyFactors]) -> str:
    """The lowest factor on the most ranks."""
    group, left_out = _fit(group, lambda f: (f.result, f.base), least=2)
    last = max(group, key=lambda f: f.result.ranks)
    factors = {
        "load balance": last.load_balance,
        "serialization": last.serialization,
        "transfer": last.transfer,
        "computation scaling": last.scaling,
    }
    value, name = min((value, name) for name, value in factors.items() if np.isfinite(value))
    lowest = f"lowest factor of {SOLVE}"
    if np.isfinite(last.overall):
        lowest = f"global efficiency of {SOLVE} is {last.overall:.2f}; the lowest factor"
    case = _case(last.result, last.base)
    return f"For {case}, the {lowest} is {name}, {value:.2f}.{left_out}"


def of_weak(group: Sequence[WeakPoint]) -> str:
    """How an iteration grows from the fewest to the most ranks of a series."""
    group, left_out = _fit(group, lambda p: (p.result, p.base), least=2)
    first, last = group[0], group[-1]
    ratio = last.times[ITERATION].median / first.times[ITERATION].median
    e = last.efficiency.get(ITERATION, (np.nan,))[0]
    efficiency = f": an efficiency of {e:.2f}" if np.isfinite(e) else ""
    ranks = f"{ranks_in_words(first.result.ranks)} to {_ranks(last.result, first.result)}"
    return f"From {ranks}, an iteration takes {ratio:.2f} times as long{efficiency}.{left_out}"


def of_communication(found: Sequence[tuple[Result, float]]) -> str:
    """The smallest and the largest share of communication."""
    found, left_out = _fit(found, lambda one: one[:1])
    low, least = min(found, key=lambda one: one[1])
    high, most = max(found, key=lambda one: one[1])
    if low is high:
        return f"Communication takes {percent(most)} of CG, for {_case(high)}.{left_out}"
    ends = f"{percent(least)} ({_case(low)}) to {percent(most)} ({_case(high)})"
    return f"Communication takes {ends} of CG.{left_out}"


def of_roofline(points: Sequence[RooflinePoint]) -> str:
    """How near to its roof the largest case is."""
    points, left_out = _fit(points, lambda p: (p.result,))
    last = max(points, key=lambda p: (p.result.record.mesh.n_equations, p.result.ranks)).result
    of_roof = {p.phase: percent(p.of_roof, 0) for p in points if p.result is last}
    product = f"the product reaches {of_roof[PRODUCT]} of its roof, " if PRODUCT in of_roof else ""
    return f"For {_case(last)}, {product}the whole iteration {of_roof[WHOLE]}.{left_out}"


def of_time_line(result: Result, events: Sequence[Event], n_ranks: int) -> str:
    """How long ranks wait within the iterations drawn."""
    waits = dict.fromkeys(sorted({e.rank for e in events}), 0.0)
    for e in (e for e in events if e.phase in ph.WAITING):
        waits[e.rank] += e.end - e.begin
    if not waits:
        return ""
    whole = max(e.end for e in events) - min(e.begin for e in events)
    longest = max(waits, key=waits.__getitem__)
    share = percent(sum(waits.values()) / whole / n_ranks, 0)
    most = percent(waits[longest] / whole, 0)
    waiting = f"ranks wait for {share} of the time; rank {longest} waits longest, {most}"
    return _labelled(result, f"In these iterations, {waiting}.")


def of_residuals(few: Result, many: Result) -> str:
    """The iterations of the largest system, on few and many ranks; what they reach, if they are fixed."""
    if few.pool.case.stop.iterations:
        solve = few.record.solve
        part = f"{solve.residuals[-1] / solve.residuals[0]:.2g} of the first"
        return f"After {count(solve.iterations)} iterations, the residual of {few.mesh} is {part}."
    first, last = (count(r.record.solve.iterations) for r in (few, many))
    more = f" and {last} on {many.in_words}" if many is not few else ""
    return f"{few.mesh} takes {first} iterations on {few.in_words}{more}."


def of_alone(found: Sequence[Unequal]) -> str:
    """The speedup over the fastest host alone."""
    timed, left_out = _fit([u for u in found if u.alone], lambda u: (u.result, *u.alone.values()))
    if not timed:
        return ""
    best = max(timed, key=lambda u: u.fastest[0])
    host, case = next(iter(best.against)), _case(best.result, *best.alone.values())
    return f"The largest speedup over {host} alone is {best.fastest[0]:.2f}, of {case}.{left_out}"


def of_use(found: Sequence[Unequal]) -> str:
    """The best efficiency of unequal ranks; nothing follows from runs that are unfit."""
    known, left_out = _fit([u for u in found if np.isfinite(u.e_het)], lambda u: (u.result,))
    if not known:
        return ""
    if labels := unfit(*(u.result for u in known)):
        runs, their = ("These runs are", "their") if len(known) > 1 else ("This run is", "its")
        return f"{runs} {' or '.join(labels)}: nothing follows from {their} E_het."
    best = max(known, key=lambda u: u.e_het)
    if len(known) == 1:
        return f"E_het of {_case(best.result)} is {best.e_het:.2f}.{left_out}"
    return f"The hosts are used best by {_case(best.result)}: E_het is {best.e_het:.2f}.{left_out}"
