"""Ledger of rebalancing: the measurements, moves and costs of every look.

Raw numbers only: means, deviations and whether a move paid off are computed on reading.
A look is one activation of the balancer between two iterations (supersteps). Times are
in seconds.
"""

from itertools import pairwise
from typing import NamedTuple

import msgspec


class LedgerStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every struct of a ledger."""


class Candidate(LedgerStruct, frozen=True):
    """A possible move. Its potential of migration is comp + comm - mem (Gomes 2014, 4.5)."""

    block: int
    source: int
    target: int
    comp: float  # seconds by which the source's superstep exceeds the target's
    comm: float  # seconds of messages that become local
    mem: float  # seconds to move it

    @property
    def potential(self) -> float:
        return self.comp + self.comm - self.mem


class Move(LedgerStruct, frozen=True):
    """A block that went to another rank."""

    block: int
    source: int
    target: int
    bytes: int


class Look(LedgerStruct, frozen=True):
    """One activation of the balancer."""

    iteration: int  # iterations done before it
    alpha: int  # calls between the look before and this one
    next_alpha: int  # calls between this look and the next
    rank_time: tuple[float, ...]  # [rank] computing in one iteration, mean of the window
    superstep: float  # one iteration, slowest rank, mean of the window
    balanced: bool
    reachable: bool  # some assignment of these blocks (greedy) is inside the band
    n_candidates: int
    candidates: tuple[Candidate, ...]  # the best of them, best first
    moves: tuple[Move, ...]
    predicted: float  # the next superstep, before it was run
    remaining: int  # iterations still to come, as the decision estimated
    look_seconds: float  # gathering and deciding, slowest rank
    move_seconds: float = 0.0  # moving and rebuilding, slowest rank
    measured: float = -1.0  # superstep after the look; -1: the solve ended earlier
    drained: tuple[int, ...] = ()  # ranks that had to be empty after it
    unmoved: float = -1.0  # superstep without any move; -1: not known
    bound: float = -1.0  # best superstep of whole blocks; -1: balanced

    @property
    def bytes(self) -> int:
        return sum(move.bytes for move in self.moves)

    @property
    def cost(self) -> float:
        """Seconds spent on this look."""
        return self.look_seconds + self.move_seconds


class Ledger(LedgerStruct, frozen=True):
    """All looks of one solve."""

    looks: tuple[Look, ...]
    owner: tuple[int, ...]  # [block] rank at the end
    iterations: int
    seconds: float  # of the solve, slowest rank
    warmup: bool = False


class BalanceFacts(LedgerStruct, frozen=True):
    """The balancing of a run, set by set."""

    policy: str
    owner: tuple[int, ...]  # [block] rank at the start
    block_cells: tuple[int, ...]
    block_bytes: tuple[int, ...]  # [block] bytes sent when it migrates
    second_per_byte: float  # of messages between ranks, on the slowest link
    ledgers: tuple[Ledger, ...]  # one per set


class Account(LedgerStruct, frozen=True):
    """Cost and gain of one look with moves."""

    iteration: int
    cost: float  # seconds
    gain: float  # seconds per iteration, measured before and after
    break_even: int  # iterations until the gain repays the cost; -1: never


def accounts(ledger: Ledger) -> list[Account]:
    """One account per look that moved blocks and was followed by a measured superstep."""
    return [
        _account(look, look.superstep - look.measured)
        for look in ledger.looks
        if look.moves and look.measured >= 0
    ]


def _account(look: Look, gain: float) -> Account:
    return Account(
        iteration=look.iteration,
        cost=look.cost,
        gain=gain,
        break_even=int(-(-look.cost // gain)) if gain > 0 else -1,
    )


class Bill(NamedTuple):
    """Cost and gain of the moves of one solve, against every block where it began."""

    cost: float  # seconds of all looks and moves
    gain: float | None  # seconds saved before the cost is subtracted; None: not known
    moved: bool

    @property
    def net(self) -> float | None:
        return None if self.gain is None else self.gain - self.cost

    @property
    def paid_back(self) -> str:
        """The meaning of *paid back*: the moves saved more than looks and moves cost."""
        if not self.moved:
            return "no move"
        return "not known" if self.net is None else "yes" if self.net > 0 else "no"


def bill(ledger: Ledger) -> Bill:
    """The bill of a solve.

    Every window is compared with its superstep without moves, at the speeds measured in
    it; the one after the last look, with that of this look.
    """
    looks = ledger.looks
    moved = any(look.moves for look in looks)
    cost = sum(look.cost for look in looks)
    if any(look.unmoved < 0 for look in looks):
        return Bill(cost, None, moved)
    saved, begin = 0.0, False
    for before, look in pairwise(looks):
        begin = begin or bool(before.moves)
        saved += begin * (look.unmoved - look.superstep) * (look.iteration - before.iteration)
    if moved and looks[-1].measured >= 0:
        saved += (looks[-1].unmoved - looks[-1].measured) * (ledger.iterations - looks[-1].iteration)
    return Bill(cost, saved, moved)
