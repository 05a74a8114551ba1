"""The ranks of `fembench nodes`: all nodes are measured at the same time, in rounds.

A round has three parts, each after a barrier of the ranks of a node:

    cores      every core in turn, while the others sleep: product of a small matrix, which fits in its cache
    together   the same on all cores of the node at once
    memory     a triad on all cores at once, with arrays that no cache holds

Nodes that share processors, as virtual hosts of one machine do, are measured one after
another: each would be another load on the others. Rates are per elapsed second. A visit
also measures for how much of that time the rank had a processor; so the analysis can
tell a slow node from one that another load keeps busy. Visits of all cores last longer
than the usual period of a CPU quota (0.1 s).
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import msgspec
import numpy as np

from fembench.base.units import clock, plural
from fembench.characterize.jobs import NodesJob
from fembench.characterize.meter import Meter, Way, counted_in_ticks, survey
from fembench.characterize.probes import BLOCK_FLOPS, Probe, box_of, local_part, memory_probes, product_probe
from fembench.host.host import affinity, cache_instances, confine, node_facts, own_cores, physical_cores
from fembench.host.machine_state import LARGEST, UNREADABLE, clock_rate, listed_clock_rate, throttle_events
from fembench.host.provenance import host_names, machine_key
from fembench.launch.job import RankProgram, Tell
from fembench.ranks.comm import Comm, doze
from fembench.records.nodes import NodeSamples, NodesLaunch
from fembench.records.record import HostFacts, now_utc
from fembench.synthetic.speeds import NodeSpeed
from fembench.timing.tracer import make_tracer

CACHED = 1 << 17  # bytes of the small matrix: half of the smallest L2 cache
UNCACHED = 4  # times the last-level caches of a node that its arrays fill together
LEAST_BYTES = 1 << 23  # of the arrays of one rank
IN_TURN = 0.4  # seconds of a round for the cores in turn,
SHORTEST, LONGEST = 0.01, 0.1  # for each of them
TOGETHER = 0.25  # seconds for all cores at once, and again for memory
NAP = 0.9  # of a visit of another rank, for which a rank sleeps without a look
LEAST_BUSY = 1e-3


class RankRound(NamedTuple):
    """The samples of one rank in one round."""

    core: tuple[float, float]  # (rate, busy)
    together: tuple[float, float]
    memory: tuple[float, float]
    clock: float  # Hz; 0: unknown


def measure_nodes(comm: Comm, job: NodesJob, tell: Tell) -> NodesLaunch | None:
    """Measure all nodes: the launch on rank 0, which calls `tell`, else None. Collective."""
    begin, names = time.perf_counter(), node_names(comm, job)
    name = names[comm.rank]
    node = cast(Comm, comm.Split(names.index(name), comm.rank))
    if not job.speeds:
        settle(node)

    def measure(facts: HostFacts, say: Tell) -> NodeSamples | None:
        say(f"{plural(comm.size, 'rank')} on {plural(len(set(names)), 'node')}: setting up")
        rank = NodeRank(comm, node, name, job, facts)
        events = _events(node)
        rounds = []
        for number in range(job.rounds):
            doze(comm, 0.0)  # all nodes begin a round together
            rounds.append(rank.round())
            say(f"round {number + 1} of {job.rounds}: {clock(time.perf_counter() - begin)}")
        return _node_samples(node, name, rounds, _events(node) - events, emulated=bool(job.speeds))

    found = survey(comm, job, measure, tell, job.synthetic)
    if found is None:
        return None
    ranks, environment = found
    hosts = environment.rank_host
    nodes = [msgspec.structs.replace(one, host=hosts[first]) for first, one in enumerate(ranks) if one]
    return NodesLaunch(
        created=now_utc(),
        seconds=round(time.perf_counter() - begin, 3),
        environment=environment,
        nodes=tuple(nodes),
    )


def node_names(comm: Comm, job: NodesJob) -> list[str]:
    """[rank] -> name of its node: its host, or an emulated one. Collective."""
    if job.names:
        each = comm.size // len(job.names)
        return [job.names[rank // each] for rank in range(comm.size)]
    return host_names(comm)


def settle(node: Comm) -> None:
    """Give each rank a core of its own if all got the same, and enough. Collective."""
    everyone = node.allgather(affinity())
    if node.size > 1 and len(set(everyone)) == 1 and len(own_cores(everyone[0])) >= node.size:
        confine([node.rank])


def turn_of(machine: Comm, name: str) -> tuple[int, int]:
    """(turn of this node, number of turns) of the nodes on a machine. Collective.

    One turn for all if their ranks have enough CPUs together.
    """
    rows = machine.allgather((name, affinity()))
    cpus = {cpu for _, own in rows for cpu in own}
    nodes = list(dict.fromkeys(node for node, _ in rows))
    return (nodes.index(name), len(nodes)) if len(cpus) < machine.size else (0, 1)


def triad_bytes(facts: HostFacts, caches: int, ranks: int) -> int:
    """Bytes of each rank's arrays, together beyond the `caches` last-level caches."""
    wanted = UNCACHED * facts.caches.get("L3", 0) * max(caches, 1) // ranks
    room = facts.memory_bytes // (4 * ranks) or LARGEST
    return min(max(wanted, LEAST_BYTES), LARGEST, room)


