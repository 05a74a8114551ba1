"""What the runs of a tuning prove: gain, efficiency, imbalance, speeds and verdict.

Of the runs follow the weights to prove, and whom to leave out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from fembench.base.arrays import F64
from fembench.base.units import percent, plural, seconds
from fembench.records.case import CPU, Case
from fembench.records.phases import COMPUTING, NAMES, PRODUCT_PARTS, VECTOR_PARTS
from fembench.records.quiet import disturbance, foreign_work
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.records.weights import Weights, shares_of
from fembench.stats.summary import Samples
from fembench.weights.advice import BOTH, ON_CORES, ON_DEVICES, Advice, advise, choose_kind, largest_gains
from fembench.weights.host_speed import HostSpeeds, owner_speeds
from fembench.weights.make import equal_finish, provisional, shared_cores
from fembench.weights.observe import observe, owners_of, pooled, room_on_devices, run_seconds
from fembench.weights.scaling import (
    CapturedGain,
    captured_gain,
    heterogeneous_efficiency,
    ideal_seconds,
    imbalance,
)

WEAK = 0.3  # fraction of the time; an owner that can save more is kept without a test


@dataclass(frozen=True)
class RunWithoutHost:
    """The run without one owner."""

    owner: str  # a host, or "rank 3" if all ranks are on one host
    host: str  # that gets no ranks; "" if the owner is an emulated rank
    case: Case


@dataclass
class Trail:
    """The runs of one tuning, in order."""

    equal: list[Record] = field(default_factory=list)  # of the comparison
    weighted: list[Record] = field(default_factory=list)  # of the comparison, one per equal run
    without: list[Record] = field(default_factory=list)  # of the comparison, without `left_out`
    left_out: str = ""  # the weakest owner; "" if there are no runs without it
    alone: dict[str, list[Record]] = field(default_factory=dict)  # devices alone, cores alone
    rounds: list[tuple[Record, Weights]] = field(default_factory=list)  # each run and the weights from it
    tried: list[tuple[Weights, Record]] = field(default_factory=list)  # weights and a run with them

    @property
    def records(self) -> list[Record]:
        """All runs, each once."""
        rounds = [*(record for record, _ in self.rounds), *(record for _, record in self.tried)]
        return list({id(r): r for r in (*rounds, *self.compared)}.values())

    @property
    def compared(self) -> list[Record]:
        """The runs of the comparison."""
        return [*self.equal, *self.weighted, *self.without, *chain(*self.alone.values())]

    @property
    def quiet(self) -> "Trail":
        """The turns of the comparison that no foreign work disturbed; if none, all."""
        turns = list(zip(self.equal, self.weighted, self.without or self.equal, *self.alone.values()))
        kept = [turn for turn in turns if not foreign_work([run.environment for run in turn])]
        equal, weighted, without, *others = map(list, zip(*(kept or turns)))
        alone = dict(zip(self.alone, others))
        without = without if self.without else []
        return replace(self, equal=equal, weighted=weighted, without=without, alone=alone)

    @property
    def weights(self) -> Weights:
        """The weights to compare: those with the fastest run; after one round, its own."""
        if not self.tried:
            return self.rounds[-1][1]
        return min(self.tried, key=lambda one: run_seconds([one[1]])[0])[0]


def gains_of(trail: Trail) -> dict[str, float]:
    """Owner -> the largest fraction of the others' time that it can save."""
    return largest_gains(shares_of(trail.weights), owners_of(trail.rounds[0][0]))


def without_weakest(equal: Case, trail: Trail) -> RunWithoutHost | None:
    """The weighted run without the weakest owner; None if it matters or must stay."""
    gains = gains_of(trail)
    weakest = min(gains, key=lambda owner: gains[owner])
    if len(gains) < 2 or gains[weakest] > WEAK:
        return None
    owners = owners_of(trail.rounds[0][0])
    hosts = {rank.host for rank in trail.weights.ranks}
    if len(hosts) == 1 and not equal.synthetic.emulate:
        return None  # a rank can only be left out together with its host
    kept = [rank for rank, owner in enumerate(owners) if owner != weakest]
    host = weakest if len(hosts) > 1 else ""
    case = case_of_ranks(equal, trail, kept)
    return None if case is None else RunWithoutHost(owner=weakest, host=host, case=case)


