"""A balanced run, measured by `bench`: blocks are cut once, the rest is new in every set.

Jacobi over blocks: the assembled diagonal summed over the blocks, its inverse folded
into each.

What every rank of a balanced run does."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from fembench.balance.block import Block, make_block
from fembench.balance.control import Settings, parse_drain, policy_of
from fembench.balance.decompose import BlockPlan, decompose
from fembench.balance.driver import Balancer, BlockFacts
from fembench.balance.link import link_costs
from fembench.balance.matrix_blocks import MatrixBlocks, expected
from fembench.balance.observation import Links
from fembench.balance.solver import BlockSolver
from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.bench.case_run import program
from fembench.bench.measure import Measurement, Timed, measure, silent
from fembench.bench.prepare import Prepared
from fembench.fem.materials import lame
from fembench.launch.job import Tell
from fembench.methods.lookup import load, precond_of
from fembench.methods.recipe import recipe
from fembench.methods.steps import Work
from fembench.ranks.comm import Comm, together
from fembench.records.case import Case
from fembench.records.ledger import BalanceFacts, Ledger
from fembench.records.phases import INTERFACE, SYNC
from fembench.solve.iterate import CGResult, Solver, StoppingCriterion, iterate
from fembench.solve.operators import Operator, build_operator
from fembench.synthetic.slowness import FULL_SPEED, Slowness
from fembench.synthetic.speeds import parse_hot_spots
from fembench.timing.tracer import TracerLike, span


def fold_in(solver: BlockSolver, operators: dict[int, Operator], inverse: Callable[[F64], F64]) -> None:
    """Fold in M^-1 = `inverse` of the assembled diagonal blocks (n/3, 3, 3). Collective."""
    blocks = solver.blocks.values()
    full = {b.id: operators[b.id].block_diagonal() for b in blocks}
    for c in range(3):
        for b in blocks:
            b.q[:] = np.ascontiguousarray(full[b.id][:, :, c]).reshape(-1)
        solver.exchange.update()
        for b in blocks:
            full[b.id][:, :, c] = b.q.reshape(-1, 3)
    solver.precondition(lambda b: inverse(full[b.id]))


def start_balanced(
    comm: Comm, case: Case, prepared: Prepared, tracer: TracerLike, tell: Tell = silent
) -> Timed:
    """Cut the blocks; a function like bench.measure, with blocks that move. Collective."""
    with span(tracer, INTERFACE):
        session = Session(comm, case, prepared)

    def timed(tracer: TracerLike, slowness: Slowness) -> Measurement:
        session.slowness = slowness
        measured = measure(comm, case, prepared, tracer, slowness, session.solver, tell)
        return structs.replace(measured, balance=session.facts())

    return timed


@dataclass
class Session:
    """The state shared by all sets of a run."""

    comm: Comm
    case: Case
    prepared: Prepared
    ledgers: list[Ledger] = field(default_factory=list)
    slowness: Slowness = FULL_SPEED

    def __post_init__(self) -> None:
        comm = self.comm
        case = self.case
        prepared = self.prepared
        self.settings = Settings.of(case.balancing)
        self.drain = together(comm, lambda: parse_drain(case.balancing.drain, comm.size))
        sub, c = prepared.sub, case.balancing.blocks_per_rank
        self.spots = together(comm, lambda: parse_hot_spots(case.synthetic.hot_spot, c * comm.size))
        together(comm, lambda: check_cells(sub.n_cells, c))
        self.plans = decompose(sub, prepared.interface, prepared.rhs, c, case.placement.seed)
        self.home = np.repeat(np.arange(comm.size), c)
        self.pairs = link_costs(comm, case.balancing.link_costs)
        self.known: BlockFacts | None = None
        self.whole: Operator | None = None
        self.solves = 0
        self.cells = np.concatenate(comm.allgather([p.sub.n_cells for p in self.plans]))

    def solver(self, case: Case, prepared: Prepared, tracer: TracerLike) -> Solver:
        """A new solver, with every block on its home rank. Collective."""
        return BalancedSolver(self, tracer)

    def learn(self, blocks: dict[int, Block]) -> BlockFacts:
        """Sizes, positions and messages of all blocks, gathered once. Collective."""
        if self.known is None:
            rows = [
                (i, b.flops + 18 * b.n_active, b.size, plan.sub.x.mean(axis=0), b.neighbours, _bytes(b))
                for (i, b), plan in zip(blocks.items(), self.plans)
            ]
            rows = sorted(itertools.chain(*self.comm.allgather(rows)), key=lambda row: row[0])
            to = [row[0] for row in rows for _ in row[4]]
            self.known = BlockFacts(
                work=np.array([row[1] for row in rows], float),
                size=np.array([row[2] for row in rows], float),
                places=np.array([row[3] for row in rows]),
                links=Links(
                    np.array(to, np.int64),
                    np.array([b for row in rows for b in row[4]], np.int64),
                    np.array([n for row in rows for n in row[5]], float),
                ),
                pairs=self.pairs,
            )
        return self.known

    def keep(self, ledger: Ledger | None) -> None:
        """Count a solve, and keep its ledger on rank 0."""
        self.solves += 1
        if ledger is not None:
            self.ledgers.append(ledger)

    def own_matrix(self) -> Operator:
        """The matrix of the rank's part, assembled once."""
        if self.whole is None:
            self.whole = build_operator(self.case.method.storage, self.prepared.sub, *self.prepared.lame)
        return self.whole

    def facts(self) -> BalanceFacts | None:
        """The facts for the record, on rank 0."""
        if self.comm.rank or self.known is None:
            return None
        return BalanceFacts(
            policy=self.case.balancing.balance,
            owner=tuple(self.home.tolist()),
            block_cells=tuple(self.cells.tolist()),
            block_bytes=tuple(int(n) for n in self.known.size),
            second_per_byte=float(self.pairs.per_byte.max()),
            ledgers=tuple(self.ledgers),
        )


