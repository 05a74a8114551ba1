"""The ranks of `fembench characterize`: host facts, then speeds, hosts in parallel.

The schedule: visits in rounds, so that a disturbance affects all ranks and kernels.

A round visits every probe once with all ranks of the host, and once with each group of
fewer ranks that is due, in random order. Probes with long calls are visited only in
every second, third, … round, so that they leave enough time for the others."""

import math
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from fembench.base.units import plural
from fembench.bench.describe import device_of
from fembench.characterize.jobs import CharacterizeJob
from fembench.characterize.meter import Meter, Way, survey, way_of
from fembench.characterize.probes import (
    ON_DEVICE,
    STORAGES,
    Probe,
    assembly_probe,
    box_of,
    copy_probes,
    dense_box_of,
    iteration_probes,
    level_bytes,
    local_part,
    memory_probes,
    product_probe,
)
from fembench.host.cgroup import cpu_quota
from fembench.host.host import cache_instances
from fembench.host.machine_state import HostState, host_state, readings
from fembench.host.provenance import host_names
from fembench.kernels.backend import kernels
from fembench.launch.job import RankProgram, Tell
from fembench.methods.lookup import CPU, device_by_rank
from fembench.ranks.comm import Comm, doze, together
from fembench.records.profile import LEVELS, PROFILE_SCHEMA, Profile, Speed, speed_of
from fembench.records.record import ClockCertificate, HostFacts, now_utc
from fembench.solve.operators import RankDevice
from fembench.synthetic.speeds import label, parse_speeds
from fembench.timing.certificate import Certifier, worst_costs, worst_of
from fembench.timing.tracer import make_tracer

GROUPS = 4  # groups per round with fewer ranks; the others follow in later rounds
SEED = 4


class Visit(NamedTuple):
    """A visit: these ranks of the host run one probe together, while the others sleep."""

    probe: int
    ranks: tuple[int, ...]


def corunning_counts(ranks: int, quick: bool) -> tuple[int, ...]:
    """Numbers of ranks of a host that run at once: 1, 2, 4, … and all; `quick`: 1, all."""
    powers = [1 << k for k in range(ranks.bit_length()) if 1 << k < ranks]
    return (*(powers[:1] if quick else powers), ranks)


