"""Emulated slowness: at speed s, computing takes 1/s of the time (SYNTHETIC, rule E8).

Every job has one `Slowness` per rank, made by `slowness_of`. If nothing is emulated,
it is `FULL_SPEED`: its methods do nothing, and it leaves the tracer alone, so no
iteration pays for it. Otherwise the rank waits after each compute phase until the
phase has lasted (its processor time) x dilation / s. The work is real; only its
duration is stretched. Messages are not stretched. Dilation slows all ranks alike, so
that several ranks can share a core and still run side by side: with a dilation of F
each computes for 1/F of the time.

The processor time of a phase is the least that the same work has taken on this rank so
far. Of a device rank it is the wall time, since the device works while the rank waits
for it. A single measurement also contains cold caches, other ranks that compute at that
moment and other users of the core. An emulated host has none of these, and when
stretched they would dominate (on a shared core, the same work takes 1.5 times as long
for seconds). Work counts as the same if the two phases before it are the same, until
`new_work` says otherwise. A run first rehearses: it repeats its set unstretched while
its data stay in the last-level cache. Then the ranks of a host agree on the median time
per unit of work (cell, flop, node): they should differ by their speeds and parts, not
by the core they happen to run on. If blocks move, there is no rehearsal: at each look,
and after each set, ranks agree on the least time that any has seen. Small programs keep
a low quantile of their rehearsals: the least one is that of a moment at which the core
was faster than it ever is for long.

Ranks of a host take turns: if there is time to spare, a rank computes at the beginning,
in the middle or near the end of its phase. All ranks begin a phase together, and would
slow each other down if they computed at the same time.

While they wait, ranks that share a core sleep, to make room for each other; ranks with
a core each spin, which keeps the core warm. A phase cannot last less than its work
takes. What exceeds its time, or a sleep that ends late because all cores are busy, is
made up for in the next phases, which wait less. At dilation 1 the fastest ranks never
wait, and so show the noise of the machine.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fembench.host.provenance import host_key
from fembench.records.phases import ASSEMBLY, COMPUTING, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.synthetic.speeds import Change
from fembench.synthetic.waits import HeardTracer, glance_at_clock, sleep_until, spin_until
from fembench.timing.tracer import TracerLike

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm

T = TypeVar("T", bound=Hashable)
TASK = -1  # a piece of work that is not a phase of a run
# phase -> kind of work, whose times ranks compare
ALIKE = {ASSEMBLY: "assembly", SPMV_INTERIOR: "product", SPMV_INTERFACE: "product"}
REST = "vectors"
Amounts = Mapping[int, float]  # phase -> how much of its work, positive
NO_AMOUNTS: Amounts = {}  # one of each
Heavier = Mapping[int, float]  # iteration -> multiple of the time of all work from there on
ONCE = ("once",)  # work that is never the same again: it lasts a multiple of its time
Among = Callable[[list[float]], float]  # chooses one of several times
Same = tuple[Any, ...]  # identifies the same work: its name, the two phases before, the phase
COMPUTE = frozenset({TASK, *COMPUTING})
RESERVE = 2.0  # times the least that a phase may take when it has its turn
MOST_LATE = 50_000_000  # ns: a longer delay does not come from sharing cores


class FullSpeed:
    """Nothing is emulated: methods of EmulatedSlowness that do nothing."""

    factor = 1.0
    learned: Mapping[str, float] = {}

    def tracer(self, tracer: TracerLike, /) -> TracerLike:
        return tracer

    def begin(self, phase: int = TASK, /) -> None: ...
    def end(self, phase: int = TASK, /) -> None: ...
    def new_work(
        self, work: Hashable, amounts: Amounts = NO_AMOUNTS, heavier: Heavier = NO_AMOUNTS
    ) -> None: ...
    def rehearsals(
        self, comm: Comm, seconds: float, most: float = math.inf, among: Among = min
    ) -> Iterator[int]:
        return iter(())

    def agree(self, comm: Comm, units: Mapping[str, float], among: Among = min) -> None: ...
    def share(self, comm: Comm) -> None: ...


FULL_SPEED = FullSpeed()


class EmulatedSlowness:
    """The slowdown of this rank's computing.

    Compute phases last `factor` times the least processor time of their work so far.

    `turn` in [0, 1) says when in a phase the rank computes: at its begin,
    or later by that part of the time to spare. `changes` maps iterations
    to the factor from there on.
    """

    def __init__(
        self,
        factor: float,
        wait_until: Callable[[int], None] = spin_until,
        turn: float = 0.0,
        *,
        changes: Mapping[int, float] | None = None,
        on_device: bool = False,
    ) -> None:
        if not factor >= 1:
            raise ValueError(f"factor {factor}: expected at least 1")
        if not 0 <= turn < 1:
            raise ValueError(f"turn {turn}: expected one in [0, 1)")
        self.factor = factor
        self._wait_until = wait_until
        self._turn = turn
        self._changes = changes or {}
        self._on_device = on_device
        self._wall = self._used = self._late = 0
        self._glance = glance_at_clock()
        self._learning = self._taught = False
        self._work: Hashable = None
        self._amounts = self._heavier = NO_AMOUNTS
        self._iteration = -1
        self._before = (-1, -1)  # phases ended last
        self._least: dict[Same, float] = {}  # ns of processor time, of an amount of 1
        self._every: dict[Same, list[float]] | None = None  # each such time, if not the least one counts
        self._count: Counter[Same] = Counter()

    def tracer(self, tracer: TracerLike, /) -> TracerLike:
        """The tracer to measure with, in which compute phases last as long as they must.

        Ranks at full speed among slower ones keep theirs.
        """
        if self.factor == 1 and not self._changes:
            return tracer
        return HeardTracer(tracer, self.begin, self.end, self.follow)

    def new_work(self, work: Hashable, amounts: Amounts = NO_AMOUNTS, heavier: Heavier = NO_AMOUNTS) -> None:
        """From now on phases do other work than before, known by this name.

        amounts: of the same work, 1 if not given; half of it takes half the time. All of it takes
        `heavier` times as long.
        """
        self._work = work
        self._amounts = amounts
        self._heavier = heavier
        self._before = (-1, -1)

    def follow(self, iteration: int) -> None:
        """Continue at the speed that this rank has after this number of iterations."""
        self.factor = self._changes.get(iteration, self.factor)
        self._iteration = iteration

    @property
    def _times(self) -> float:
        """Multiple of its least time that work takes now."""
        since = max((at for at in self._heavier if at <= self._iteration), default=-1)
        return self.factor * self._heavier.get(since, 1.0)

    def _learn(self, on: bool) -> None:
        self._learning = on
        self._taught = not on
        self._late = 0

    def rehearsals(
        self, comm: Comm, seconds: float, most: float = math.inf, among: Among = min
    ) -> Iterator[int]:
        """Turns of unstretched work, up to `seconds` on rank 0 and `most`. Collective.

        None at full speed. The least times hold afterwards, or those that `among` chooses
        from all of these rehearsals.
        """
        begin, done = time.perf_counter(), 0
        self._every = None if among is min else {}
        self._learn(True)
        while not done or (done < most and comm.bcast(time.perf_counter() - begin < seconds)):
            yield done
            done += 1
        self._learn(False)
        self._least.update((same, among(times)) for same, times in (self._every or {}).items())
        self._every = None

    @property
    def learned(self) -> dict[str, float]:
        """Name of a piece of work -> seconds of an amount of 1 of it at full speed."""
        return {same[0]: 1e-9 * ns for same, ns in self._least.items() if same[-1] == TASK}

    def agree(self, comm: Comm, units: Mapping[str, float], among: Among = min) -> None:
        """Let the ranks of a host agree on one time per unit of work. Collective.

        It is the least or the median (`among`) of those that they have found.

        `units` are this rank's, of "assembly", "product" and "vectors"; a kind of which
        it has none is not compared. All ranks have made as many iterations.
        """
        here, mine = host_key(), self.spent(units)
        found = [other for name, other in comm.allgather((here, mine)) if name == here]
        times = {kind: [other[kind] for other in found if other.get(kind)] for kind in mine if mine[kind]}
        scale = {kind: among(of_all) / mine[kind] for kind, of_all in times.items()}
        for same in self._least:
            self._least[same] *= scale.get(ALIKE.get(same[-1], REST), 1.0)

    def share(self, comm: Comm) -> None:
        """Ranks of a host take the least time that any found for a work. Collective."""
        here = host_key()
        everyone = comm.allgather((here, self._least))
        keep_least(self._least, [other for name, other in everyone if name == here])
        self._taught = True

    def spent(self, units: Mapping[str, float]) -> dict[str, float]:
        """Kind of work -> least time per unit of what was done since the last call.

        The same kinds on all ranks. Kinds of which there are no units are left out.
        """
        found: dict[str, float] = {}
        for same, times in self._count.items():
            kind = ALIKE.get(same[-1], REST)
            amount = self._amounts.get(same[-1], 1.0)
            if units.get(kind):
                found[kind] = found.get(kind, 0.0) + self._least[same] * amount * times / units[kind]
        self._count.clear()
        return found

    def begin(self, phase: int = TASK, /) -> None:
        """A phase, or another piece of work, begins."""
        if phase in COMPUTE:
            self._wall = time.perf_counter_ns()
            if self._turn and not self._learning:
                self._await_turn(phase)
            self._used = self._clock_ns()

    def _clock_ns(self) -> int:
        """Processor time; wall time of a device, which works while the rank waits."""
        return time.perf_counter_ns() if self._on_device else time.thread_time_ns()

    def _await_turn(self, phase: int) -> None:
        """Let others compute first if the known duration of the phase leaves time for it."""
        least = self._least.get((self._work, *self._before, phase), 0.0) * self._amounts.get(phase, 1.0)
        spare = least * (self._times - RESERVE) - self._late
        if spare > 0:
            self._wait_until(self._wall + round(self._turn * spare))

    def end(self, phase: int = TASK, /) -> None:
        """Its work is done: wait until its duration is reached."""
        if phase in COMPUTE:
            used = max(self._clock_ns() - self._used - self._glance, 0)  # first: the rest is no work
            if self._work is ONCE:
                self._stretch(used)
            else:
                self._compare(phase, used)
        self._before = (self._before[1], phase)

    def _compare(self, phase: int, used: int) -> None:
        """Keep the least time of this work, and let the phase last its multiple."""
        amount = self._amounts.get(phase, 1.0)
        same = (self._work, *self._before, phase)
        if self._every is not None:
            self._every.setdefault(same, []).append(used / amount)
        if not self._taught or same not in self._least:
            self._least[same] = min(used / amount, self._least.get(same, math.inf))
        self._count[same] += 1
        if not self._learning:
            self._stretch(self._least[same] * amount)

    def _stretch(self, least: float) -> None:
        due = self._wall + round(least * self._times) - self._late
        self._wait_until(due)
        self._late = min(time.perf_counter_ns() - due, MOST_LATE)


Slowness: TypeAlias = FullSpeed | EmulatedSlowness


def slowness_of(
    rank: int,
    speeds: Sequence[float],
    dilate: float = 1.0,
    changes: Sequence[Change] = (),
    *,
    crowded: bool = False,
    turn: float = 0.0,
    wait_until: Callable[[int], None] | None = None,
    on_device: bool = False,
) -> Slowness:
    """The slowness of a rank in a job of these speeds; `FULL_SPEED` if nothing is emulated.

    `crowded`: other ranks need this core. `turn`: see EmulatedSlowness. `wait_until`:
    how to wait. `on_device`: the rank computes on a device.
    """
    if dilate == 1 and not changes and all(speed == 1 for speed in speeds):
        return FULL_SPEED
    return EmulatedSlowness(
        dilate / speeds[rank],
        wait_until or (sleep_until if crowded else spin_until),
        turn,
        changes={change.at: dilate / change.speeds[rank] for change in changes},
        on_device=on_device,
    )


def turn_of(rank: int, hosts: Sequence[str]) -> float:
    """The `turn` of a rank: its position on its host; hosts[rank] are names."""
    here = hosts[rank]
    return hosts[:rank].count(here) / hosts.count(here)


def keep_least(mine: dict[T, float], others: Iterable[Mapping[T, float]]) -> None:
    """Take over the times of others that are shorter, or of work that was not timed here."""
    for other in others:
        for name, least in other.items():
            mine[name] = min(least, mine.get(name, math.inf))
