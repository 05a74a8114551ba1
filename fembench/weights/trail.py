"""The runs of `fembench tune`: the weights to prove, and whom to leave out."""

from dataclasses import dataclass, field, replace

from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.weights import Weights, as_text, shares_of
from fembench.weights.advice import largest_gains
from fembench.weights.observe import owners_of, run_seconds
from fembench.weights.stale import foreign_work

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
    rounds: list[tuple[Record, Weights]] = field(default_factory=list)  # each run and the weights from it
    tried: list[tuple[Weights, Record]] = field(default_factory=list)  # weights and a run with them

    @property
    def records(self) -> list[Record]:
        """All runs, each once."""
        rounds = [*(record for record, _ in self.rounds), *(record for _, record in self.tried)]
        return list({id(r): r for r in (*rounds, *self.equal, *self.weighted, *self.without)}.values())

    @property
    def quiet(self) -> "Trail":
        """The turns of the comparison that no foreign work disturbed; if none, all."""
        turns = list(zip(self.equal, self.weighted, self.without or self.equal))
        kept = [turn for turn in turns if not foreign_work([run.environment for run in turn])]
        equal, weighted, without = map(list, zip(*(kept or turns)))
        return replace(self, equal=equal, weighted=weighted, without=without if self.without else [])

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
    kept = [rank for rank, owner in enumerate(owners) if owner != weakest]
    speeds = equal.synthetic.emulate.split(",")
    devices = equal.devices
    mixed = len(set(devices)) > 1
    hosts = {rank.host for rank in trail.weights.ranks}
    if len(hosts) == 1 and not equal.synthetic.emulate and not mixed:
        return None  # a rank can only be left out together with its host
    shares = as_text(trail.weights, kept)
    return RunWithoutHost(
        owner=weakest,
        host=weakest if len(hosts) > 1 else "",
        case=equal.with_(
            ranks=len(kept),
            shares=shares if len(kept) > 1 else "",
            emulate=",".join(speeds[rank] for rank in kept) if equal.synthetic.emulate else "",
            device=",".join(devices[rank] for rank in kept) if mixed else equal.method.device,
        ),
    )
