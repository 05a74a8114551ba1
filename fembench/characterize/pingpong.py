"""Ping-pongs (Mendes 2004, 4.3.4, Fig. 4.9): overheads, latency, by local clocks.

    measure                        mirror
    request  ------------------->
             <------------------- ready; then Probe
    t0, send (Os)  ----- m ----->  Probe returns, receive (Or)
    Probe, receive (Or) <-- m ---  send (Os)
    RTT = now - t0

Many visits have a few round trips of every size, in random order, so that no
disturbance affects one size only. If a round trip takes too long, larger sizes are left
out.

Every size has buffers of its own, other ones in each visit. A part of one large buffer
would be cheaper to send than the buffers of programs: numpy asks for huge pages from 4
MiB on, and Linux copies a message from another process page by page
(docs/decisions/0014-messages-after-computing.md).

Trains of messages: the gap g(m), and Kielmann's method, version I of Mendes (2004),
4.3.2.

A train consists of n messages of m bytes in a row and one empty reply; a train of one
is a round trip with m bytes there and none back. For empty messages, n = 10, 20, 40, …
until the link is saturated: the time per message changes by 1 % or less. For others, n
= 3, 6, … 18, likewise. Trains that take too long do not grow further.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import I64
from fembench.ranks.comm import Comm
from fembench.records.network import PairSamples, Trains
from fembench.records.sites import Mode

CONTROL, MESSAGE = 91, 92  # tags
SEED = 5
MOST = 12  # round trips per size and visit
EMPTY = np.empty(0, np.uint8)
Times = I64


@dataclass(frozen=True)
class PingPongEffort:
    """The effort per pair."""

    seconds: float  # approximate total of all round trips
    visits: int  # each with at least one round trip per size
    longest: float  # seconds; if a round trip takes longer, larger messages are left out


Buffers = dict[int, npt.NDArray[np.uint8]]  # by size, bytes


@dataclass
class Side:
    """One of the two ranks, with buffers for every size."""

    comm: Comm
    partner: int
    sizes: Sequence[int]  # bytes
    mode: Mode = "isend"
    out: Buffers = field(init=False)
    into: Buffers = field(init=False)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Take other buffers, elsewhere in memory, with all of their pages."""
        self.out = self.into = {}
        self.out, self.into = ({m: np.ones(m, np.uint8) for m in self.sizes} for _ in range(2))

    @property
    def send(self) -> Callable:
        """The call whose duration is Os; if it returns a request, wait for that."""
        return self.comm.Send if self.mode == "send" else self.comm.Isend

    def request(self) -> None:
        """Send a request to the partner, and wait until it is ready."""
        self.comm.Send(EMPTY, self.partner, CONTROL)
        self.comm.Recv(EMPTY, self.partner, CONTROL)

    def ready(self) -> None:
        """Wait for a request of the partner, and answer."""
        self.comm.Recv(EMPTY, self.partner, CONTROL)
        self.comm.Send(EMPTY, self.partner, CONTROL)

    def ping(
        self,
        m: int,
        count: int,
        before: Callable[[], object] | None = None,
        back: int = 0,
    ) -> Times:
        """(count, 3) Os, Or and round trip in ns on the measuring side.

        `before` each: by default, a request. The reply has `back` bytes; 0: as many.
        """
        comm, partner = self.comm, self.partner
        out, into = self.out[m], self.into[back or m]
        send = self.send
        now = time.perf_counter_ns
        found = np.empty((count, 3), np.int64)
        before = before or self.request
        for k in range(count):
            before()
            t0 = now()
            pending = send(out, partner, MESSAGE)
            t1 = now()
            comm.Probe(partner, MESSAGE)
            t2 = now()
            comm.Recv(into, partner, MESSAGE)
            t3 = now()
            if pending is not None:
                pending.Wait()
            found[k] = t1 - t0, t3 - t2, t3 - t0
        return found

    def pong(self, m: int, count: int, back: int = 0) -> Times:
        """(count, 2) Os and Or in ns on the side that returns `back` bytes (0: as many)."""
        comm, partner = self.comm, self.partner
        out, into = self.out[back or m], self.into[m]
        send = self.send
        now = time.perf_counter_ns
        found = np.empty((count, 2), np.int64)
        for k in range(count):
            self.ready()
            comm.Probe(partner, MESSAGE)
            t0 = now()
            comm.Recv(into, partner, MESSAGE)
            t1 = now()
            pending = send(out, partner, MESSAGE)
            t2 = now()
            if pending is not None:
                pending.Wait()
            found[k] = t2 - t1, t1 - t0
        return found


def measure_pair(
    comm: Comm, measure: int, mirror: int, sizes: Sequence[int], effort: PingPongEffort, mode: Mode = "isend"
) -> list[PairSamples]:
    """The ping-pongs between two ranks. Call on both; samples on `measure`, else [].

    Other ranks must leave the processors idle meanwhile.
    """
    if comm.rank == mirror:
        _mirror(Side(comm, measure, sizes, mode), sizes, effort.visits)
        return []
    side = Side(comm, mirror, sizes, mode)
    counts = _counts(side, sizes, effort)
    mine: list[list[Times]] = [[] for _ in counts]
    for visit in range(effort.visits):
        side.renew()
        for k in in_turn(visit, len(counts)):
            mine[k].append(side.ping(sizes[k], counts[k]))
    theirs = comm.recv(source=mirror, tag=CONTROL)
    return [
        pair_samples((measure, mirror), (sizes[k], 0.0, False), mode, np.concatenate(mine[k]), theirs[k])
        for k in range(len(counts))
    ]