def groups(ranks: int, count: int) -> list[tuple[int, ...]]:
    """Groups of `count` ranks, spread over the host; every rank is in at least one group."""
    shifts = -(-ranks // count)
    return [
        tuple(sorted((shift + i * ranks // count) % ranks for i in range(count))) for shift in range(shifts)
    ]


def periods(costs: Sequence[float], visits: float, seconds: float, rounds: int) -> list[int]:
    """The period of each probe, in rounds, so that `rounds` rounds fit into `seconds`.

    A visit to a probe takes `costs` seconds, and a round has `visits` to each probe.
    All probes have the same time limit.
    """
    room = seconds / (visits * rounds)
    share, left = room / max(len(costs), 1), len(costs)
    for cost in sorted(costs):  # time that quick probes do not need goes to the others
        if cost > share:
            break
        room, left = room - cost, left - 1
        share = room / left if left else share
    return [max(1, int(np.ceil(cost / share))) for cost in costs]


def visits_of(
    number: int, ranks: int, counts: Sequence[int], every: Sequence[int], n_groups: int
) -> list[Visit]:
    """The visits of round `number`, in order; `every`: periods of the probes, 0: never."""
    fewer = [count for count in counts if count < ranks]
    chosen = [tuple(range(ranks))]
    if fewer:
        turn, which = divmod(number, len(fewer))
        found = groups(ranks, fewer[which])
        first = turn * n_groups
        chosen += [found[(first + i) % len(found)] for i in range(min(n_groups, len(found)))]
    due = [probe for probe, period in enumerate(every) if period and number % period == 0]
    visits = [Visit(probe, group) for probe in due for group in chosen]
    order = np.random.default_rng((SEED, number)).permutation(len(visits))
    return [visits[i] for i in order]


def visits_a_round(ranks: int, counts: Sequence[int], n_groups: int) -> float:
    """The mean number of visits per probe and round."""
    fewer = [min(len(groups(ranks, count)), n_groups) for count in counts if count < ranks]
    return 1 + (sum(fewer) / len(fewer) if fewer else 0)


ROUNDS = 6  # the number of samples that an interval needs
OVERTIME = 2  # limit, relative to the planned time, on a disturbed host
TOO_LONG = 0.1  # of the measuring time: a probe is left out if a single visit takes longer

Samples = dict[tuple[int, int], list[float]]  # (probe, ranks at once) -> units per second


@dataclass(frozen=True)
class RankSpeeds:
    """The results of one rank."""

    speeds: list[Speed]
    way: Way
    held_back: float
    certificate: ClockCertificate
    notes: list[str]
    states: list[HostState]  # of its host, round by round


def characterize(comm: Comm, job: CharacterizeJob, tell: Tell) -> Profile | None:
    """Measure all hosts; the profile on rank 0, else None. `tell`: of rank 0. Collective."""
    begin = time.perf_counter()
    injected = together(comm, lambda: parse_speeds(job.emulate, comm.size))
    names = host_names(comm)
    name = names[comm.rank]
    device = device_of(comm, device_by_rank(job.device, comm.size))
    host = cast(Comm, comm.Split(names.index(name), comm.rank))

    def measure(facts: HostFacts, say: Tell) -> RankSpeeds:
        certifier = Certifier("auto", lambda costs: worst_costs(comm.allgather(costs)))
        certificate = certifier.start()
        counts = f"{plural(comm.size, 'rank')} on {plural(len(set(names)), 'host')}"
        say(f"{counts}: setting up kernels on local meshes")
        mixed = job.device != CPU
        probes = together(comm, lambda: list(probes_of(facts, host.size, say, device, mixed=mixed)))
        tracer = make_tracer(certificate.name, 0, certificate.ticks_per_second)
        on_device = device is not None
        lab = bool(job.synthetic)
        way = way_of(job.emulated, host.size, facts.cores, cpu_quota(), lab=lab, on_device=on_device)
        meter = Meter(tracer, way, job.dilate / injected[comm.rank], on_device=on_device)
        rounds = Rounds(host, job, meter, probes)
        rounds.run(say)
        found = sorted(rounds.samples.items())
        return RankSpeeds(
            speeds=[_speed(comm.rank, probes[i], k, samples) for (i, k), samples in found],
            way=way,
            held_back=meter.held_back,
            certificate=certifier.finish(),
            notes=rounds.notes if host.rank == 0 else [],
            states=rounds.states,
        )

    synthetic = ", ".join(filter(None, [job.synthetic, label(job.emulate, job.dilate)]))
    found = survey(comm, job, measure, tell, synthetic, job.dilate, device)
    if found is None:
        return None
    ranks, environment = found
    return Profile(
        schema=PROFILE_SCHEMA,
        created=now_utc(),
        quick=job.quick,
        seconds=time.perf_counter() - begin,
        device=job.device,
        emulate=job.emulate,
        dilate=job.dilate,
        environment=environment,
        clock=worst_of([r.certificate for r in ranks]),
        isa=kernels.ISA,
        way=tuple(r.way for r in ranks),
        held_back=tuple(r.held_back for r in ranks),
        speeds=tuple(speed for r in ranks for speed in r.speeds),
        notes=tuple(note for r in ranks for note in r.notes),
        state=readings(names, [r.states for r in ranks]),
    )


def probes_of(
    facts: HostFacts, ranks: int, say: Tell, device: RankDevice | None = None, *, mixed: bool = False
) -> Iterator[Probe]:
    """All probes of this rank, given the number of ranks on its host.

    All ranks have the same: where some compute on devices (`mixed`), those that a device
    has.
    """
    sharers = math.ceil(ranks / max(cache_instances(3), 1))
    sizes = level_bytes(facts.caches, sharers, ranks, facts.memory_bytes)
    storages = ON_DEVICE if mixed else STORAGES
    for level, each in sizes.items():
        for n_bytes in each:
            part = local_part(box_of(n_bytes))
            yield from iteration_probes(level, *part, storages, device)
            if level not in LEVELS:
                continue
            yield assembly_probe(level, *part, device)
            if mixed:
                yield from copy_probes(level, part[0], device)
            else:
                yield product_probe("dense", level, *local_part(dense_box_of(n_bytes)))
            yield from memory_probes(level, n_bytes, device)
        say(f"kernels with data in {level} are set up")


def _speed(rank: int, probe: Probe, corunning: int, samples: list[float]) -> Speed:
    speed, low, high = speed_of(samples)
    return Speed(
        rank=rank,
        phase=probe.phase,
        storage=probe.storage,
        level=probe.level,
        corunning=corunning,
        unit=probe.unit,
        units=probe.units,
        cells=probe.cells,
        n_bytes=probe.n_bytes,
        speed=speed,
        low=low,
        high=high,
        samples=tuple(samples),
    )


class Rounds:
    """The visits of the ranks of one host. All methods are collective over `host`."""

    def __init__(self, host: Comm, job: CharacterizeJob, meter: Meter, probes: list[Probe]) -> None:
        self._host = host
        self._job = job
        self._meter = meter
        self._probes = probes
        self.samples: Samples = {}
        self.notes: list[str] = []
        self.states: list[HostState] = []
        counts = corunning_counts(host.size, job.quick)
        self._counts = counts[-1:] if job.emulated else counts  # emulated ranks do not compete
        self._groups = 1 if job.quick else GROUPS
        self._sleep = 0.0  # seconds for which ranks of the last visit are busy
        costs = [self._cost(probe) for probe in probes]
        self._costs = [min(column) for column in zip(*host.allgather(costs))]  # all make as many calls
        self._lengths = self._visit_lengths()
        self._every = self._periods()

    def _cost(self, probe: Probe) -> float:
        """Processor seconds per call while all ranks run it, including contention."""
        doze(self._host, 0.0)
        return self._meter.cost(probe)

    def _visit_lengths(self) -> list[float]:
        """(n_probes,) seconds per visit of all ranks: that of the slowest rank."""
        least = 0.0 if self._meter.way == "stretched" else self._job.visit
        mine = [max(least, self._meter.calls(cost) * cost) for cost in self._costs]
        return [max(column) for column in zip(*self._host.allgather(mine))]

    def _periods(self) -> list[int]:
        """(n_probes,) period of each probe in rounds; 0 for those that take too long."""
        longest = TOO_LONG * self._job.seconds
        visits = visits_a_round(self._host.size, self._counts, self._groups)
        kept = [i for i, seconds in enumerate(self._lengths) if seconds <= longest]
        found = periods([self._lengths[i] for i in kept], visits, self._job.seconds, ROUNDS)
        every = [0] * len(self._probes)
        for i, period in zip(kept, found):
            every[i] = period
        left_out = [p for p, period in zip(self._probes, every) if not period]
        self.notes += [
            f"{platform.node()}: {' '.join(filter(None, (p.phase, p.storage)))} in {p.level} is left out: "
            f"a call takes too long"
            for p in left_out
        ]
        return every

    def run(self, tell: Tell) -> None:
        """Measure rounds until there are enough, or time is up."""
        begin = time.perf_counter()
        number, last = 0, 0.0
        while self._another(number, time.perf_counter() - begin, last):
            start = time.perf_counter()
            for visit in visits_of(number, self._host.size, self._counts, self._every, self._groups):
                self._visit(visit)
            self.states.append(host_state(self._host))
            last = time.perf_counter() - start
            number += 1
            tell(f"round {number} of up to {self._job.rounds}")

    def _another(self, done: int, spent: float, last: float) -> bool:
        """Whether to measure another round, by the first rank's clock and the intervals."""
        limit = self._job.seconds * (1 if done >= ROUNDS else OVERTIME)
        more = done < self._job.rounds and spent + last / 2 < limit
        return bool(self._host.bcast(more))

    def _visit(self, visit: Visit) -> None:
        """After a barrier, the ranks of the visit compute; others sleep until the next."""
        doze(self._host, self._sleep)
        self._sleep = 0.0
        if self._host.rank not in visit.ranks:
            self._sleep = 0.8 * self._lengths[visit.probe]
            return
        probe = self._probes[visit.probe]
        cost = self._costs[visit.probe]
        rate = self._meter.visit(probe, cost, self._job.visit, self._host)
        self.samples.setdefault((visit.probe, len(visit.ranks)), []).append(rate)


PROGRAM = RankProgram(CharacterizeJob, lambda job: job.ranks, characterize)
