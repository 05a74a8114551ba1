"""What the ranks of benchmarks/balance.py run: cases in turns, all in one job.

    mpiexec -n RANKS python benchmarks/balance_turns.py FOLDER

With separate jobs, minutes would pass between the compared solves; here they follow each other, in an order
that is reversed in every second turn. Every solve starts from the beginning, with all blocks on their first
rank.
"""

import sys

import msgspec

from fembench.balance.session import start_balanced
from fembench.bench.measure import Timed, start_plain
from fembench.bench.prepare import Prepared, prepare
from fembench.host.host import usable_cores
from fembench.launch.job import RankProgram
from fembench.launch.serve import serve
from fembench.ranks.comm import Comm
from fembench.records.case import Case
from fembench.records.ledger import Ledger
from fembench.records.phases import CG
from fembench.synthetic.slowness import Slowness, slowness_of
from fembench.synthetic.speeds import parse_changes, parse_speeds
from fembench.timing.tracer import TracerLike, make_tracer


class Turns(msgspec.Struct, frozen=True):
    """The job: cases by name, each solved once per turn."""

    cases: dict[str, Case]
    turns: int
    warmups: int  # turns before those that count


class Solved(msgspec.Struct):
    """The results of a case: one entry per turn."""

    seconds: list[float]  # CG, slowest rank
    ledgers: list[Ledger]  # empty if nothing looks or moves


def run(comm: Comm, job: Turns) -> dict[str, Solved] | None:
    """All turns; on rank 0. Collective."""
    parts: dict[str, Prepared] = {}  # by shares; everything else is equal
    timed: dict[str, Timed] = {}
    tracers: dict[str, TracerLike] = {}
    slow: dict[tuple, Slowness] = {}  # each remembers the shortest time of its work from solve to solve
    for name, case in job.cases.items():
        if case.placement.shares not in parts:
            parts[case.placement.shares] = prepare(comm, case, make_tracer())
        start = start_balanced if case.balancing.balance else start_plain
        timed[name] = start(comm, case, parts[case.placement.shares], make_tracer())
        speeds = parse_speeds(case.synthetic.emulate, comm.size)
        changes = parse_changes(case.synthetic.emulate_change, speeds)
        crowded, place = comm.size > usable_cores(), comm.rank / comm.size
        slowness = slowness_of(comm.rank, speeds, case.synthetic.dilate, changes, crowded=crowded, turn=place)
        tracers[name] = make_tracer()
        slow.setdefault(_work(case), slowness)
    found = {name: Solved([], []) for name in job.cases}
    for turn in range(job.warmups + job.turns):
        for name in list(found)[:: -1 if turn % 2 else 1]:
            seconds, ledger = _solve(comm, timed[name], tracers[name], slow[_work(job.cases[name])])
            if turn >= job.warmups:
                found[name].seconds.append(seconds)
                found[name].ledgers += [ledger] if ledger else []
    return found if comm.rank == 0 else None


def _work(case: Case) -> tuple:
    """Fields whose cases share an emulation: policies and shares are compared with the same time per unit."""
    return (
        case.balancing.blocks_per_rank if case.balancing.balance else 0,
        case.synthetic.emulate,
        case.synthetic.dilate,
        case.synthetic.emulate_change,
    )


def _solve(comm: Comm, timed: Timed, tracer: TracerLike, slowness: Slowness) -> tuple[float, Ledger | None]:
    measured = timed(tracer, slowness)
    ticks = int(measured.sets[-1].ticks[CG])
    ledger = measured.balance.ledgers[-1] if measured.balance else None
    return max(comm.allgather(ticks)) / tracer.ticks_per_second, ledger


if __name__ == "__main__":
    turns = RankProgram(
        Turns,
        lambda job: next(iter(job.cases.values())).placement.ranks,
        lambda comm, job, tell: run(comm, job),
    )
    sys.exit(serve(turns, sys.argv[1]))