class BalancedSolver:
    """The solver of one set (a Solver of solve.iterate)."""

    def __init__(self, session: Session, tracer: TracerLike) -> None:
        self._session = session
        self._tracer = tracer
        case = session.case
        comm = session.comm
        spec = session.prepared.spec
        operators = {
            p.id: build_operator(case.method.storage, p.sub, *lame(spec, p.sub)) for p in session.plans
        }
        blocks = {p.id: make_block(p, operators[p.id]) for p in session.plans}
        self._solver = BlockSolver(
            comm,
            blocks,
            session.home.copy(),
            tracer,
            overlap=case.method.overlap,
            clocked=policy_of(case.balancing.balance).looks,
        )
        method = precond_of(case.method.precond)
        if not method.identity:
            fold_in(self._solver, operators, load(method.block_inverse))
        self._facts = session.learn(blocks)
        self._mean_bytes = sum(b.matrix_bytes for b in blocks.values())
        self._flops = sum(b.flops for b in blocks.values())

    @property
    def operator(self) -> Operator:
        """The matrix of the rank's part, for verification.

        Its bytes and flops are those of the blocks on this rank, mean over the iterations.
        """
        return structs.replace(self._session.own_matrix(), matrix_bytes=self._mean_bytes, flops=self._flops)

    @property
    def work(self) -> Work:
        """Work of one iteration without products, with every block on its home rank."""
        n = sum(3 * plan.sub.n_active for plan in self._session.plans)
        return recipe(self._session.case.method).counted(n)

    def solve(self, f: F64, control: StoppingCriterion, record: int = 0) -> CGResult:
        """As Solver.solve; f is ignored: the blocks know their loads. Collective."""
        session, solver = self._session, self._solver
        case = session.case
        seen: list[float] = []

        def remaining(done: int, rr: float) -> int:
            first = seen[0]
            return expected(done, float(np.sqrt(rr)), first, control.target(first), control.limit)

        blocks = MatrixBlocks(
            session.comm, solver, self._facts, self._tracer, session.slowness, session.spots
        )
        balancer = Balancer(session.comm, blocks, self._facts, session.settings, remaining, session.drain)
        solver.between = balancer
        loads = {plan.id: plan.rhs for plan in session.plans}
        method = _Noting(solver, loads, seen, balancer)
        begin = time.perf_counter()
        result = iterate(method, self._tracer, f, control, record)
        seconds = time.perf_counter() - begin
        with span(self._tracer, SYNC):
            x = bring_home(session.comm, solver, session.plans, session.prepared.sub.n_active)
            warmup = session.solves < case.effort.warmups
            session.keep(balancer.ledger(result.iterations, seconds, warmup=warmup))
            if result.iterations:
                self._mean_bytes = round(blocks.carried(result.iterations) / result.iterations)
            solver.exchange.close()
            session.own_matrix()
        return structs.replace(result, x=x)


class _Noting:
    """The solver as a Recurrence that records |r_0| and starts the first window."""

    def __init__(
        self, solver: BlockSolver, loads: dict[int, F64], seen: list[float], balancer: Balancer
    ) -> None:
        self._solver = solver
        self._loads = loads
        self._seen = seen
        self._balancer = balancer
        self.x = solver.x
        self.outside = np.zeros(0, np.int64)

    def iterations(self, f: F64):
        for k, rr in enumerate(self._solver.iterations(self._loads)):
            if k == 0:
                self._seen.append(float(np.sqrt(rr)))
                self._balancer.begin()
            yield rr


def _bytes(block: Block) -> list[int]:
    """[neighbour] bytes that the block receives per update."""
    return [24 * nodes.size for nodes in block.nodes]


def bring_home(comm: Comm, solver: BlockSolver, plans: list[BlockPlan], n_active: int) -> F64:
    """(3 n_active,) the solution on the rank's nodes, gathered from its blocks.
    Collective."""
    c = len(plans)
    away: list[list[tuple[int, F64]]] = [[] for _ in range(comm.size)]
    for i, block in solver.blocks.items():
        away[i // c].append((i, block.x))
    x = np.zeros((n_active, 3))
    for parts in comm.alltoall(away):
        for i, values in parts:
            x[plans[i % c].at_home] = values.reshape(-1, 3)
    return x.reshape(-1)


def check_cells(n_cells: int, c: int) -> None:
    """Raises InputError if a rank has fewer cells than blocks."""
    if n_cells < c:
        raise InputError(
            f"blocks_per_rank = {c}: a rank has {plural(n_cells, 'cell')}; expected at least one per block"
        )


PROGRAM = program(start_balanced)
