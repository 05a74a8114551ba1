"""Parameters of a class of pairs: medians of ping-pongs by size, then joint pieces."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.units import percent, seconds, size
from fembench.characterize.fit import Curve, find_switch, fit_jointly
from fembench.records.hlogp import kielmann, message_cost, ping_pong_latency
from fembench.records.network import (
    PROVISIONAL,
    Beside,
    ColdCost,
    CurvePiece,
    Exchange,
    KielmannCost,
    Network,
    PairClass,
    PairSamples,
    Trains,
    apart,
    class_number,
)
from fembench.records.sites import Mode

Grouped = dict[tuple[Mode, int], list[PairSamples]]
FLOOR = 0.01  # least relative error of a median, because conditions change between sizes
QUANTUM = 2e-8  # seconds: least error of a median, because of the clock
MEDIAN = 1.2533 * 1.4826  # standard error of a median over the median deviation, times sqrt(n)
TRAVELLED = 0.3  # a message with less of its time left has travelled meanwhile
LARGE = 1 << 17  # bytes from which all calls should take as long (Mendes 2004)
MOST_LEFT = 2.0  # waiting after computing over its time; quiet machines: up to 1.2
TURNS = (0.05, 0.95)  # nine turns in ten
MISFIT = 0.2  # largest relative error of a fitted time
SIGNED = 0.05  # of a message's time: a latency below minus that is overlap


def estimate_class(
    name: str,
    samples: Iterable[PairSamples],
    gap: Sequence[tuple[int, float]] = (),
    exchanges: Iterable[Exchange] = (),
    cold: Iterable[PairSamples] = (),
    *,
    both: bool = False,
) -> PairClass:
    """Os, L, Or and the switch of one class.

    `gap` are (bytes, seconds) from gap_of, `cold` ping-pongs after computing. `both`:
    opposite messages belong to the class, too.

    L may be negative only if it clearly is, because Os and Or overlap (blocking sends).
    """
    by_size = sorted(samples, key=lambda s: s.m)
    m = [s.m for s in by_size]
    found = [overheads(s, both=both) for s in by_size]
    send = [middle(times) for times, _ in found]
    receive = [middle(times) for _, times in found]
    latency = [middle(latencies(s)) for s in by_size]
    whole = np.array([np.median(s.rtt) / 2 for s in by_size])
    signed = bool(np.any(np.array([y for y, _ in latency]) < -SIGNED * whole))
    fit = fit_jointly(m, [curve(send), curve(latency, signed), curve(receive)])
    met = sorted(exchanges, key=lambda e: e.m)
    switch = find_switch(fit)
    return PairClass(
        name=name,
        send=fit.pieces[0],
        latency=fit.pieces[1],
        receive=fit.pieces[2],
        gap=fit_jointly(*_gap_curve(gap)).pieces[0] if gap else (),
        switch=switch,
        both_ways=tuple((e.m, slowed_by_exchange(e)) for e in met),
        beside=tuple(beside_of(e) for e in met if e.alone and (switch is None or e.m < switch)),
        cold=cold_costs(tuple(cold)),
    )


def slowed_by_exchange(e: Exchange) -> float:
    """How many times longer a message takes against another: median over turns, >= 1."""
    return max(1.0, float(np.median(np.divide(e.at_once, e.in_turn))))


def cold_costs(samples: Sequence[PairSamples]) -> tuple[ColdCost, ...]:
    """What computing before a message adds to Os, L and Or: medians.

    They are relative to the ping-pongs in turn with these. Computing does not make a
    message faster: if it seems to, it adds nothing.
    """
    warm = {s.m: _middles(s) for s in samples if not s.computed}
    found = []
    for s in sorted(samples, key=lambda s: (s.swept, s.m, s.computed)):
        if s.computed and s.m in warm:
            added = _middles(s) - warm[s.m]
            send, latency, receive = added.tolist() if added.sum() > 0 else (0.0, 0.0, 0.0)
            found.append(
                ColdCost(
                    m=s.m,
                    computed=s.computed,
                    swept=s.swept,
                    send=send,
                    latency=latency,
                    receive=receive,
                )
            )
    return tuple(found)


def _middles(s: PairSamples) -> F64:
    """(3,) medians of Os, L and Or; both directions together."""
    send, receive = overheads(s, both=True)
    return np.array([np.median(each) for each in (send, latencies(s), receive)])


def beside_of(e: Exchange) -> Beside:
    """The effect of messages on computing: medians over turns, and their spread.

    Waiting for messages after computing takes at most MOST_LEFT times their time
    without it.
    """
    more = np.subtract(e.beside, e.alone)
    left = np.array(e.left)
    longer = max(float(np.median(more)), 0.0)
    waits = min(_waiting(e))
    low, high = np.quantile(more + left, TURNS) - (longer + waits)
    return Beside(m=e.m, longer=longer, left=waits, faster=max(-low, 0.0), slower=max(high, 0.0))


def _waiting(e: Exchange) -> tuple[float, float]:
    """Median wait for messages after computing, and the longest credible one."""
    return float(np.median(e.left)), MOST_LEFT * float(np.median(e.at_once))


def _delayed(name: str, exchanges: Sequence[Exchange]) -> list[str]:
    """A note on each size whose messages waited longer after computing than they can take."""
    found = ((e, *_waiting(e)) for e in exchanges if e.left)
    return [
        f"{PROVISIONAL}{name}: messages of {size(e.m)} both ways kept a rank waiting for {seconds(left)} "
        f"after computing, and took {seconds(most / MOST_LEFT)} without it: priced at {seconds(most)}; "
        "something else delayed them: repeat characterize"
        for e, left, most in found
        if left > most
    ]


def estimated(network: Network, rank_host: Sequence[int]) -> Network:
    """The network with parameters estimated from samples and trains; rank_host: Environment.

    A class that no two ranks could measure gets the first measured functions; its name
    says so.
    """
    by_class, cold = (_grouped(network, each, rank_host) for each in (network.samples, network.cold))
    trains: dict[int, list[Trains]] = {}
    for t in network.trains:
        trains.setdefault(_class_of(network, rank_host, t), []).append(t)
    exchanges: dict[int, list[Exchange]] = {}
    for e in network.exchanges:
        exchanges.setdefault(_class_of(network, rank_host, e), []).append(e)
    gaps = {k: [(t.m, gap_of(t.counts, t.seconds)) for t in found] for k, found in trains.items()}
    classes = _classes(network, by_class, cold, gaps, exchanges, network.send_mode)
    costs = {k: kielmann_costs(network.class_names[k], trains[k]) for k in sorted(trains)}
    notes = _ways_of_sending(network.samples)
    notes += [note for k, each in exchanges.items() for note in _delayed(network.class_names[k], each)]
    if not classes:
        classes = _everywhere(network, {k: class_of_trains(each, gaps[k]) for k, each in costs.items()})
        notes = ["from trains alone: a message takes L + g(m); overheads are unknown, and assumed to be 0"]
        measured = [(k, c.m, c.latency + c.gap) for k, each in costs.items() for c in each]
    else:
        found = [s for s in network.samples if s.mode == network.send_mode]
        measured = [(_class_of(network, rank_host, s), s.m, float(np.median(s.rtt)) / 2) for s in found]
    return msgspec.structs.replace(
        network,
        classes=classes,
        blocking=_classes(network, by_class, cold, gaps, exchanges, "send"),
        kielmann=tuple(c for k, each in costs.items() for c in _named(each, classes[k].name)),
        overlap=None if network.overlap_left is None else network.overlap_left < TRAVELLED,
        notes=(*network.notes, *notes, *_misfits(classes, measured)),
    )


def _misfits(classes: Sequence[PairClass], measured: Iterable[tuple[int, int, float]]) -> list[str]:
    """A note on each class that misses its times; `measured`: (class, bytes, seconds)."""
    worst: dict[int, tuple[float, int, float, float]] = {}
    for k, m, took in measured:
        fitted = message_cost(classes[k], m).total
        worst[k] = max(worst.get(k, (0.0, 0, 0.0, 0.0)), (abs(fitted / took - 1), m, fitted, took))
    return [
        f"{PROVISIONAL}{classes[k].name}: a message of {size(m)} took {seconds(took)}; "
        f"the functions say {seconds(fitted)}; measure more sizes"
        for k, (apart, m, fitted, took) in worst.items()
        if apart > MISFIT
    ]


def class_of_trains(costs: Sequence[KielmannCost], gap: Sequence[tuple[int, float]]) -> PairClass:
    """A class from trains alone: messages take L + g(m) (Mendes 2004, 4.3.2)."""
    none = (CurvePiece(first=0, coefficients=(0.0,)),)
    whole = fit_jointly([k.m for k in costs], [curve([(k.latency + k.gap, 0.0) for k in costs])])
    gaps = fit_jointly(*_gap_curve(gap)).pieces[0]
    return PairClass(name=costs[0].class_name, send=none, latency=whole.pieces[0], receive=none, gap=gaps)


def _named(costs: Sequence[KielmannCost], name: str) -> list[KielmannCost]:
    return [msgspec.structs.replace(cost, class_name=name) for cost in costs]


def _class_of(network: Network, rank_host: Sequence[int], pair: PairSamples | Trains | Exchange) -> int:
    p, q = pair.measure, pair.mirror
    return class_number(network, rank_host[p], rank_host[q], apart=apart(network.numa, p, q))


def _grouped(network: Network, samples: Sequence[PairSamples], rank_host: Sequence[int]) -> Grouped:
    """The samples by mode and class."""
    found: Grouped = {}
    for s in samples:
        found.setdefault((s.mode, _class_of(network, rank_host, s)), []).append(s)
    return found


def _classes(
    network: Network,
    samples: Grouped,
    cold: Grouped,
    gaps: dict[int, list[tuple[int, float]]],
    exchanges: dict[int, list[Exchange]],
    mode: Mode,
) -> tuple[PairClass, ...]:
    """[class] estimates for one mode of sending; () if it was not measured."""
    found = {
        k: estimate_class(
            network.class_names[k],
            samples[of, k],
            gaps.get(k, ()),
            exchanges.get(k, ()),
            cold.get((of, k), ()),
            both=_symmetric(network, k),
        )
        for of, k in sorted(samples)
        if of == mode
    }
    return _everywhere(network, found)


def _symmetric(network: Network, k: int) -> bool:
    """Whether messages in the opposite direction belong to the same class."""
    if k in network.across:
        return True
    hosts = range(len(network.pair_class))
    a, b = next((a, b) for a in hosts for b in hosts if network.pair_class[a][b] == k)
    return network.pair_class[b][a] == k


def _everywhere(network: Network, found: dict[int, PairClass]) -> tuple[PairClass, ...]:
    """[class] estimates, or those of the first measured class; () if there is none."""
    if not found:
        return ()
    first = found[min(found)]
    return tuple(
        found.get(k) or msgspec.structs.replace(first, name=f"{name}, as {first.name}")
        for k, name in enumerate(network.class_names)
    )


def kielmann_costs(name: str, trains: Sequence[Trains]) -> list[KielmannCost]:
    """L and g(m) of a class by Kielmann's method; none without trains of empty messages."""
    trips = {t.m: float(np.median([s for n, s in zip(t.counts, t.seconds) if n == 1])) for t in trains}
    empty = next((t for t in trains if t.m == 0), None)
    if empty is None:
        return []
    most = max(empty.counts)
    gap = float(np.median([s / n for n, s in zip(empty.counts, empty.seconds) if n == most]))
    found = [(m, kielmann(trips[0], gap, trip)) for m, trip in sorted(trips.items())]
    return [
        KielmannCost(class_name=name, m=m, latency=max(k.latency, 0.0), gap=max(k.gap, 0.0)) for m, k in found
    ]


