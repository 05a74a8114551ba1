"""Emulated slowness: a rank of speed s takes 1/s of the time for everything that it computes.

After each compute phase the rank waits until the phase has lasted (its processor time) x dilation / s. So the
work is real, only its duration is stretched; messages are not. A dilation F slows all ranks alike, which lets
F ranks share a core and still run side by side: each computes 1/F of the time.

The processor time of a phase is the least that the same work has taken on this rank so far. What it takes at
the moment also tells of cold caches, of other ranks that compute just now, and of other users of the core:
an emulated machine has none of them, and stretched they would be the larger part (on a shared core the same
work takes 1.5 times as long for seconds on end). The same work is a phase after the same two phases, until
somebody says that there is new work, or so much more of the same. A run first learns: its sets are done
unstretched, many in little time, while data stay in the third cache. Then the ranks of a host agree on the
middle one of their times of a unit of work (cell, flop, node), and go by it: they are to differ by their
speeds and their parts, and not by the core that they happened to be on. Where blocks move, nothing is learned
before: at each look, and after each set, ranks agree on the least that any of them has seen so far.

Ranks of a host take turns: where there is time to spare a rank computes at once, in the middle or near the
end of its phase. They begin phases together, and side by side they would hold each other up.

Ranks that are more than the cores sleep meanwhile, to make room for each other; ranks that have a core each
spin, which keeps it warm. A phase cannot last less than it takes: what does not fit into the sleep, or a
sleep that ends late because all cores are busy, is made up for by the next phases, which sleep less. At
dilation 1 the fastest ranks have no sleep, and so the noise of the machine. Records made so are SYNTHETIC
(VALIDITY E8).
"""

import contextlib
import ctypes
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError, shown
from fembench.host.where import host_key
from fembench.ranks.comm import Comm
from fembench.records.phases import ASSEMBLY, PHASES, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.timing.tracer import TracerLike

T = TypeVar("T", bound=Hashable)
# phases whose time is compared between ranks together, by what they have in common
ALIKE = {ASSEMBLY: "assembly", SPMV_INTERIOR: "product", SPMV_INTERFACE: "product"}
REST = "vectors"
Amounts = Mapping[int, float]  # phase -> how much of its work, positive
NO_AMOUNTS: Amounts = {}  # one of each
Same = tuple[Any, ...]  # what is the same work: its name, the two phases before, the phase
COMPUTE = frozenset(p.number for p in PHASES if p.group in ("compute", "assembly"))
SPIN = 30_000  # ns before the end at which sleeping becomes too coarse, and the rank spins
RESERVE = 2.0  # times the least that a phase may take when it has its turn
GLANCES = 200
MOST_LATE = 50_000_000  # ns that are made up for: what delays a rank longer is no matter of sharing cores
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30  # linux/prctl.h
FINE = 1  # ns by which a sleep may end late
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def parse_speeds(text: str, ranks: int) -> tuple[float, ...]:
    """(ranks,) speeds in (0, 1] from "1,1,0.5,0.25"; all 1 where the text is empty. Raises InputError."""
    if not text:
        return (1.0,) * ranks
    try:
        speeds = tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InputError(f"emulate '{shown(text)}': expected speeds such as 1,1,0.5,0.25") from None
    if len(speeds) != ranks:
        raise InputError(f"emulate '{shown(text)}': {len(speeds)} speeds for {ranks} ranks")
    if not all(math.isfinite(s) and 0 < s <= 1 for s in speeds):
        raise InputError(f"emulate '{shown(text)}': expected speeds above 0 and at most 1")
    return speeds


def label(emulate: str, dilate: float) -> str:
    """What a record says of emulated slowness; "" where there is none."""
    words = [f"emulated speeds {emulate}"] if emulate else []
    words += [f"dilated {dilate:g} times"] if dilate != 1 else []
    return ", ".join(words)


def stretched(
    tracer: TracerLike, speed: float, dilate: float, *, crowded: bool = False, turn: float = 0.0
) -> TracerLike:
    """The tracer, stretching compute phases by dilate / speed; itself where that is 1.

    `crowded`: other ranks need this core. `turn`: see StretchingTracer.
    """
    if dilate == speed:
        return tracer
    return StretchingTracer(tracer, dilate / speed, sleep_until if crowded else spin_until, turn)


