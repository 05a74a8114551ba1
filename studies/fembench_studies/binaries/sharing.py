"""Ranks that share cores: a simulation in which a core runs one of its ranks at a time.

A rank that waits for a message polls, and gives its core up at each poll (MPI yields when ranks share cores).
So it takes no time from a rank that computes, but neither does it run as soon as its message is there: it
runs when the rank on its core waits or its turn ends. A rank stays on its core: to the kernel, a rank that
polls is as busy as one that computes, so it moves neither of them to the other core when both of a core's
ranks wait. How long a run takes therefore depends on which ranks share a core.
"""

import heapq
import math
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.errors import InputError
from fembench.host.host import affinity
from fembench.model.plan import Segment, SimulationPlan
from fembench_studies.binaries.executable import compile_c

SOURCE = Path(__file__).with_name("handover.c.txt")
Cores = tuple[int, ...]  # [rank] its core


class Handover(NamedTuple):
    """How processes of a core take turns, in seconds."""

    switch: float  # from a process that yields to the next one
    turn: float  # for which a process computes while another one wants to


AT_ONCE = Handover(0.0, math.inf)


def measured_handover() -> Handover:
    """That of this machine: two processes on its first core (a quarter of a second). Raises InputError."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "handover")
        compile_c(SOURCE.read_text(encoding="utf-8"), program)
        found = subprocess.run([program, str(affinity()[0])], capture_output=True, text=True, check=False)
    if found.returncode:
        raise InputError("two processes cannot share a core here; expected --cores of at least --ranks")
    return Handover(*map(float, found.stdout.split()))


def place(ranks: int, cores: int, number: int) -> Cores:
    """One of three even ways to place ranks on cores: neighbours together, in laps, or back and forth."""
    laps = [(r // cores, r % cores) for r in range(ranks)]
    if number % 3 == 0:
        return tuple(r * cores // ranks for r in range(ranks))
    back = number % 3 == 2
    return tuple(cores - 1 - core if back and lap % 2 else core for lap, core in laps)


def shared_finishes(plan: SimulationPlan, cores: Cores, handover: Handover) -> npt.NDArray[np.float64]:
    """(n_ranks,) seconds until each rank ends."""
    end = [0.0] * plan.ranks
    for segment in plan.segments:
        for _ in range(segment.turns):
            end = _Pass(segment, cores, handover, end).run()
    return np.array(end)


class _Pass:
    """One pass through a segment, node by node in the order in which they begin."""

    def __init__(self, segment: Segment, cores: Cores, handover: Handover, begin: Sequence[float]) -> None:
        self._nodes, self._messages = segment.nodes, segment.messages
        self._cores, self._handover = cores, handover
        self._left: list[list[int]] = [[] for _ in cores]  # [rank] nodes, the next one last
        for k, node in reversed(list(enumerate(self._nodes))):
            self._left[node.rank].append(k)
        self._sides: dict[int, list[tuple[float, int]]] = defaultdict(list)  # node -> (offset, message)
        self._open = [0] * len(self._messages)  # sides of a message that have not yet met
        self._there = [0.0] * len(self._messages)  # when they did, and then when it arrived
        for number, message in enumerate(self._messages):
            for side in (message.sent, message.posted):
                if side is not None:
                    self._sides[side[0]].append((side[1], number))
                    self._open[number] += 1
        self._end = list(begin)  # [rank] of its last node
        self._waits: list[set[int]] = [set() for _ in cores]  # [rank] messages that have not been sent
        self._over: list[list[tuple[int, float]]] = [[] for _ in cores]  # [rank] all that it waits for
        self._waiting: dict[int, list[int]] = defaultdict(list)  # message -> ranks
        self._free = [0.0] * (max(cores) + 1)  # [core] from when on
        self._latest = [-1] * len(self._free)  # [core] the rank that ran last
        self._since = [0.0] * len(self._free)  # [core] when it came to the core
        self._ready: list[tuple[float, bool, float, int]] = []

    def run(self) -> list[float]:
        """[rank] when it ends."""
        for rank in range(len(self._cores)):
            self._next(rank)
        while self._ready:
            begin, _, ready, rank = heapq.heappop(self._ready)
            if begin < self._free[self._cores[rank]]:
                self._queue(rank, ready)  # another rank of its core began before it
            else:
                self._compute(rank, begin)
        return self._end

    def _compute(self, rank: int, begin: float) -> None:
        core, node = self._cores[rank], self._left[rank].pop()
        if self._latest[core] != rank:
            begin += self._handover.switch * (self._latest[core] >= 0)
            self._latest[core], self._since[core] = rank, begin
        self._end[rank] = self._free[core] = begin + self._nodes[node].work
        self._over[rank] = self._nodes[node].waits
        self._waits[rank] = {number for number, _ in self._over[rank] if self._open[number]}
        for number in self._waits[rank]:
            self._waiting[number].append(rank)
        for offset, number in self._sides[node]:
            self._there[number] = max(self._there[number], begin + offset)
            self._open[number] -= 1
            if not self._open[number]:
                self._arrives(number, rank)
        if not self._waits[rank]:
            self._resume(rank)

    def _arrives(self, number: int, sender: int) -> None:
        """Both sides of a message have met."""
        self._there[number] += self._messages[number].latency
        for rank in self._waiting.pop(number, ()):
            self._waits[rank].discard(number)
            if rank != sender and not self._waits[rank]:
                self._resume(rank)

    def _resume(self, rank: int) -> None:
        """All messages that the rank waits for have been sent."""
        for there, overhead in sorted((self._there[number], over) for number, over in self._over[rank]):
            self._end[rank] = max(self._end[rank], there) + overhead
        self._next(rank)

    def _next(self, rank: int) -> None:
        if self._left[rank]:
            self._queue(rank, self._end[rank])

    def _queue(self, rank: int, ready: float) -> None:
        core = self._cores[rank]
        begin = max(ready, self._free[core])
        turn_ends = self._latest[core] != rank or begin - self._since[core] >= self._handover.turn
        heapq.heappush(self._ready, (begin, turn_ends, ready, rank))
