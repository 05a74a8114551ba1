"""The machine of a simulation: hosts and speeds of its ranks, and costs of messages."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.hlogp import NOTHING, Computed, MessageCost, message_cost, scaled
from fembench.records.network import (
    CurvePiece,
    PairClass,
    apart,
    beside_at,
    both_ways_at,
    value_at,
)

Link = Callable[[int, int], PairClass]  # from host, to host
SMALL = 8  # bytes of a message too small to block others


@dataclass(frozen=True)
class Machine:
    """Ranks on hosts, and the network between them."""

    host: tuple[int, ...]  # [rank]
    names: tuple[str, ...]  # [host]
    link: Link
    speeds: tuple[float, ...]  # [rank] relative to the ranks of the graph
    overlap: bool = True  # messages beyond the switch travel while ranks compute
    contention: bool = False  # messages of a host pass its network card one after the other
    inside: float = 0.0  # part of a message's time for which it blocks its host's memory
    between: float | None = None  # the same for network cards, if measured; None: use the gap
    collective: float = 1.0  # factor on the messages of collectives
    numa: tuple[int, ...] = ()  # [rank] NUMA node on its host; -1: unknown; (): not distinguished
    across: Callable[[int], PairClass] | None = None  # messages between NUMA nodes of a host
    _links: dict[tuple[int, int, bool], PairClass] = field(default_factory=dict, repr=False, compare=False)
    _known: dict[tuple[int, int, bool, int, Computed], MessageCost] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def ranks(self) -> int:
        return len(self.host)

    def pair(self, p: int, q: int) -> PairClass:
        """The class of messages from rank p to rank q."""
        a, b, far = key = self._ends(p, q)
        if key not in self._links:
            self._links[key] = self.across(a) if far and self.across else self.link(a, b)
        return self._links[key]

    def _ends(self, p: int, q: int) -> tuple[int, int, bool]:
        """The hosts of two ranks, and whether they are on two NUMA nodes of one host."""
        a, b = self.host[p], self.host[q]
        return a, b, a == b and apart(self.numa, p, q)

    def cost(self, p: int, q: int, m: int, computed: Computed = NOTHING) -> MessageCost:
        """Os, L, Or of m bytes from rank p to rank q after computing."""
        key = *self._ends(p, q), m, computed
        found = self._known.get(key)
        if found is None:
            found = message_cost(self.pair(p, q), m, same_host=key[0] == key[1], computed=computed)
            self._known[key] = found
        return found

    def exchanged(self, p: int, q: int, m: int, back: int, computed: Computed = NOTHING) -> MessageCost:
        """Os, L, Or of m bytes from rank p to rank q, while `back` bytes travel back."""
        cost = self.cost(p, q, m, computed)
        return cost._replace(latency=cost.latency + self.longer(p, q, m, back))

    def longer(self, p: int, q: int, m: int, back: int) -> float:
        """Seconds by which it takes longer because of those."""
        slower = (both_ways_at(self.pair(p, q), m) - 1) * min(back / m, 1.0) if m else 0.0
        return slower * self.cost(p, q, m).total

    def beside(
        self, p: int, q: int, m: int, computing: float, computed: Computed = NOTHING
    ) -> tuple[float, float]:
        """(seconds by which computing on rank q takes longer, Or), if m bytes travel
        between ranks p and q both ways while q computes for `computing` seconds: in
        proportion to the part that travels meanwhile."""
        cost = self.cost(p, q, m, computed)
        longer, left = beside_at(self.pair(q, p), m)
        if not (longer or left) or self.waits(p, q, m):
            return 0.0, cost.receive
        part = _meanwhile(cost, computing)
        return part * longer, cost.receive + part * max(left - cost.receive, 0.0)

    def spread_beside(self, rank: int, messages: Iterable[tuple[int, int, float]]) -> tuple[float, float]:
        """Seconds by which these messages may cost the rank less and more, in nine turns of
        ten: (neighbour, bytes, seconds of computing while they travel)."""
        less = more = 0.0
        for q, m, computing in messages:
            part = 0.0 if self.waits(q, rank, m) else _meanwhile(self.cost(q, rank, m), computing)
            faster, slower = beside_at(self.pair(rank, q), m, ("faster", "slower"))
            less += part * faster
            more += part * slower
        return less, more

    def waits(self, p: int, q: int, m: int) -> bool:
        """Whether the message waits for its receiver (rendezvous)."""
        switch = self.pair(p, q).switch
        return switch is not None and m >= switch

    def gap(self, p: int, q: int, m: int) -> float:
        """Seconds for which the message blocks the network card or the host's memory."""
        share = self.inside if self.host[p] == self.host[q] else self.between
        if share is not None:
            return share * max(self.cost(p, q, m).total - self.cost(p, q, SMALL).total, 0.0)
        pieces = self.pair(p, q).gap
        return value_at(pieces, m) if pieces else 0.0


def _meanwhile(cost: MessageCost, computing: float) -> float:
    """The part of a message that travels while its receiver computes."""
    return min(computing / cost.latency, 1.0) if cost.latency > 0 else 1.0


def even_machine(
    ranks: int,
    *,
    latency: float,
    per_byte: float,
    overhead: float,
    speeds: Sequence[float] = (),
    switch: int | None = None,
    contention: bool = False,
) -> Machine:
    """A machine with one rank per host, and one network for all pairs."""
    one = steady_class("all", latency, per_byte, overhead, switch=switch)
    return Machine(
        host=tuple(range(ranks)),
        names=tuple(f"host{r}" for r in range(ranks)),
        link=lambda a, b: one,
        speeds=checked_speeds(speeds, ranks),
        contention=contention,
    )


def steady_class(
    name: str, latency: float, per_byte: float, overhead: float = 0.0, *, switch: int | None = None
) -> PairClass:
    """Messages with constant latency, time per byte, and overheads of both sides."""
    kept = (CurvePiece(first=0, coefficients=(overhead,)),)
    return PairClass(
        name=name,
        send=kept,
        latency=(CurvePiece(first=0, coefficients=(latency, per_byte)),),
        receive=kept,
        gap=(CurvePiece(first=0, coefficients=(0.0, per_byte)),),
        switch=switch,
    )


def checked_speeds(speeds: Sequence[float], ranks: int) -> tuple[float, ...]:
    """One speed per rank; 1 if none are given. Raises InputError."""
    found = tuple(speeds) or (1.0,) * ranks
    if len(found) != ranks or not all(0 < s < float("inf") for s in found):
        raise InputError(f"{plural(len(found), 'speed')} {list(found)[:8]}; expected {ranks} positive ones")
    return found


def faster_network(machine: Machine, factor: float) -> Machine:
    """The machine with messages between hosts `factor` times faster. Raises InputError."""
    if not 0 < factor < float("inf"):
        raise InputError(f"network {factor:g} times faster; expected a factor above 0")

    def link(a: int, b: int) -> PairClass:
        found = machine.link(a, b)
        return found if a == b else quicker(found, factor)

    return replace(machine, link=link, _links={}, _known={})


def quicker(functions: PairClass, factor: float) -> PairClass:
    """The class with latency and gap divided by the factor; overheads remain."""
    return structs.replace(
        functions,
        name=f"{functions.name} x{factor:g}",
        latency=scaled(functions.latency, 1 / factor),
        gap=scaled(functions.gap, 1 / factor),
    )
