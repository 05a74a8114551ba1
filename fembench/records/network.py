"""The network in a machine profile: HLogP for every pair of hosts, and other effects.

HLogP (Mendes 2004): a message of m bytes from p to q takes Os(m) + L(m) +
Or(m). Os occupies the sender's processor, Or the receiver's, and L neither.
All three are piecewise polynomials in m, one set per class of host pairs.
Units are seconds and bytes.
"""

import bisect
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.record import Frozen
from fembench.records.sites import Mode, NetworkSettings, Pairs

PROVISIONAL = "PROVISIONAL: "  # begins a note on why costs of messages may be wrong


class CurvePiece(Frozen, frozen=True):
    """coefficients[0] + coefficients[1] (m - first) + … from first to the next piece."""

    first: float  # bytes
    coefficients: tuple[float, ...]  # seconds, seconds per byte, …


class Beside(Frozen, frozen=True):
    """The effect of messages of m bytes both ways on a computing rank of the first host."""

    m: int
    longer: float  # seconds by which computing takes longer
    left: float  # seconds of waiting for the messages afterwards
    faster: float = 0.0  # most seconds by which nine turns in ten took less than both
    slower: float = 0.0  # and more


class ColdCost(Frozen, frozen=True):
    """Seconds that computing before a message of m bytes adds to it in a ping-pong."""

    m: int
    computed: float  # seconds that each rank computed since its previous message
    swept: bool  # it swept through memory; False: its data stayed in the cache
    send: float  # added to Os
    latency: float  # to L
    receive: float  # to Or


class PairClass(Frozen, frozen=True):
    """Pairs of hosts that share one set of functions."""

    name: str  # same host, a site, 'site > site', 'host > host'
    send: tuple[CurvePiece, ...]  # Os(m)
    latency: tuple[CurvePiece, ...]  # L(m); may be negative if Os and Or overlap (blocking sends)
    receive: tuple[CurvePiece, ...]  # Or(m)
    gap: tuple[
        CurvePiece, ...
    ] = ()  # g(m): shortest time between two messages of one sender; (): not measured
    switch: int | None = None  # bytes from which messages wait for receivers; None: none
    both_ways: tuple[tuple[int, float], ...] = ()
    # (bytes, slowdown of a message while another travels the other way); (): not measured
    beside: tuple[Beside, ...] = ()  # messages and computing, by size; (): not measured
    cold: tuple[ColdCost, ...] = ()  # messages after computing; (): not measured


class PairSamples(Frozen, frozen=True):
    """Ping-pongs of m bytes between two ranks (Mendes 2004, Fig. 4.9); s, per repetition."""

    measure: int  # rank that times the round trip
    mirror: int
    m: int  # bytes
    os_measure: tuple[float, ...]
    or_mirror: tuple[float, ...]
    os_mirror: tuple[float, ...]
    or_measure: tuple[float, ...]
    rtt: tuple[float, ...]  # without the mirror's computing
    mode: Mode = "isend"
    computed: float = 0.0  # seconds of computing on each side before it sends
    swept: bool = False  # that computing swept through memory


class Trains(Frozen, frozen=True):
    """Trains: consecutive messages, then one empty reply; one entry per train."""

    measure: int  # rank
    mirror: int
    m: int  # bytes of a message
    counts: tuple[int, ...]  # messages of the train
    seconds: tuple[float, ...]  # from the first send to the reply


class Exchange(Frozen, frozen=True):
    """Messages of m bytes of two ranks, in turns and both ways at once; s, per turn.

    The effect of messages with rendezvous on computing is not measured.
    """

    measure: int  # rank
    mirror: int
    m: int  # bytes
    in_turn: tuple[float, ...]  # per message
    at_once: tuple[float, ...]  # per message while another travels the other way
    alone: tuple[float, ...] = ()  # a loop of computing
    beside: tuple[float, ...] = ()  # the same loop while messages travel both ways
    left: tuple[float, ...] = ()  # waiting for the messages afterwards