def _counts(side: Side, sizes: Sequence[int], effort: PingPongEffort) -> list[int]:
    """Round trips per visit for each size, smaller sizes first; informs the mirror."""
    trips = []
    for m in sizes:
        side.comm.send(True, side.partner, CONTROL)
        side.ping(m, 1)  # connects, and warms buffers
        trips.append(max(1e-9 * float(side.ping(m, 1)[0, 2]), 1e-7))
        if trips[-1] > effort.longest:
            break
    side.comm.send(False, side.partner, CONTROL)
    room = effort.seconds / (len(trips) * effort.visits)
    counts = [int(min(max(room / trip, 1), MOST)) for trip in trips]
    side.comm.send(counts, side.partner, CONTROL)
    return counts


def _mirror(side: Side, sizes: Sequence[int], visits: int) -> None:
    for m in (*sizes, 0):
        if not side.comm.recv(source=side.partner, tag=CONTROL):
            break
        side.pong(m, 1)
        side.pong(m, 1)
    counts = side.comm.recv(source=side.partner, tag=CONTROL)
    found: list[list[Times]] = [[] for _ in counts]
    for visit in range(visits):
        side.renew()
        for k in in_turn(visit, len(counts)):
            found[k].append(side.pong(sizes[k], counts[k]))
    side.comm.send([np.concatenate(times) for times in found], side.partner, CONTROL)


def in_turn(visit: int, n: int) -> list[int]:
    """A random order of n measurements, the same on both sides."""
    return np.random.default_rng((SEED, visit)).permutation(n).tolist()


def pair_samples(
    pair: tuple[int, int], state: tuple[int, float, bool], mode: Mode, mine: Times, theirs: Times
) -> PairSamples:
    """The samples of (measuring rank, mirror) in a state.

    State: bytes, seconds of computing, whether it sweeps through memory. `mine`: Os, Or and round
    trip in ns; `theirs`: Os and Or.
    """
    columns = [tuple((1e-9 * column).tolist()) for column in (*mine.T, *theirs.T[:2])]
    os_measure, or_measure, rtt, os_mirror, or_mirror = columns
    return PairSamples(
        measure=pair[0],
        mirror=pair[1],
        m=state[0],
        os_measure=os_measure,
        or_mirror=or_mirror,
        os_mirror=os_mirror,
        or_measure=or_measure,
        rtt=rtt,
        mode=mode,
        computed=state[1],
        swept=state[2],
    )


SATURATED = 0.01  # change of the time per message
SIZES = (0, 64, 1024, 8192, 65536, 524288, 4194304)  # bytes
LONGEST_EMPTY, LONGEST = 640, 18  # messages of a train
WARM, SINGLES = 3, 3  # warm-up trains of one; timed trains of one per repetition of the others


def measure_trains(
    comm: Comm, measure: int, mirror: int, sizes: Sequence[int], repeats: int, longest: float
) -> list[Trains]:
    """Trains of messages of these sizes, as on `measure`, for up to `longest` seconds.

    Call on both ranks; the results are on `measure`, [] on the other.
    """
    if comm.rank == mirror:
        sizes = comm.recv(source=measure, tag=CONTROL)
        side = Side(comm, measure, sizes)
        for m in sizes:
            while count := comm.recv(source=measure, tag=CONTROL):
                _take(side, m, count)
        return []
    comm.send(sizes, mirror, CONTROL)
    side = Side(comm, mirror, sizes)
    return [_trains(side, measure, m, repeats, longest) for m in sizes]


def lengths(m: int) -> Iterator[int]:
    """The lengths of the trains of one size, in ascending order."""
    if m:
        yield from range(3, LONGEST + 1, 3)
    else:
        yield from (10 * 2**k for k in range(LONGEST_EMPTY.bit_length()) if 10 * 2**k <= LONGEST_EMPTY)


def saturated(a_message: Sequence[float]) -> bool:
    """Whether the last two lengths have one time per message, within SATURATED."""
    return len(a_message) > 1 and abs(a_message[-1] - a_message[-2]) <= SATURATED * a_message[-2]


def _trains(side: Side, rank: int, m: int, repeats: int, longest: float) -> Trains:
    for _ in range(WARM):
        _send(side, m, 1)
    singles = SINGLES * repeats
    counts = [1] * singles
    seconds = [_send(side, m, 1) for _ in range(singles)]
    each = []
    for n in lengths(m):
        took = [_send(side, m, n) for _ in range(repeats)]
        counts += [n] * repeats
        seconds += took
        each.append(float(np.median(took)) / n)
        if saturated(each) or n * each[-1] > longest:
            break
    side.comm.send(0, side.partner, CONTROL)
    return Trains(measure=rank, mirror=side.partner, m=m, counts=tuple(counts), seconds=tuple(seconds))


def _send(side: Side, m: int, count: int) -> float:
    """Seconds of one train."""
    comm, partner, out = side.comm, side.partner, side.out[m]
    comm.send(count, partner, CONTROL)
    side.request()
    start = time.perf_counter()
    pending = [comm.Isend(out, partner, MESSAGE) for _ in range(count)]
    comm.Recv(EMPTY, partner, MESSAGE)
    took = time.perf_counter() - start
    for request in pending:
        request.Wait()
    return took


def _take(side: Side, m: int, count: int) -> None:
    into = side.into[m]
    side.ready()
    for _ in range(count):
        side.comm.Recv(into, side.partner, MESSAGE)
    side.comm.Send(EMPTY, side.partner, MESSAGE)
