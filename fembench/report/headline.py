"""The headline of a campaign: what the machine is worth, in a few numbers.

figure of merit    equations x iterations / seconds of CG, at full scale: the run on most ranks that have
                   a core each, where there is one; of a solution by multigrid: equations / seconds of
                   assembly, set-up and CG
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from fembench.base import units
from fembench.records import phases as ph
from fembench.records.binding import held_in, partly_cached
from fembench.records.compare import host_names
from fembench.records.verdict import STATES, named
from fembench.report.bases import HOSTS, bases, fastest, ratio_range
from fembench.report.measures import CG, SOLVE, energy, part_of_cg
from fembench.report.results import Result, crowded, flaws, of_real_hosts, unfit
from fembench.report.roofline import product_point
from fembench.report.slow_hosts import host_advice
from fembench.report.speedup import SLOWER, Speedup
from fembench.report.table import Rows, declared
from fembench.report.unequal import Unequal
from fembench.report.weak import ITERATION, WeakPoint, per_rank
from fembench.weights.host_speed import HostSpeeds


@dataclasses.dataclass(frozen=True, slots=True)
class HeadlineRow:
    """One number, or why there is none."""

    what: str
    value: float | str = np.nan
    low: float = np.nan  # 95 % interval
    high: float = np.nan
    unit: str = ""  # "MDOF/s", "%", "x"
    remark: str = ""


def headline(
    found: Sequence[Result],
    speedups: Mapping[str, Sequence[Speedup]],
    weak: Sequence[WeakPoint],
    unequal: Sequence[Unequal],
    speeds: HostSpeeds,
    left_out: int = 0,
) -> list[HeadlineRow]:
    """The rows, the verdict first; `speedups` by quantity. None where nothing was measured.

    `speeds`: of the hosts. `left_out`: cases that there was no time for. Beside real hosts,
    emulated ones count in the verdict only.
    """
    if not found:
        return []
    real, rows = of_real_hosts(found), [_verdict(found, left_out)]
    used, kept = usable(real), set(map(id, real))
    weak = [p for p in weak if id(p.result) in kept]
    unequal = [u for u in unequal if id(u.result) in kept]
    if not used:
        return rows
    full = max(used, key=lambda r: (not crowded(r), *scale(r), merit(r)))
    strong = [s for s in speedups[rated(full)] if id(s.result) in kept]
    return [
        *rows,
        _merit(full, used),
        *_energy(full),
        *_limits(full),
        *([_strong(full, strong), _weak(weak)] if len(real) > 1 else []),
        *_of_unequal(full, unequal),
        _slowest(speeds),
        *_gain(used, unequal),
        *_advice([r for r in used if sound(r)], speeds),
    ]


def usable(found: Sequence[Result]) -> list[Result]:
    """Those whose times count: of runs of CG that are not INVALID."""
    return [r for r in found if r.pool.status != "INVALID" and CG in r.times and r.record.solve.iterations]


def merit(result: Result) -> float:
    """Figure of merit: equations x iterations / s of CG; by multigrid, equations / s."""
    return _work(result) / result.times[rated(result)].median


def _work(result: Result) -> float:
    iterations = result.record.solve.iterations if rated(result) == CG else 1
    return float(result.record.mesh.n_equations * iterations)


def rated(result: Result) -> str:
    """The time by which a result is rated: of iterations; by multigrid, of a solution."""
    return SOLVE if result.solved and result.record.solve.levels else CG


def _percent(what: str, remark: str, ends: Sequence[float] = (np.nan,) * 3) -> HeadlineRow:
    """A row of fractions: a value with the ends of its interval."""
    value, low, high = (100 * end for end in ends)
    return HeadlineRow(what, value, low, high, "%", remark)


def _verdict(found: Sequence[Result], left_out: int) -> HeadlineRow:
    records = [record for r in found for record in r.pool.records]
    statuses = [record.verdict.status for record in records]
    counts = [f"{n} {s}" for s in ("VALID", "PROVISIONAL", "INVALID") if (n := statuses.count(s))]
    worst = next(s for s in ("INVALID", "PROVISIONAL", "VALID") if s in statuses)
    broken = {(rule.ok, rule.id) for one in records for rule in one.verdict.rules if not rule.ok}
    unmet = {id for ok, id in broken if ok is False}
    why = ""
    for ok, rules in ((False, unmet), (None, {id for _, id in broken} - unmet)):
        why += f"; rules {STATES[ok]}: {', '.join(map(named, sorted(rules)))}" if rules else ""
    why += f"; left out (no time): {units.plural(left_out, 'case')}" if left_out else ""
    if apart := len(found) - len(of_real_hosts(found)):
        why += f"; {units.plural(apart, 'case')} SYNTHETIC, left out of the next lines"
    runs = units.plural(len(records), "run")
    return HeadlineRow("verdict", worst, remark=f"{runs}: {', '.join(counts)}{why}")


def sound(result: Result) -> bool:
    """Whether advice may follow from it: a core for each rank, and no foreign work."""
    return not unfit(result)


def _alone(result: Result) -> bool:
    """Whether it is known of each of its runs that no other programs used the cores (rule D6)."""
    rules = ([rule.ok for rule in r.verdict.rules if rule.id == "D6"] for r in result.pool.records)
    return all(met and all(met) for met in rules)


def _merit(full: Result, used: Sequence[Result]) -> HeadlineRow:
    """That of the run at full scale; if it is DISTURBED, of the largest without other work as well."""
    took, work = full.times[rated(full)], _work(full) / 1e6
    done = "equations x iterations / s" if rated(full) == CG else "equations solved / s, set-up included"
    ends = (work / took.median, work / took.high, work / took.low)
    remark = f"million {done}: {_where(full)}"
    quiet = max(
        (r for r in used if sound(r) and _alone(r)), key=lambda r: (*scale(r), merit(r)), default=None
    )
    if quiet and full.disturbed:
        remark += f"; without other work: {units.digits(merit(quiet) / 1e6)} MDOF/s, {_where(quiet)}"
    return HeadlineRow("figure of merit", *ends, "MDOF/s", remark)


def _where(one: Result) -> str:
    """'m3 · csr, ranks 4, VALID'."""
    return ", ".join([f"{one.mesh} · {one.method}", f"ranks {one.setting}", *(flaws(one) or ["VALID"])])


def _energy(full: Result) -> list[HeadlineRow]:
    """Energy of a set at full scale, if it was measured."""
    one = energy(full.runs, full.pool.records)
    if one is None:
        return []
    what, each = "energy of a set", ""
    if full.solved:
        what = "energy to solution"
        each = f"{units.digits(one.joules / full.record.mesh.n_equations * 1e6)} J/MDOF; "
    delay = f"{each}energy-delay product {units.digits(one.joules * one.seconds)} J s"
    remark = f"{delay}; {one.counted}, {units.percent(one.error)} uncertain"
    remark = "; ".join([remark, *flaws(full)])
    return [HeadlineRow(what, one.joules, one.low, one.high, "J", remark)]


def _limits(full: Result) -> list[HeadlineRow]:
    parts = (
        ("waiting", ph.WAITING, "of cg: for neighbours and in all-reduces"),
        ("messages", ph.OWN_MESSAGES, "of cg: packing, sending, unpacking"),
    )
    spent = [
        _percent(what, "; ".join([remark, *flaws(full)]), (part_of_cg(full.runs, *phases), np.nan, np.nan))
        for what, phases, remark in parts
    ]
    return [_bandwidth(full), *spent]


def _bandwidth(full: Result) -> HeadlineRow:
    """What the product uses of the bandwidth of the memory, or of its cache."""
    point, level = product_point(full), held_in(full.record)
    partly = not level and partly_cached(full.record)
    what = f"{'cache' if level else 'cache and memory' if partly else 'memory'} bandwidth used"
    if point is None or not np.isfinite(point.roof):
        why = point.why if point else "not available: no bandwidth was measured"
        return _percent(what, why)
    measured = f"{point.phase}, of {units.digits(point.roof / 1e9)} GB/s measured in the same run"
    held = f"cache ({level} holds the matrix): " if level else "L3 holds a part of the matrix: " * partly
    return _percent(what, "; ".join([held + measured, *flaws(full)]), (point.of_roof, np.nan, np.nan))


def _strong(full: Result, speedups: Sequence[Speedup]) -> HeadlineRow:
    """Of the run at full scale; if it has no base, of the run on most ranks that has one."""
    what = "strong scaling efficiency"
    based = [s for s in speedups if s.base is not None]
    if not based:
        notes = [note for s in speedups if s.result is full for note in s.notes]
        why = notes[0] if notes else "no run has more ranks than the base"
        return _percent(what, f"not available: {why.removeprefix('not available: ')}")
    s = max(based, key=lambda s: (np.isfinite(s.efficiency), s.result is full, *scale(s.result)))
    assert s.base is not None
    ends = f"{rated(s.result)} on {s.result.mesh}, from {s.base.ranks} to {s.result.ranks} ranks"
    slower = [note for note in s.notes if note.startswith(SLOWER)]
    labels = flaws(s.base, s.result)
    if not np.isfinite(s.efficiency):
        why = f"not available: {s.notes[0]}"
        start = f" (the {s.base.ranks} ranks count as {s.base.ranks})" if s.base.ranks > 1 else ""
        return _percent(what, "; ".join([why, f"speedup {s.ratio:.2f}{start}: {ends}", *slower, *labels]))
    remark = "; ".join(filter(None, (ends, s.equal, *slower, *labels)))
    return _percent(what, remark, [end / s.result.ranks for end in (s.ratio, s.low, s.high)])


def scale(result: Result) -> tuple[int, int]:
    """By which one run is larger than another: ranks, then equations."""
    return result.ranks, result.record.mesh.n_equations


def _of_unequal(full: Result, unequal: Sequence[Unequal]) -> list[HeadlineRow]:
    """E_het of the run at full scale, if its ranks are unequal."""
    what = f"E_het: relative to their summed speed, assembly + cg on {full.mesh}, {full.ranks} ranks"
    remark = "; ".join([what, *flaws(full)])
    return [
        _percent("efficiency of unequal ranks", remark, ends=(u.e_het, *u.e_het_ends))
        for u in unequal
        if u.result is full and np.isfinite(u.e_het)
    ]


def _weak(weak: Sequence[WeakPoint]) -> HeadlineRow:
    what = "weak scaling efficiency"
    grown = [p for p in weak if p.base is not p.result and ITERATION in p.efficiency]
    if not grown:
        noted = any(p.notes for p in weak)
        why = "ranks are unequal or share cores" if noted else "no series of equal size per rank"
        return _percent(what, f"not available: {why}")
    p = max(grown, key=lambda p: scale(p.result))
    whole = rated(p.result) != CG
    size = f"{units.count(per_rank(p.result))} equations per rank"
    timed = SOLVE if whole else "iteration of cg"
    ends = f"{timed}, {p.result.method}, {size}, from {p.base.ranks} to {p.result.ranks} ranks"
    remark = "; ".join([ends, *flaws(p.base, p.result)])
    return _percent(what, remark, p.efficiency[SOLVE if whole else ITERATION])


def _slowest(speeds: HostSpeeds) -> HeadlineRow:
    """The slow host with its cause, if one is stated; else what is known of the hosts."""
    slow = speeds.slow
    disturbed = f"DISTURBED: {speeds.disturbed}" if speeds.disturbed else ""
    if not slow:
        why = f"{disturbed}: the speed of hosts is not judged" if disturbed else speeds.none_slow()
        return _percent("slowest host", "; ".join([why, *speeds.quotas]))
    one = slow[0]
    more = f"{len(slow) - 1} more slow" if slow[1:] else ""
    said = f"{one.name}: {one.cause or 'no cause found'}"
    quotas = [text for text in speeds.quotas if not text.startswith(f"{one.name}:")]
    source = f"over the typical host ({speeds.source})"
    remark = "; ".join(filter(None, [disturbed, said, source, more, *quotas]))
    return _percent("slowest host", remark, ends=(one.speed, one.low, one.high))


def _gain(usable: Sequence[Result], unequal: Sequence[Unequal]) -> list[HeadlineRow]:
    """Of weighted shares, on unequal ranks or hosts: equal shares over the fastest run.

    Two hosts are shown to be unequal by six or more runs; a gain
    needs only one of each kind.
    """
    on_hosts = [r for r in usable if len(host_names(r.record)) > 1]
    results = sorted([u.result for u in unequal] or on_hosts, key=lambda r: -r.ranks)
    for equal in (r for r in results if not r.pool.case.placement.shares):
        weighted = (r for r in results if r.ranks == equal.ranks and r.pool.case.placement.shares)
        best = fastest(bases(equal, weighted, HOSTS), SOLVE)
        if best:
            a, b = equal.times[SOLVE], best.times[SOLVE]
            low, high = ratio_range(a, b)
            what = f"time with equal shares over time with {best.setting}, assembly + cg on {equal.mesh}"
            shown = "a loss" if high < 1 else "no gain shown" if low <= 1 <= high else ""
            remark = "; ".join(filter(None, [what, shown, *flaws(equal, best)]))
            return [HeadlineRow("gain of weighted shares", a.median / b.median, low, high, "x", remark)]
    if not unequal:
        return []
    why = "unequal ranks, but no run with equal and one with weighted shares in this folder (fembench tune)"
    return [HeadlineRow("gain of weighted shares", unit="x", remark=f"not available: {why}")]


def _advice(usable: Sequence[Result], speeds: HostSpeeds) -> list[HeadlineRow]:
    """What to do with slow hosts, if there are any."""
    found = host_advice(usable, speeds)
    return [HeadlineRow("slow hosts", found.do, remark=found.why)] if found else []


NOTE = (
    "MDOF counts equations, in millions: restrained degrees of freedom do not count. "
    "The figure of merit is the rate at which the machine solves, on the most ranks that were run with a "
    "core each (OVERSUBSCRIBED, if there was no such run): equations x iterations / seconds of cg; of "
    "solutions by multigrid, the equations solved per second, set-up included, to which the efficiencies "
    "then refer as well. The next lines show what limits it: how much of "
    "the measured memory bandwidth the product uses, and the shares of cg that ranks spend waiting for each "
    "other and handling "
    "messages. Strong scaling efficiency is for one mesh on more ranks, weak scaling efficiency for a mesh "
    "that grows with the ranks. If hosts are slow, the last line names the fastest way to run, and what the "
    "other ways cost."
)


@declared(
    "headline",
    "Headline",
    NOTE,
    "what; value unit: value | {0:digits} {1}; low high: 95 % interval | >{0:digits}–{1:digits}",
    "remarks",
)
def headline_table(rows: Sequence[HeadlineRow]) -> Rows:
    """The rows."""
    for row in rows:
        yield row.what, (row.value, row.unit), (row.low, row.high), row.remark
