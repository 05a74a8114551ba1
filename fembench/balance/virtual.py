"""Policies on a virtual clock: exact and repeatable, for any number of ranks.

An iteration takes the time of its slowest rank, computing and messages, plus
communication that no move changes. Moves and looks advance the clock by their cost. At
a look, a policy receives the true speeds (which a short calibration would measure) and
the measured times of the blocks, with noise.

Scenarios for the virtual clock, from TOML: ranks, blocks, and events during a solve.

name = "slows and recovers"
speeds = [1, 1, 1, 1]      # of the ranks; ranks = 300: 300 ranks of speed 1
blocks = 16
iterations = 400
work = 4.0                 # of all blocks per iteration; a rank of speed 1 does 1 per second
move_cost = 0.03           # cost of a move, as a fraction of the block's time at speed 1
look_cost = 0.0            # s of each look
communication = 0.0        # s per iteration, not changed by any move
message_bytes = 0          # per iteration, between neighbours in the row of blocks
per_message = 0.0          # s of a message between two ranks
per_byte = 0.0             # s
noise = 0.0                # relative error of every block's time, in either direction
[[events]]                 # from iteration `at` on
at = 100
rank = 0
speed = 0.33
[[events]]                 # a hot spot: blocks with more work
at = 200
blocks = [0, 1]
weight = 3.0
[[events]]                 # the speed changes linearly to this one within `over` iterations
at = 250
rank = 1
speed = 0.5
over = 100
[[links]]                  # other costs of messages to and from these ranks
ranks = [3]
per_message = 0.1
"""

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import msgspec
import numpy as np

from fembench.balance.control import Control, Settings
from fembench.balance.observation import Links, PairCosts, Stats, applied
from fembench.base.arrays import F64, I64
from fembench.base.config import read_toml
from fembench.base.errors import InputError
from fembench.records.ledger import Bill, Ledger, Look

HERE = Path(__file__).parent / "scenarios"
AT = attrgetter("at")


class ScenarioEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change from iteration `at` on."""

    at: int
    rank: int = -1
    speed: float = 0.0
    over: int = 0  # duration of the change in iterations
    blocks: tuple[int, ...] = ()
    weight: float = 0.0

    def __post_init__(self) -> None:
        if (self.rank >= 0) == bool(self.blocks):
            raise ValueError(f"event at {self.at}: expected rank and speed, or blocks and weight")
        value = self.weight if self.blocks else self.speed
        if not 0 < value < float("inf"):
            raise ValueError(f"event at {self.at}: {value:g}; expected a positive speed or weight")
        if self.over < 0 or self.at < 0:
            raise ValueError(f"event at {self.at}, over {self.over}: expected 0 or more")


class ScenarioLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cost of all messages to and from some ranks."""

    ranks: tuple[int, ...]
    per_message: float = 0.0
    per_byte: float = 0.0


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job on a virtual clock."""

    name: str
    speeds: tuple[float, ...] = ()
    ranks: int = 0
    blocks: int
    iterations: int = 200
    work: float = 0.0  # 0: one per rank
    move_cost: float = 0.03
    look_cost: float = 0.0
    communication: float = 0.0
    noise: float = 0.0
    message_bytes: float = 0.0
    per_message: float = 0.0
    per_byte: float = 0.0
    seed: int = 0
    events: tuple[ScenarioEvent, ...] = ()
    links: tuple[ScenarioLink, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.speeds) == bool(self.ranks) or self.ranks < 0:
            raise ValueError("expected speeds, or ranks (a number of ranks of speed 1)")
        if not all(0 < s < float("inf") for s in self.speeds):
            raise ValueError("speeds: expected positive numbers")
        n = len(self.speeds) or self.ranks
        if self.blocks < n:
            raise ValueError(f"blocks = {self.blocks}: expected at least one per rank ({n})")
        names = ("work", "move_cost", "look_cost", "communication", "noise", "message_bytes", "seed")
        costs = [(name, owner) for owner in (self, *self.links) for name in ("per_message", "per_byte")]
        for name, owner in [(name, self) for name in names] + costs:
            if not 0 <= getattr(owner, name) < float("inf"):
                raise ValueError(f"{name} = {getattr(owner, name)}: expected 0 or more")
        if self.iterations < 1:
            raise ValueError(f"iterations = {self.iterations}: expected at least 1")
        if self.noise >= 1:  # times would be negative
            raise ValueError(f"noise = {self.noise:g}: expected less than 1")
        if any(not 0 <= rank < n for link in self.links for rank in link.ranks):
            raise ValueError(f"links: expected ranks below {n}")
        for event in self.events:
            if event.rank >= n or any(not 0 <= b < self.blocks for b in event.blocks):
                raise ValueError(f"event at {event.at}: no such rank or block")

    @property
    def n_ranks(self) -> int:
        return len(self.speeds) or self.ranks

    @property
    def total_work(self) -> float:
        return self.work or float(self.n_ranks)

    @property
    def neighbours(self) -> Links:
        """Messages between the blocks: a row, each connected to the next."""
        a = np.arange(self.blocks - 1)
        n = 2 * self.blocks - 2
        n_bytes = np.full(n, self.message_bytes or 1.0)
        return Links(np.concatenate((a, a + 1)), np.concatenate((a + 1, a)), n_bytes)

    @property
    def pairs(self) -> PairCosts | None:
        """Costs of messages; None if there are none."""
        if not self.message_bytes:
            return None
        costs = PairCosts(*(np.full((self.n_ranks,) * 2, c) for c in (self.per_message, self.per_byte)))
        for link in self.links:
            for table, value in ((costs.per_message, link.per_message), (costs.per_byte, link.per_byte)):
                table[list(link.ranks)] = value
                table[:, list(link.ranks)] = value
        return costs

    def speeds_at(self, iteration: int) -> F64:
        """(P,) speed of each rank."""
        speed = np.array(self.speeds or (1.0,) * self.ranks)
        for event in sorted((e for e in self.events if e.rank >= 0 and e.at <= iteration), key=AT):
            part = 1.0 if event.over == 0 else min(1.0, (iteration - event.at) / event.over)
            speed[event.rank] += part * (event.speed - speed[event.rank])
        return speed

    def work_at(self, iteration: int) -> F64:
        """(V,) work of each block."""
        work = np.full(self.blocks, self.total_work / self.blocks)
        weight = np.ones(self.blocks)
        for event in sorted((e for e in self.events if e.blocks and e.at <= iteration), key=AT):
            weight[list(event.blocks)] = event.weight
        return work * weight


def known() -> tuple[str, ...]:
    """Names of the built-in scenarios."""
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


def read_scenario(name: str) -> Scenario:
    """The scenario in a file, or a built-in one by its name. Raises InputError."""
    own = HERE / f"{name}.toml"
    if own.is_file():
        return read_toml(own, Scenario)
    if not Path(name).is_file():
        raise InputError(f"scenario '{name}': no such file; expected a file or one of {', '.join(known())}")
    return read_toml(Path(name), Scenario)


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
        self._time = np.zeros(self.scenario.blocks)
        self._steps = 0
        self._seconds = 0.0

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
