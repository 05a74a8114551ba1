"""Assembly and CG in closed form: expression, interval, the term of each resource (after thesis-000).

    L_1   par(p) core[h] assembly[p]
    L_2   seq(n iterations) of
            par(p) core[h] product[p] beside mem[h] traffic[p]    cores and memory of a host are shared
            par(p) nic[h] halo[p]                                 its messages leave through one interface;
                                                                  beside the product where they overlap
            par(p) core[h] updates[p]
            the all-reduces

Phases of an iteration end with messages, so the bound is composed phase by phase; the global one is there to
show what it overlooks. The number of iterations is what Q is to a conditional: the most that are allowed (an
upper bound), a number, or a law fitted on coarser meshes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError
from fembench.model.interval import ZERO, TimeRange
from fembench.studies.pamela import pamela_text
from fembench.studies.pamela.bounds import Compose, Setting, TimeBounds, predict
from fembench.studies.pamela.machine_model import MachineModel
from fembench.studies.pamela.terms import bound_terms

MODEL = """L=L_1;L_2
L_1={{ par(p=1,P){{ use(core[h[p]],assembly[p]); }} }}
L_2={{ seq(k=1,n){{
  {exchange}
  par(p=1,P){{ use(core[h[p]],updates[p]); }}
  delay({sums}*allreduce[1]);
}} }}
"""
CORE, MEMORY = "use(core[h[p]],product[p])", "use(mem[h[p]],traffic[p])"
HALO, LATENCY = "use(nic[h[p]],halo[p])", "delay(latency[p])"
Intervals = Sequence[TimeRange]


@dataclass(frozen=True)
class FemCosts:
    """Seconds of each rank: of an assembly, and of one iteration."""

    assembly: Intervals  # (P,)
    product: Intervals
    updates: Intervals  # dots, axpys, preconditioner
    halo: Intervals  # that the messages of one update keep the host's network interface
    allreduce: TimeRange  # one
    host: Sequence[int]  # [rank], from 0
    cores: Sequence[int]  # [host]
    traffic: Intervals = ()  # seconds that the rank's matrix alone keeps its host's memory busy; () : free
    latency: Intervals = ()  # that its messages are under way beside that, none waiting for another
    overlap: bool = False  # messages travel while the product is computed
    sums: int = 2  # all-reduces of an iteration


@dataclass(frozen=True)
class FemPrediction:
    """What `fembench predict --method analytic` prints."""

    seconds: TimeRange  # assembly and all iterations
    assembly: TimeRange
    iteration: TimeRange
    iterations: int
    expression: str  # T = max(…) with the term of each resource in letters
    terms: dict[str, TimeRange]  # the same terms in numbers, of the whole
    bottleneck: str


def predict_fem(costs: FemCosts, iterations: int, *, compose: Compose = "phase") -> FemPrediction:
    """Interval, expression and terms of assembly and `iterations` iterations. Raises InputError."""
    if iterations < 0:
        raise InputError(f"{iterations} iterations: expected 0 or more")
    whole, none = (_bound(costs, n, compose) for n in (iterations, 0))
    first, last = none.seconds, whole.seconds
    turns = max(iterations, 1)
    return FemPrediction(
        seconds=whole.seconds,
        assembly=first,
        iteration=TimeRange((last.low - first.low) / turns, (last.high - first.high) / turns),
        iterations=iterations,
        expression=expression(costs),
        terms=whole.terms,
        bottleneck=whole.bottleneck,
    )


def _text(costs: FemCosts) -> str:
    messages = [HALO, *([LATENCY] if costs.latency else [])]
    beside = [CORE, *([MEMORY] if costs.traffic else []), *(messages if costs.overlap else [])]
    phases = [beside] if costs.overlap else [beside, messages]
    exchange = "\n  ".join(f"par(p=1,P){{ ({'||'.join(each)}); }}" for each in phases)
    return MODEL.format(exchange=exchange, sums=costs.sums)


def _bound(costs: FemCosts, iterations: int, compose: Compose) -> TimeBounds:
    ranks = len(costs.host)
    named = {
        "assembly": costs.assembly,
        "product": costs.product,
        "updates": costs.updates,
        "halo": costs.halo,
        "traffic": costs.traffic or (ZERO,) * ranks,
        "latency": costs.latency or (ZERO,) * ranks,
    }
    wrong = [name for name, values in named.items() if len(values) != ranks]
    if wrong or not ranks:
        raise InputError(
            f"{wrong[0] if wrong else 'host'}: expected a value for each of {ranks} ranks, and one rank"
        )
    numbered = {name: dict(enumerate(values, 1)) for name, values in named.items()}
    setting = Setting(
        pamela_text.parse(_text(costs), "FEM and CG"),
        MachineModel({}),
        ranks,
        servers={f"core_{h}": float(c) for h, c in enumerate(costs.cores)},
        values={"n": float(iterations)},
        costs=numbered | {"allreduce": {1: costs.allreduce}, "h": dict(enumerate(costs.host, 1))},
    )
    return predict(setting, compose)


def expression(costs: FemCosts) -> str:
    """T = max(…): the sum that each resource must serve, and the critical path, in letters."""
    terms = bound_terms(pamela_text.parse(_text(costs), "FEM and CG"))
    inner = ",\n".join(f"  /* {name} */ {text}" for name, text in terms.items())
    return f"T=max(\n{inner}\n)   by phase: the sum over assembly and the parts of an iteration"


def fitted_iterations(known: Sequence[tuple[int, int]], equations: int) -> int:
    """Iterations of a mesh from those of coarser ones, (equations, iterations): a n^b by least squares.

    Raises InputError of fewer than two different meshes.
    """
    if len({n for n, _ in known}) < 2 or min(min(pair) for pair in known) < 1:
        raise InputError(f"iterations of {len(known)} meshes: expected two coarser ones or more, all above 0")
    x = [math.log(n) for n, _ in known]
    y = [math.log(k) for _, k in known]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    b = sum((u - mx) * (v - my) for u, v in zip(x, y)) / sum((u - mx) ** 2 for u in x)
    return round(math.exp(my + b * (math.log(equations) - mx)))
