"""Speeds of ranks and weights of blocks, estimated from noisy windows.

The slowest rank of one window is slow partly by chance, so moves decided on that window alone gain less than
predicted. Speeds and weights are therefore averaged over windows with decaying weight. A difference beyond
the noise (three times as large, or above JUMP) counts as a change of the host and is adopted at once. `noise`
is the usual difference between a window and the estimate. With `ageing`, the weight of the newest window is
given, and nothing is adopted at once: at 0.5, as MigBSP does it (Gomes 2014, 2.11, 2.12).
"""

import numpy as np

from fembench.balance.observation import F64, I64

AGED = 0.3  # weight of the newest window
JUMP = 0.3  # relative
NEVER = 1e100  # relative
UNSEEN = 0.1  # noise until it has been measured


class Pace:
    """The estimates after the windows so far."""

    def __init__(self, work: F64, n_ranks: int, ageing: float = 0.0) -> None:
        self._newest, self._jumps = ageing or AGED, not ageing
        self.work = work  # (V,) counted work of the blocks, in any unit
        self.speed = np.zeros(n_ranks)  # counted work per second; 0: unknown
        self.weight = np.ones(work.size)  # measured work of a block over its counted work
        self._noise: float | None = None  # None: fewer than two windows

    def learn(self, seconds: F64, owner: I64) -> None:
        """Add a window: (V,) seconds per iteration of each block, and (V,) the rank it was on."""
        work = self.work * self.weight
        took = np.bincount(owner, seconds, self.speed.size)
        done = np.bincount(owner, work, self.speed.size)
        here = took > 0
        new = np.where(here, done / np.where(here, took, 1.0), self.speed)
        known = here & (self.speed > 0)
        limit = min(JUMP, 3 * self.noise) if self._jumps else NEVER
        off = np.abs(new[known] / self.speed[known] - 1)
        small = off[off <= JUMP]
        if small.size:
            worst = float(small.max())
            self._noise = worst if self._noise is None else self._noise + AGED * (worst - self._noise)
        self.speed = _aged(self.speed, new, self._newest, limit)
        spent = done[owner] > 0
        share = seconds * done[owner] / np.where(took[owner] > 0, took[owner], 1.0)
        weight = _aged(self.weight, share / self.work, self._newest, limit)
        self.weight = np.where(spent & (share > 0), weight, self.weight)

    @property
    def noise(self) -> float:
        """Relative deviation of a window from the estimate, on the worst rank, smoothed."""
        return UNSEEN if self._noise is None else self._noise

    @property
    def speeds(self) -> F64:
        """(P,) speeds; for ranks that never computed, the mean of the others."""
        seen = self.speed > 0
        return np.where(seen, self.speed, self.speed[seen].mean() if seen.any() else 1.0)

    def times(self, owner: I64) -> F64:
        """(V,) seconds of each block on its current rank."""
        return self.work * self.weight / self.speeds[owner]


def _aged(old: F64, new: F64, newest: float, limit: float) -> F64:
    """The mean of old and new, the latter weighted by `newest`; only new if there is no old value, or if the
    relative difference exceeds the limit."""
    far = (old <= 0) | (np.abs(new - old) > limit * old)
    return np.where(far, new, old + newest * (new - old))
