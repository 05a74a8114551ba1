"""Made-up records for tests of the report: deterministic, and simple enough to check by hand.

One set takes, on every rank, `assembly` and the CG phases of `cg_seconds`; rank p is slower than
rank 0 by `skew`·p in the interior product, and rank 0 waits for the slowest.
"""

import numpy as np
from msgspec.structs import replace
from planted_environment import CLOCK, planted_environment
from planted_records import accounted, nested, planted, set_of

from fembench.records import phases as ph
from fembench.records.case import FIELDS, Case
from fembench.records.contest import PEERS_SCHEMA, PeerRun, PeersRecord, SystemFacts
from fembench.records.record import (
    SCHEMA,
    Event,
    Failure,
    HostFacts,
    MeshFacts,
    PartitionFacts,
)
from fembench.records.verdict import Rule, Verdict
from fembench.report import tables
from fembench.report.table import to_json

# name: (nodes, cells, equations, restrained dofs, iterations)
MESHES = {
    "m1": (245, 864, 630, 105, 211),
    "m2": (936, 3960, 2592, 216, 328),
    "m3": (1960, 9126, 5460, 420, 428),
}
HOST = HostFacts(
    name="node8",
    cpu_model="Example CPU 9000 @ 2.4 GHz",
    cores=64,
    memory_bytes=64 * 2**30,
    caches={"L1d": 48 * 2**10, "L2": 2 * 2**20, "L3": 32 * 2**20},
    governor="performance",
    kernel="6.1.0",
    architecture="x86_64",
)
VERSIONS = {"python": "3.11.9", "numpy": "2.4.0", "mpi4py": "4.1.0", "fembench": "0.1.0"}

CERTIFIED = replace(
    CLOCK, reason="constant and nonstop", drift=2e-7, read_ns=11.0, quantum_ns=0.4, span_ns=120.0
)
PLAIN = replace(planted((1.0,)), clock=CERTIFIED)


