"""Weights from the records of ordinary runs, one function per rule.

Equal tasks per host, from the time of each host alone (Ferreira 2006, Section 5.7).

Ferreira measured how many times slower one host is than another, and gave the faster
one that many times the equal tasks. Alone, each host must run as many tasks as in the
run on all hosts; otherwise the times are not comparable.

Target shares from measured times: the rules `time` and `comm`; `rate` is in
from_profile.py.

c_p     cost: seconds that rank p computes per cell
C_p     seconds that rank p communicates
N_p     cells of rank p, sum N_p = N
T       the time at which all ranks finish: N_p c_p + C_p = T

A rank that computes on a device is slow on small parts: each kernel has to be started.
Its seconds are a line over the cells of its part, whose C_p is what starting takes."""

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.partition.shares import normalise
from fembench.records.binding import OVERSUBSCRIBED, oversubscribed, sharing_device
from fembench.records.case import fields_of
from fembench.records.compare import same_kind
from fembench.records.quiet import disturbance
from fembench.records.record import DeviceFacts, Record, now_utc
from fembench.records.verdict import short
from fembench.records.weights import WEIGHTS_SCHEMA, RankShare, Weights
from fembench.stats.student import share_intervals
from fembench.stats.summary import Interval
from fembench.weights.observe import check_ranks, observe, pooled, room_on_devices

SETTLED = 1e-3  # change of a share in a round of the rule `comm` that does not matter
SAME_SIZE = 0.05  # parts that differ by less say nothing of how speed depends on size
LEAST_SLOPE = 0.1  # of the cost per cell; a flatter line is noise


class Shares(NamedTuple):
    """Target shares of the cells, one per rank."""

    shares: tuple[float, ...]  # sum to 1
    intervals: tuple[Interval | None, ...]
    cost: tuple[float, ...]  # seconds per cell; relative if only ratios of speeds are known
    left_out: tuple[int, ...] = ()  # ranks whose fixed time alone takes longer than the rest: one cell each


class EqualFinish(NamedTuple):
    """Shares with which all ranks finish together, including communication."""

    shares: tuple[float, ...]  # sum to 1
    seconds: float  # predicted T: that of the slowest rank
    rounds: int
    settled: bool  # the shares hardly moved in the last round
    left_out: tuple[int, ...]  # ranks whose communication alone takes longer than T: one cell each


def time_shares(cost: npt.ArrayLike) -> Shares:
    """Rule `time`: shares ~ 1 / cost, from (n, P) costs of any run, equal or not.

    Each row (a set, or the median of a run) was measured on all ranks at once and
    gives one vector of shares: a disturbance that slows all ranks alike cancels. The
    result is the median over rows, with the interval of `share_intervals`, which
    assumes independent rows; None for fewer than three. The returned costs are
    inversely proportional to these shares, so that shares and costs give the same
    ratio of two ranks; their geometric mean is that of the ranks' median costs. Raises
    InputError if a cost is not positive.
    """
    c = np.atleast_2d(np.asarray(cost, float))
    if c.ndim != 2 or not c.size or not np.all(np.isfinite(c) & (c > 0)):
        raise InputError("costs of ranks; expected positive seconds per cell for every set and rank")
    rows = (1 / c) / (1 / c).sum(axis=1, keepdims=True)
    middle = normalise(np.median(rows, axis=0).tolist())
    scale = np.exp(np.log(np.median(c, axis=0) * middle).mean())  # cost x share: the same for every rank
    return Shares(middle, share_intervals(rows), tuple((scale / np.array(middle)).tolist()))


def equal_finish(
    cost: npt.ArrayLike, communication: npt.ArrayLike, cells: float, most: npt.ArrayLike = np.inf
) -> tuple[F64, float]:
    """((P,) cells, T): N_p = (T - C_p) / c_p with T = (N + sum C / c) / sum 1 / c.

    A rank whose C_p exceeds T gets no cells, and T is that of the other ranks. A rank
    gets no more than its `most` cells; the others take the rest, so there must be room.
    """
    c = np.asarray(cost, float)
    C = np.asarray(communication, float)
    limit = np.broadcast_to(np.asarray(most, float), c.shape)
    N, full = np.zeros(len(c)), np.zeros(len(c), bool)
    while True:
        N[full] = limit[full]
        N[~full], T = _finish(c[~full], C[~full], cells - N[full].sum())
        over = ~full & (limit * (1 + 1e-9) < N)
        if not over.any():
            return N, T
        full |= over


def _finish(c: F64, C: F64, cells: float) -> tuple[F64, float]:
    """The same without limits."""
    active = np.ones(len(c), bool)
    while True:
        T = float((cells + (C[active] / c[active]).sum()) / (1 / c[active]).sum())
        late = active & (T <= C)
        if not late.any():
            return np.where(active, (T - C) / c, 0.0), T
        active &= ~late


