"""The predicted run time of a farm, from a PASL file, the source of its
kernels and a machine model."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fembench.base.config import read_text
from fembench.base.tables import table
from fembench.base.units import plural, seconds
from fembench.errors import InputError
from fembench_studies.pamela import pamela
from fembench_studies.pamela.bounds import Compose, Setting, TimeBounds, predict
from fembench_studies.pamela.build import Network, build, layered, repeated, steps, text
from fembench_studies.pamela.costs import Conditionals
from fembench_studies.pamela.machine_model import MachineModel, fastest, homogeneous
from fembench_studies.pamela.pamela import PamelaModel
from fembench_studies.pamela.pasl import BatchGraph
from fembench_studies.pamela.source import Loops, analyse
from fembench_studies.pamela.terms import expression
from fembench_studies.programs.tasks import deal_tasks

MOST_EDGES = 10_000  # of an expanded graph; more cannot be drawn
SIZES = {"in": "dataSizeIn", "out": "dataSizeOut", "code": "codeSize"}  # names in BYTES -> in PAMELA


class FarmAnswer(NamedTuple):
    """A predicted run time."""

    bounds: TimeBounds
    workers: int
    policy: str  # of conditionals


def graph_text(graph: BatchGraph, *, trace: bool = False) -> str:
    """The batches, and the series-parallel form L; `trace`: with
    every step of its reduction."""
    lines, reduced = steps(graph)
    rows = [
        [f"B{b.number}", b.code, b.cardinality, ", ".join(f"B{k}" for k in b.inputs)] for b in graph.batches
    ]
    shown = [table(["batch", "code", "tasks", "fed by"], rows)]
    shown.append("\n".join(lines) if trace else f"L = {text(reduced)}")
    if twice := repeated(reduced):
        shown[-1] += (
            f"\nNot series-parallel: B{', B'.join(map(str, twice))} repeated. T_0 follows from this form, "
            f"demand on resources and phases from the form with levels:\nL = {text(layered(graph))}"
        )
    return "\n\n".join(shown)


def expanded(graph: BatchGraph) -> str:
    """The graph of all tasks in the language of Graphviz; a task may use the
    results of all that feed it."""
    tasks = {b.number: [f"tk{b.number}_{k}" for k in range(1, b.cardinality + 1)] for b in graph.batches}
    nodes = [f"  {name};" for each in tasks.values() for name in each]
    edges = [
        f"  {source} -> {target};"
        for b in graph.batches
        for before in b.inputs
        for source in tasks[before]
        for target in tasks[b.number]
    ]
    if len(edges) > MOST_EDGES:
        raise InputError(f"--expand: {len(edges)} links between tasks; a graph may have {MOST_EDGES}")
    return "\n".join(["digraph tasks {", *nodes, *edges, "}"])


def model_text(model: PamelaModel, conditionals: Conditionals) -> str:
    """The PAMELA model, and T = max(...)."""
    return f"{pamela.as_text(model)}\n{expression(model, conditionals)}"


def model_of(
    graph: BatchGraph,
    source: str,
    *,
    free: Iterable[str],
    loops: Loops,
    network: Network,
) -> PamelaModel:
    """The PAMELA model of a graph whose kernels are in the file `source`;
    `free`: calls without cost.

    Raises InputError.
    """
    registry = dict.fromkeys(free, "")
    read = analyse(read_text(source), where=source, registry=registry, loops=loops)
    bodies = {b.code: read.body(b.code) for b in graph.batches}
    number = {b.code: b.number - 1 for b in graph.batches}
    sizes = {
        (SIZES[what], number[code]): float(size)
        for code, entry in read.sizes().items()
        if code in number
        for what, size in entry.items()
    }
    return build(graph, {**read.bodies, **bodies}, sizes, network)


def tasks_of(graph: BatchGraph) -> dict[int, int]:
    """Batch, from 0, -> its number of tasks, for those that are dealt to the workers."""
    return {b.number - 1: b.cardinality for b in graph.batches if b.cardinality > 1}


def predicted(
    tasks: Mapping[int, int],
    model: PamelaModel,
    machine: MachineModel,
    count: int,
    like: int,
    conditionals: Conditionals,
    compose: Compose,
) -> FarmAnswer:
    """The run time on the `count` fastest workers or, with `like`,
    on as many as that machine.

    The tasks of each batch are dealt in proportion to the workers'
    speeds. Raises InputError.
    """
    machine = homogeneous(machine, like, count) if like else fastest(machine, count)
    w = [machine.factors.get(p, 1.0) for p in range(1, count + 1)]
    dealt = {batch: dict(enumerate(deal_tasks(w, number), 1)) for batch, number in tasks.items()}
    bounds = predict(Setting(model, machine, count, dealt, conditionals), compose)
    return FarmAnswer(bounds, count, conditionals.policy)


def as_tree(answer: FarmAnswer) -> dict[str, Any]:
    """The answer as JSON."""
    found = answer.bounds
    return {
        "seconds": [found.seconds.low, found.seconds.high],
        "machines": answer.workers,
        "compose": found.compose,
        "bottleneck": found.bottleneck,
        "terms": {name: [t.low, t.high] for name, t in found.terms.items()},
    }


def as_text(answer: FarmAnswer) -> str:
    """Every term, and the interval of the run time."""
    found = answer.bounds
    rows = [[name, seconds(t.low), seconds(t.high)] for name, t in found.terms.items()]
    span = f"{found.seconds.low:.6g} to {found.seconds.high:.6g} s"
    head = f"T on {plural(answer.workers, 'machine')} ({found.compose}, {answer.policy})"
    terms = table(["term", "from", "to"], rows, align="lrr")
    return f"{terms}\n\n{head}: {span}; bottleneck: {found.bottleneck}"


def side_by_side(answers: Sequence[FarmAnswer]) -> str:
    """Run times on different numbers of machines, with the speedup of
    their middles over the first.

    The efficiency is the speedup relative to that of the number of machines.
    """
    first, rows = answers[0], []
    for answer in answers:
        found = answer.bounds.seconds
        speedup = first.bounds.seconds.middle / found.middle
        rows.append(
            [
                answer.workers,
                seconds(found.low),
                seconds(found.high),
                f"{speedup:.2f}",
                f"{100 * speedup * first.workers / answer.workers:.0f} %",
                answer.bounds.bottleneck,
            ]
        )
    return table(["machines", "from", "to", "speedup", "efficiency", "bottleneck"], rows, align="rrrrrl")
