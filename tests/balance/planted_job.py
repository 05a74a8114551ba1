"""A prepared case over blocks whose ranks have planted speeds: what the balancer measures is made up, so that
which blocks move does not depend on the machine; the moves and the solve are real."""

import dataclasses

import numpy as np

from fembench.balance import session as session_module
from fembench.balance.driver import Balancer, Measured
from fembench.balance.matrix_blocks import MatrixBlocks
from fembench.balance.observation import PairCosts
from fembench.balance.session import Session
from fembench.bench.measure import control_of
from fembench.bench.prepare import prepare
from fembench.records.case import Case
from fembench.timing.tracer import make_tracer


def planted(speeds, pairs, moving, sizes):
    """(Balancer, MatrixBlocks) that find every rank computing at its speed, whatever the clock says; messages
    take what `pairs` say, a move `moving` times what one block takes in an iteration at full speed, and the
    bytes of the blocks count `sizes` times."""

    class PlantedBlocks(MatrixBlocks):
        @property
        def per_move(self):
            return moving * unit(self._facts)

        @per_move.setter
        def per_move(self, seconds):
            pass

        def compute(self):
            return float(self.seconds().sum())

        def seconds(self, iterations=1):
            """Of every block of this rank, per iteration."""
            work = self._facts.work * self.weights(iterations)
            return work[list(self._solver.blocks)] * 1e-9 / speeds[self._comm.rank]

        def measured(self, iterations):
            ids, _, held = super().measured(iterations)
            return Measured(ids, self.seconds(iterations).tolist(), [sizes * n for n in held])

    class PlantedBalancer(Balancer):
        def __post_init__(self):
            self.facts = dataclasses.replace(self.facts, pairs=pairs(self.facts, self.comm.size))
            super().__post_init__()

        def _elapsed(self, iteration):
            facts, n = self.facts, self.comm.size
            messages = facts.pairs.seconds(facts.links.received(self.blocks.owner, n)).sum(axis=1)
            return float((self.comm.allgather(self.blocks.compute()) + messages).max())

    return PlantedBalancer, PlantedBlocks


def unit(facts):
    """Seconds of a mean block per iteration at full speed."""
    return float(facts.work.mean()) * 1e-9


def cheap(facts, n_ranks):
    """Messages that cost nothing."""
    return PairCosts(np.zeros((n_ranks, n_ranks)), np.full((n_ranks, n_ranks), 1e-13))


class Job:
    """One case on the ranks, solved as often as wanted."""

    def __init__(self, comm, speeds=None, pairs=cheap, moving=0.0, sizes=1, **fields):
        fields = {"mesh": "box:6x5x7", "look_every": 5, "first_look": 1, "balance": "none"} | fields
        self.case = Case.of(ranks=comm.size, **fields)
        self.tracer = make_tracer("perf_counter_ns")
        self.prepared = prepare(comm, self.case, self.tracer)
        self.session = Session(comm, self.case, self.prepared)
        self.planted = planted(speeds or (1.0,) * comm.size, pairs, moving, sizes)

    def solve(self, monkeypatch):
        """(CGResult, ledger on rank 0)."""
        for honest, made_up in zip(("Balancer", "MatrixBlocks"), self.planted):
            monkeypatch.setattr(session_module, honest, made_up)
        solver = self.session.solver(self.case, self.prepared, self.tracer)
        control = control_of(self.case, self.prepared.mesh.n_equations)
        result = solver.solve(self.prepared.rhs, control)
        return result, self.session.ledgers[-1] if self.session.ledgers else None


def slow_first(comm, speed=0.3):
    """Speeds: rank 0 slow, the rest 1."""
    return (speed,) + (1.0,) * (comm.size - 1)


def same_bits(a, b):
    return np.array_equal(np.asarray(a).view(np.int64), np.asarray(b).view(np.int64))
