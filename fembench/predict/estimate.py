"""Parameters of a class of pairs from raw ping-pongs: medians at each size, then joint lines over sizes."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from fembench.predict.fit import Curve, find_switch, fit_jointly
from fembench.predict.hlogp import ping_pong_latency
from fembench.records.network import PairClass, PairSamples

Array = npt.NDArray[np.float64]
FLOOR = 0.01  # of a value: no median is known better, for conditions change between sizes
QUANTUM = 2e-8  # seconds: nor better than the clock
MEDIAN = 1.2533 * 1.4826  # standard error of a median from the median absolute deviation, times sqrt(n)
SIGNED = 0.05  # of a message: a latency that is negative by more is overlap, not noise


def estimate_class(
    name: str, samples: Iterable[PairSamples], gap: Sequence[tuple[int, float]] = ()
) -> PairClass:
    """Os, L, Or and the switch of one class; `gap` are (bytes, seconds), each as gap_of gives it.

    L may be negative only where it is so clearly that Os and Or overlap (blocking sends).
    """
    by_size = sorted(samples, key=lambda s: s.m)
    m = [s.m for s in by_size]
    send = [middle(s.os_measure) for s in by_size]
    receive = [middle(s.or_mirror) for s in by_size]
    latency = [middle(latencies(s)) for s in by_size]
    whole = np.array([np.median(s.rtt) / 2 for s in by_size])
    signed = bool(np.any(np.array([y for y, _ in latency]) < -SIGNED * whole))
    fit = fit_jointly(m, [curve(send), curve(latency, signed), curve(receive)])
    return PairClass(
        name=name,
        send=fit.pieces[0],
        latency=fit.pieces[1],
        receive=fit.pieces[2],
        gap=fit_jointly(*_gap_curve(gap)).pieces[0] if gap else (),
        switch=find_switch(fit),
    )


def latencies(s: PairSamples) -> Array:
    """(repetitions,) L of each round trip."""
    columns = (s.rtt, s.os_measure, s.or_mirror, s.os_mirror, s.or_measure)
    return np.asarray(ping_pong_latency(*(np.asarray(c) for c in columns)))  # type: ignore[arg-type]


def middle(values: npt.ArrayLike) -> tuple[float, float]:
    """(median, its standard error): one value in many that is wrong by any factor moves neither."""
    x = np.asarray(values, float)
    center = float(np.median(x))
    return center, MEDIAN * float(np.median(np.abs(x - center))) / max(len(x), 1) ** 0.5


def curve(points: Sequence[tuple[float, float]], signed: bool = False) -> Curve:
    """A curve of medians with their errors, none of them smaller than can be."""
    y, error = np.array(points).T
    return Curve(y, np.hypot(error, np.maximum(FLOOR * np.abs(y), QUANTUM)), signed)


def gap_of(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """g: seconds a message where trains of `counts` messages took so long. The median slope of all pairs
    (Theil and Sen), so neither the first message's latency nor a train that was disturbed enters."""
    n, t = np.asarray(counts, float), np.asarray(seconds, float)
    a, b = np.triu_indices(len(n), 1)
    apart = n[b] != n[a]
    slopes = (t[b] - t[a])[apart] / (n[b] - n[a])[apart]
    return max(0.0, float(np.median(slopes)))


def _gap_curve(gap: Sequence[tuple[int, float]]) -> tuple[list[int], list[Curve]]:
    points = sorted(gap)
    return [m for m, _ in points], [curve([(g, 0.0) for _, g in points])]
