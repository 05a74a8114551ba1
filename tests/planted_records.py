"""Made-up records of ranks with planted speeds: the times follow from speeds, shares and a little noise."""

from pathlib import Path

import msgspec
import numpy as np
from planted_environment import CLOCK, planted_environment

from fembench.records import phases as ph
from fembench.records.case import FIELDS, Case
from fembench.records.record import (
    SCHEMA,
    PartitionFacts,
    Record,
    SetTimes,
)
from fembench.records.store import load
from fembench.records.times import Times
from fembench.records.validity import judge
from fembench.records.verdict import Verdict

FROZEN = Path(__file__).parent / "data" / "record.json"  # of a run of an earlier version
BASE = load(FROZEN)
CELLS, ITERATIONS = 1000, 100
PER_CELL = {ph.ASSEMBLY: 4e-6, ph.SPMV_INTERIOR: 20e-6, ph.AXPY: 5e-6, ph.DOT: 1e-6}  # seconds at speed 1


def planted(speeds, shares=None, *, hosts=None, sets=6, noise=0.002, seed=0, id="planted", **changes):
    """A record of ranks with these speeds; `changes` are fields of Case or of Record."""
    n = len(speeds)
    case_fields = {
        k: changes.pop(k) for k in list(changes) if k in FIELDS and k not in Record.__struct_fields__
    }
    hosts = tuple(hosts or ("node8",) * n)
    share = np.full(n, 1 / n) if shares is None else np.asarray(shares, float) / sum(shares)
    cells = np.rint(share * CELLS)
    rng = np.random.default_rng(seed)
    made = tuple(
        one_set(np.asarray(speeds, float), cells, noise * (k > 0), rng, warmup=k == 0)
        for k in range(sets + 1)
    )
    record = msgspec.structs.replace(
        BASE,
        schema=SCHEMA,
        id=id,
        created="2026-01-02T03:04:05+00:00",
        case=Case.of(mesh="m1", ranks=n, **{"sets": sets, "warmups": 1, **case_fields}),
        environment=planted_environment(hosts),
        mesh=msgspec.structs.replace(BASE.mesh, n_nodes=300, n_cells=CELLS, n_equations=800, n_fixed=100),
        partition=PartitionFacts(
            method="metis",
            targets=tuple(share.tolist()),
            cells=tuple(int(c) for c in cells),
            dofs=(100,) * n,
            blocks=(1000,) * n,
            shared_dofs=(10,) * n,
            shared_dofs_all=(10,) * n,
            neighbours=tuple(tuple(q for q in range(n) if q != p) for p in range(n)),
            message_bytes=tuple((240,) * (n - 1) for _ in range(n)),
            cut=10,
        ),
        clock=CLOCK,
        phases=ph.NAMES,
        setup=((0.0,) * len(ph.NAMES),) * n,
        total=(0.0,) * n,
        sets=made,
        solve=solve_on(BASE.solve, n, iterations=ITERATIONS, messages=n, message_bytes=240 * n),
        reference=None,
        peak_memory=(1,) * n,
        events=(),
        verdict=Verdict(status="PROVISIONAL", reasons=("D1",), rules=()),
    )
    return msgspec.structs.replace(accounted(record), **changes)


def wrong(record):
    """The record with an answer for which it is INVALID."""
    verification = msgspec.structs.replace(record.verification, copies_identical=False)
    spoilt = msgspec.structs.replace(record, verification=verification)
    return msgspec.structs.replace(spoilt, verdict=judge(spoilt))


def accounted(record):
    """The record with a total time of which every second belongs to a phase."""
    left = Times(msgspec.structs.replace(record, total=(0.0,) * len(record.total))).unattributed
    return msgspec.structs.replace(record, total=tuple((-left).tolist()))


def lasting(record, *factors):
    """The record with the times of its sets multiplied: by one factor, or by one for each set."""
    each = factors * len(record.sets) if len(factors) == 1 else factors
    sets = []
    for one, factor in zip(record.sets, each, strict=True):
        sets.append(msgspec.structs.replace(one, seconds=nested(factor * np.array(one.seconds))))
    return msgspec.structs.replace(record, sets=tuple(sets))


def solve_on(solve, n, **changes):
    """The facts of a solve with numbers for n ranks, of its first ones or repeated."""
    names = ("flops", "bytes", "matrix_bytes", "bandwidth", "triads")
    by_rank = {name: (getattr(solve, name) * n)[:n] for name in names}
    return msgspec.structs.replace(solve, **by_rank, **changes)


def on_ranks(record, n):
    """The record as if its first n ranks had been all."""
    part = record.partition
    by_rank = [name for name in part.__struct_fields__ if isinstance(getattr(part, name), tuple)]
    kept = [[k for k, q in enumerate(row) if q < n] for row in part.neighbours[:n]]
    cut = {name: getattr(part, name)[:n] for name in by_rank}
    cut["targets"] = tuple(share / sum(cut["targets"]) for share in cut["targets"])
    for name in ("neighbours", "message_bytes"):
        cut[name] = tuple(tuple(row[k] for k in some) for row, some in zip(cut[name], kept))
    return msgspec.structs.replace(
        record,
        case=record.case.with_(ranks=n),
        environment=msgspec.structs.replace(
            record.environment,
            rank_host=record.environment.rank_host[:n],
            affinity=record.environment.affinity[:n],
        ),
        partition=msgspec.structs.replace(part, **cut),
        solve=solve_on(record.solve, n),
        setup=record.setup[:n],
        total=record.total[:n],
        sets=tuple(
            msgspec.structs.replace(s, seconds=s.seconds[:n], counts=s.counts[:n], total=s.total[:n])
            for s in record.sets
        ),
        events=tuple(e for e in record.events if e.rank < n),
    )


def one_set(speeds, cells, noise, rng, warmup):
    """One set: every rank computes, then waits for the slowest; the warm-up takes ten times as long."""
    seconds = np.zeros((len(speeds), len(ph.NAMES)))
    for phase, cost in PER_CELL.items():
        seconds[:, phase] = cost * cells / speeds * (1 + noise * rng.standard_normal(len(speeds)))
    seconds[:, ph.SEND] = 1e-4
    busy = seconds.sum(axis=1)
    seconds[:, ph.WAIT] = busy.max() - busy
    seconds[:, ph.CG] = seconds[:, list(ph.CG_PARTS)].sum(axis=1)
    seconds *= 10 if warmup else 1
    return set_of(seconds, ITERATIONS, seconds[:, ph.ASSEMBLY] + seconds[:, ph.CG], warmup)


def set_of(seconds, iterations, total, warmup=False):
    """A set of these seconds, (ranks, phases), in which every phase comes once in an iteration."""
    return SetTimes(
        warmup=warmup,
        seconds=nested(seconds),
        counts=nested((seconds > 0) * iterations, int),
        iterations=iterations,
        residual=1e-7,
        total=tuple(map(float, total)),
    )


def nested(rows, kind=float):
    return tuple(tuple(kind(v) for v in row) for row in rows)
