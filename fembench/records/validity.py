"""The verdict on a record: every rule of docs/validity.md, its value and its threshold.

A failed rule of A–C makes a run INVALID. A failed rule of D or E, or one that cannot be evaluated, makes it
PROVISIONAL. All rules are pure functions of the record, so `fembench check` reproduces the run's verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite, sqrt

import numpy as np

from fembench.base import units
from fembench.methods.lookup import precond_of
from fembench.records.binding import bound_apart, enough_cores
from fembench.records.case import Case
from fembench.records.case_fields import CaseEffort
from fembench.records.phases import BARRIERS, CG, COMMUNICATION, NAMES, PRODUCT_PARTS, SPMV_INTERFACE
from fembench.records.quiet import quiet
from fembench.records.record import Environment, Record, Reference, Rule, Verdict, leads_to, reason
from fembench.records.times import Times
from fembench.records.traced import alignment, trace_rules
from fembench.stats.summary import drift, fewest_for, precision

EPS = float(np.finfo(float).eps)
UNEQUAL_SHARES = 0.05
WARMUPS, SETS, PRECISION = 2, 10, 2.0  # D1: the fewest of both; percent of the median
NO_REFERENCE = (
    "needs a one-rank record of the same mesh, problem and work, in the results folder or from --reference"
)
FEWER = ", or fewer --iterations"
Check = Callable[[Record], Iterator[Rule]]


def judge(record: Record) -> Verdict:
    """The verdict, with the rules that are not met; those that make the run INVALID come first."""
    rules = tuple(rule for check in CHECKS for rule in check(record))
    broken = sorted((r for r in rules if r.ok is not True), key=lambda r: leads_to(r) != "INVALID")
    status = leads_to(broken[0]) if broken else "VALID"
    return Verdict(status=status, reasons=tuple(reason(rule) for rule in broken), rules=rules)


def _at_most(id: str, name: str, value: float, limit: float, note: str = "") -> Rule:
    ok = bool(isfinite(value) and value <= limit)
    return Rule(id=id, ok=ok, value=f"{name} = {value:.3g}", threshold=f"<= {limit:.3g}", note=note)


def _correctness(record: Record) -> Iterator[Rule]:
    v, solve, case = record.verification, record.solve, record.case
    relative = v.true_residual / v.rhs_norm if v.rhs_norm else v.true_residual
    recurrence = solve.residuals[-1] / v.rhs_norm if v.rhs_norm else solve.residuals[-1]
    rounding = 1e3 * EPS * max(1.0, sqrt(record.mesh.n_equations))
    if case.stop.iterations:
        yield _at_most(
            "A1",
            "|f - A u| / |f|",
            relative,
            10 * recurrence + rounding,
            "fixed work: 10 x its recurrence",
        )
    else:
        asked = solve.target / v.rhs_norm if v.rhs_norm else solve.target
        yield Rule(
            id="A1",
            ok=solve.converged and isfinite(relative) and relative <= 10 * asked + rounding,
            value=f"|f - A u| / |f| = {relative:.3g}" + ("" if solve.converged else ", not converged"),
            threshold=f"<= {10 * asked + rounding:.3g}",
            note="" if solve.converged else "allow more --max-iterations, or use a stronger --precond",
        )
    yield _at_most("A2", "|x'Ay - y'Ax| / (|x||Ay| + |y||Ax|)", v.symmetry, 100 * EPS)
    yield Rule(id="A3", ok=v.positive > 0, value=f"x'Ax / (|x||Ax|) = {v.positive:.3g}", threshold="> 0")
    yield _at_most("A3", "rigid modes |A r| / (|A||r|)", v.rigid_body, 1e-12)
    yield Rule(
        id="A5",
        ok=v.copies_identical,
        value="shared copies " + ("bit-identical" if v.copies_identical else "differ"),
        threshold="bit-identical on all sharers",
    )
    yield from _against_reference(record)


def _against_reference(record: Record) -> Iterator[Rule]:
    """A4, A5: energy, solution and iterations, compared with the one-rank run of that mesh and problem.

    A solution with another storage on the same parts says nothing about partitions: all three are then A4.
    """
    reference, v = record.reference, record.verification
    if reference is None:
        yield Rule(
            id="A4",
            ok=None,
            value="no reference",
            threshold="strain energy of the one-rank run",
            note=NO_REFERENCE + (FEWER if record.case.stop.iterations else ""),
        )
        return
    of = f"reference: {reference.source}"
    off = abs(v.energy - reference.energy) / abs(reference.energy) if reference.energy else abs(v.energy)
    asked = record.solve.target / v.rhs_norm if v.rhs_norm else 0.0  # relative tolerance
    yield _at_most("A4", "strain energy, relative difference", off, max(1e-8, asked), of)
    difference = fingerprint_difference(v.fingerprint, reference.fingerprint, reference.solution_norm)
    id, name = ("A4", "|u - u_ref| / |u_ref|") if reference.same_parts else ("A5", "|u_P - u_1| / |u_1|")
    yield _at_most(id, name, difference, max(100 * asked, 1e-9), of)
    if reference.iterations:
        yield _iterations(record, reference, id)


def _iterations(record: Record, reference: Reference, id: str) -> Rule:
    """As many iterations as the reference, unless the preconditioner depends on the partition."""
    done, alone, of = record.solve.iterations, reference.iterations, f"reference: {reference.source}"
    if _built_from_parts(record.case) and not reference.same_parts:
        value = f"iterations: {done}, on one rank {alone}"
        return Rule(
            id=id,
            ok=True,
            value=value,
            threshold="any: M depends on the partition",
            note=of,
        )
    allowed = max(2, round(0.02 * alone))
    return _at_most(id, "iterations, difference", abs(done - alone), allowed, of)


def _built_from_parts(case: Case) -> bool:
    """Whether the preconditioner depends on the partition, and so on the number of ranks."""
    return precond_of(case.method.precond).uses_parts or "-pc_type" in case.method.petsc_options.split()


def fingerprint_difference(a: tuple[float, ...], b: tuple[float, ...], norm: float) -> float:
    """|u_a - u_b|_2 / |u|_2, estimated as the root mean square of seeded random projections."""
    if len(a) != len(b):
        return float("nan")
    difference = np.asarray(a) - np.asarray(b)
    return (
        float(np.sqrt(np.mean(difference**2)) / norm) if norm else float(np.abs(difference).max(initial=0.0))
    )


def _work(record: Record) -> Iterator[Rule]:
    yield _stated(record)
    worst = float(Times(record).unattributed_share.max(initial=0.0))
    yield _at_most("B2", "unattributed share of the total", worst, 0.05)
    yield from _bandwidth(record)
    part = record.partition
    sizes = np.asarray(part.cells, float)
    miss = float(np.abs(sizes / sizes.sum() / np.asarray(part.targets) - 1).max())
    rule = _at_most("B4", "largest miss of a target share", miss, UNEQUAL_SHARES)
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
    """B1: the work is stated and was done; fixed work may have ended early with a residual of zero."""
    asked, done = record.case.stop.iterations, Times(record).all_iterations
    if not asked:
        work, ok, note = f"|r| <= {record.solve.target:.3g}", True, ""
    else:
        ok = bool((done == asked).all())
        work = (
            units.plural(asked, "iteration") if ok else f"{done.min()} of {units.plural(asked, 'iteration')}"
        )
        note = "" if ok else "the residual reached zero or rounding: ask for fewer iterations"
    threshold = "fixed tolerance or iterations, stated" if ok else "the requested iterations in every set"
    return Rule(id="B1", ok=ok, value=f"work: {work}", threshold=threshold, note=note)


def _bandwidth(record: Record) -> Iterator[Rule]:
    """B3: the product cannot read its matrix faster than the same cores can read memory."""
    achieved, roofs = product_bandwidth(record), record.solve.bandwidth
    if not roofs or not any(achieved):
        yield Rule(id="B3", ok=None, value="no roof measured", threshold="bandwidth <= 105 % of the roof")
        return
    worst = max(a / r for a, r in zip(achieved, roofs))
    yield _at_most("B3", "matrix bytes / s of the product over the roof", worst, 1.05)


def product_bandwidth(record: Record) -> list[float]:
    """[rank] matrix bytes over the median time of one product, bytes/s; 0 if nothing was timed."""
    products = Times(record).each_iteration[:, :, PRODUCT_PARTS].sum(axis=2)
    typical = np.median(products, axis=0) if len(products) else np.zeros(len(record.solve.matrix_bytes))
    return [n / t if t > 0 else 0.0 for n, t in zip(record.solve.matrix_bytes, typical.tolist())]


def _timing(record: Record) -> Iterator[Rule]:
    ranks = record.case.placement.ranks
    yield Rule(
        id="C1",
        ok=Times(record).n_ranks == ranks,
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
    yield _shortest_phase(record)
    yield enough_cores(record)
    yield from bound_apart(record)


def _shortest_phase(record: Record) -> Rule:
    """C3: the shortest phase over all sets, relative to the clock's reading cost and quantum.

    Excludes barriers and, if one rank has all cells, the phases of communication.
    """
    silent = set(BARRIERS)
    ledgers = record.balance.ledgers if record.balance else ()
    if record.case.placement.ranks == 1 or any(len(set(ledger.owner)) == 1 for ledger in ledgers):
        silent |= {*COMMUNICATION, SPMV_INTERFACE}
    times = Times(record).timed.sum(axis=0).max(axis=0)  # by phase
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


def _statistics(record: Record) -> Iterator[Rule]:
    times = Times(record).slowest(CG).tolist()
    warmups = int(Times(record).warmups.sum())
    yield Rule(
        id="D1",
        ok=warmups >= WARMUPS and len(times) >= SETS,
        value=f"{units.plural(warmups, 'warm-up')}, {units.plural(len(times), 'timed set')}",
        threshold=f">= {WARMUPS} warm-ups, >= {SETS} sets",
    )
    yield _precise(times, record.case.effort)
    if len(times) >= 6:
        moved = abs(drift(times))
        steadier = "" if moved <= 0.05 else "more --warmups, or a quieter machine with a steady clock rate"
        yield _at_most("D3", "drift first to last third", moved, 0.05, steadier)


def _precise(times: Sequence[float], effort: CaseEffort) -> Rule:
    """D1: the interval of the median time of CG on the slowest rank."""
    threshold = f"95 % interval of the median within ± {PRECISION:g} %"
    if len(times) < fewest_for():
        few = f"no interval of the median: {units.plural(len(times), 'set')}"
        return Rule(id="D1", ok=False, value=few, threshold=threshold, note=f"{fewest_for()} sets give one")
    percent = 100 * precision(times)
    ok = percent <= PRECISION
    asked = 0 < effort.precision <= PRECISION
    more = (
        f"--max-seconds above {effort.max_seconds:g}" if asked else f"more sets (--precision {PRECISION:g})"
    )
    return Rule(
        id="D1",
        ok=ok,
        value=f"ends of the 95 % interval of the median, % from it = {percent:.3g}",
        threshold=threshold,
        note="" if ok else f"{more}, or a quieter machine",
    )


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
            note="fembench doctor says why they are not compiled",
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


CHECKS: tuple[Check, ...] = (_correctness, _work, _timing, _statistics, quiet, trace_rules, _reporting)
