"""Which host computes which part of a mesh: the placement with the shortest iteration.

The profile prices each part at its size and storage. Iterations are
simulated to compare placements; messages and all-reduces have the order
and the overlap of the solver.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fembench.base.errors import InputError
from fembench.base.progress import progress, working
from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.methods.lookup import precond_of, storage_of
from fembench.model.cg import Price, cg_graph, prices
from fembench.model.configuration import not_invalid
from fembench.model.engine import simulate
from fembench.model.events import simulate_events
from fembench.model.forecast import per_iteration, with_collectives
from fembench.model.machine import Link, Machine
from fembench.model.placement import (
    JUDGED,
    CandidateHost,
    Messages,
    Parts,
    Place,
    Placement,
    best_placement,
    iteration_seconds,
)
from fembench.model.planner import make_plan
from fembench.model.rates import rates_of
from fembench.model.slots import POLLS, Slot, machine_of
from fembench.model.workload import Workload, of_record
from fembench.records.hlogp import MessageCost, message_cost
from fembench.records.network import class_of
from fembench.records.profile import NO_NETWORK, Profile, load_profile, provisional
from fembench.records.record import Record
from fembench.records.store import load
from fembench.workflows.command import LAUNCHER_FILES

TURNS = 20  # iterations to simulate; they repeat after a few


def as_own(work: Workload) -> Workload:
    """The workload for fembench's own solver: PETSc's storages are replaced by the
    closest ones, and unknown preconditioners by none."""
    case = work.case
    if case.method.solver == "own":
        return work
    precond = case.method.precond if "own" in precond_of(case.method.precond).solvers else "none"
    storage = storage_of(case.method.storage).priced_as
    own = case.with_(solver="own", storage=storage, precond=precond, petsc_options="")
    return dataclasses.replace(work, case=own)


def iteration_on(work: Workload, prices: Sequence[Price], machine: Machine) -> float:
    """Seconds of an iteration on a machine, with these prices of its ranks."""
    plan = make_plan(cg_graph(work, prices, TURNS), machine)
    return per_iteration(simulate_events(plan) if machine.contention else simulate(plan), TURNS)


@dataclass(frozen=True)
class Ground:
    """Candidate hosts, and the cost of a run's parts on them."""

    hosts: Sequence[CandidateHost]
    work: Workload
    alone: Sequence[float]  # [rank] seconds of computing, alone on a host of speed 1
    messages: Messages  # cost of messages, in closed form
    prices: Callable[[Place], Sequence[Price]]
    machine: Callable[[Place], Machine]

    def best(self) -> Placement:
        """The best placement, by the closed form, then by simulation. Raises InputError."""
        part = self.work.parts
        parts = Parts(tuple(self.alone), part.neighbours, part.message_bytes)

        @functools.cache
        def simulated(place: Place) -> float:
            return iteration_on(self.work, self.prices(place), self.machine(place))

        def closed(place: Place) -> float:
            return iteration_seconds(parts, self.hosts, self.messages, place)

        return best_placement(parts, self.hosts, closed, simulated)


def measured(record: Record, profile: Profile, where: str = "profile") -> Ground:
    """The hosts of a profile, a slot per measured rank, at their speeds for these parts.

    Raises InputError, which names the profile `where`, if it has no network.
    """
    network = profile.network
    environment = profile.environment
    if network is None:
        raise InputError(f"{where} has {NO_NETWORK}")
    rates = rates_of(profile)
    work = as_own(of_record(record))
    placed = environment.rank_host
    there = [[r for r, host in enumerate(placed) if host == p] for p in range(len(environment.hosts))]

    def slots(place: Place) -> list[Slot]:
        nth = [place[:r].count(p) % len(there[p]) for r, p in enumerate(place)]
        return [Slot(p, p, there[p][k]) for p, k in zip(place, nth)]

    def machine(place: Place) -> Machine:
        return dataclasses.replace(machine_of(profile, slots(place)), collective=reduced)

    reduced = with_collectives(machine_of(profile, slots(placed)), profile).collective
    alone = [[Slot(r, p, ranks[0]) for r in range(work.ranks)] for p, ranks in enumerate(there)]
    computing = np.array([[price.computing for price in prices(work, each, rates)] for each in alone])
    fastest = computing[computing.sum(axis=1).argmin()]
    slots_there = one_a_core(profile, [len(ranks) for ranks in there], work.ranks)
    hosts = [
        CandidateHost(h.name, n, max(h.cores, 1), float(slower))
        for h, n, slower in zip(environment.hosts, slots_there, np.median(computing / fastest, axis=1))
    ]
    return Ground(
        hosts,
        work,
        fastest.tolist(),
        _messages(functools.partial(class_of, network)),
        lambda place: prices(work, slots(place), rates),
        machine,
    )


def one_a_core(profile: Profile, slots: Sequence[int], ranks: int) -> list[int]:
    """[host] slots: one per core where waiting ranks keep it, if there is room then."""
    polling = profile.network.polling if profile.network else None
    fewer = [min(n, max(h.cores, 1)) for n, h in zip(slots, profile.environment.hosts)]
    return fewer if polling and polling > POLLS and sum(fewer) >= ranks else list(slots)


def _messages(link: Link) -> Messages:
    """The cost of messages between hosts, for the search in closed form."""

    def message(size: float, source: int, target: int) -> MessageCost:
        return message_cost(link(source, target), size, same_host=source == target)

    return message


MANY = 16  # ranks from which it takes more than a second or two


@dataclass(frozen=True)
class Placed:
    """A placement, and the hosts that it chose from."""

    best: Placement
    hosts: Sequence[CandidateHost]
    computing: Sequence[float]  # [rank] seconds of an iteration
    warning: str  # why the profile is PROVISIONAL; "" if it is not

    @property
    def names(self) -> list[str]:
        """[rank] its host."""
        return [self.hosts[p].name for p in self.best.place]

    def file(self, form: str, path: str) -> tuple[str, str]:
        """(the file for a launcher, how to use it if it is at `path`)."""
        file = LAUNCHER_FILES[form]
        how = file.use.format(path=path, ranks=len(self.best.place))
        return file.text(self.best.place, self.hosts), how

    @property
    def text(self) -> str:
        """The ranks with their hosts, and the placements that were compared."""
        ranks = [[r, name, seconds(self.computing[r])] for r, name in enumerate(self.names)]
        judged = sorted([*self.best.starts, (self.best.start, self.best.seconds)], key=lambda pair: -pair[1])
        return "\n".join(
            [
                table(["rank", "host", "computing per iteration"], ranks, align="rlr"),
                "",
                table(["placement", "predicted iteration"], [[n, seconds(t)] for n, t in judged], align="lr"),
            ]
        )


def placed(record: Path | str, *, machine: Path | str) -> Placed:
    """The best placement of a run's parts on the hosts of a profile with a network.

    Raises InputError.
    """
    run = not_invalid([load(record)])[0][0]
    profile = load_profile(machine)
    ground = measured(run, profile, str(machine))
    ranks = run.case.placement.ranks
    if ranks >= MANY:
        progress(f"place: simulates up to {JUDGED} placements of {ranks} ranks")
    with working("place: searching"):
        best = ground.best()
    computing = [price.computing for price in ground.prices(best.place)]
    return Placed(best, ground.hosts, computing, provisional(profile))
