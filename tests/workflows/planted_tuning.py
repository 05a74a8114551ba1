"""A runner with planted speeds: records as a perfect machine of unequal ranks would leave them."""

from pathlib import Path

import msgspec
import numpy as np
from planted_records import set_of

from fembench.partition.shares import parse_shares
from fembench.records.phases import ASSEMBLY, CG, SPMV_INTERIOR, WAIT
from fembench.records.record import USABLE, VECTORS, DeviceFacts
from fembench.records.store import load

FROZEN = load(Path(__file__).parent.parent / "data" / "record.json")
CELLS = 864_000
PER_CELL = 100 + 8 * VECTORS  # bytes on a device
replace = msgspec.structs.replace


def planted(speeds, noise=0.005, seed=0, sets=5, hosts=None, message=0.0, devices=(), start=0.0, held=()):
    """A function (case, word) -> record; rank p computes at speeds[p], all wait for the last.

    `hosts` (P,) names; `message` seconds that each set communicates where there are several ranks;
    `devices` (P,) kinds, whose ranks take `start` seconds whatever the size of their part; `held` (P,) the
    fraction of the mesh for which each has memory, 5 by default.
    """
    every, named = np.asarray(speeds), np.asarray(hosts or ["vm"] * len(speeds))
    rooms = [int(f * CELLS * PER_CELL / USABLE) for f in held or [5] * len(devices)]
    facts = [
        DeviceFacts() if k == "cpu" else DeviceFacts("Some GPU", room) for k, room in zip(devices, rooms)
    ]
    rng = np.random.default_rng(seed)

    def one_set(cells, speeds, kinds):
        first = np.where(np.array(kinds) == "cpu", 0.0, start)
        spent = (first + cells / speeds / 1e6) * (1 + noise * rng.standard_normal(len(speeds)))
        seconds = np.zeros((len(speeds), len(FROZEN.phases)))
        seconds[:, ASSEMBLY] = 0.1 * spent
        seconds[:, SPMV_INTERIOR] = 0.9 * spent
        wait = spent.max() - spent + (message if len(speeds) > 1 else 0.0)
        seconds[:, WAIT] = wait
        seconds[:, CG] = 0.9 * spent + wait
        return set_of(seconds, FROZEN.sets[-1].iterations, 0.1 * spent + seconds[:, CG])

    def run(case, word, *, without="", on=()):
        here = named != without
        if devices:
            here = np.isin(devices, case.devices)
            assert list(on) == ([] if len(set(named)) == 1 else named[here].tolist()) or here.all()
        names = list(dict.fromkeys(named[here].tolist()))
        speeds = every[here][: case.placement.ranks]
        targets = parse_shares(case.placement.shares, case.placement.ranks)
        cells = np.rint(CELLS * np.asarray(targets))
        partition = replace(FROZEN.partition, targets=targets, cells=tuple(int(c) for c in cells))
        partition = replace(partition, dofs=partition.cells)
        environment = replace(
            FROZEN.environment,
            rank_host=tuple(names.index(n) for n in named[here]),
            hosts=tuple(replace(FROZEN.environment.hosts[0], name=name) for name in names),
            devices=tuple(facts[rank] for rank in np.flatnonzero(here)) if devices else (),
        )
        return replace(
            FROZEN,
            case=case,
            environment=environment,
            partition=partition,
            solve=replace(FROZEN.solve, matrix_bytes=tuple(int(100 * c) for c in cells)),
            setup=FROZEN.setup[:1] * len(speeds),
            total=FROZEN.total[:1] * len(speeds),
            mesh=replace(FROZEN.mesh, n_cells=CELLS),
            sets=tuple(one_set(cells, speeds, case.devices) for _ in range(sets)),
        )

    return run