def comm_shares(
    cost: npt.ArrayLike,
    communication: Callable[[tuple[float, ...]], npt.ArrayLike],
    cells: int,
    rounds: int = 20,
) -> EqualFinish:
    """Rule `comm`: all ranks finish together, communication, by the partition, included.

    `communication(shares)` gives the (P,) seconds C_p of a partition with these shares.
    The result is the round with the least predicted time, since interface sizes may
    jump between rounds and prevent convergence.
    """
    c = np.asarray(cost, float)
    if not c.size or not np.all(np.isfinite(c) & (c > 0)):
        raise InputError("costs of ranks; expected positive seconds per cell, one per rank")
    if cells < len(c):
        raise InputError(
            f"{plural(cells, 'cell')} for {plural(len(c), 'rank')}; expected at least one per rank"
        )
    share = np.asarray(normalise((1 / c).tolist()))
    used = None
    seen: list[EqualFinish] = []
    settled = False
    while len(seen) < rounds and not settled:
        C = np.asarray(communication(tuple(share.tolist())), float)
        if C.shape != c.shape or not np.all(np.isfinite(C) & (C >= 0)):
            raise InputError(
                f"communication of {plural(C.size, 'rank')}; expected {c.size} times, none negative"
            )
        seconds = float((share * cells * c + C).max())
        left_out = tuple(np.flatnonzero(share * cells <= 1.0 + 1e-9).tolist())
        seen.append(EqualFinish(tuple(share.tolist()), seconds, 0, False, left_out))
        used = C if used is None else (used + C) / 2  # damped: interface sizes jump between partitions
        N = np.maximum(equal_finish(c, used, cells)[0], 1.0)
        settled = bool(np.abs(N / N.sum() - share).max() <= SETTLED)
        share = N / N.sum()
    return min(seen, key=lambda f: f.seconds)._replace(rounds=len(seen), settled=settled)


Communication = Callable[[tuple[float, ...]], Sequence[float]]
ONE_RUN = "intervals describe only this run; they do not include differences between runs"
ONE_KIND = "all cells count as equally expensive; a part of expensive cells would look like a slow rank"


def by_time(records: Sequence[Record]) -> Weights:
    """Rule `time`: each rank's cells per second in any runs of the same ranks.

    The sets of one run are not independent. With several records, each run is one
    sample (an interval needs three); with one, its sets are, and a note says so. Where
    ranks compute on devices, see `line_shares`.
    """
    check_same(records)
    seen = pooled(records)
    if any(device.name for device in records[0].environment.devices):
        return _of_devices(records)
    if len(records) == 1:
        return _weights(records, "time", seen.hosts, time_shares(seen.cost), notes=(ONE_KIND, ONE_RUN))
    runs = [np.median(observe(record).cost, axis=0) for record in records]
    return _weights(records, "time", seen.hosts, time_shares(runs), notes=(ONE_KIND,))


def _of_devices(records: Sequence[Record]) -> Weights:
    """Rule `time` for ranks of which some compute on devices."""
    first = records[0]
    devices = first.environment.devices
    most = room_on_devices(first)
    n_cells = first.mesh.n_cells
    if most.sum() < n_cells:
        raise InputError(
            f"{first.mesh.name} has {n_cells} cells; the devices have memory for {most.sum():.0f}: "
            f"use more devices, or ranks on cores beside them"
        )
    seen = [observe(record) for record in records]
    sets = min(len(one.total) for one in seen)
    times = np.array([[one.cells[:sets], one.compute[:sets]] for one in seen])
    found = line_shares(times[:, 0], times[:, 1], [bool(d.name) for d in devices], n_cells, most)
    held = np.flatnonzero(np.array(found.shares) * n_cells >= 0.999 * most)
    notes = [ONE_KIND, ONE_RUN, "shares of devices follow from a line of time over cells"]
    notes += [
        f"rank {p}: {devices[p].name} has memory for {most[p]:.0f} cells; the others take the rest"
        for p in held
    ]
    notes += notes_on_left_out(found, devices)
    return _weights(records, "time", seen[0].hosts, found, notes=tuple(notes))


