"""The balancer on ranks: measures windows, looks, moves blocks, keeps the ledger.

It works with every kind of block: those of a solver (matrix_blocks.py) and those of
other iterative programs differ only in their content and in how they migrate
(`OwnBlocks`). Rank 0 decides from the measurements of all ranks; a look is one gather
and one broadcast. There is no communication between looks. Costs are charged to the
look that caused them.

Speeds of ranks and weights of blocks, estimated from noisy windows.

The slowest rank of one window is slow partly by chance, so moves decided on that window
alone gain less than predicted. Speeds and weights are therefore averaged over windows
with decaying weight. A difference beyond the noise (three times as large, or above
JUMP) counts as a change of the host and is adopted at once. `noise` is the usual
difference between a window and the estimate. With `ageing`, the weight of the newest
window is given, and nothing is adopted at once: at 0.5, as MigBSP does it (Gomes 2014,
2.11, 2.12)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from fembench.balance.control import Control, Settings
from fembench.balance.observation import Links, PairCosts, Stats
from fembench.base.arrays import F64, I64
from fembench.ranks.comm import Comm
from fembench.records.ledger import Ledger, Look

Route = tuple[int, int, int]  # (block, from rank, to rank)


class Measured(NamedTuple):
    """The measurements of a rank's blocks in one window."""

    ids: list[int]
    seconds: list[float]  # per iteration, of each block
    sizes: list[int]  # bytes that migrate with each block


class OwnBlocks(Protocol):
    """The blocks that a rank currently owns: their measurement and migration."""

    per_move: float  # seconds per move in addition to the transfer of its bytes

    @property
    def owner(self) -> I64:
        """(V,) the rank of every block."""

    def begin(self) -> None:
        """Called before the first iteration."""

    def open(self, iteration: int) -> None:
        """Begin a window of measurements after this number of iterations."""

    def measured(self, iterations: int) -> Measured:
        """The measurements in this window of `iterations` iterations."""

    def agree(self) -> None:
        """Let emulated ranks agree on the times of their work. Collective."""

    def move(self, routes: list[Route], iteration: int) -> None:
        """Move blocks, in this order on all ranks. Collective."""


@dataclass(frozen=True)
class BlockFacts:
    """Constants of a run; the same on every rank."""

    work: F64  # (V,) of each block per iteration, in any unit
    size: F64  # (V,) bytes at the start
    places: F64  # (V, 3)
    links: Links
    pairs: PairCosts


@dataclass
class _Own:
    """The times of one look on this rank."""

    look_seconds: float
    move_seconds: float
    measured: float = -1.0


@dataclass
class Balancer:
    """Looks, moves blocks and keeps the ledger, between two iterations."""

    comm: Comm
    blocks: OwnBlocks
    facts: BlockFacts
    settings: Settings
    remaining: Callable[[int, float], int]  # (iterations done, <r, r>) -> iterations to come
    drain: dict[int, int] = field(default_factory=dict)  # rank -> iteration when it must be empty

    def __post_init__(self) -> None:
        self.control = Control(self.settings)
        self.looks: list[Look] = []  # rank 0
        self._own: list[_Own] = []
        self._pace = Pace(self.facts.work, self.comm.size, self.settings.ageing)

    def begin(self) -> None:
        """Call before the first iteration."""
        self.blocks.begin()
        self._open(0)

    def after(self, iteration: int, rr: float = 0.0) -> bool:
        """Look, if one is due after `iteration`; whether blocks moved. Collective if so."""
        if iteration % self.settings.gamma:
            return False
        if self._own and self._own[-1].measured < 0:
            self._own[-1].measured = self._elapsed(iteration)
        leaving = frozenset(rank for rank, at in self.drain.items() if at <= iteration)
        urgent = any((self.blocks.owner == rank).any() for rank in leaving)
        remaining = self.remaining(iteration, rr)
        if not self.control.due(iteration, urgent) or not remaining:
            return False
        moved = self._look(iteration, remaining, leaving)
        self._open(iteration)
        return moved

    def _open(self, iteration: int) -> None:
        self._from = iteration
        self._moment = time.perf_counter()
        self.blocks.open(iteration)

    def _elapsed(self, iteration: int) -> float:
        """Seconds per iteration since the window began."""
        return (time.perf_counter() - self._moment) / (iteration - self._from)

    def _look(self, iteration: int, remaining: int, leaving: frozenset[int]) -> bool:
        superstep = self._elapsed(iteration)
        measured = self.blocks.measured(iteration - self._from)
        self.blocks.agree()
        begin = time.perf_counter()
        rows = self.comm.gather((measured, superstep, self.blocks.per_move))
        look = None
        if rows is not None:
            stats = self._stats(rows, iteration, remaining, leaving)
            look = self.control.look(stats, iteration, max(superstep for _, superstep, _ in rows))
            self.looks.append(look)
        routes, alpha = self.comm.bcast(
            None if look is None else ([(m.block, m.source, m.target) for m in look.moves], look.next_alpha)
        )
        self.control.alpha = self.control.wait = alpha
        decided, took = time.perf_counter(), 0.0
        if routes:
            self.blocks.move(routes, iteration)
            took = time.perf_counter() - decided
        self._own.append(_Own(decided - begin, took))
        return bool(routes)

    def _stats(
        self,
        rows: list[tuple[Measured, float, float]],
        iteration: int,
        remaining: int,
        leaving: frozenset[int],
    ) -> Stats:
        owner = self.blocks.owner
        seconds = np.zeros(owner.size)
        size = np.zeros(owner.size)
        for measured, _, _ in rows:
            seconds[measured.ids], size[measured.ids] = measured.seconds, measured.sizes
        self._pace.learn(seconds, owner)
        time = self._pace.times(owner)
        superstep = max(superstep for _, superstep, _ in rows)
        stats = Stats(
            owner=owner.copy(),
            time=time,
            speed=self._pace.speeds,
            seen=np.bincount(owner, seconds, self.comm.size).astype(np.float64),
            noise=self._pace.noise,
            size=size,
            links=self.facts.links,
            pairs=self.facts.pairs,
            per_move=max(per_move for _, _, per_move in rows),
            look_cost=median([own.look_seconds for own in self._own] or [0.0]),
            remaining=remaining,
            places=self.facts.places,
            leaving=leaving,
            seed=iteration,
        )
        return visible(stats, superstep)

    def ledger(self, iterations: int, seconds: float, *, warmup: bool = False) -> Ledger | None:
        """The ledger of the run on rank 0, None elsewhere. Collective.

        From then on, emulated ranks use the times of work that were measured in it.
        """
        self.blocks.agree()
        table = self.comm.gather(([(o.look_seconds, o.move_seconds, o.measured) for o in self._own], seconds))
        if table is None:
            return None
        looks = []
        for k, look in enumerate(self.looks):
            look_seconds, move_seconds, measured = (max(row[0][k][c] for row in table) for c in range(3))
            looks.append(
                msgspec.structs.replace(
                    look, look_seconds=look_seconds, move_seconds=move_seconds, measured=measured
                )
            )
        return Ledger(
            looks=tuple(looks),
            owner=tuple(int(r) for r in self.blocks.owner),
            iterations=iterations,
            seconds=max(row[1] for row in table),
            warmup=warmup,
        )


