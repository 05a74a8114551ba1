"""A runner with planted speeds: records as a perfect machine of unequal ranks would leave them."""

from pathlib import Path

import msgspec
import numpy as np

from fembench.partition.shares import parse_shares
from fembench.records.store import load

FROZEN = load(Path(__file__).parent.parent / "data" / "record-schema-1.json")
CELLS = 864_000
replace = msgspec.structs.replace


def planted(speeds, noise=0.005, seed=0, sets=5):
    """A function (case, word) -> record; rank p computes at speeds[p], all wait for the last."""
    rng = np.random.default_rng(seed)
    index = {name: FROZEN.phases.index(name) for name in ("assembly", "cg", "cg.spmv_interior", "cg.wait")}

    def one_set(cells):
        spent = cells / np.asarray(speeds) / 1e6 * (1 + noise * rng.standard_normal(len(speeds)))
        seconds = np.zeros((len(speeds), len(FROZEN.phases)))
        seconds[:, index["assembly"]] = 0.1 * spent
        seconds[:, index["cg.spmv_interior"]] = 0.9 * spent
        seconds[:, index["cg.wait"]] = spent.max() - spent
        seconds[:, index["cg"]] = 0.9 * spent + spent.max() - spent
        rows = tuple(map(tuple, seconds.tolist()))
        return replace(
            FROZEN.sets[-1], warmup=False, seconds=rows, counts=((1,) * len(FROZEN.phases),) * len(speeds)
        )

    def run(case, word):
        targets = parse_shares(case.shares, case.ranks)
        cells = np.rint(CELLS * np.asarray(targets))
        partition = replace(FROZEN.partition, targets=targets, cells=tuple(int(c) for c in cells))
        environment = replace(FROZEN.environment, rank_host=(0,) * case.ranks)
        return replace(
            FROZEN,
            case=case,
            environment=environment,
            partition=partition,
            mesh=replace(FROZEN.mesh, n_cells=CELLS),
            sets=tuple(one_set(cells) for _ in range(sets)),
        )

    return run
