"""Find the best shares for one case, and prove the gain.

Runs the case with equal shares, derives weights from the speed of each rank, and runs it with these
weights, in a few rounds. Then it alternates equal and weighted shares and gives a verdict: use these weights,
no detectable gain, not proven (fewer than six pairs), too short to tell (the mesh is too small), or leave a
host out. If the slowest host can save less than 30 % of the time, the other hosts are also timed without it.
Every run does fixed work: 50 iterations per set, and sets until CG has taken 2 s; --iterations, --sets and
--seconds change that.

Examples:
  fembench tune m --ranks 2
  fembench tune l --ranks 8 --hostfile hosts -o weights.json
  fembench tune m --ranks 2 --emulate 1,0.5                # SYNTHETIC: one rank at half speed, to try it out

Next: fembench run l --ranks 8 --hostfile hosts --weights weights.json
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import case_options, job_options, whole

    parser.add_argument(
        "-o", "--output", metavar="FILE", help="file for the weights (default: DIR/weights.json)"
    )
    parser.add_argument("--results", metavar="DIR", help="folder for records (default: results/tune-MESH)")
    parser.add_argument(
        "--rounds", type=whole(1), default=2, metavar="N", help="maximum number of rounds that derive weights"
    )
    parser.add_argument(
        "--pairs",
        type=whole(1),
        default=6,
        metavar="N",
        help="pairs of equal and weighted runs (default: 6, the fewest that can prove a gain)",
    )
    job_options(parser, timeout=600.0)
    parser.add_argument("--json", action="store_true", help="print the proof as JSON instead of tables")
    case_options(parser)


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.progress import progress
    from fembench.cli.shared import case_from, typed_command
    from fembench.weights.proof_text import as_text, as_tree
    from fembench.workflows.tune import tune_case

    found = tune_case(
        case_from(options),
        results=options.results,
        output=options.output,
        rounds=options.rounds,
        pairs=options.pairs,
        hostfile=options.hostfile,
        timeout=options.timeout,
        command=typed_command(),
    )
    if not options.json:
        print(as_text(found.proof, found.weights))
        print(f"\nweights: {found.output}\nrecords: {found.runs}")
        return 0
    print(json_text(as_tree(found.proof, found.weights)))
    if found.proof.disturbed:
        progress(f"tune: {found.proof.disturbed}")
    return 0