def _ways_of_sending(samples: Sequence[PairSamples]) -> list[str]:
    """Self-check of Mendes (2004): a large message takes the same time with each call."""
    whole = {(s.measure, s.mirror, s.m, s.mode): middle(s.rtt)[0] for s in samples if s.m >= LARGE}
    pairs = [
        (t, whole[a, b, m, "send"])
        for (a, b, m, way), t in whole.items()
        if way == "isend" and (a, b, m, "send") in whole
    ]
    if not pairs:
        return []
    apart = percent(float(np.median([abs(send / isend - 1) for isend, send in pairs])))
    return [f"MPI_Send and MPI_Isend: round trips of {LARGE >> 10} KiB and more differ by {apart} (median)"]


def overheads(s: PairSamples, *, both: bool) -> tuple[F64, F64]:
    """(repetitions,) Os and Or of round trips: of the first message or, if `both`, means.

    One of two cores may be slower for the whole measurement. A median of the messages
    of both directions is then anywhere between, and Os + L + Or no half of a trip.
    """
    send = np.array(s.os_measure)
    receive = np.array(s.or_mirror)
    if both:
        send = (send + s.os_mirror) / 2
        receive = (receive + s.or_measure) / 2
    return send, receive


def latencies(s: PairSamples) -> F64:
    """(repetitions,) L of each round trip."""
    columns = (s.rtt, s.os_measure, s.or_mirror, s.os_mirror, s.or_measure)
    return np.asarray(ping_pong_latency(*(np.asarray(c) for c in columns)))  # type: ignore[arg-type]


