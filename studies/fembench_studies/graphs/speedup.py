"""Measures of a simulated program relative to the same job on one rank
(Calzeta and de Souza 2008, 2.3).

    S = T(1) / T(n)     E = S / n     R = O(n) / O(1)     U = R E     Q = S E / R

O is the work of all processors (computing and message overheads), in
seconds of a rank of speed 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.errors import InputError
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.graph import ExecutionGraph
from fembench.model.machine import Machine, even_machine
from fembench.model.planner import make_plan


class ParallelMeasures(NamedTuple):
    """Measures of n ranks relative to one."""

    speedup: float
    efficiency: float
    redundancy: float
    utilisation: float
    quality: float


def parallel(T1: float, O1: float, Tn: float, On: float, n: int) -> ParallelMeasures:
    """The five measures, Eqs 2.3 to 2.6."""
    s = T1 / Tn
    e, r = s / n, On / O1
    return ParallelMeasures(s, e, r, r * e, s * e / r)


def operations(result: SimulationOutcome, speeds: Sequence[float]) -> float:
    """O(n): work of all ranks, in seconds of a rank of speed 1."""
    return float((result.busy.sum(axis=1) * np.asarray(speeds)).sum() + result.overhead.sum())


def against_one_rank(base: ExecutionGraph, machine: Machine, result: SimulationOutcome) -> ParallelMeasures:
    """Measures of a simulation relative to the same job on one rank of
    speed 1. Raises InputError."""
    if base.ranks != 1:
        raise InputError(f"{base.source}: a graph of {base.ranks} ranks; expected one rank")
    alone = simulate(make_plan(base, even_machine(1, latency=0.0, per_byte=0.0, overhead=0.0)))
    work = operations(alone, (1.0,)), operations(result, machine.speeds)
    return parallel(alone.makespan, work[0], result.makespan, work[1], machine.ranks)