def turn_of(rank: int, hosts: Sequence[str]) -> float:
    """When in a phase the rank computes, as StretchingTracer takes it; hosts[rank] are names."""
    here = hosts[rank]
    return hosts[:rank].count(here) / hosts.count(here)


def name_work(tracer: TracerLike, work: Hashable, amounts: Amounts = NO_AMOUNTS) -> None:
    """As StretchingTracer.new_work; a plain tracer need not know."""
    if isinstance(tracer, StretchingTracer):
        tracer.new_work(work, amounts)


def agree(
    comm: Comm, tracer: TracerLike, units: Mapping[str, float], among: Callable[[list[float]], float] = min
) -> None:
    """Let the ranks of a host go by one time of a unit of work, the least or the middle one among those that
    they have found. Collective.

    `units` are this rank's, of "assembly", "product" and "vectors": what it has none of is not compared. All
    have made as many iterations.
    """
    mine = tracer.spent(units) if isinstance(tracer, StretchingTracer) else {}
    here = host_key()
    found = [other for name, other in comm.allgather((here, mine)) if name == here]
    agreed = {kind: among([other[kind] for other in found if other.get(kind)]) for kind in mine if mine[kind]}
    if isinstance(tracer, StretchingTracer):
        tracer.scale({kind: agreed[kind] / mine[kind] for kind in agreed})


def keep_least(mine: dict[T, float], others: Iterable[Mapping[T, float]]) -> None:
    """Take the times of others where they are less, or where there is none."""
    for other in others:
        for name, least in other.items():
            mine[name] = min(least, mine.get(name, math.inf))


@contextlib.contextmanager
def learning(tracer: TracerLike) -> Iterator[None]:
    """Meanwhile nothing is stretched: the least times of its work are found in a fraction of the time."""
    if isinstance(tracer, StretchingTracer):
        tracer.learn(True)
    yield
    if isinstance(tracer, StretchingTracer):
        tracer.learn(False)


