"""Task graph, series-parallel form, PAMELA and T = max(…) of a farm application in PASL.

A PASL file names batches of tasks, how many tasks they have and who feeds whom. With the kernels' source
(restricted Python, a function for each code; it is read, never run) costs are counted; with a machine model
the time follows as an interval. Examples:
  fembench pasl pi.pas --trace                                     graph, and its reduction step by step
  fembench pasl pi.pas --source pi.py --free random                PAMELA, and T = max(…)
  fembench pasl pi.pas --source pi.py --machines park.txt -P 32 --free random
  fembench pasl pi.pas --source pi.py --machines park.txt -P 32 --like 1 --if q --q 0.785 --free random
"""

import argparse
import re


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import whole

    parser.add_argument("file", metavar="FILE", help="PASL: batches, cardinalities, links")
    parser.add_argument("--trace", action="store_true", help="every step of the reduction")
    parser.add_argument(
        "--source", default="", metavar="FILE.py", help="kernels; BYTES = {code: {in, out, code}}"
    )
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="NAME=OP[:ARG]",
        help="a vectorised call and its operation",
    )
    parser.add_argument(
        "--free", action="append", default=[], metavar="NAME", help="a call or operation of no cost"
    )
    parser.add_argument(
        "--same",
        action="append",
        default=[],
        metavar="OP=OTHER",
        help="an operation that costs what another does",
    )
    parser.add_argument(
        "--loops", choices=("figure", "listing"), default="figure", help="template of a loop's turn"
    )
    parser.add_argument(
        "--network", choices=("bus", "links"), default="bus", help="one for all, or one a machine"
    )
    parser.add_argument("--machines", default="", metavar="FILE", help="machine model")
    parser.add_argument(
        "-P", type=whole(0), default=0, metavar="N", help="the N fastest workers (default: all)"
    )
    parser.add_argument(
        "--like", type=whole(0), default=0, metavar="M", help="what if all workers were like machine M"
    )
    parser.add_argument(
        "--if", dest="policy", choices=("worst", "mean", "best", "q"), default="worst", help="conditionals"
    )
    parser.add_argument("--q", action="append", default=[], metavar="[NAME=]Q", help="how often one is true")
    parser.add_argument(
        "--compose", choices=("global", "phase"), default="global", help="bounds by phase or not"
    )
    parser.add_argument("--json", action="store_true", help="print the prediction as JSON")


def run(options: argparse.Namespace) -> int:
    from fembench.base.errors import InputError
    from fembench.base.tables import table
    from fembench.studies.pamela import pamela, pasl
    from fembench.studies.pamela.series_parallel import layered, repeated, steps, text
    from fembench.studies.pamela.terms import expression

    graph = pasl.load(options.file)
    lines, reduced = steps(graph)
    if options.machines and not options.source:
        raise InputError("--machines without --source: what tasks cost is not known")
    model = _model(options, graph) if options.source else None
    if not options.json:
        rows = [
            [f"B{b.number}", b.code, b.cardinality, ", ".join(f"B{k}" for k in b.inputs)]
            for b in graph.batches
        ]
        print(table(["batch", "code", "tasks", "fed by"], rows))
        print("\n" + ("\n".join(lines) if options.trace else f"L = {text(reduced)}"))
        if twice := repeated(reduced):
            print(
                f"not series-parallel, B{', B'.join(map(str, twice))} more than once: T_0 is of this form, "
                f"resources and phases are of the levels\nL = {text(layered(graph))}"
            )
        if model:
            print(f"\n{pamela.as_text(model)}\n{expression(model, _conditionals(options))}")
    if model and options.machines:
        _print_prediction(options, graph, model)
    return 0


def _model(options: argparse.Namespace, graph):
    from fembench.base.config import read_text
    from fembench.studies.pamela.build import build
    from fembench.studies.pamela.expressions import Registered
    from fembench.studies.pamela.source import analyse

    registry = {name: Registered("") for name in options.free}
    for entry in options.call:
        name, operation = _pair(entry, "--call")
        operation, _, argument = operation.partition(":")
        registry[name] = Registered(operation, int(argument) if re.fullmatch("[0-9]{1,3}", argument) else -1)
    source = analyse(read_text(options.source), where=options.source, registry=registry, loops=options.loops)
    bodies = {b.code: source.body(b.code) for b in graph.batches}
    number = {b.code: b.number - 1 for b in graph.batches}
    words = {"in": "dataSizeIn", "out": "dataSizeOut", "code": "codeSize"}
    sizes = {
        (words[what], number[code]): float(size)
        for code, entry in source.sizes().items()
        if code in number
        for what, size in entry.items()
    }
    return build(graph, {**source.bodies, **bodies}, sizes, options.network)


def _pair(entry: str, option: str) -> tuple[str, str]:
    from fembench.base.errors import InputError

    name, sign, value = entry.partition("=")
    if not sign or not name or not value:
        raise InputError(f"{option} '{entry}': expected NAME=VALUE")
    return name, value


def _conditionals(options: argparse.Namespace):
    from fembench.base.errors import InputError
    from fembench.studies.pamela.costs import Conditionals

    q = {}
    for entry in options.q:
        name, _, value = entry.rpartition("=")
        try:
            q[name] = float(value)
        except ValueError:
            raise InputError(f"--q '{entry}': expected a number, or NAME=NUMBER") from None
    return Conditionals(options.policy, q)


def _print_prediction(options: argparse.Namespace, graph, model) -> None:
    import dataclasses
    import json

    from fembench.base.tables import table
    from fembench.base.units import seconds
    from fembench.partition.tasks import deal_tasks
    from fembench.studies.pamela.bounds import Setting, predict
    from fembench.studies.pamela.machine_model import fastest, homogeneous, load

    machine = load(options.machines)
    count = options.P or len(machine.workers)
    machine = homogeneous(machine, options.like, count) if options.like else fastest(machine, count)
    aliases = dict(_pair(entry, "--same") for entry in options.same)
    machine = dataclasses.replace(machine, aliases=aliases, free=frozenset(options.free))
    w = [machine.factors.get(p, 1.0) for p in range(1, count + 1)]
    dealt = {
        b.number - 1: dict(enumerate(deal_tasks(w, b.cardinality), 1))
        for b in graph.batches
        if b.cardinality > 1
    }
    found = predict(Setting(model, machine, count, dealt, _conditionals(options)), options.compose)
    terms = {name: [t.low, t.high] for name, t in found.terms.items()}
    if options.json:
        ends = [found.seconds.low, found.seconds.high]
        print(
            json.dumps(
                {"seconds": ends, "compose": found.compose, "bottleneck": found.bottleneck, "terms": terms}
            )
        )
        return
    rows = [[name, seconds(t.low), seconds(t.high)] for name, t in found.terms.items()]
    print("\n" + table(["term", "from", "to"], rows, align="lrr"))
    span = f"{found.seconds.low:.6g} to {found.seconds.high:.6g} s"
    print(f"\nT on {count} machines ({found.compose}, {options.policy}): {span}; {found.bottleneck} decides")