def make_record(
    mesh="m1", ranks=1, *, run=0, sets=5, noise=0.02, skew=0.05, events=True, status="VALID", **changes
):
    """A record of `mesh` on `ranks` ranks. `changes`: fields of Case, or whole fields of Record."""
    case_fields = {k: changes.pop(k) for k in list(changes) if k in FIELDS and k != "mesh"}
    effort = {"sets": sets, "warmups": 1}
    case = Case.of(**{"storage": "csr", "mesh": mesh, "ranks": ranks, **effort, **case_fields})
    size = MESHES[mesh]
    rng = np.random.default_rng([run, ranks, size[0], case.method.storage == "dense"])
    seconds = set_seconds(size, ranks, dense=case.method.storage == "dense", skew=skew)
    record = replace(
        PLAIN,
        id=f"{mesh}-P{ranks}-{case.method.storage}-{run}",
        created=f"2026-01-02T03:04:{run:02d}+00:00",
        case=case,
        environment=environment(ranks),
        mesh=MeshFacts(mesh, f"hash of {mesh}", "tet4", *size[:4]),
        partition=partition(size, ranks, case.placement.partitioner),
        setup=setup_seconds(ranks),
        total=(0.0,) * ranks,
        sets=tuple(
            one_set(seconds, rng, noise, k < case.effort.warmups, size[4])
            for k in range(case.effort.warmups + sets)
        ),
        solve=replace(
            PLAIN.solve,
            iterations=size[4],
            residuals=tuple(float(500 * 10 ** (-8.7 * k / size[4])) for k in range(size[4] + 1)),
            messages=ranks * min(ranks - 1, 2),
            message_bytes=4752 * ranks,
            flops=(size[2] * 90.0 / ranks,) * ranks,
            bytes=(size[2] * 500.0 / ranks,) * ranks,
            matrix_bytes=(size[2] * 200 // ranks,) * ranks,
            bandwidth=(8e9,) * ranks,
        ),
        peak_memory=(80 * 2**20,) * ranks,
        events=make_events(seconds) if events else (),
        verdict=verdict(status),
    )
    record = accounted(record)
    record = replace(record, total=tuple(1.01 * t for t in record.total))
    return replace(record, **changes)


def set_seconds(size, ranks, *, dense=False, skew=0.05):
    """[rank][phase] seconds of one set without noise."""
    _, cells, equations, _, iterations = size
    work = iterations * (equations**2 * 1e-9 / ranks**2 if dense else equations * 25e-9 / ranks)
    rows = np.zeros((ranks, len(ph.NAMES)))
    rows[:, ph.ASSEMBLY] = cells * 2e-6 / ranks
    rows[:, ph.SPMV_INTERIOR] = work * (1 + skew * np.arange(ranks))
    rows[:, ph.DOT] = rows[:, ph.AXPY] = 0.1 * work
    if ranks > 1:
        rows[:, ph.SPMV_INTERFACE] = 0.15 * work
        rows[:, ph.SEND] = iterations * 1.5e-6
        rows[:, ph.UNPACK] = iterations * 1e-6
        rows[:, ph.ALLREDUCE] = iterations * 4e-6 * np.log2(ranks)
        rows[:, ph.WAIT] = iterations * 2e-6 + rows[:, ph.SPMV_INTERIOR].max() - rows[:, ph.SPMV_INTERIOR]
    rows[:, ph.CG] = rows[:, list(ph.CG_PARTS)].sum(axis=1) + iterations * 1.5e-6
    return rows


def one_set(seconds, rng, noise, warmup, iterations):
    """`seconds` times one random factor near 1; a warm-up takes twice as long."""
    times = seconds * (1 + noise * rng.standard_normal()) * (2 if warmup else 1)
    return set_of(times, iterations, times[:, ph.ASSEMBLY] + times[:, ph.CG] + 2e-5, warmup)


def computing(record, seconds, iterations=100):
    """The record with `iterations` iterations of CG that take `seconds` each on every rank."""
    row = np.zeros(len(ph.NAMES))
    row[ph.ASSEMBLY], row[[ph.CG, ph.SPMV_INTERIOR]] = 0.01, iterations * seconds
    rows = nested([row] * record.case.placement.ranks)
    sets = tuple(replace(s, seconds=rows, iterations=iterations) for s in record.sets)
    return replace(record, sets=sets, solve=replace(record.solve, iterations=iterations))


def setup_seconds(ranks):
    rows = np.zeros((ranks, len(ph.NAMES)))
    rows[:, ph.START_UP], rows[:, ph.READ], rows[:, ph.VERIFY] = 0.3, 0.02, 0.01
    rows[:, ph.PARTITION] = 0.004 * ranks
    rows[:, ph.DISTRIBUTE], rows[:, ph.INTERFACE] = 0.003, 0.001
    return nested(rows)


def environment(ranks, hosts=(HOST,), **changes):
    each = -(-ranks // len(hosts))
    places = {"rank_host": tuple(p // each for p in range(ranks)), "hosts": tuple(hosts)}
    base = planted_environment(("",) * ranks, "fembench sweep", **places, versions=VERSIONS)
    return replace(base, **{"affinity": tuple((p,) for p in range(ranks)), **changes})


def partition(size, ranks, method="metis"):
    cells = [size[1] // ranks + (p < size[1] % ranks) for p in range(ranks)]
    shared = [0 if ranks == 1 else 3 * (40 + 7 * (p % 3)) for p in range(ranks)]
    return PartitionFacts(
        method=method,
        targets=(1 / ranks,) * ranks,
        cells=tuple(cells),
        dofs=tuple(size[2] // ranks + s // 2 for s in shared),
        blocks=tuple(5 * c for c in cells),
        shared_dofs=tuple(shared),
        shared_dofs_all=tuple(s + 9 for s in shared),
        neighbours=tuple(tuple(sorted({(p - 1) % ranks, (p + 1) % ranks} - {p})) for p in range(ranks)),
        message_bytes=tuple(tuple(8 * s for _ in range(min(ranks - 1, 2))) for s in shared),
        cut=60 * (ranks - 1),
    )


def make_events(seconds, iterations=3):
    """Start-up, a barrier, set-up, a gap where the warm-ups were, assembly, then iterations of CG."""
    order = (ph.SPMV_INTERFACE, ph.SEND, ph.SPMV_INTERIOR, ph.WAIT, ph.UNPACK, ph.DOT, ph.ALLREDUCE, ph.AXPY)
    events = []
    for p, row in enumerate(seconds):
        events.append(Event(p, ph.START_UP, -1, -0.3, 0.0))
        spans = [(ph.SYNC, -1, 1e-6), (ph.READ, -1, 0.002), (ph.PARTITION, -1, 0.004)]
        spans += [(ph.DISTRIBUTE, -1, 0.001 * (1 + p % 2)), (ph.INTERFACE, -1, 0.003 - 0.001 * (1 + p % 2))]
        spans += [(ph.WAIT, None, 0.5), (ph.SYNC, -1, 1e-5)]
        spans += [(ph.ASSEMBLY, -1, row[ph.ASSEMBLY]), (ph.AXPY, -1, 1e-6)]
        spans += [(phase, i, row[phase] / 200) for i in range(iterations) for phase in order if row[phase]]
        now = 1e-6
        for phase, iteration, t in spans:
            if iteration is not None:
                events.append(Event(p, phase, iteration, now, now + t))
            now += t + 2e-7
    return tuple(events)


def verdict(status):
    rules = [
        Rule(id="A1", ok=status != "INVALID", value="|f - A u| / |f| = 2e-9", threshold="<= 1e-08"),
        Rule(id="A3", ok=True, value="x'Ax / (|x||Ax|) = 0.3", threshold="> 0"),
    ]
    if status == "PROVISIONAL":
        rules.append(Rule(id="D1", ok=False, value="1 warm-ups, 5 timed sets, 0.1 s", threshold=">= 10 s"))
        rules.append(Rule(id="A4", ok=None, value="no reference", threshold="energy of the one-rank run"))
    broken = tuple(f"{r.id} not met: {r.value}, expected {r.threshold}" for r in rules if not r.ok)
    return Verdict(status=status, reasons=broken, rules=tuple(rules))


def make_failure(mesh="m2", ranks=2, **changes):
    base = Failure(
        schema=SCHEMA,
        id=f"{mesh}-P{ranks}-failed",
        created="2026-01-02T03:05:00+00:00",
        case=Case.of(mesh=mesh, ranks=ranks, storage="csr"),
        kind="killed",
        message="rank 1 on node8 was killed by signal 9",
        exit_status=137,
        output="mpiexec: rank 1 exited\n<b>not bold</b>",
    )
    return replace(base, **changes)


def peers_record(**changes):
    """Three peers and ourselves on m1, to the tolerance of `make_record`."""
    one = make_record("m1")
    timed = (
        ("own-sym", "none", 1, 1e-3, 1e-6),
        ("scipy", "none", 1, 0.3, 4e-5),
        ("petsc", "jacobi", 1, 0.2, 3e-5),
        ("petsc", "none", 2, 0.1, 1e-5),
    )
    runs = tuple(
        PeerRun(
            peer=peer,
            precond=precond,
            ranks=ranks,
            status="timed",
            solves=(solve,),
            per_iteration=(each,),
            setup=(0.0,),
        )
        for peer, precond, ranks, solve, each in timed
    )
    facts = {"case": one.case, "environment": one.environment, "mesh": one.mesh, "runs": runs, **changes}
    return PeersRecord(
        schema=PEERS_SCHEMA,
        created="2026",
        system=SystemFacts(n_rows=630, nonzeros=9000, residual=1e-12),
        **facts,
    )


def campaign(ranks=(1, 2, 4), meshes=("m1", "m2", "m3"), **changes):
    """One record of every mesh on every count of ranks."""
    return [make_record(mesh, p, **changes) for mesh in meshes for p in ranks]


def named(records, name, **more):
    """The table of this name in the report of these records."""
    return next(t for t in tables.every_table(records, **more) if t.name == name)


def rows_of(records, name, **more):
    return to_json(named(records, name, **more))
