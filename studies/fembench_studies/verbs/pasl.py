"""Predict the run time of a farm application from its description in PASL.

Prints the task graph, its series-parallel form, the PAMELA model and T = max(...). A
PASL file names batches of tasks, the number of tasks in each, and which batch feeds
which. Costs are counted from the kernels' source (restricted Python, one function per
code; it is read, never run). With a machine model, the run time follows as an interval;
for several numbers of machines, with speedup and efficiency.

Examples:
  fembench study pasl pi.pas --trace                       # graph, and its reduction step by step
  fembench study pasl pi.pas --source pi.py --free random  # PAMELA, and T = max(...)
  fembench study pasl pi.pas --source pi.py --machines park.txt -P 2,4,8 --free random  # speedups
  fembench study pasl pi.pam --tasks 1=100 --machines park.txt          # a PAMELA model
  fembench study pasl pi.pas --source pi.py --machines park.txt -P 32 --like 1 --if q --q 0.785 --free random
"""

import argparse
import re
from collections.abc import Callable, Sequence

from fembench.cli.options import declare, whole
from fembench.errors import InputError

SEND_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
OPTIONS = """
file FILE: PASL file: batches, cardinalities, links; or a PAMELA model (.pam)
--tasks BATCH=N*: with a PAMELA model: tasks dealt to the workers; the first batch is 0
--trace: print every step of the reduction
--expand: print the graph of all tasks (Graphviz) and stop
--source FILE.py: kernels, and BYTES = {code: {in, out, code}}
--free NAME*: a call or operation without cost
--same OP=OTHER*: an operation with the same cost as another
--loops figure|listing = figure: template for a turn of a loop
--network bus|links = bus: one bus for all machines, or one link per machine
--machines FILE: machine model, from fembench characterize --operations
--send-unit s|ms|us = s: unit of the messages in the machine model; ms for Herai (2005), App. B (default: s)
-P N[,N…]: use only the N fastest workers (default: all); several numbers are compared
--like N: assume that all workers are like machine N
--if worst|mean|best|q = worst: how conditionals are counted
--q [NAME=]Q*: with --if q: how often a conditional is true
--compose global|phase = global: bound each phase, or the whole program
--json: print the prediction as JSON
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS, like=whole(0))


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import read_text
    from fembench_studies.pamela import farm_answer, pamela_text, pasl
    from fembench_studies.pamela.costs import Conditionals

    decided = Conditionals(getattr(options, "if"), _table("--q", options.q, "NAME=NUMBER", str, float))
    graph, model, tasks = (
        None,
        None,
        _table("--tasks", options.tasks, "BATCH=N, as in 1=100", whole(0), whole(1)),
    )
    if options.file.endswith(".pam"):
        model = pamela_text.parse(read_text(options.file), options.file)
    else:
        graph = pasl.load(options.file)
        tasks = farm_answer.tasks_of(graph)
        if options.source:
            model = farm_answer.model_of(
                graph, options.source, free=options.free, loops=options.loops, network=options.network
            )
    if options.expand:
        if graph is None:
            raise InputError(f"--expand: {options.file} has no batches; expected a PASL file")
        print(farm_answer.expanded(graph))
        return 0
    if options.machines and not model:
        raise InputError("--machines without --source: the costs of tasks are unknown")
    if graph and not options.json:
        print(farm_answer.graph_text(graph, trace=options.trace), end="\n\n" if model else "\n")
    if model and not options.json:
        print(farm_answer.model_text(model, decided))
    if model and options.machines:
        _predict(options, model, tasks, decided)
    return 0


def _predict(options: argparse.Namespace, model, tasks: dict[int, int], decided) -> None:
    """Print the run times on the numbers of machines given. Raises InputError."""
    import dataclasses
    import json

    from fembench.base.progress import progress
    from fembench_studies.pamela import farm_answer
    from fembench_studies.pamela.machine_model import implausible, load

    counts = _counts(options.P)
    machine = load(options.machines, SEND_UNITS[options.send_unit])
    if doubt := implausible(machine):
        progress(f"note: {doubt} Then give --send-unit ms")
    same = _table("--same", options.same, "OP=OTHER", _word, _word)
    machine = dataclasses.replace(machine, aliases=same, free=frozenset(options.free))
    answers = [
        farm_answer.predicted(
            tasks, model, machine, count or len(machine.workers), options.like, decided, options.compose
        )
        for count in counts
    ]
    if options.json:
        trees = [farm_answer.as_tree(answer) for answer in answers]
        print(json.dumps(trees if len(trees) > 1 else trees[0]))
    else:
        several = len(answers) > 1
        print("\n" + (farm_answer.side_by_side(answers) if several else farm_answer.as_text(answers[0])))


def _counts(text: str) -> list[int]:
    """The numbers of machines in '2,4,8'; [0] for '', which
    means all. Raises InputError."""
    words = text.split(",") if text else ["0"]
    if not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise InputError(f"-P {text}: expected numbers of machines, as in 2,4,8")
    return [int(word) for word in words]


def _table(option: str, entries: Sequence[str], form: str, name: Callable, value: Callable) -> dict:
    """{name: value} of an option that may be repeated; an entry
    without a name has the name ''."""
    found = {}
    for entry in entries:
        key, _, given = entry.rpartition("=")
        try:
            found[name(key)] = value(given)
        except (ValueError, argparse.ArgumentTypeError):
            raise InputError(f"{option} '{entry}': expected {form}") from None
    return found


def _word(text: str) -> str:
    if not text:
        raise ValueError
    return text
