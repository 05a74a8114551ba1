"""A made-up run on very many ranks: its record, and the workload of its parts, which lie in a torus."""

import msgspec
import numpy as np
from planted_environment import planted_environment
from planted_records import PER_CELL, accounted, planted

from fembench.model.workload import Workload
from fembench.records import phases as ph
from fembench.records.case import Case
from fembench.records.record import PartitionFacts, Reference
from fembench.records.schema import rows

PER_HOST, CELLS, MESSAGE = 64, 1000, 2400  # ranks; cells of a rank; bytes
SETS, ITERATIONS, NEIGHBOURS = 20, 1000, 14


def planted_parts(ranks):
    """Equal parts in a torus, each with its fourteen nearest neighbours."""
    side = round(ranks ** (1 / 3))
    steps = (1, side, side + 1, side * side, side * side + 1, side * side + side, side * side + side + 1)
    near = {d for step in steps for d in (step, -step)}
    neighbours = tuple(tuple(sorted({(p + d) % ranks for d in near} - {p})) for p in range(ranks))
    return PartitionFacts(
        method="metis",
        targets=(1 / ranks,) * ranks,
        cells=(CELLS,) * ranks,
        dofs=(CELLS,) * ranks,
        blocks=(9 * CELLS,) * ranks,
        shared_dofs=(300,) * ranks,
        shared_dofs_all=(300,) * ranks,
        neighbours=neighbours,
        message_bytes=tuple((MESSAGE,) * len(row) for row in neighbours),
        cut=ranks,
    )


def planted_workload(ranks):
    """The work of a run of fixed work on this many ranks."""
    case = Case.of(mesh="m1", ranks=ranks, iterations=ITERATIONS)
    return Workload(case, "h", CELLS * ranks, planted_parts(ranks))


def host_numbers(ranks):
    """[rank] the number of its host."""
    return tuple(p // PER_HOST for p in range(ranks))


def planted_large(ranks, seed=0):
    """A record of ranks whose speeds differ by 3 %."""
    rng = np.random.default_rng(seed)
    speeds = 1 + 0.03 * rng.standard_normal(ranks)
    small = planted((1.0, 1.0))

    def one_set(k):
        seconds = np.zeros((ranks, len(ph.NAMES)))
        for phase in ph.CG_PARTS:
            seconds[:, phase] = 1e-4 * (1 + 0.3 * rng.random(ranks))
        for phase, cost in PER_CELL.items():
            seconds[:, phase] = cost * CELLS / speeds * (1 + 0.01 * rng.standard_normal(ranks))
        seconds[:, ph.WAIT] = 0
        busy = seconds.sum(axis=1)
        seconds[:, ph.WAIT] = busy.max() - busy
        seconds[:, ph.CG] = seconds[:, list(ph.CG_PARTS)].sum(axis=1)
        return msgspec.structs.replace(
            small.sets[0],
            warmup=k < 2,
            seconds=rows(seconds),
            counts=rows(100 * (seconds > 0)),
            total=rows(seconds[:, ph.ASSEMBLY] + seconds[:, ph.CG]),
        )

    record = msgspec.structs.replace(
        small,
        id=f"large-p{ranks}-r1",
        case=small.case.with_(ranks=ranks, sets=SETS),
        environment=planted_environment(tuple(f"node{k:04d}" for k in host_numbers(ranks))),
        partition=planted_parts(ranks),
        setup=rows(np.zeros((ranks, len(ph.NAMES)))),
        total=(0.0,) * ranks,
        sets=tuple(one_set(k) for k in range(SETS + 2)),
        solve=msgspec.structs.replace(
            small.solve,
            flops=(1e6,) * ranks,
            bytes=(1e7,) * ranks,
            matrix_bytes=(10**6,) * ranks,
            bandwidth=(1e11,) * ranks,
        ),
        reference=Reference(
            source="planted",
            energy=small.verification.energy,
            iterations=small.solve.iterations,
            fingerprint=small.verification.fingerprint,
            solution_norm=small.verification.solution_norm,
        ),
        peak_memory=(10**8,) * ranks,
    )
    return accounted(record)
