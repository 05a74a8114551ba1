"""Policies on a virtual clock: exact and repeatable, for any number of ranks.

An iteration takes the time of its slowest rank, computing and messages, plus
communication that no move changes. Moves and looks advance the clock by their cost. At
a look, a policy receives the true speeds (which a short calibration would measure) and
the measured times of the blocks, with noise.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

from fembench.balance.control import Control, Settings
from fembench.balance.observation import Stats, applied
from fembench.balance.scenario import Scenario
from fembench.base.arrays import F64, I64
from fembench.records.ledger import Bill, Ledger, Look


@dataclass(frozen=True, eq=False)
class VirtualRun:
    """The result of a scenario with one policy."""

    policy: str
    seconds: float
    supersteps: F64  # (iterations,) s
    ledger: Ledger

    @property
    def n_moves(self) -> int:
        return sum(len(look.moves) for look in self.ledger.looks)


def simulate(scenario: Scenario, settings: Settings, *, drain: dict[int, int] | None = None) -> VirtualRun:
    """Run the scenario. `drain`: rank -> iteration from which it must be empty."""
    control, job = Control(settings), _Job(scenario)
    looks: list[Look] = []
    supersteps = np.empty(scenario.iterations)
    spent = 0.0
    for k in range(scenario.iterations):
        supersteps[k] = job.iterate(k)
        leaving = frozenset(rank for rank, at in (drain or {}).items() if at <= k + 1)
        stranded = bool(leaving) and bool(np.isin(job.owner, list(leaving)).any())
        if (k + 1) % settings.gamma == 0:
            looks = _measured(looks, job.superstep)
        if control.due(k + 1, urgent=stranded) and k + 1 < scenario.iterations:
            stats = job.stats(k, scenario.iterations - k - 1, leaving)
            look = control.look(stats, k + 1, job.superstep)
            moves = [(m.block, m.target) for m in look.moves]
            cost = stats.cost_of(moves)
            looks.append(msgspec.structs.replace(look, look_seconds=scenario.look_cost, move_seconds=cost))
            spent += scenario.look_cost + cost
            job.owner = applied(job.owner, moves)
        if (k + 1) % settings.gamma == 0:
            job.new_window()
    total = float(supersteps.sum()) + spent
    ledger = Ledger(
        looks=tuple(looks), owner=tuple(job.owner.tolist()), iterations=scenario.iterations, seconds=total
    )
    return VirtualRun(settings.policy, total, supersteps, ledger)


def against_no_moves(run: VirtualRun, still: VirtualRun) -> Bill:
    """The bill of a run, given the same scenario with policy 'none'."""
    cost = sum(look.cost for look in run.ledger.looks)
    return Bill(cost, still.seconds - run.seconds + cost, run.n_moves > 0)


def _measured(looks: list[Look], superstep: float) -> list[Look]:
    """The looks, with the measured time of the window after the last one filled in, once."""
    if looks and looks[-1].measured < 0:
        looks[-1] = msgspec.structs.replace(looks[-1], measured=superstep)
    return looks


class _Job:
    """The blocks of a scenario, and their measurements in a window."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        n_blocks, n_ranks = scenario.blocks, scenario.n_ranks
        self.owner: I64 = np.arange(n_blocks, dtype=np.int64) * n_ranks // n_blocks
        self._pairs = scenario.pairs
        self._rng = np.random.default_rng(scenario.seed)
        self._block_cost = scenario.move_cost * scenario.total_work / n_blocks
        self.new_window()

    def new_window(self) -> None:
        self._time, self._steps, self._seconds = np.zeros(self.scenario.blocks), 0, 0.0

    def iterate(self, k: int) -> float:
        """Seconds of iteration k."""
        s = self.scenario
        time = s.work_at(k) / s.speeds_at(k)[self.owner]
        if s.noise:
            time = time * (1 + s.noise * self._rng.uniform(-1, 1, time.size))
        load = np.bincount(self.owner, time, s.n_ranks)
        if self._pairs is not None:
            load = load + self._pairs.seconds(s.neighbours.received(self.owner, s.n_ranks)).sum(axis=1)
        seconds = float(load.max()) + s.communication
        self._time += time
        self._steps += 1
        self._seconds += seconds
        return seconds

    @property
    def superstep(self) -> float:
        """Seconds per iteration in this window."""
        return self._seconds / self._steps

    def stats(self, k: int, remaining: int, leaving: frozenset[int]) -> Stats:
        s = self.scenario
        line = np.arange(s.blocks)
        return Stats(
            owner=self.owner,
            time=self._time / self._steps,
            speed=s.speeds_at(k),
            size=np.ones(s.blocks),
            links=s.neighbours,
            pairs=self._pairs,
            second_per_byte=0.0,
            per_move=self._block_cost,
            look_cost=s.look_cost,
            communication=s.communication,
            remaining=remaining,
            places=np.column_stack((line, np.zeros((s.blocks, 2)))),
            leaving=leaving,
            seed=s.seed + k,
        )