def each_kind_alone(equal: Case, trail: Trail) -> dict[str, tuple[list[int], Case]]:
    """Name -> (ranks of that kind, their case), for a mixed list of devices; {} for others.

    A kind that has no memory for the whole mesh is missing.
    """
    on_cores = np.array([device == CPU for device in equal.devices])
    if on_cores.all() or not on_cores.any():
        return {}
    found = {}
    for name, chosen in ((ON_DEVICES, ~on_cores), (ON_CORES, on_cores)):
        ranks = np.flatnonzero(chosen).tolist()
        if case := case_of_ranks(equal, trail, ranks):
            found[name] = ranks, case
    return found


def case_of_ranks(equal: Case, trail: Trail, kept: Sequence[int]) -> Case | None:
    """The case on these ranks alone, with their devices and speeds, and shares by these.

    What a device cannot hold, the others take; None if they cannot hold it either.
    """
    ranks = list(kept)
    cost = [trail.weights.ranks[rank].cost for rank in ranks]
    most = fractions_held(trail.rounds[0][0])[ranks]
    if most.sum() < 1:
        return None
    shares = equal_finish(cost, np.zeros(len(ranks)), 1.0, most)[0]
    speeds = equal.synthetic.emulate.split(",")
    return equal.with_(
        ranks=len(ranks),
        shares=",".join(f"{share:.6g}" for share in shares) if len(ranks) > 1 else "",
        emulate=",".join(speeds[rank] for rank in ranks) if equal.synthetic.emulate else "",
        device=",".join(equal.devices[rank] for rank in ranks),
    )


def fractions_held(record: Record) -> F64:
    """(P,) the fraction of the mesh for which each rank's device has memory; inf for cores."""
    return room_on_devices(record) / record.mesh.n_cells


IN_ITERATION = (*PRODUCT_PARTS, *VECTOR_PARTS)
LEAST_WORK = 5e-5  # seconds: in less, calls and clocks hide the speed of a rank


@dataclass(frozen=True)
class Proof:
    """Numbers of the comparison; times are seconds per set (assembly and CG), medians."""

    equal: float
    weighted: float
    ideal: float  # all ranks computing throughout, at their speeds in the equal runs
    over_ideal: float  # weighted / ideal of the same run, median
    advice: Advice
    captured: CapturedGain
    e_het: tuple[float, float]  # equal, weighted
    imbalance: tuple[float, float]  # of computing time, max / mean - 1: equal, weighted
    by_phase: tuple[tuple[str, float, float], ...]  # (phase, imbalance equal, weighted)
    speeds: HostSpeeds  # of the owners in the equal runs of the comparison
    achieved: tuple[float, ...]  # shares of the weighted partition
    owners: tuple[str, ...]  # what could be left out: hosts, or the ranks if all are on one host
    left_out: str  # the weakest of them, if the others were timed without it; else ""
    without: float  # the time of the others; nan if not measured
    alone: dict[str, float]  # the time on devices alone, and on cores alone; {} unless ranks are mixed
    provisional: tuple[str, ...]  # why runs are PROVISIONAL, including those of the rounds; () if none is
    too_short: str  # why the speeds of ranks cannot be told; "" if they can
    crowded: str  # that ranks shared cores; "" if each had its own
    disturbed: str  # who took CPU time from the runs, including those of the rounds; "" if nobody did


