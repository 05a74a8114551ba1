"""What bounds strong and weak scaling to 100 000 ranks, by fembench's model and published numbers.

    python benchmarks/limits.py [--equations 1e9] [--per-rank 1e5] [--json FILE]

Every rank has a cube of tetrahedra and 14 neighbours. Time of an iteration of CG: matrix and vectors at the
bandwidth of a core, one message to each neighbour, two all-reduces by recursive doubling. The formula is
compared with the simulation of the same events on up to 4096 ranks; the exit status is 1 if they differ by
more than 10 %. Half a minute.
"""

import argparse
import sys
from typing import NamedTuple

from commands import Promise, at_most, end

from fembench.base.tables import table
from fembench.base.units import seconds as shown
from fembench.model.cg import Price, cg_graph
from fembench.model.collectives import stages
from fembench.model.engine import simulate
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.model.workload import Workload
from fembench.records.case import Case
from fembench.records.record import PartitionFacts

BANDWIDTH = (
    204.8e9 / 64
)  # B/s of a core: AMD EPYC 7763, eight channels of DDR4-3200 for 64 cores (data sheet)
EQUATION = (8 * 72 + 8 * 4 + 12 * 24) / 3  # bytes per iteration: half of 15 blocks with columns, 12 vectors
OVERHEAD = 0.35e-6  # s of a message at either end (Squyres 2012: 300 to 400 ns in Open MPI)
RANKS = (1_000, 10_000, 100_000)
SIMULATED = (64, 512, 4096)
GRAIN = 1000.0  # equations per rank, where formula and simulation are compared
NEAR = 0.1  # how far simulation and formula may differ


class PublishedNetwork(NamedTuple):
    """A message of m bytes takes `latency` + m / `bandwidth`, overheads included."""

    name: str
    latency: float  # s
    bandwidth: float  # B/s


NETWORKS = (
    PublishedNetwork("2.3 µs, 25 GB/s", 2.3e-6, 25e9),
    PublishedNetwork("5 µs, 2 GB/s", 5e-6, 2e9),
)


class Iteration(NamedTuple):
    """Seconds of the parts of an iteration."""

    computing: float
    neighbours: float
    sums: float

    @property
    def total(self) -> float:
        return sum(self)


def messages(equations: float) -> list[int]:
    """Bytes to each neighbour of a cube with this number of equations: 6 faces, 6 edges, 2 corners."""
    edge = (equations / 3) ** (1 / 3)
    return [24 * round(nodes) for nodes in [edge**2] * 6 + [edge] * 6 + [1.0] * 2]


def iteration(equations: float, ranks: int, network: PublishedNetwork) -> Iteration:
    """By the formula, with this number of equations per rank. All ranks send at once, and largest first."""
    sent, travel = messages(equations), network.latency - 2 * OVERHEAD
    ends = [(k + 1) * OVERHEAD + travel + m / network.bandwidth for k, m in enumerate(sent)]
    done = len(sent) * OVERHEAD
    for arrival in sorted(ends):
        done = max(done, arrival) + OVERHEAD
    one = network.latency + 8 / network.bandwidth
    return Iteration(EQUATION * equations / BANDWIDTH, done, 2 * stages(ranks) * one)


def simulated(equations: float, ranks: int, network: PublishedNetwork) -> float:
    """The same by the simulator: seconds of an iteration."""
    side = round(ranks ** (1 / 3))
    steps = (1, side, side * side, side + 1, side * side + 1, side * side + side, side * side + side + 1)
    near = [[(p + sign * d) % ranks for d in steps for sign in (1, -1)] for p in range(ranks)]
    sizes = messages(equations)
    order = [sorted(range(len(row)), key=row.__getitem__) for row in near]
    dofs = (round(equations),) * ranks
    parts = PartitionFacts(
        method="rcb", targets=(1 / ranks,) * ranks, cells=dofs, dofs=dofs, blocks=dofs, cut=0,
        shared_dofs=(0,) * ranks, shared_dofs_all=(0,) * ranks,
        neighbours=tuple(tuple(row[k] for k in at) for row, at in zip(near, order)),
        message_bytes=tuple(tuple(sizes[k] for k in at) for at in order),
    )  # fmt: skip
    turns = 20
    case = Case.of(mesh="m1", ranks=ranks, iterations=turns, overlap=False)
    price = Price(assembly=0.0, product=EQUATION * equations / BANDWIDTH, updates=0.0)
    machine = even_machine(
        ranks, latency=network.latency - 2 * OVERHEAD, per_byte=1 / network.bandwidth, overhead=OVERHEAD
    )
    graph = cg_graph(Workload(case, "h", sum(dofs), parts), [price] * ranks, turns)
    return simulate(make_plan(graph, machine)).makespan / turns


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--equations", type=float, default=1e9, help="of the whole mesh, strong scaling")
    parser.add_argument("--per-rank", type=float, default=1e5, help="equations of a rank, weak scaling")
    parser.add_argument("--json", metavar="FILE", help="also write results as JSON")
    options = parser.parse_args()
    alone = EQUATION / BANDWIDTH
    for title, of_rank in (
        (f"strong scaling, {options.equations:.3g} equations", lambda p: options.equations / p),
        (f"weak scaling, {options.per_rank:.3g} equations per rank", lambda p: options.per_rank),
    ):
        rows = []
        for network in NETWORKS:
            for ranks in RANKS:
                one = iteration(of_rank(ranks), ranks, network)
                efficiency = f"{alone * of_rank(ranks) / one.total:.0%}"
                rows.append([network.name, ranks, *(shown(t) for t in (*one, one.total)), efficiency])
        print(f"\n{title}")
        print(table(["network", "ranks", "computing", "neighbours", "sums", "iteration", "efficiency"], rows))
    halves = ", ".join(f"{half(n):.0f} ({n.name})" for n in NETWORKS)
    print(f"\nequations per rank at an efficiency of 50 %, on {RANKS[-1]} ranks: {halves}")
    return end(list(compared(GRAIN)), file=options.json)


def half(network: PublishedNetwork) -> float:
    """Equations per rank with which computing takes half of an iteration on the most ranks, by bisection."""
    low, high = 1.0, 1e6
    while high - low > 1:
        middle = (low + high) / 2
        one = iteration(middle, RANKS[-1], network)
        low, high = (low, middle) if one.computing > one.total / 2 else (middle, high)
    return high


def compared(equations: float) -> list[Promise]:
    """Formula and simulation, with parts so small that messages take as long as computing."""
    found = []
    for ranks in SIMULATED:
        for network in NETWORKS:
            formula = iteration(equations, ranks, network).total
            off = abs(simulated(equations, ranks, network) / formula - 1)
            found.append(at_most(f"simulation less formula, {ranks} ranks, {network.name}", off, NEAR))
    return found


if __name__ == "__main__":
    sys.exit(main())
