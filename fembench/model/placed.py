"""Simulate an iteration of a run on other hosts, to compare placements.

The computing of each rank is priced by a machine profile, or taken from the run and scaled to a host of speed
1 with one core per rank. Messages and all-reduces have the order and the overlap of the solver.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from fembench.methods.lookup import precond_of, storage_of
from fembench.methods.recipe import Recipe, recipe
from fembench.model.cg import Price, cg_graph, check_priced
from fembench.model.correct import measured
from fembench.model.engine import simulate
from fembench.model.events import simulate_events
from fembench.model.forecast import per_iteration
from fembench.model.machine import Link, Machine, checked_speeds, steady_class
from fembench.model.planner import make_plan
from fembench.model.workload import Workload, of_record
from fembench.records.phases import AXPY, DOT, PRECOND, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.records.record import Record

TURNS = 20  # iterations to simulate; they repeat after a few


def as_own(work: Workload) -> Workload:
    """The workload for fembench's own solver: PETSc's storages are replaced by the closest ones, and unknown
    preconditioners by none."""
    case = work.case
    if case.method.solver == "own":
        return work
    precond = case.method.precond if "own" in precond_of(case.method.precond).solvers else "none"
    storage = storage_of(case.method.storage).priced_as
    own = case.with_(solver="own", storage=storage, precond=precond, petsc_options="")
    return dataclasses.replace(work, case=own)


def prices_of(record: Record, speeds: Sequence[float]) -> list[Price]:
    """[rank] prices at speed 1, from a run that computed at speeds[rank]. Raises InputError."""
    case = as_own(of_record(record)).case
    check_priced(case)
    counted = recipe(case.method)
    spent = measured(record).phases * np.asarray(speeds)[:, None]
    return [_price(seconds.tolist(), counted) for seconds in spent]


def _price(seconds: Sequence[float], counted: Recipe) -> Price:
    """The prices of one rank. A preconditioner with products is assumed to spend all of its time in them."""
    precond, products = seconds[PRECOND], counted.precond_products
    return Price(
        assembly=0.0,
        product=seconds[SPMV_INTERFACE] + seconds[SPMV_INTERIOR],
        updates=seconds[AXPY],
        dot=seconds[DOT],
        precond=0.0 if products else precond,
        precond_product=precond / products if products else 0.0,
        precond_products=products,
    )


def slowed(prices: Sequence[Price], factors: Sequence[float]) -> list[Price]:
    """[rank] prices of ranks slowed by these factors."""
    return [
        dataclasses.replace(
            price,
            product=factor * price.product,
            updates=factor * price.updates,
            dot=factor * price.dot,
            precond=factor * price.precond,
            precond_product=factor * price.precond_product,
        )
        for price, factor in zip(prices, factors, strict=True)
    ]


def iteration_on(work: Workload, prices: Sequence[Price], machine: Machine) -> float:
    """Seconds of an iteration on a machine, with these prices of its ranks."""
    plan = make_plan(cg_graph(work, prices, TURNS), machine)
    return per_iteration(simulate_events(plan) if machine.contention else simulate(plan), TURNS)


def two_links(between: tuple[float, float], inside: tuple[float, float]) -> Link:
    """The link with (latency in s, bandwidth in bytes/s) between hosts, and within a host."""
    apart, near = (
        steady_class(name, latency, 1 / bandwidth)
        for name, (latency, bandwidth) in (("between", between), ("inside", inside))
    )
    return lambda a, b: near if a == b else apart


def on_hosts(host: Sequence[int], names: Sequence[str], link: Link) -> Machine:
    """The machine with rank r on host[r], at speed 1."""
    return Machine(host=tuple(host), names=tuple(names), link=link, speeds=checked_speeds((), len(host)))