def prove(finished: Trail) -> Proof:
    """The proof from the runs of a tuning: of its comparison, those not disturbed."""
    trail = finished.quiet
    first, compared = trail.equal[0], trail.compared
    n_cells = first.mesh.n_cells
    equal = run_seconds(trail.equal)
    weighted = run_seconds(trail.weighted)
    without = {trail.left_out: run_seconds(trail.without)} if trail.without else {}
    seen = pooled(trail.equal)
    speeds = 1.0 / np.median(seen.cost, axis=0)  # cells per second, from runs not used for the weights
    ideal = ideal_seconds(n_cells, speeds)
    owners = owners_of(first)
    cells = np.asarray(trail.weighted[0].partition.cells, float)
    captured = captured_gain(over_own_ideal(trail.equal), over_own_ideal(trail.weighted), 1.0)
    advice = advise(
        equal,
        weighted,
        (speeds / speeds.sum()).tolist(),
        owners,
        without=without,
        captured=captured.value,
        disturbed=foreign_work([run.environment for run in compared]),
    )
    alone = {name: run_seconds(runs) for name, runs in trail.alone.items()}
    if alone and advice.kind != "disturbed":
        advice = _which_kind(finished.rounds[0][0], weighted, alone)
    short = too_short(trail.equal)
    advice = _qualified(advice, trail.weights, len(finished.equal) - len(trail.equal), short)
    return Proof(
        equal=float(np.median(equal)),
        weighted=float(np.median(weighted)),
        ideal=ideal,
        over_ideal=float(np.median(over_own_ideal(trail.weighted))),
        advice=advice,
        captured=captured,
        e_het=(
            heterogeneous_efficiency(n_cells, speeds, float(np.median(equal))),
            heterogeneous_efficiency(n_cells, speeds, float(np.median(weighted))),
        ),
        imbalance=(_imbalance(trail.equal), _imbalance(trail.weighted)),
        by_phase=_by_phase(trail.equal, trail.weighted),
        speeds=owner_speeds(finished.equal),
        achieved=tuple((cells / cells.sum()).tolist()),
        owners=owners,
        left_out=trail.left_out,
        without=float(np.median(without[trail.left_out])) if without else float("nan"),
        alone={name: float(np.median(times)) for name, times in alone.items()},
        provisional=provisional(finished.records),
        too_short=short,
        crowded=shared_cores(finished.records),
        disturbed=disturbance([record.environment for record in finished.records]),
    )


def _qualified(advice: Advice, weights: Weights, left_out: int, short: str) -> Advice:
    """The verdict, with what foreign work did to it; that runs were too `short` for one."""
    text = advice.text
    if left_out:
        text += f"; {plural(left_out, 'pair')} beside foreign work left out"
    if advice.kind not in ("no gain", "not proven", "none"):
        return advice._replace(text=text)
    if short:
        return advice._replace(kind="too short", text=short)
    if any(note.startswith("DISTURBED") for note in weights.notes):
        text = f"the shares come from DISTURBED runs: repeat tune; {text}"
    return advice._replace(text=text)


def _which_kind(record: Record, both: Samples, alone: Mapping[str, Samples]) -> Advice:
    """The verdict on a mixed list of devices; why these were not run alone, if they were not."""
    advice = choose_kind({BOTH: both, **alone})
    if ON_DEVICES in alone:
        return advice
    held = fractions_held(record)[[kind != CPU for kind in record.case.devices]].sum()
    why = f"{ON_DEVICES} was not run: memory for {percent(held)} of the mesh"
    return advice._replace(text=f"{advice.text}; {why}")


def too_short(records: Sequence[Record]) -> str:
    """Why the speeds of ranks cannot be told from these runs; "" if they can."""
    work = np.concatenate([times_of(r).each_iteration[:, :, IN_ITERATION].sum(axis=2) for r in records])
    longest = float(np.median(work, axis=0).max()) if len(work) else LEAST_WORK
    if longest >= LEAST_WORK:
        return ""
    took = f"ranks compute for {seconds(longest)} in an iteration, expected at least {seconds(LEAST_WORK)}"
    return f"too short to tell: {took}; use a larger mesh"


def over_own_ideal(records: Sequence[Record]) -> F64:
    """(n,) time of each run over its ideal, in which no rank waits.

    Drift between runs cancels, and so does the dependence of a rank's speed on the size
    of its part. What remains is waiting and communicating, which depend on the shares.
    The gain, not this ratio, says whether the run as a whole takes less time.
    """
    ideals = [ideal_seconds(r.mesh.n_cells, 1.0 / np.median(observe(r).cost, axis=0)) for r in records]
    return np.divide(run_seconds(records), ideals)


def _imbalance(records: Sequence[Record]) -> float:
    return float(imbalance(np.median(pooled(records).compute, axis=0)))


def _by_phase(equal: Sequence[Record], weighted: Sequence[Record]) -> tuple[tuple[str, float, float], ...]:
    times = [_phase_seconds(records) for records in (equal, weighted)]
    before, after = map(imbalance, times)
    used = [k for k in COMPUTING if times[0][:, k].any()]
    return tuple((NAMES[k], float(before[k]), float(after[k])) for k in used)


def _phase_seconds(records: Sequence[Record]) -> F64:
    """(P, n_phases) median seconds per set."""
    return np.asarray(np.median(np.concatenate([times_of(r).timed for r in records]), axis=0))
