"""A prepared case over blocks whose ranks have planted speeds: what the balancer measures is made up, so that
which blocks move does not depend on the machine; the moves and the solve are real."""

import dataclasses

import numpy as np

from fembench.balance import session as session_module
from fembench.balance.driver import Balancer
from fembench.balance.session import Session
from fembench.bench.measure import control_of
from fembench.bench.prepare import prepare
from fembench.records.case import Case
from fembench.timing.tracer import make_tracer


def planted(speeds):
    """A Balancer that finds every rank computing at its speed, whatever the clock says."""

    class Planted(Balancer):
        def __post_init__(self):
            self.facts = dataclasses.replace(self.facts, second_per_byte=1e-13)
            super().__post_init__()

        def _close(self, iteration):
            self.per_move = 0.0
            ids = list(self.solver.blocks)
            self.solver.seconds[ids] = self.facts.work[ids]
            return self._compute(), self._elapsed(iteration)

        def _elapsed(self, iteration):
            return max(self.comm.allgather(self._compute()))

        def _compute(self):
            work = self.facts.work[list(self.solver.blocks)]
            return float(work.sum()) * 1e-9 / speeds[self.comm.rank]

    return Planted


class Job:
    """One case on the ranks, solved as often as wanted."""

    def __init__(self, comm, speeds=None, **fields):
        fields = {"mesh": "box:6x5x7", "look_every": 5, "first_look": 1, "balance": "none"} | fields
        self.case = Case(ranks=comm.size, **fields)
        self.tracer = make_tracer("perf_counter_ns")
        self.prepared = prepare(comm, self.case, self.tracer)
        self.session = Session(comm, self.case, self.prepared)
        self.speeds = speeds or (1.0,) * comm.size

    def solve(self, monkeypatch):
        """(CGResult, ledger on rank 0)."""
        monkeypatch.setattr(session_module, "Balancer", planted(self.speeds))
        solver = self.session.solver(self.case, self.prepared, self.tracer)
        control = control_of(self.case, self.prepared.mesh.n_equations)
        result = solver.solve(self.prepared.rhs, control)
        return result, self.session.ledgers[-1] if self.session.ledgers else None


def slow_first(comm, speed=0.3):
    """Speeds: rank 0 slow, the rest 1."""
    return (speed,) + (1.0,) * (comm.size - 1)


def same_bits(a, b):
    return np.array_equal(np.asarray(a).view(np.int64), np.asarray(b).view(np.int64))
