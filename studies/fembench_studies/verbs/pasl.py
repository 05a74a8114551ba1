"""Predict the run time of a farm application from its description in PASL.

Prints the task graph, its series-parallel form, the PAMELA model and T = max(...). A PASL file names batches
of tasks, the number of tasks in each, and which batch feeds which. Costs are counted from the kernels' source
(restricted Python, one function per code; it is read, never run). With a machine model, the run time follows
as an interval; for several numbers of machines, with speedup and efficiency.

Examples:
  fembench study pasl pi.pas --trace                       # graph, and its reduction step by step
  fembench study pasl pi.pas --source pi.py --free random  # PAMELA, and T = max(...)
  fembench study pasl pi.pas --source pi.py --machines park.txt -P 2,4,8 --free random  # speedups
  fembench study pasl pi.pam --tasks 1=100 --machines park.txt          # a PAMELA model
  fembench study pasl pi.pas --source pi.py --machines park.txt -P 32 --like 1 --if q --q 0.785 --free random
"""

import argparse
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fembench_studies.pamela.pamela import PamelaModel
    from fembench_studies.pamela.pasl import BatchGraph

SEND_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import whole

    parser.add_argument(
        "file", metavar="FILE", help="PASL file: batches, cardinalities, links; or a PAMELA model (.pam)"
    )
    parser.add_argument(
        "--tasks",
        action="append",
        default=[],
        metavar="BATCH=N",
        help="with a PAMELA model: tasks dealt to the workers; the first batch is 0",
    )
    parser.add_argument("--trace", action="store_true", help="print every step of the reduction")
    parser.add_argument(
        "--expand", action="store_true", help="print the graph of all tasks (Graphviz) and stop"
    )
    parser.add_argument(
        "--source", default="", metavar="FILE.py", help="kernels, and BYTES = {code: {in, out, code}}"
    )
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="NAME=OP[:ARG]",
        help="operation of a vectorised call",
    )
    parser.add_argument(
        "--free", action="append", default=[], metavar="NAME", help="a call or operation without cost"
    )
    parser.add_argument(
        "--same",
        action="append",
        default=[],
        metavar="OP=OTHER",
        help="an operation with the same cost as another",
    )
    parser.add_argument(
        "--loops", choices=("figure", "listing"), default="figure", help="template for a turn of a loop"
    )
    parser.add_argument(
        "--network",
        choices=("bus", "links"),
        default="bus",
        help="one bus for all machines, or one link per machine",
    )
    parser.add_argument(
        "--machines",
        default="",
        metavar="FILE",
        help="machine model, from fembench characterize --operations",
    )
    parser.add_argument(
        "--send-unit",
        choices=SEND_UNITS,
        default="s",
        metavar="UNIT",
        help="unit of the messages in the machine model: s, ms (Herai 2005, App. B) or us (default: s)",
    )
    parser.add_argument(
        "-P",
        default="",
        metavar="N[,N…]",
        help="use only the N fastest workers (default: all); several numbers are compared",
    )
    parser.add_argument(
        "--like", type=whole(0), default=0, metavar="N", help="assume that all workers are like machine N"
    )
    parser.add_argument(
        "--if",
        dest="policy",
        choices=("worst", "mean", "best", "q"),
        default="worst",
        help="how conditionals are counted",
    )
    parser.add_argument(
        "--q",
        action="append",
        default=[],
        metavar="[NAME=]Q",
        help="with --if q: how often a conditional is true",
    )
    parser.add_argument(
        "--compose",
        choices=("global", "phase"),
        default="global",
        help="bound each phase, or the whole program",
    )
    parser.add_argument("--json", action="store_true", help="print the prediction as JSON")


def run(options: argparse.Namespace) -> int:
    from fembench.errors import InputError
    from fembench_studies.pamela import farm_answer
    from fembench_studies.pamela.costs import Conditionals

    decided = Conditionals(options.policy, _probabilities(options.q))
    graph, model, tasks = _read(options)
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


def _read(options: argparse.Namespace) -> "tuple[BatchGraph | None, PamelaModel | None, dict[int, int]]":
    """(graph, model, tasks per batch) of the file. Raises InputError."""
    from fembench.base.config import read_text
    from fembench_studies.pamela import farm_answer, pamela_text, pasl

    if options.file.endswith(".pam"):
        return None, pamela_text.parse(read_text(options.file), options.file), _tasks(options.tasks)
    graph = pasl.load(options.file)
    return graph, _model(options, graph) if options.source else None, farm_answer.tasks_of(graph)


def _predict(options: argparse.Namespace, model, tasks: dict[int, int], decided) -> None:
    """Print the run times on the numbers of machines given. Raises InputError."""
    import dataclasses
    import json

    from fembench.base.progress import progress
    from fembench_studies.pamela import farm_answer
    from fembench_studies.pamela.machine_model import implausible, load

    unit, counts = SEND_UNITS[options.send_unit], _counts(options.P)
    if doubt := implausible(load(options.machines, unit)):
        progress(f"note: {doubt} Then give --send-unit ms")
    park = farm_answer.FarmPark(
        options.machines,
        like=options.like,
        aliases=dict(_pair(entry, "--same") for entry in options.same),
        free=frozenset(options.free),
        send_unit=unit,
    )
    answers = [
        farm_answer.predicted(tasks, model, dataclasses.replace(park, count=n), decided, options.compose)
        for n in counts
    ]
    several = len(answers) > 1
    if options.json:
        trees = [farm_answer.as_tree(answer) for answer in answers]
        print(json.dumps(trees if several else trees[0]))
    else:
        print("\n" + (farm_answer.side_by_side(answers) if several else farm_answer.as_text(answers[0])))


def _counts(text: str) -> list[int]:
    """The numbers of machines in '2,4,8'; [0] for '', which means all. Raises InputError."""
    from fembench.errors import InputError

    words = text.split(",") if text else ["0"]
    if not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise InputError(f"-P {text}: expected numbers of machines, as in 2,4,8")
    return [int(word) for word in words]


def _tasks(entries: list[str]) -> dict[int, int]:
    """{batch: tasks} of --tasks. Raises InputError."""
    from fembench.errors import InputError

    for entry in entries:
        if not re.fullmatch("[0-9]{1,9}=[0-9]{1,9}", entry):
            raise InputError(f"--tasks '{entry}': expected BATCH=N, as in 1=100")
    return {int(batch): int(number) for batch, _, number in (entry.partition("=") for entry in entries)}


def _model(options: argparse.Namespace, graph):
    from fembench_studies.pamela.farm_answer import model_of

    calls = dict(_pair(entry, "--call") for entry in options.call)
    return model_of(
        graph, options.source, calls=calls, free=options.free, loops=options.loops, network=options.network
    )


def _pair(entry: str, option: str) -> tuple[str, str]:
    from fembench.errors import InputError

    name, sign, value = entry.partition("=")
    if not sign or not name or not value:
        raise InputError(f"{option} '{entry}': expected NAME=VALUE")
    return name, value


def _probabilities(entries: list[str]) -> dict[str, float]:
    from fembench.errors import InputError

    found = {}
    for entry in entries:
        name, _, value = entry.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise InputError(f"--q '{entry}': expected a number, or NAME=NUMBER") from None
    return found
