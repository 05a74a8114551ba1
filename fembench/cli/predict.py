"""Predict the time of a run before it starts.

Prints the time of a CG iteration with an interval meant to contain nine runs out of ten, its parts by
phase, and what limits it. The mesh is partitioned as in the run. Computing times follow from the speeds in a
machine profile, at the size of each rank and with the other ranks of its host running; message times from
the profile's network, or from --link. Runs already made on the machine (--learn) correct the prediction.
With --method analytic, the answer is a closed form: T = max(…) as an expression, an interval, and the load
on each resource.

Examples:
  fembench predict m3 --machine machine.json --ranks 1,2,4,8
  fembench predict m3 --machine machine.json --ranks 4 --shares balanced -o before.json
  fembench predict m --machine machine.json --ranks 2,4,8 --machines 'add:fast*2' --network x10
  fembench predict m --machine machine.json --link 2e-5,1e9 --ranks 1,2,4,8,16 --iterations 900 --deadline 2.5
  fembench predict m3 --machine machine.json --solver petsc --learn results/petsc --ranks 4
  fembench predict m3 --machine machine.json --ranks 4 --method analytic
"""

import argparse
from typing import Any

CASE = ("problem", "solver", "storage", "precond", "variant", "partitioner")  # options of a case


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import case_option, real, whole

    parser.add_argument("mesh", metavar="MESH", help="preset, box:…, or a mesh file, as in fembench run")
    parser.add_argument("--machine", required=True, metavar="FILE", help="machine profile from characterize")
    parser.add_argument(
        "--ranks", default="", metavar="N,…", help="numbers of ranks (default: that of the profile)"
    )
    parser.add_argument(
        "--shares",
        default="",
        metavar="SHARES",
        help="7:1, 2,1,1, balanced or equal (default: equal); 7:1 needs a single number of ranks",
    )
    parser.add_argument(
        "--method",
        choices=("simulation", "analytic"),
        default="simulation",
        help="simulate the execution graph, or bound it in closed form",
    )
    parser.add_argument(
        "--compose",
        choices=("phase", "global"),
        default="phase",
        help="analytic: bound each phase, or the whole run (Herai 2005)",
    )
    parser.add_argument(
        "--learn",
        action="append",
        default=[],
        metavar="RECORD",
        help="correct by this record, or folder of records, of runs on the machine; may be repeated",
    )
    parser.add_argument(
        "--iterations",
        type=whole(0),
        default=0,
        metavar="N",
        help="also predict a whole solution (default: the iterations of a learned run of the mesh)",
    )
    parser.add_argument(
        "--deadline",
        type=real(0),
        default=0.0,
        metavar="SECONDS",
        help="find the fewest ranks that meet it at the upper end of the interval",
    )
    parser.add_argument("--plot", metavar="FILE", help="plot the time by number of ranks (.svg, .png, .pdf)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the prediction; an existing one is never overwritten"
    )
    parser.add_argument(
        "--against", metavar="RECORD", help="add the error against this run to the prediction in -o"
    )
    parser.add_argument("--json", action="store_true", help="print the predictions as JSON instead of tables")

    case = parser.add_argument_group("case", "As in fembench run.")
    for name in CASE:
        case_option(case, name)
    _what_if(parser.add_argument_group("what if"))


def _what_if(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--link",
        default="",
        metavar="SECONDS,BYTES/S[,SECONDS]",
        help="latency, bandwidth and overhead of a network that replaces the profile's",
    )
    group.add_argument(
        "--network", default="x1", metavar="xFACTOR", help="a network that is faster by this factor"
    )
    group.add_argument(
        "--contention",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="send a host's messages one after another (default: as far as the profile measured it)",
    )
    group.add_argument(
        "--machines",
        action="append",
        default=[],
        metavar="EDIT",
        help="fastest, slowest: all hosts are like the one with the fastest or slowest rank; add:NAME*N: N "
        "more hosts like NAME; share:N: N ranks in place of each, on the same cores (--method analytic); may "
        "be repeated",
    )
    group.add_argument(
        "--now",
        choices=("queue", "load", "clock"),
        default="",
        help="predict for the present load of the hosts: slowness H from the run queue, the load average or "
        "the clock, which is the most accurate (Mendes 2004, eq. 4.1 to 4.3)",
    )
    group.add_argument("--hostfile", default="", metavar="FILE", help="with --now: ask only these hosts")


def run(options: argparse.Namespace) -> int:
    from fembench.base.errors import InputError
    from fembench.records.prediction import save_prediction
    from fembench.records.profile import provisional
    from fembench.workflows.predict import in_time, predicted, scored, write_plot

    if options.against:
        if not options.output:
            raise InputError("--against needs -o FILE, the prediction to score")
        text, changed = scored(options.output, options.against)
        print(text)
        return int(changed)
    asked = _asked(options)
    if options.output and len(asked.ranks) > 1:
        raise InputError(
            f"-o {options.output} with {len(asked.ranks)} numbers of ranks; expected one number per file"
        )
    study, answers = predicted(asked)
    if options.output:
        save_prediction(answers.predictions[0], options.output)
    if options.plot:
        write_plot(answers, options.plot, options.mesh)
    warning = provisional(study.profile)
    if options.json:
        _print_json(answers.tree, answers.latest, options.deadline, warning)
    else:
        print("\n\n".join(filter(None, [warning, answers.text])))
    said = in_time(answers, options.deadline) if options.deadline else ""
    if options.json:
        return 0
    if said:
        print(f"\n{said}")
    if options.output:
        print(
            f"prediction: {options.output}; after the run: fembench predict {options.mesh} "
            f"--machine {options.machine} -o {options.output} --against RECORD"
        )
    return 0


def _asked(options: argparse.Namespace) -> Any:
    from fembench.base.errors import InputError
    from fembench.workflows.predict import PredictAsked

    try:
        counts = [int(word) for word in options.ranks.split(",")] if options.ranks else []
    except ValueError:
        raise InputError(f"--ranks '{options.ranks}': expected numbers such as 1,2,4") from None
    alike = ("mesh", "machine", "shares", "compose", "learn", "iterations", "deadline")
    what_if = ("link", "network", "contention", "machines", "hostfile")
    return PredictAsked(
        ranks=list(dict.fromkeys(counts)),
        fields={name: getattr(options, name) for name in CASE},
        analytic=options.method == "analytic",
        now=options.now or None,
        **{name: getattr(options, name) for name in (*alike, *what_if)},
    )


def _print_json(tree: list, latest: list[float], deadline: float, provisional: str) -> None:
    """The runs; with a deadline, also whether the upper end of the interval of each is within it; with a
    disturbed profile, why they are `provisional`."""
    import json

    if provisional:
        tree = [run | {"provisional": provisional} for run in tree]
    if deadline:
        tree = [run | {"within_deadline": last <= deadline} for run, last in zip(tree, latest)]
    print(json.dumps(tree, indent=1))