def middle(values: npt.ArrayLike) -> tuple[float, float]:
    """(median, its standard error); both are robust against outliers."""
    x = np.asarray(values, float)
    center = float(np.median(x))
    return center, MEDIAN * float(np.median(np.abs(x - center))) / max(len(x), 1) ** 0.5


def curve(points: Sequence[tuple[float, float]], signed: bool = False) -> Curve:
    """A curve of medians with their errors, which are at least FLOOR and QUANTUM."""
    y, error = np.array(points).T
    return Curve(y, np.hypot(error, np.maximum(FLOOR * np.abs(y), QUANTUM)), signed)


def gap_of(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """g: seconds per message, from the times of trains of `counts` messages.

    It is the median slope over all pairs (Theil and Sen), so neither the latency of the
    first message nor a disturbed train affects it.
    """
    n = np.asarray(counts, float)
    t = np.asarray(seconds, float)
    a, b = np.triu_indices(len(n), 1)
    apart = n[b] != n[a]
    slopes = (t[b] - t[a])[apart] / (n[b] - n[a])[apart]
    return max(0.0, float(np.median(slopes)))


def _gap_curve(gap: Sequence[tuple[int, float]]) -> tuple[list[int], list[Curve]]:
    points = sorted(gap)
    return [m for m, _ in points], [curve([(g, 0.0) for _, g in points])]