def line_shares(
    cells: F64, compute: F64, on_device: Sequence[bool], n_cells: int, most: npt.ArrayLike = np.inf
) -> Shares:
    """Shares with which all finish together, from (n_runs, n_sets, P) cells and seconds.

    A device's seconds are a line through its runs, C_p + c_p N_p, neither of them
    negative; through the origin if all its parts had one size. The cost of a rank on
    cores is that of runs with parts as in the last. Each set gives one vector of shares, as
    in `time_shares`; no rank gets more than its `most` cells, nor less than one, which
    has no interval.
    """
    rows, costs, late = [], [], []
    near = np.abs(cells - cells[-1]) <= SAME_SIZE * cells[-1]
    cost = np.nanmedian(np.where(near, compute / cells, np.nan), axis=0)  # (n_sets, P)
    for k, c in enumerate(cost):
        C = np.zeros(len(c))
        for p in np.flatnonzero(on_device):
            C[p], c[p] = _line(cells[:, k, p], compute[:, k, p])
        N = equal_finish(c, C, n_cells, most)[0]
        late.append((C > 0) & (N < 1))
        N = np.maximum(N, 1.0)
        rows.append(N / N.sum())
        costs.append(c + C / N)
    left_out = tuple(np.flatnonzero(np.mean(late, axis=0) > 0.5).tolist())
    ends = share_intervals(rows)
    return Shares(
        normalise(np.median(rows, axis=0).tolist()),
        tuple(None if p in left_out else one for p, one in enumerate(ends)),
        tuple(np.median(costs, axis=0).tolist()),
        left_out,
    )


def notes_on_left_out(found: Shares, devices: Sequence[DeviceFacts]) -> list[str]:
    """What to do about ranks that get one cell, a line each."""
    longer = "its fixed time alone is longer than the others take for the whole mesh; it gets one cell"
    return [f"leave rank {p} ({devices[p].name}) out: {longer}" for p in found.left_out]


def _line(x: F64, y: F64) -> tuple[float, float]:
    """(a, b) of y = a + b x, with the least relative errors, a >= 0 and b > 0."""
    best = (0.0, float((x / y).sum() / ((x / y) ** 2).sum()))
    root = 1 / y
    if np.ptp(x) <= SAME_SIZE * x.max():
        return best
    (a, b), *_ = np.linalg.lstsq(np.stack([root, x * root], axis=1), np.ones(len(x)))
    return (float(a), float(b)) if a > 0 and b > LEAST_SLOPE * best[1] else best


def by_finish(records: Sequence[Record], communication: Communication) -> Weights:
    """Rule `comm`: all finish together, with (P,) s per set from `communication(shares)`."""
    check_same(records)
    seen = pooled(records)
    cost = np.median(seen.cost, axis=0)
    found = comm_shares(cost, communication, records[0].mesh.n_cells)
    notes = [ONE_KIND, f"predicted {found.seconds:.3g} s per set after {plural(found.rounds, 'round')}"]
    notes += [] if found.settled else ["not converged, since interface sizes jump: the best round is used"]
    notes += [f"leave rank {p} out: it communicates longer than the others compute" for p in found.left_out]
    shares = Shares(found.shares, (None,) * len(cost), tuple(cost.tolist()))
    return _weights(records, "comm", seen.hosts, shares, notes=tuple(notes))


def by_tasks(records: Sequence[Record], ranks: int = 0) -> Weights:
    """Rule `tasks`: runs on each host alone -> slowness -> `ranks` equal tasks over the hosts.

    Without `ranks`, the slowest host gets one task. Records of a host are pooled.
    """
    check_same(records, but=("host set", "CPU model", "ranks"))
    alone: dict[str, list[float]] = {}
    for record in records:
        seen = observe(record)
        if len(set(seen.hosts)) != 1:
            raise InputError(f"{record.id} ran on several hosts; rule tasks needs runs on one host alone")
        alone.setdefault(seen.hosts[0], []).append(float(np.median(seen.total)))
    if len(alone) < 2:
        raise InputError("records of one host; rule tasks needs runs on each of two or more hosts alone")
    times = {host: float(np.median(t)) for host, t in alone.items()}
    total = ranks or natural_tasks(list(times.values()))
    tasks = dict(zip(times, tasks_per_host(list(times.values()), total)))
    hosts = tuple(host for host, k in tasks.items() for _ in range(k))
    cost = tuple(times[host] / records[0].mesh.n_cells for host in hosts)
    found = Shares((1 / total,) * total, (None,) * total, cost)
    fastest = min(times.values())
    notes = tuple(f"{host} is {t / fastest:.3g} x slower than the fastest" for host, t in times.items())
    return _weights(records, "tasks", hosts, found, tasks=tuple(tasks.items()), notes=notes)