def visible(stats: Stats, superstep: float) -> Stats:
    """The statistics of an iteration of `superstep` seconds.

    Computing may hide a part of the messages; the rest is what no move changes.
    """
    computing = float(stats.rank_time.max())
    load = float(stats.load.max())
    if load > max(superstep, computing):
        stats = replace(stats, shown=max(0.0, superstep - computing) / (load - computing))
    return replace(stats, communication=max(0.0, superstep - float(stats.load.max())))


AGED = 0.3  # weight of the newest window
JUMP = 0.3  # relative
NEVER = 1e100  # relative
UNSEEN = 0.1  # noise until it has been measured


class Pace:
    """The estimates after the windows so far."""

    def __init__(self, work: F64, n_ranks: int, ageing: float = 0.0) -> None:
        self._newest = ageing or AGED
        self._jumps = not ageing
        self.work = work  # (V,) counted work of the blocks, in any unit
        self.speed = np.zeros(n_ranks)  # counted work per second; 0: unknown
        self.weight = np.ones(work.size)  # measured work of a block over its counted work
        self._noise: float | None = None  # None: fewer than two windows

    def learn(self, seconds: F64, owner: I64) -> None:
        """Add a window: (V,) seconds per iteration of each block, (V,) its rank."""
        work = self.work * self.weight
        took = np.bincount(owner, seconds, self.speed.size)
        done = np.bincount(owner, work, self.speed.size)
        here = took > 0
        new = np.where(here, done / np.where(here, took, 1.0), self.speed)
        known = here & (self.speed > 0)
        limit = min(JUMP, 3 * self.noise) if self._jumps else NEVER
        off = np.abs(new[known] / self.speed[known] - 1)
        small = off[off <= JUMP]
        if small.size:
            worst = float(small.max())
            self._noise = worst if self._noise is None else self._noise + AGED * (worst - self._noise)
        self.speed = _aged(self.speed, new, self._newest, limit)
        spent = done[owner] > 0
        share = seconds * done[owner] / np.where(took[owner] > 0, took[owner], 1.0)
        weight = _aged(self.weight, share / self.work, self._newest, limit)
        self.weight = np.where(spent & (share > 0), weight, self.weight)

    @property
    def noise(self) -> float:
        """Relative deviation of a window from the estimate, on the worst rank, smoothed."""
        return UNSEEN if self._noise is None else self._noise

    @property
    def speeds(self) -> F64:
        """(P,) speeds; for ranks that never computed, the mean of the others."""
        seen = self.speed > 0
        return np.where(seen, self.speed, self.speed[seen].mean() if seen.any() else 1.0)

    def times(self, owner: I64) -> F64:
        """(V,) seconds of each block on its current rank."""
        return self.work * self.weight / self.speeds[owner]


def _aged(old: F64, new: F64, newest: float, limit: float) -> F64:
    """The mean of old and new, the latter weighted by `newest`.

    Only the new one if there is no old one, or if the relative difference exceeds the
    limit.
    """
    far = (old <= 0) | (np.abs(new - old) > limit * old)
    return np.where(far, new, old + newest * (new - old))
