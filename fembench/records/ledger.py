"""Ledger of rebalancing: the measurements, moves and costs of every look.

Raw numbers only: means, deviations and whether a move paid off are computed on reading. A look is one
activation of the balancer between two iterations (supersteps). Times are in seconds.
"""

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
    measured: float = -1.0  # superstep of the window after the look; -1: the solve ended earlier
    drained: tuple[int, ...] = ()  # ranks that had to be empty after it
    bound: float = -1.0  # best superstep found for whole blocks at the current speeds; -1: balanced

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
    """Cost and gain of one look with moves, until the next such look or the end."""

    iteration: int
    cost: float  # seconds
    gain: float  # seconds per iteration, measured
    iterations: int  # number of iterations with this gain
    break_even: int  # iterations until the gain repays the cost; -1: never

    @property
    def net(self) -> float:
        """Seconds saved, minus the cost."""
        return self.gain * self.iterations - self.cost

    @property
    def paid_back(self) -> bool:
        return self.net > 0


def accounts(ledger: Ledger) -> list[Account]:
    """One account per look that moved blocks and was followed by a measured superstep."""
    moved = [look for look in ledger.looks if look.moves]
    ends = [look.iteration for look in moved[1:]] + [ledger.iterations]
    result = []
    for look, end in zip(moved, ends):
        if look.measured < 0:
            continue
        gain = look.superstep - look.measured
        result.append(
            Account(
                iteration=look.iteration,
                cost=look.cost,
                gain=gain,
                iterations=end - look.iteration,
                break_even=int(-(-look.cost // gain)) if gain > 0 else -1,
            )
        )
    return result


def bill(ledger: Ledger) -> tuple[float, float]:
    """(seconds spent on all looks, seconds saved by moves before their cost is subtracted)."""
    spent = sum(look.cost for look in ledger.looks)
    return spent, sum(a.gain * a.iterations for a in accounts(ledger))