def check_same(records: Sequence[Record], but: Sequence[str] = ()) -> None:
    """Raises InputError unless the records are comparable runs, none of them INVALID.

    The difference that matters most is named: mesh, then ranks, then others. `but`: may differ.
    """
    if not records:
        raise InputError("no records; expected at least one")
    for record in records:
        if record.verdict.status == "INVALID":
            raise InputError(f"{record.id} is INVALID: {record.verdict.reason}")
    first = records[0]
    others = [r for r in records if r.mesh.hash != first.mesh.hash and r.mesh.name != first.mesh.name]
    if others:
        meshes = ", ".join(sorted({r.mesh.name for r in records}))
        raise InputError(f"records of several meshes ({meshes}): choose one mesh (--mesh, or runs.where)")
    if "ranks" not in but:
        check_ranks(records)
    for record in records:
        mine, theirs = record.case.flat(), first.case.flat()
        for field in (*fields_of("method"), "precond", "iterations"):
            if mine[field] != theirs[field]:
                raise InputError(f"{record.id} differs from {first.id} in {field}; cannot be pooled")
        if reason := same_kind(first, record, but=but):
            raise InputError(f"{record.id} differs from {first.id} in {reason}; cannot be pooled")


def _weights(records, rule, hosts, found: Shares, *, tasks=(), notes=()) -> Weights:
    first = records[0]
    kinds = first.case.devices if rule != "tasks" else ("",) * len(hosts)
    return Weights(
        schema=WEIGHTS_SCHEMA,
        rule=rule,
        created=now_utc(),
        measured=min(r.created for r in records),
        source=tuple(r.id for r in records),
        ranks=tuple(map(rank_share, hosts, found.shares, found.intervals, found.cost, kinds)),
        mesh=first.mesh.name,
        mesh_hash=first.mesh.hash,
        storage=first.case.method.storage,
        precond=first.case.method.precond,
        tasks=tasks,
        synthetic="; ".join(sorted({r.environment.synthetic for r in records} - {""})),
        notes=(
            *filter(None, [disturbance([r.environment for r in records]), shared_cores(records)]),
            *(*provisional(records), *notes),
        ),
    )


def shared_cores(records: Sequence[Record]) -> str:
    """That speeds are those of ranks that shared cores or a device; "" if each had its own."""
    n = sum(oversubscribed(r.environment, r.case.synthetic.dilate) for r in records)
    some = f" in {n} of {len(records)} runs" if len(records) > 1 else ""
    why = "more ranks than cores: these are not the speeds of ranks with a core each; use fewer ranks"
    if device := next(filter(None, (sharing_device(r.environment) for r in records)), ""):
        why = f"{device}: these are not the speeds of ranks with a device each; use one rank per device"
    return f"{OVERSUBSCRIBED}{some}: {why}" if n else ""


def provisional(records: Sequence[Record]) -> tuple[str, ...]:
    """A line on PROVISIONAL records: how many, a reason, what to do; () without any.

    Foreign work and ranks that share cores have lines of their own.
    """
    found = [r for r in records if r.verdict.status == "PROVISIONAL"]
    loud = disturbance([r.environment for r in found]) or shared_cores(found)
    broken = {rule.id: rule for one in found for rule in reversed(one.verdict.rules) if not rule.ok}
    others = [rule for id, rule in sorted(broken.items()) if not loud or id not in ("C4", "D6")]
    if not others:
        return ()
    others.sort(key=lambda rule: (rule.ok is None, not rule.note))
    of = f" ({len(found)} of {len(records)} runs)" if len(records) > 1 else ""
    more = f", and {plural(len(others) - 1, 'more reason')}" if others[1:] else ""
    return (f"PROVISIONAL{of}: {short(others[0])}{more}; {others[0].note or 'see `fembench check`'}",)


def rank_share(
    host: str,
    share: float,
    interval: Interval | None,
    cost: float,
    device: str,
) -> RankShare:
    """One rank of the weights."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return RankShare(host=host, share=share, low=low, high=high, cost=cost, device=device)


def tasks_per_host(times: Sequence[float], total: int) -> tuple[int, ...]:
    """How many of `total` equal tasks (>= 1) each host gets for the least max(tasks x time).

    Each further task goes to the host that would finish first. 8
    at 7.7 : 1 become 7 and 1.
    """
    t = _positive(times)
    if total < len(t):
        raise InputError(
            f"{plural(total, 'task')} for {plural(len(t), 'host')}; expected at least one task per host"
        )
    tasks = [1] * len(t)
    queue = [(2 * time, host) for host, time in enumerate(t.tolist())]
    heapq.heapify(queue)
    for _ in range(total - len(t)):
        _, host = heapq.heappop(queue)
        tasks[host] += 1
        heapq.heappush(queue, ((tasks[host] + 1) * t[host], host))
    return tuple(tasks)


def natural_tasks(times: Sequence[float]) -> int:
    """Tasks, if the slowest host gets one and the others as many as they do meanwhile."""
    t = _positive(times)
    return int(np.floor(t.max() / t + 1e-9).sum())


def _positive(times: Sequence[float]) -> F64:
    t = np.asarray(times, float)
    if t.ndim != 1 or not t.size or not np.all(np.isfinite(t) & (t > 0)):
        raise InputError(f"times of hosts {list(times)}; expected positive seconds, one per host")
    return t
