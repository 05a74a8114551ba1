"""What the results show in each plot: one sentence, computed from them."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.units import count, percent, seconds
from fembench.records import phases as ph
from fembench.records.compare import ranks_in_words
from fembench.records.record import Event
from fembench.report.factors import EfficiencyFactors
from fembench.report.measures import PRODUCT, rank_times
from fembench.report.results import Result
from fembench.report.roofline import ITERATION as WHOLE
from fembench.report.roofline import RooflinePoint
from fembench.report.speedup import Speedup
from fembench.report.unequal import Unequal
from fembench.report.weak import ITERATION, WeakPoint


def _ranks(result: Result) -> str:
    """'4 ranks', 'one rank', '2 ranks (7:1)'."""
    shares = f" ({result.placement})" if result.placement else ""
    return f"{ranks_in_words(result.ranks)}{shares}"


def _case(result: Result) -> str:
    """'m3 · sym on 4 ranks'."""
    return f"{' · '.join(result.series)} on {_ranks(result)}"


def of_stacks(what: str, group: Sequence[Result], bands: Mapping[str, npt.ArrayLike]) -> str:
    """Of the results of one mesh: seconds of each by label of the band."""
    heights = np.array([np.asarray(values, float) for values in bands.values()])
    whole = heights.sum(axis=0)
    if not whole[-1]:
        return ""
    highest = int(heights[:, -1].argmax())
    part = percent(float(heights[highest, -1] / whole[-1]), 0)
    first = f"{seconds(whole[0])} on {_ranks(group[0])} and " if len(group) > 1 else ""
    last = f"{seconds(whole[-1])} on {_ranks(group[-1])}"
    of = "that" if first else "it"
    return f"On {group[0].mesh}, {what} {first}{last}; {part} of {of} is {list(bands)[highest]}."


def of_ranks(result: Result) -> str:
    """Which rank computes longest, and which waits longest."""
    work = rank_times(result.runs, ph.CG) - rank_times(result.runs, *ph.COMMUNICATION)
    waits = rank_times(result.runs, *ph.WAITING)
    slow, idle = int(work.argmax()), int(waits.argmax())
    return (
        f"Rank {slow} computes longest: {seconds(float(work[slow]))} per set, {work[slow] / work.mean():.2f} "
        f"times the mean. Rank {idle} waits longest: {seconds(float(waits[idle]))}."
    )


def of_speedups(found: Sequence[Speedup]) -> str:
    """The largest one."""
    best = max(found, key=lambda s: s.ratio)
    efficiency = f", an efficiency of {best.efficiency:.2f}" if np.isfinite(best.efficiency) else ""
    return f"The largest speedup is {best.ratio:.2f}, of {_case(best.result)}{efficiency}."


def of_factors(group: Sequence[EfficiencyFactors]) -> str:
    """The lowest factor on the most ranks."""
    last = max(group, key=lambda f: f.result.ranks)
    factors = {
        "load balance": last.load_balance,
        "serialization": last.serialization,
        "transfer": last.transfer,
        "computation scaling": last.scaling,
    }
    value, name = min((value, name) for name, value in factors.items() if np.isfinite(value))
    whole = f"the global efficiency is {last.overall:.2f}; " if np.isfinite(last.overall) else ""
    return f"For {_case(last.result)}, {whole}the lowest factor is {name}, {value:.2f}."


def of_weak(group: Sequence[WeakPoint]) -> str:
    """How an iteration grows from the fewest to the most ranks of a series."""
    first, last = group[0], group[-1]
    ratio = last.times[ITERATION].median / first.times[ITERATION].median
    e = last.efficiency.get(ITERATION, (np.nan,))[0]
    efficiency = f": an efficiency of {e:.2f}" if np.isfinite(e) else ""
    ranks = f"{ranks_in_words(first.result.ranks)} to {ranks_in_words(last.result.ranks)}"
    return f"From {ranks}, an iteration takes {ratio:.2f} times as long{efficiency}."


def of_communication(found: Sequence[tuple[Result, float]]) -> str:
    """The smallest and the largest share of communication."""
    low, least = min(found, key=lambda one: one[1])
    high, most = max(found, key=lambda one: one[1])
    if low is high:
        return f"Communication takes {percent(most)} of CG, for {_case(high)}."
    return f"Communication takes {percent(least)} ({_case(low)}) to {percent(most)} ({_case(high)}) of CG."


def of_roofline(points: Sequence[RooflinePoint]) -> str:
    """How near to its roof the largest case is."""
    last = max(points, key=lambda p: (p.result.record.mesh.n_equations, p.result.ranks)).result
    of_roof = {p.phase: percent(p.of_roof, 0) for p in points if p.result is last}
    product = f"the product reaches {of_roof[PRODUCT]} of its roof, " if PRODUCT in of_roof else ""
    return f"For {_case(last)}, {product}the whole iteration {of_roof[WHOLE]}."


def of_time_line(events: Sequence[Event], n_ranks: int) -> str:
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
    return f"In these iterations, ranks wait for {share} of the time; rank {longest} waits longest, {most}."


def of_residuals(few: Result, many: Result) -> str:
    """The iterations of the largest system, on few and many ranks; what they reach, if they are fixed."""
    if few.pool.case.stop.iterations:
        solve = few.record.solve
        part = f"{solve.residuals[-1] / solve.residuals[0]:.2g} of the first"
        return f"After {count(solve.iterations)} iterations, the residual of {few.mesh} is {part}."
    first, last = (count(r.record.solve.iterations) for r in (few, many))
    more = f" and {last} on {_ranks(many)}" if many is not few else ""
    return f"{few.mesh} takes {first} iterations on {_ranks(few)}{more}."


def of_alone(found: Sequence[Unequal]) -> str:
    """The speedup over the fastest host alone."""
    timed = [u for u in found if u.alone]
    if not timed:
        return ""
    best = max(timed, key=lambda u: u.fastest[0])
    host = next(iter(best.against))
    return f"The largest speedup over {host} alone is {best.fastest[0]:.2f}, of {_case(best.result)}."


def of_use(found: Sequence[Unequal]) -> str:
    """The best efficiency of unequal ranks."""
    known = [u for u in found if np.isfinite(u.e_het)]
    if not known:
        return ""
    best = max(known, key=lambda u: u.e_het)
    return f"The hosts are used best by {_case(best.result)}: E_het is {best.e_het:.2f}."