class KielmannCost(Frozen, frozen=True):
    """LogP of one class by Kielmann's method (Mendes 2004, 4.3.2), beside Os, L and Or."""

    class_name: str
    m: int  # bytes
    latency: float  # seconds
    gap: float  # g(m)


class AllReduceTime(Frozen, frozen=True):
    """The time of one all-reduce that all ranks enter at the same time."""

    ranks: int
    m: int  # bytes
    seconds: float  # median
    low: float | None  # its 95 % interval
    high: float | None


class Contention(Frozen, frozen=True):
    """The slowdown of messages if several pairs of ranks communicate at once."""

    pairs: int
    m: int  # bytes
    factor: float  # time of a message over its time alone
    # inside one host; between two hosts; apart: each pair on two other hosts
    where: Literal["inside", "between", "apart"] = "between"


class KernelTime(Frozen, frozen=True):
    """Median time of a kernel (increment, matmul, gauss; Mendes 2004, 4.2.2) on a rank."""

    rank: int
    kernel: str
    seconds: float
    cpu: float = 0.0  # CPU seconds; 0: unknown


class RankLoad(Frozen, frozen=True):
    """The load of a rank's host just before its kernels run (/proc/loadavg)."""

    rank: int
    queue: float  # runnable processes
    load: float  # mean over a minute


class HostLoad(Frozen, frozen=True):
    """The current load of a host, measured with kernels."""

    host: str  # as the host names itself
    seconds: float  # wall time of the kernels
    cpu: float  # their CPU time


class HostTaken(Frozen, frozen=True):
    """Percent of CPU time taken from a host's ranks meanwhile (as in HostFacts)."""

    others_percent: float
    others_resolution: float
    steal_percent: float


