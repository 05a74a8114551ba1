"""Predict the time of a run before it starts.

Prints the time of a CG iteration with an interval (t_min to t_max) meant to contain
nine runs out of ten, its parts by phase, and what limits it. The mesh is partitioned as
in the run. Computing times follow from the speeds in a machine profile, at the size of
each rank and with the other ranks of its host running; message times from the profile's
network, or from --link. Runs already made on the machine (--learn) correct the
prediction. With --method analytic, the answer is a closed form: T = max(…) as an
expression, an interval, and the load on each resource.

Examples:
  fembench characterize --ranks 2 --network -o machine.json      # first: the profile
  fembench predict m3 --machine machine.json --ranks 1,2,4,8
  fembench predict m3 --machine machine.json --ranks 4 --shares balanced -o before.json
  fembench predict m --machine machine.json --ranks 2,4,8 --machines 'add:fast*2' --network x10
  fembench predict m --machine machine.json --link 2e-5,1e9 --ranks 1,2,4,8,16 --iterations 900 --deadline 2.5
  fembench predict m3 --machine machine.json --solver petsc --learn results/petsc --ranks 4
  fembench predict m3 --machine machine.json --ranks 4 --method analytic
"""

import argparse
import json
from math import isnan

from fembench.base.errors import InputError
from fembench.base.progress import progress
from fembench.cli.options import call, declare
from fembench.cli.shared import case_option
from fembench.records.prediction import METHODS, save_prediction

CASE = ("problem", "solver", "storage", "precond", "recurrence", "partitioner", "device")  # options of a case

OPTIONS = """
mesh MESH: preset, box:…, or a mesh file, as in fembench run
--machine FILE!: machine profile, which fembench characterize makes
--ranks N,…: numbers of ranks (default: that of the profile)
--shares SHARES: 7:1, 2,1,1, balanced or equal (default: equal); 7:1 needs a single
    number of ranks
--weights FILE: take the shares from this file, written by tune or weights
--method CHOICE = simulation: simulate the execution graph, or bound it in closed form
--learn RECORD*: correct by this record, or folder of records, of runs on the machine;
    may be repeated
--iterations N: also predict a whole solution (default: the iterations of a learned run of the mesh)
--deadline SECONDS: find the fewest ranks that meet it at the upper end of the interval
-o, --output FILE: write the prediction; an existing one is never overwritten
--against RECORD: compare the prediction in -o with this run: its error, and whether the
    run lies in the interval
--json: print the predictions as JSON instead of tables
"""
WHAT_IF = """
[what if]
--link SECONDS,BYTES/S[,SECONDS]: latency, bandwidth and overhead of the network between
    hosts; also within one, if the profile has no messages
--network xFACTOR = x1: a network that is faster by this factor
--[no-]contention: send a host's messages one after another (default: as far as the
    profile measured it)
--machines EDIT*: fastest, slowest: all hosts are like the one with the fastest or
    slowest rank; add:NAME*N: N more hosts like NAME; share:N: N ranks in place of each,
    on the same cores (--method analytic); may be repeated
--now: predict for the present load of the hosts: slowness H by elapsed over processor
    time (Mendes 2004, eq. 4.3)
--hostfile FILE: with --now: ask only these hosts
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS, method=METHODS)
    case = parser.add_argument_group("case", "As in fembench run.")
    for name in CASE:
        case_option(case, name)
    declare(parser, WHAT_IF)


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import predict as workflow

    if options.against:
        if not options.output:
            raise InputError("--against needs -o FILE, the prediction to score")
        text, changed = workflow.scored(options.output, options.against)
        print(text)
        return int(changed)
    try:
        counts = [int(word) for word in options.ranks.split(",")] if options.ranks else []
    except ValueError:
        raise InputError(f"--ranks '{options.ranks}': expected numbers such as 1,2,4") from None
    if options.output and (several := len(set(counts))) > 1:
        raise InputError(f"-o {options.output} with {several} numbers of ranks; expected one number per file")
    fields = {name: value for name in CASE if (value := getattr(options, name)) is not None}
    unknown = InputError("--deadline needs --iterations, or --learn with a run of this mesh that converged")
    if options.deadline and not (options.iterations or options.learn):
        raise unknown
    answers = call(workflow.predict, options, **fields, ranks=counts, tell=progress)
    if options.deadline and isnan(answers.latest[0]):
        raise unknown
    if options.output:
        save_prediction(answers[0], options.output)
    limit = options.deadline
    within = [{"within_deadline": last <= limit} if limit else {} for last in answers.latest]
    tree = [one | more for one, more in zip(answers.tree, within)]
    print(json.dumps(tree, indent=1) if options.json else answers.text)
    said = workflow.in_time(answers, limit) if limit else ""
    if said and not options.json:
        print(f"\n{said}")
    if options.output and not options.json:
        print(
            f"prediction: {options.output}; after the run: fembench predict {options.mesh} "
            f"--machine {options.machine} -o {options.output} --against RECORD"
        )
    return 0
