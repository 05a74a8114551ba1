"""The verdict on a record: every rule of docs/validity.md, its value and its threshold.

A rule of A–C that is not met makes a run INVALID. C4 or one of D or E that is not met, or any
that is not evaluated, makes it PROVISIONAL. All rules are pure functions of the record, so
`fembench check` reproduces the run's verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf, isfinite

import numpy as np

from fembench.base import units
from fembench.base.errors import InputError
from fembench.records.answer import answer_rules, at_most, relative_recurrence, rounding
from fembench.records.binding import bound_apart, enough_cores
from fembench.records.phases import (
    BARRIERS,
    CG,
    CG_PARTS,
    COMMUNICATION,
    NAMES,
    PRODUCT_PARTS,
    SPMV_INTERFACE,
)
from fembench.records.quiet import foreign_work, quiet
from fembench.records.record import Environment, Record
from fembench.records.times import times_of
from fembench.records.traced import alignment, trace_rules
from fembench.records.verdict import Rule, Verdict, leads_to, reason
from fembench.stats.summary import drift, fewest_for, precision

RULES = 4  # version of the rules, stored with every verdict; raised whenever a rule changes
SMALL_PART = 0.01  # of CG: C3
UNEQUAL_SHARES = 0.05
WARMUPS, SETS, PRECISION = 2, 10, 2.0  # D1: the fewest of both; percent of the median
MOST_SETS = 100_000  # that D1 proposes
MOST_DRIFT = 0.05  # from the first to the last third of the sets
DISTURBED = "foreign work took CPU time (D3, D6): stop it or use idle hosts, then repeat"
Check = Callable[[Record], Iterator[Rule]]


def judge(record: Record) -> Verdict:
    """The verdict, with the rules that are not met; those that make it INVALID come first.

    A record whose times this version cannot read is INVALID.
    """
    try:
        rules = tuple(rule for check in CHECKS for rule in check(record))
    except InputError as error:
        rules = (Rule(id="C1", ok=False, value=str(error), threshold="every rank, every phase"),)
    broken = sorted((r for r in rules if r.ok is not True), key=lambda r: leads_to(r) != "INVALID")
    status = leads_to(broken[0]) if broken else "VALID"
    return Verdict(status=status, reasons=tuple(map(reason, broken)), rules=rules, version=RULES)


def _work(record: Record) -> Iterator[Rule]:
    yield _stated(record)
    worst = float(times_of(record).unattributed_share.max(initial=0.0))
    yield at_most("B2", "unattributed share of the total", worst, 0.05)
    yield from _bandwidth(record)
    part = record.partition
    sizes = np.asarray(part.cells, float)
    miss = float(np.abs(sizes / sizes.sum() / np.asarray(part.targets) - 1).max())
    rule = at_most("B4", "largest miss of a target share", miss, UNEQUAL_SHARES)
    if rule.ok:
        yield rule
        return
    other = "" if record.case.placement.partitioner == "rcb" else " or --partitioner rcb"
    small = bool(sizes.min() <= 1 / UNEQUAL_SHARES)  # a part of 20 cells cannot hit 5 %
    yield Rule(
        id="B4",
        ok=None if small else False,
        value=rule.value,
        threshold=rule.threshold,
        note="parts too small to meet it: use a larger mesh" if small else f"use a larger mesh{other}",
    )


def _stated(record: Record) -> Rule:
    """B1: the stated work was done; not evaluated if fixed work reached rounding early."""
    asked = record.case.stop.iterations
    done = times_of(record).all_iterations
    ok: bool | None = True
    work, note = f"|r| <= {record.solve.target:.3g}", ""
    if asked:
        ok = bool((done == asked).all())
        work = units.plural(asked, "iteration")
    if not ok:
        ended = bool((done == done[0]).all()) and relative_recurrence(record) <= rounding(record)
        ok = None if ended else False
        work = f"{done.min()} of {work}"
        note = "the residual reached zero or rounding: ask for fewer iterations"
    threshold = "fixed tolerance or iterations, stated" if ok else "the requested iterations in every set"
    return Rule(id="B1", ok=ok, value=f"work: {work}", threshold=threshold, note=note)


def _bandwidth(record: Record) -> Iterator[Rule]:
    """B3: the product cannot read its matrix faster than the same cores can read memory."""
    achieved = product_bandwidth(record)
    roofs = record.solve.bandwidth
    if not roofs or not any(achieved):
        yield Rule(id="B3", ok=None, value="no roof measured", threshold="bandwidth <= 105 % of the roof")
        return
    worst = max(a / r for a, r in zip(achieved, roofs))
    yield at_most("B3", "matrix bytes / s of the product over the roof", worst, 1.05)


def product_bandwidth(record: Record) -> list[float]:
    """[rank] matrix bytes over the median time of a product, bytes/s; 0 if not timed."""
    products = times_of(record).each_iteration[:, :, PRODUCT_PARTS].sum(axis=2)
    typical = np.median(products, axis=0) if len(products) else np.zeros(len(record.solve.matrix_bytes))
    return [n / t if t > 0 else 0.0 for n, t in zip(record.solve.matrix_bytes, typical.tolist())]


def _timing(record: Record) -> Iterator[Rule]:
    ranks = record.case.placement.ranks
    yield Rule(
        id="C1",
        ok=times_of(record).n_ranks == ranks,
        value=f"{units.plural(ranks, 'rank')} reported every phase",
        threshold="every rank, every phase",
    )
    clock = record.clock
    yield Rule(
        id="C2",
        ok=clock.certified,
        value=f"{clock.name}, drift {clock.drift:.2g}",
        threshold="TSC constant, nonstop, drift < 1e-4; else an OS clock",
        note=clock.reason,
    )
    hosts = "offsets estimated; no ticks subtracted across hosts"
    yield Rule(id="C2", ok=True, value=alignment(record), threshold=hosts)
    if clock.devices:
        yield Rule(id="C2", ok=True, value=clock.devices, threshold="no phase ends before its work")
    yield _shortest_phase(record)
    yield enough_cores(record)
    yield from bound_apart(record)


def _shortest_phase(record: Record) -> Rule:
    """C3: the shortest phase over all sets, relative to the clock's reading cost and quantum.

    Excludes barriers, parts of CG that are so small that an error of theirs changes no
    other number, and, if one rank has all cells, the phases of communication.
    """
    silent = set(BARRIERS)
    ledgers = record.balance.ledgers if record.balance else ()
    if record.case.placement.ranks == 1 or any(len(set(ledger.owner)) == 1 for ledger in ledgers):
        silent |= {*COMMUNICATION, SPMV_INTERFACE}
    times = times_of(record).timed.sum(axis=0).max(axis=0)  # by phase
    silent |= {k for k in CG_PARTS if times[k] < SMALL_PART * times[CG]}
    least, shortest = min(
        ((t, k) for k, t in enumerate(times.tolist()) if t > 0 and k not in silent), default=(inf, -1)
    )
    name = NAMES[shortest] if shortest >= 0 else ""
    grain = (record.clock.read_ns + record.clock.quantum_ns) * 1e-9
    ratio = least / grain if grain > 0 else float("inf")
    ok = ratio >= 1000
    return Rule(
        id="C3",
        ok=ok,
        value=f"shortest phase {name} lasts {ratio:.3g} x (reading + quantum)",
        threshold=">= 1000",
        note="" if ok else "too short for the clock: use a larger mesh, or more --iterations or --sets",
    )


def warmups_of(record: Record) -> int:
    """Warm-ups as asked for: the rehearsal of emulated ranks is none."""
    return min(int(times_of(record).warmups.sum()), record.case.effort.warmups)


def _statistics(record: Record) -> Iterator[Rule]:
    times = times_of(record).slowest(CG).tolist()
    warmups = warmups_of(record)
    yield Rule(
        id="D1",
        ok=warmups >= WARMUPS and len(times) >= SETS,
        value=f"{units.plural(warmups, 'warm-up')}, {units.plural(len(times), 'timed set')}",
        threshold=f">= {WARMUPS} warm-ups, >= {SETS} sets",
    )
    yield _precise(times, record.environment)
    if len(times) >= 6:
        moved = abs(drift(times))
        remedy = "more --warmups, or a quieter machine with a steady clock rate"
        steadier = "" if moved <= MOST_DRIFT else _disturbed(record.environment) or remedy
        yield at_most("D3", "drift first to last third", moved, MOST_DRIFT, steadier)


def _precise(times: Sequence[float], environment: Environment) -> Rule:
    """D1: the interval of the median time of CG on the slowest rank."""
    threshold = f"95 % interval within ± {PRECISION:g} %"
    if len(times) < fewest_for():
        few = f"no interval of the median: {units.plural(len(times), 'set')}"
        enough = f"use {SETS} sets or more, as by default"
        return Rule(id="D1", ok=False, value=few, threshold=threshold, note=enough)
    percent = 100 * precision(times)
    ok = percent <= PRECISION
    return Rule(
        id="D1",
        ok=ok,
        value=f"median known to ± {percent:.3g} %",
        threshold=threshold,
        note="" if ok else _disturbed(environment) or _enough(times, percent, environment.command),
    )


def _disturbed(environment: Environment) -> str:
    """What to do about noise if foreign work took CPU time; "" otherwise."""
    return DISTURBED if foreign_work([environment]) else ""


def _enough(times: Sequence[float], percent: float, command: str) -> str:
    """How long to repeat: intervals narrow with the square root of the number of sets."""
    more = (percent / PRECISION) ** 2
    if not isfinite(more) or more * len(times) > MOST_SETS:
        return "the sets scatter too much for any number of them: use a quieter machine"
    sets = ceil(more * len(times))
    seconds = ceil(more * sum(times))
    asked = f"--precision {PRECISION:g} --max-seconds {seconds}"
    if command.replace(".", " ").startswith("fembench sweep"):
        asked = f"precision = {PRECISION:g}, max_seconds = {seconds} in the campaign file"
    return f"about {sets} sets would do: {asked}, or a quieter machine"


def _reporting(record: Record) -> Iterator[Rule]:
    env = record.environment
    complete = bool(env.mpi and env.command and env.hosts and record.mesh.hash)
    yield Rule(
        id="E7",
        ok=complete,
        value="provenance " + ("complete" if complete else "incomplete"),
        threshold="complete",
    )
    yield _build(env)
    single = env.blas_threads == 1
    yield Rule(
        id="E7",
        ok=single,
        value=f"BLAS threads {env.blas_threads}",
        threshold="1",
        note="" if single else "set OMP_NUM_THREADS=1",
    )
    if env.kernels != "compiled":
        yield Rule(
            id="E7",
            ok=False,
            value=f"{env.kernels} kernels",
            threshold="compiled kernels",
            note="see `fembench doctor`",
        )
    if env.synthetic:
        yield Rule(id="E8", ok=True, value=f"SYNTHETIC: {env.synthetic}", threshold="labelled")


def _build(env: Environment) -> Rule:
    """E7: whether the sources can be recovered."""
    known = env.commit not in ("", "unknown")
    state = f"commit {env.commit[:12]}" if known else "commit unknown"
    return Rule(
        id="E7",
        ok=known and not env.dirty,
        value=state + (", changed since" if known and env.dirty else ""),
        threshold="a known commit, sources unchanged",
        note=("commit the changes" if env.dirty else "") if known else "install from a git clone",
    )


CHECKS: tuple[Check, ...] = (answer_rules, _work, _timing, quiet, _statistics, trace_rules, _reporting)