class Network(Frozen, frozen=True):
    """The costs of messages between hosts.

    `classes` are estimated from `samples`, `trains` and `exchanges`; empty until then.
    """

    send_mode: Mode  # how Os of `classes` was measured
    pairs: Pairs  # every pair of hosts, or one per class
    sites: tuple[str, ...]  # [host] of Environment.hosts
    classes: tuple[PairClass, ...]
    pair_class: tuple[tuple[int, ...], ...]  # [host][host] -> index into classes; diagonal: same host
    allreduce: tuple[AllReduceTime, ...] = ()
    contention: tuple[Contention, ...] = ()
    overlap: bool | None = None  # large messages travel while ranks compute
    polling: float | None = None  # computing time beside a waiting rank over that alone
    kernels: tuple[KernelTime, ...] = ()
    samples: tuple[PairSamples, ...] = ()
    cold: tuple[PairSamples, ...] = ()  # after computing, in turn with those after a message
    notes: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()  # names of the classes, also before these are estimated
    blocking: tuple[PairClass, ...] = ()  # the same classes measured with MPI_Send
    trains: tuple[Trains, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    kielmann: tuple[KielmannCost, ...] = ()
    overlap_left: float | None = None  # fraction of a large message that computing does not hide
    loads: tuple[RankLoad, ...] = ()
    seconds: float = 0.0  # duration of the measurement
    settings: NetworkSettings | None = None  # None: not recorded
    taken: tuple[HostTaken, ...] = ()  # [host]; (): not recorded
    numa: tuple[int, ...] = ()  # [rank] NUMA node; -1: several, or unknown; (): not recorded
    across: tuple[int, ...] = ()  # [host] class between NUMA nodes; -1: as on one; (): none


class NetworkFound(Frozen, frozen=True):
    """The result of a network job."""

    hosts: tuple[str, ...]
    rank_host: tuple[int, ...]
    network: Network


def value_at(pieces: Sequence[CurvePiece], m: float) -> float:
    """The function at m bytes; the first piece extends downwards."""
    k = max(0, bisect.bisect_right(pieces, m, key=lambda piece: piece.first) - 1)
    x, value = m - pieces[k].first, 0.0
    for c in reversed(pieces[k].coefficients):
        value = value * x + c
    return value


def both_ways_at(functions: PairClass, m: float) -> float:
    """Slowdown of a message of m bytes against another; 1 if not measured.

    Interpolated over the logarithm of the size, constant outside the measured sizes.
    """
    if not functions.both_ways:
        return 1.0
    sizes, factors = zip(*functions.both_ways)
    return float(np.interp(math.log(max(m, 1.0)), np.log(sizes), factors))


def beside_at(
    functions: PairClass, m: float, names: tuple[str, str] = ("longer", "left")
) -> tuple[float, float]:
    """(seconds by which messages of m bytes prolong computing, of waiting afterwards), or `names`.

    Linear between sizes, proportional beyond the largest; (0, 0) if not measured.
    """
    if not functions.beside:
        return 0.0, 0.0
    sizes = [b.m for b in functions.beside]
    more = max(m / sizes[-1], 1.0)
    first, second = (
        more * float(np.interp(m, sizes, [getattr(b, name) for b in functions.beside])) for name in names
    )
    return first, second


def cold_at(functions: PairClass, m: float, computed: float, swept: bool) -> tuple[float, float, float]:
    """What computing for `computed` seconds before m bytes adds to their Os, L and Or.

    Linear in the time computed and constant beyond the longest; interpolated over the
    logarithm of the size, constant below the smallest size and proportional to the size
    beyond the largest. 0 if not measured.
    """
    known: dict[int, list[ColdCost]] = {}
    for one in functions.cold if computed > 0 else ():
        if one.swept == swept:
            known.setdefault(one.m, []).append(one)
    if not known:
        return 0.0, 0.0, 0.0
    sizes = sorted(known)
    more = max(m / sizes[-1], 1.0)
    where = math.log(max(m, 1.0))

    def added(name: str) -> float:
        by_size = []
        for size in sizes:
            row = sorted(known[size], key=lambda c: c.computed)
            spent = [0.0, *(c.computed for c in row)]
            by_size.append(np.interp(computed, spent, [0.0, *(getattr(c, name) for c in row)]))
        return more * float(np.interp(where, np.log(sizes), by_size))

    return added("send"), added("latency"), added("receive")


def class_of(network: Network, a: int, b: int, *, apart: bool = False) -> PairClass:
    """The class of messages from host a to host b; `apart`: between NUMA nodes of one."""
    return network.classes[class_number(network, a, b, apart=apart)]


def apart(numa: Sequence[int], p: int, q: int) -> bool:
    """Whether two ranks of a host are known to be on different NUMA nodes, numa[rank]."""
    return bool(numa) and -1 not in (numa[p], numa[q]) and numa[p] != numa[q]


def class_number(network: Network, a: int, b: int, *, apart: bool = False) -> int:
    """Its index."""
    across = network.across[a] if apart and a == b and network.across else -1
    return network.pair_class[a][b] if across < 0 else across


def check_network(network: Network, hosts: int, ranks: int, where: str) -> None:
    """Raises InputError if parts of a network do not fit each other, hosts or ranks."""
    table = network.pair_class
    if len(network.sites) != hosts or len(table) != hosts or any(len(row) != hosts for row in table):
        raise InputError(
            f"{where}: network of {plural(len(network.sites), 'host')}; "
            f"expected {hosts}, and a class for each pair"
        )
    if not all(0 <= k < len(network.classes) for row in table for k in row):
        raise InputError(f"{where}: pair_class; expected classes below {len(network.classes)}")
    if len(network.across) not in (0, hosts) or max(network.across, default=-1) >= len(network.classes):
        raise InputError(f"{where}: across; expected a class below {len(network.classes)} for each host")
    if len(network.numa) != ranks and (network.numa or network.across):
        raise InputError(f"{where}: numa; expected a node for each of {plural(ranks, 'rank')}")
    for c in network.classes:
        for name, pieces in (("send", c.send), ("latency", c.latency), ("receive", c.receive)):
            starts = [piece.first for piece in pieces]
            if not pieces or starts != sorted(set(starts)) or not all(p.coefficients for p in pieces):
                raise InputError(f"{where}: {name} of class '{c.name}'; expected pieces in ascending order")
