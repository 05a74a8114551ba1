"""Made-up measurements of nodes: equal ones, and some that are slow in a known way."""

from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace
from planted_environment import planted_environment

from fembench.records.nodes import NODES_SCHEMA, NodeFacts, NodeSamples, NodesLaunch, NodesRecord

ONE_CORE, MEMORY, CLOCK = 4e9, 4e10, 2.6e9  # flop/s, byte/s, Hz of a typical node


@dataclass(frozen=True)
class Planted:
    """How a node differs from a typical one."""

    cores: float = 1.0  # speed while ranks have a processor
    memory: float = 1.0
    load: float = 0.0  # fraction of the time that something else takes
    core: dict[int, float] = field(default_factory=dict)  # speed of some cores
    clock: float = 1.0
    throttled: int = 0
    host: dict[str, float] = field(default_factory=dict)  # fields of HostFacts
    passing: bool = False  # it is typical when it is measured alone


TYPICAL = Planted()


def planted_nodes(
    n, changes=(), *, ranks=4, rounds=8, seed=0, noise=0.015, spread=0.005, created="2026-01-02"
):
    """A record of `n` nodes; `changes` maps indices to what is planted; the second launch has these."""
    rng, changes = np.random.default_rng(seed), dict(changes)
    lasting = {k: change for k, change in changes.items() if not change.passing}
    common = ranks, rounds, rng, noise, spread, created
    return NodesRecord(
        schema=NODES_SCHEMA,
        first=_launch(range(n), changes, *common),
        second=_launch(changes, lasting, *common) if changes else None,
    )


def _launch(chosen, changes, ranks, rounds, rng, noise, spread, created):
    names = [f"n{k + 1}" for k in chosen]
    environment = planted_environment([name for name in names for _ in range(ranks)], "fembench nodes")
    hosts = [
        replace(host, **{"others_percent": 0.0, "others_resolution": 0.2} | changes.get(k, TYPICAL).host)
        for k, host in zip(chosen, environment.hosts)
    ]
    common = np.exp(0.01 * rng.standard_normal(rounds))  # the same for all nodes in a round
    nodes = [
        _node(number, name, changes.get(k, TYPICAL), ranks, rng, common, noise, spread)
        for number, (k, name) in enumerate(zip(chosen, names))
    ]
    return NodesLaunch(
        created=f"{created}T03:04:05+00:00",
        seconds=10.0,
        environment=replace(environment, hosts=tuple(hosts)),
        nodes=tuple(nodes),
    )


def _node(number, name, change, ranks, rng, common, noise, spread):
    own = np.exp(spread * rng.standard_normal())
    busy = 1 - change.load

    def samples(typical, shape=()):
        scatter = np.exp(noise * rng.standard_normal((*shape, len(common))))
        return typical * own * busy * common * scatter

    speeds = change.cores * np.array([change.core.get(core, 1.0) for core in range(ranks)])
    shares = (busy,) * len(common)
    return NodeSamples(
        name=name,
        listed=f"{name}.cluster",
        slots=2 * ranks,
        host=number,
        facts=NodeFacts(numa_nodes=2, physical_cores=8, threads=16, accelerators=("4 x NVIDIA H100",)),
        cpus=tuple(range(ranks)),
        cores=tuple(map(tuple, speeds[:, None] * samples(ONE_CORE, (ranks,)))),
        cores_busy=(shares,) * ranks,
        together=tuple(samples(ONE_CORE * speeds.sum())),
        together_busy=shares,
        memory=tuple(samples(MEMORY * change.memory)),
        memory_busy=shares,
        clock=tuple(CLOCK * change.clock * common),
        throttled=change.throttled,
    )