class StretchingTracer:
    """A tracer whose compute phases last `factor` times the least processor time of their work so far.

    `turn` in [0, 1) says when in a phase the rank computes: at its begin, or later by that part of the time
    to spare. Ranks begin their phases together, and would all want cores, caches and memory at once.

    `of_now`: phases last `factor` times what they take this time, noise included. A slowdown by a few per
    cent of the least would vanish whenever the core is slower than at its best; this one does not.
    """

    def __init__(
        self,
        tracer: TracerLike,
        factor: float,
        wait_until: Callable[[int], None],
        turn: float = 0.0,
        *,
        of_now: bool = False,
    ) -> None:
        if not factor >= 1:
            raise ValueError(f"factor {factor}: expected at least 1")
        if not 0 <= turn < 1:
            raise ValueError(f"turn {turn}: expected one in [0, 1)")
        self._tracer, self._factor, self._wait_until, self._turn = tracer, factor, wait_until, turn
        self._of_now = of_now
        self._wall = self._used = self._late = 0
        self._glance = glance_at_clock()
        self._learning = self._taught = False
        self._work: Hashable = None
        self._amounts = NO_AMOUNTS
        self._before = (-1, -1)  # phases ended last
        self._least: dict[Same, float] = {}  # ns of processor time, of an amount of 1
        self._count: Counter[Same] = Counter()

    def new_work(self, work: Hashable, amounts: Amounts = NO_AMOUNTS) -> None:
        """From now on phases do other work than before, known by this name, or other amounts of the same (1
        where none is given): half of it takes half the time."""
        self._work, self._amounts, self._before = work, amounts, (-1, -1)

    def learn(self, on: bool) -> None:
        """Whether phases end as soon as they are done, from now on; later, what was learned holds."""
        self._learning, self._taught, self._late = on, not on, 0

    def slow_down(self, factor: float) -> None:
        """From now on phases last so many times the least processor time of their work."""
        self._factor = factor

    def spent(self, units: Mapping[str, float]) -> dict[str, float]:
        """Kind of work -> least time of a unit, of what was done since the last call; alike on all ranks.
        Kinds of which there are no units are left out."""
        found: dict[str, float] = {}
        for same, times in self._count.items():
            kind, amount = ALIKE.get(same[-1], REST), self._amounts.get(same[-1], 1.0)
            if units.get(kind):
                found[kind] = found.get(kind, 0.0) + self._least[same] * amount * times / units[kind]
        self._count.clear()
        return found

    def scale(self, factors: Mapping[str, float]) -> None:
        """Take so much of the least times of each kind of work."""
        for same in self._least:
            self._least[same] *= factors.get(ALIKE.get(same[-1], REST), 1.0)

    def begin(self, phase: int, /) -> None:
        """Open a span."""
        self._tracer.begin(phase)
        if phase in COMPUTE:
            self._wall = time.perf_counter_ns()
            if self._turn and not self._learning:
                self._await_turn(phase)
            self._used = time.thread_time_ns()

    def _await_turn(self, phase: int) -> None:
        """Let others compute first, where what the phase lasts is known and leaves time for it."""
        least = self._least.get((self._work, *self._before, phase), 0.0) * self._amounts.get(phase, 1.0)
        spare = least * (self._factor - RESERVE) - self._late
        if spare > 0:
            self._wait_until(self._wall + round(self._turn * spare))

    def end(self, phase: int, /) -> None:
        """Close a span; a compute phase first lasts as long as it must."""
        if phase in COMPUTE:
            used = max(time.thread_time_ns() - self._used - self._glance, 0)  # first: the rest is no work
            if self._of_now:
                self._wait_until(time.perf_counter_ns() + round(used * (self._factor - 1)))
            else:
                self._compare(phase, used)
        self._before = (self._before[1], phase)
        self._tracer.end(phase)

    def _compare(self, phase: int, used: int) -> None:
        """Keep the least time of this work, and let the phase last its multiple."""
        amount, same = self._amounts.get(phase, 1.0), (self._work, *self._before, phase)
        if not self._taught or same not in self._least:
            self._least[same] = min(used / amount, self._least.get(same, math.inf))
        self._count[same] += 1
        if not self._learning:
            self._stretch(self._least[same] * amount)

    def _stretch(self, least: float) -> None:
        due = self._wall + round(least * self._factor) - self._late
        self._wait_until(due)
        self._late = min(time.perf_counter_ns() - due, MOST_LATE)

    def add(self, phase: int, begin: int, end: int, /) -> None:
        self._tracer.add(phase, begin, end)

    def now(self) -> int:
        return self._tracer.now()

    def reset(self, events: bool = True) -> None:
        self._tracer.reset(events)

    def ticks(self) -> npt.NDArray[np.int64]:
        return self._tracer.ticks()

    def seconds(self) -> npt.NDArray[np.float64]:
        return self._tracer.seconds()

    def counts(self) -> npt.NDArray[np.int64]:
        return self._tracer.counts()

    def events(self) -> npt.NDArray[Any]:
        return self._tracer.events()

    # state that callers set goes to the tracer inside
    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._tracer, name, value)


def glance_at_clock() -> int:
    """ns of processor time that it takes to ask for the processor time: the least of many. Stretched hundreds
    of times it would be a tenth of an iteration."""
    return min(-(time.thread_time_ns() - time.thread_time_ns()) for _ in range(GLANCES))


def timer_slack(slack: int) -> int:
    """Let the sleeps of this thread end late by so many ns at most; how many it was. Linux's default is 50
    microseconds, to save power. 0 elsewhere."""
    if _prctl is None:
        return 0
    before = int(_prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))
    _prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0)
    return before


def sleep_until(moment: int) -> None:
    """Give the processor away until `moment` (perf_counter_ns), spinning over the last 30 microseconds.

    Other sleeps stay as coarse as they are: ranks that wait for messages nap, and more naps take more of the
    cores from those that compute.
    """
    left = moment - time.perf_counter_ns()
    if left > SPIN:
        before = timer_slack(FINE)
        time.sleep((left - SPIN) * 1e-9)
        timer_slack(before)
    spin_until(moment)


def spin_until(moment: int) -> None:
    """Keep the processor until `moment` (perf_counter_ns)."""
    while time.perf_counter_ns() < moment:
        pass
