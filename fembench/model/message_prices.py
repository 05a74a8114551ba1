"""Prices of many messages at once: a machine is asked once for all of one cost."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, I64, Mask
from fembench.model.event_table import groups
from fembench.model.machine import Machine
from fembench.records.hlogp import Computed
from fembench.records.network import PairClass


class Messages:
    """Messages from ranks p to ranks q of m bytes each; all (n,)."""

    def __init__(self, machine: Machine, p: I64, q: I64, m: I64) -> None:
        self._machine, self._p, self._q, self._m = machine, p, q, m
        host, numa = np.array(machine.host), np.array(machine.numa or [-1] * machine.ranks)
        same = host[p] == host[q]
        far = same & (numa[p] != numa[q]) & (numa[p] >= 0) & (numa[q] >= 0)
        first, between = groups(host[p], host[q], far)
        ends = list(zip(p[first].tolist(), q[first].tolist()))
        classes = [(machine.pair(a, b), machine.pair(b, a)) for a, b in ends]
        numbers = {pair: k for k, pair in enumerate(dict.fromkeys(map(_identity, classes)))}
        kind = np.array([numbers[_identity(pair)] for pair in classes], np.int64)[between]
        self._group = groups(kind, same, m)[1]
        self._cold = _flags([bool(there.cold) for there, _ in classes])[between]
        self._beside = _flags([bool(back.beside) for _, back in classes])[between]

    def each(self, price: Callable[..., object], *more: npt.NDArray) -> npt.NDArray:
        """(n, …) price(p, q, m, *more) of each message, from its values in `more` (n,)."""
        first, group = groups(self._group, *more)
        columns = (column[first].tolist() for column in (self._p, self._q, self._m, *more))
        return np.array([price(*one) for one in zip(*columns)])[group]

    def costs(self, sender: F64 | float = 0.0, receiver: F64 | float = 0.0) -> F64:
        """(n, 3) Os, L and Or after sender and receiver (n,)
        computed for so many seconds."""
        after = (np.where(self._cold, seconds, 0.0) for seconds in (sender, receiver))
        return self.each(self._cost, *after).reshape(-1, 3)

    def beside(self, computing: F64, receiver: F64) -> F64:
        """(n, 2) seconds by which the receiver's computing takes longer, and Or, if it
        computes for `computing` seconds (n,) while the message travels."""
        seconds = np.where(self._beside, computing, 0.0)
        return self.each(self._cost_beside, seconds, np.where(self._cold, receiver, 0.0)).reshape(-1, 2)

    def _cost(self, p: int, q: int, m: int, sender: float, receiver: float) -> tuple[float, float, float]:
        return self._machine.cost(p, q, m, Computed(sender, receiver))

    def _cost_beside(self, p: int, q: int, m: int, computing: float, receiver: float) -> tuple[float, float]:
        return self._machine.beside(p, q, m, computing, Computed(receiver=receiver))


def _identity(pair: tuple[PairClass, PairClass]) -> tuple[int, int]:
    return id(pair[0]), id(pair[1])


def _flags(values: list[bool]) -> Mask:
    return np.array(values, np.bool_)