class NodeRank:
    """The measurements of one rank. Collective; `round` only over a machine."""

    def __init__(self, comm: Comm, node: Comm, name: str, job: NodesJob, facts: HostFacts) -> None:
        """`name`: of the node, whose ranks are in `node`."""
        self._node = node
        self._emulated = bool(job.speeds)
        each = comm.size // max(len(job.names), 1)
        speeds = [job.speeds[rank // each] if job.speeds else NodeSpeed() for rank in range(comm.size)]
        self._load = speeds[comm.rank].load
        here = comm.allgather(machine_key())
        self._machine = cast(Comm, comm.Split(here.index(here[comm.rank]), comm.rank))
        self._turn, self._turns = (0, 1) if self._emulated else turn_of(self._machine, name)
        way: Way = "stretched" if self._emulated else "elapsed" if counted_in_ticks() else "processor"
        mine, left = speeds[comm.rank], 1 - self._load
        self._cores = Meter(make_tracer(), way, 1 / (mine.cores * left))
        self._memory = Meter(make_tracer(), way, 1 / (mine.memory * left))
        self._small = product_probe("sym", "L2", *local_part(box_of(CACHED)))
        n_bytes = LEAST_BYTES if self._emulated else triad_bytes(facts, cache_instances(3), node.size)
        self._large = next(memory_probes("memory", n_bytes))
        self._costs = self._cores.cost(self._small), self._memory.cost(self._large)
        self._in_turn = min(max(IN_TURN / node.size, SHORTEST), LONGEST)

    def round(self) -> RankRound:
        """One sample of each quantity, when it is this node's turn."""
        usual = self._in_turn * self._node.size + 2 * TOGETHER
        for _ in range(self._turn):
            doze(self._machine, NAP * usual)
        found = self._samples()
        for _ in range(self._turn, self._turns):
            doze(self._machine, 0.0)
        for meter in (self._cores, self._memory):
            meter.agree(self._machine)
        return found

    def _samples(self) -> RankRound:
        core = (0.0, 0.0)
        for turn in range(self._node.size):
            if turn == self._node.rank:
                core = self._visit(self._cores, self._small, self._costs[0], self._in_turn)
            doze(self._node, 0.0 if turn == self._node.rank else NAP * self._in_turn)
        every = self._visit(self._cores, self._small, self._costs[0], TOGETHER)
        clock = 0.0 if self._emulated else _clock(self._node)
        doze(self._node, 0.0)
        memory = self._visit(self._memory, self._large, self._costs[1], TOGETHER)
        doze(self._node, 0.0)
        return RankRound(_flops(core), _flops(every), memory, clock)

    def _visit(self, meter: Meter, probe: Probe, cost: float, seconds: float) -> tuple[float, float]:
        """(units per elapsed second, fraction of that time with a processor)."""
        before = meter.spent
        rate = meter.visit(probe, cost, seconds)
        if self._emulated:
            return rate, 1.0 - self._load  # the emulated load has the rest
        elapsed, used = (now - then for then, now in zip(before, meter.spent))
        busy = min(max(used / elapsed, LEAST_BUSY), 1.0)
        return rate if meter.way == "elapsed" else rate * busy, busy


def _flops(visit: tuple[float, float]) -> tuple[float, float]:
    """Blocks per second as flop/s."""
    return BLOCK_FLOPS * visit[0], visit[1]


def _clock(node: Comm) -> float:
    """The clock rate of this rank's core, or on one rank that of the node; 0 if unknown."""
    cpus = affinity()
    if node.rank == 0:
        return clock_rate(cpus) or listed_clock_rate()
    return clock_rate(cpus) if len(physical_cores(cpus)) == 1 else 0.0


def _events(node: Comm) -> int:
    """Thermal events of the node, on its first rank."""
    return throttle_events() if node.rank == 0 else UNREADABLE


def _node_samples(
    node: Comm, name: str, rounds: Sequence[RankRound], heat: int, *, emulated: bool
) -> NodeSamples | None:
    """The samples of a node on its first rank, else None. Collective over the node.

    `heat`: thermal events meanwhile.
    """
    cpus = affinity()
    bound = cpus[0] if len(physical_cores(cpus)) == 1 and not emulated else -1
    rows = node.gather((bound, rounds))
    if rows is None:
        return None
    ranks = [of_rank for _, of_rank in rows]
    clocks = [[row.clock for row in column if row.clock] for column in zip(*ranks)]
    return NodeSamples(
        name=name,
        listed=name,
        slots=node.size,
        host=0,
        facts=node_facts(),
        cpus=tuple(cpu for cpu, _ in rows),
        cores=tuple(_short(row.core[0] for row in of_rank) for of_rank in ranks),
        cores_busy=tuple(_short(row.core[1] for row in of_rank) for of_rank in ranks),
        together=_short(sum(row.together[0] for row in column) for column in zip(*ranks)),
        together_busy=_short(_mean(row.together[1] for row in column) for column in zip(*ranks)),
        memory=_short(sum(row.memory[0] for row in column) for column in zip(*ranks)),
        memory_busy=_short(_mean(row.memory[1] for row in column) for column in zip(*ranks)),
        clock=_short(float(np.median(found)) for found in clocks) if all(clocks) else (),
        throttled=UNREADABLE if emulated or _events(node) == UNREADABLE else heat,
    )


def _mean(numbers: Iterable[float]) -> float:
    found = list(numbers)
    return sum(found) / len(found)


def _short(numbers: Iterable[float]) -> tuple[float, ...]:
    """With five digits: a cluster has many."""
    return tuple(float(f"{number:.5g}") for number in numbers)


PROGRAM = RankProgram(NodesJob, lambda job: job.ranks, measure_nodes)
