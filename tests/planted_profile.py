"""Made-up profiles of ranks with planted speeds: every sample follows from speed, host and visit."""

import msgspec
import numpy as np
from planted_environment import CLOCK, planted_environment

from fembench.records.profile import PROFILE_SCHEMA, Profile, Speed, speed_of

# what a rank of speed 1 does in a second, by (phase, storage): (unit, units a cell, cells a second)
PHASES = {
    ("assembly", ""): ("cells", 1.0, 1e7),
    ("product", "sym"): ("blocks", 2.5, 4e8),
    ("product", "csr"): ("blocks", 2.5, 1e8),
    ("updates", ""): ("dofs", 0.5, 4e9),
}
CELLS = {"L2": 2_000, "L3": 40_000, "memory": 600_000}


def planted_profile(speeds, *, hosts=None, visits=8, common=None, noise=0.0, seed=0, slower=None, **changes):
    """A profile of ranks with these speeds; `common` (visits,) disturbs all ranks of a visit alike.

    `slower[(phase, storage)]` (P,) are factors on top of the speeds.
    """
    hosts = tuple(hosts or ("node8",) * len(speeds))
    rng = np.random.default_rng(seed)
    shared = np.ones(visits) if common is None else np.asarray(common, float)
    found = []
    for rank, (speed, host) in enumerate(zip(speeds, hosts)):
        for level, cells in CELLS.items():
            for (phase, storage), (unit, per_cell, rate) in PHASES.items():
                factor = (slower or {}).get((phase, storage), [1.0] * len(speeds))[rank]
                for k in sorted({1, hosts.count(host)}):
                    samples = rate * per_cell * speed * factor / k**0.5 * shared
                    samples = samples * (1 + noise * rng.standard_normal(visits))
                    found.append(one_speed(rank, phase, storage, level, k, unit, per_cell, cells, samples))
    profile = Profile(
        schema=PROFILE_SCHEMA,
        created="2026-01-02T03:04:05+00:00",
        quick=False,
        seconds=100.0,
        emulate="",
        dilate=1.0,
        environment=planted_environment(hosts, "fembench characterize"),
        clock=CLOCK,
        isa="x86-64-v3",
        way=("processor",) * len(speeds),
        held_back=(0.0,) * len(speeds),
        speeds=tuple(found),
    )
    return msgspec.structs.replace(profile, **changes)


def one_speed(rank, phase, storage, level, corunning, unit, per_cell, cells, samples):
    speed, low, high = speed_of(samples.tolist())
    return Speed(
        rank=rank,
        phase=phase,
        storage=storage,
        level=level,
        corunning=corunning,
        unit=unit,
        units=int(per_cell * cells),
        cells=cells,
        n_bytes=100 * cells,
        speed=speed,
        low=low,
        high=high,
        samples=tuple(samples.tolist()),
    )
