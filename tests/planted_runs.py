"""Records of runs on a made-up machine: simulated, with times that are known, as a run would leave them."""

import dataclasses

import msgspec
import numpy as np
from planted_records import accounted, set_of, solve_on
from thesis_001 import DATA

from fembench.model.cg import Price, cg_graph, prices
from fembench.model.engine import simulate
from fembench.model.path import timeline
from fembench.model.planner import make_plan
from fembench.model.predictor import Predictor
from fembench.model.rates import rates_of
from fembench.model.workload import workload
from fembench.records.phases import ASSEMBLY, CG, NAMES
from fembench.records.record import Event
from fembench.records.store import load

ITERATIONS = 40


def planted_run(
    case, machine, prices, *, created="2026-02-01T00:00:00+00:00", noise=0.0, seed=0, id="planted"
):
    """A record of `case` whose ranks computed as `prices` say, on a machine that is known."""
    work = workload(case)
    graph = cg_graph(work, prices, ITERATIONS)
    plan = make_plan(graph, machine)
    result = simulate(plan, period=False)
    rng = np.random.default_rng(seed)
    seconds = result.busy + result.wait + result.overhead
    seconds[:, CG] = seconds.sum(axis=1)
    seconds[:, ASSEMBLY] = [p.assembly for p in prices]
    record = load(DATA / "record.json")
    sets = tuple(set_of(seconds * rng.lognormal(0, noise), ITERATIONS, result.finish) for _ in range(5))
    environment = msgspec.structs.replace(
        record.environment, rank_host=(0,) * case.placement.ranks, affinity=((0,),) * case.placement.ranks
    )
    made = msgspec.structs.replace(
        record,
        id=id,
        created=created,
        case=case,
        environment=environment,
        mesh=msgspec.structs.replace(
            record.mesh, hash=work.mesh_hash, name=case.question.mesh, n_equations=work.n_equations
        ),
        partition=work.parts,
        phases=NAMES,
        setup=((0.0,) * len(NAMES),) * case.placement.ranks,
        total=(1.0,) * case.placement.ranks,
        sets=sets,
        solve=solve_on(record.solve, case.placement.ranks, iterations=ITERATIONS),
        events=tuple(_events(result, case.placement.ranks)),
    )
    return accounted(made), result


def _events(result, ranks):
    """Spans of the first four iterations: bars of one phase that follow each other are one span."""
    run = result.runs[0]
    for k, turn in enumerate(run.turns[:4]):
        one = dataclasses.replace(result, runs=[dataclasses.replace(run, turns=[turn])])
        bars = [b for b in timeline(one, -1.0) if b.phase != CG]
        for rank in range(ranks):
            joined = []
            for b in sorted((b for b in bars if b.rank == rank), key=lambda b: b.begin):
                if joined and joined[-1][0] == b.phase:
                    joined[-1][2] = b.end
                else:
                    joined.append([b.phase, b.begin, b.end])
            yield from (Event(rank, phase, k, begin, end) for phase, begin, end in joined)


def even_prices(work_ranks, product=1e-3, updates=2e-4, **changes):
    return [Price(assembly=1e-2, product=product, updates=updates, **changes)] * work_ranks


def study_of(profile, **options):
    """What predicts from a profile that is in no file."""
    return Predictor(profile, "0" * 64, rates_of(profile), **options)


def run_of(study, case, factors=(), *, loop=0.0, collective=1.0, **about):
    """(record, result) of a run that takes what `study` says, but for `factors` of its prices by name.

    A factor is a number, or one per rank; `loop` seconds are added per iteration; `collective` stretches
    all-reduces; `about` says what the record is called.
    """
    slots, machine, _ = study.place(case.placement.ranks)
    taken = []
    for rank, price in enumerate(prices(workload(case), slots, study.rates)):
        by_name = {
            name: _times(getattr(price, name), np.broadcast_to(factor, len(slots))[rank].item())
            for name, factor in dict(factors).items()
        }
        taken.append(dataclasses.replace(price, loop=loop, **by_name))
    slow = dataclasses.replace(machine, collective=collective * machine.collective)
    return planted_run(case, slow, taken, **about)


def _times(price, factor):
    """The price, or each of several."""
    return tuple(_times(one, factor) for one in price) if isinstance(price, tuple) else price * factor
