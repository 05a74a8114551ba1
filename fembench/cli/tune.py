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
from pathlib import Path

ITERATIONS = 50  # fixed work, by default
SECONDS = 2.0  # seconds of CG per run, by default; shorter runs are dominated by momentary noise


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
    from fembench.base.files import write_atomic
    from fembench.cli.progress import progress
    from fembench.launch.scratch import occupied
    from fembench.records.weights import save_weights
    from fembench.weights.proof import prove
    from fembench.weights.proof_text import as_text, as_tree
    from fembench.weights.tune import close_the_loop

    case = _case(options)
    folder = Path(options.results or f"results/tune-{Path(case.question.mesh).stem.replace(':', '-')[:120]}")

    def say(text: str) -> None:
        progress(f"tune: {text}")

    with occupied(folder / "runs"):
        trail = close_the_loop(
            case,
            _runner(options, folder / "runs", say),
            say,
            rounds=options.rounds,
            pairs=options.pairs,
            can_do_without=lambda host: (
                len(_others(options.hostfile, host)) < len(_others(options.hostfile, ""))
            ),
        )
        proof = prove(trail)
        output = Path(options.output or folder / "weights.json")
        save_weights(trail.weights, output)
        tree = json_text(as_tree(proof, trail.weights))
        write_atomic(folder / "tuning.json", tree)
    print(tree if options.json else as_text(proof, trail.weights))
    if options.json and proof.disturbed:
        progress(f"tune: {proof.disturbed}")
    if not options.json:
        print(f"\nweights: {output}\nrecords: {folder / 'runs'}")
    return 0


def _case(options: argparse.Namespace):
    """The case, with defaults for fixed work and seconds of CG. Raises InputError."""

    from fembench.base.errors import InputError
    from fembench.cli.shared import case_from

    case = case_from(options)
    if case.placement.shares:
        raise InputError("tune finds the shares itself; omit --shares")
    if case.placement.ranks < 2:
        raise InputError(f"tune --ranks {case.placement.ranks}: expected at least 2 ranks to share the mesh")
    return case.with_(
        iterations=case.stop.iterations or ITERATIONS,
        sets=1 if case.effort.sets == type(case)().effort.sets else case.effort.sets,
        seconds=case.effort.seconds or SECONDS,
    )


def _runner(options: argparse.Namespace, runs: Path, say):
    """A function that runs a case under MPI and keeps its record. Raises RunFailedError or InputError."""
    from fembench.base.errors import InputError, RunFailedError
    from fembench.bench.campaign_file import run_id
    from fembench.cli.progress import working
    from fembench.cli.shared import typed_command
    from fembench.launch.case_job import launch
    from fembench.launch.scratch import reserved
    from fembench.records.store import save
    from fembench.weights.observe import run_seconds

    def one(case, word: str, *, without: str = ""):
        stem = run_id(case, 1).rsplit("-r", 1)[0]
        with working(f"tune: {word}"), reserved(runs, stem) as id:
            outcome = launch(
                case,
                id=id,
                command=typed_command(),
                scratch=runs,
                hostfile=_hosts_but(options.hostfile, without, runs) if without else options.hostfile,
                timeout=options.timeout,
            )
            if outcome.record is None:
                if outcome.kind == "input":
                    raise InputError(outcome.message)
                raise RunFailedError(f"tuning stopped: {outcome.message}")
            save(outcome.record, runs)
        say(f"{word}: {run_seconds([outcome.record])[0]:.4g} s per set")
        return outcome.record

    return one


def _hosts_but(path: str, left_out: str, folder: Path) -> str:
    """The path of a host file that omits one host."""
    from fembench.base.files import write_atomic

    rest = _others(path, left_out)
    write_atomic(folder / "others.hosts", "".join(f"{host.name} slots={host.slots}\n" for host in rest))
    return str(folder / "others.hosts")


def _others(path: str, left_out: str):
    """The hosts of the job except one ("": all), in the order of ranks; [] if the job is this machine."""
    from fembench.launch.allocation import allocation
    from fembench.launch.hostlist import same_host
    from fembench.launch.layout import is_open

    job = allocation(path)
    hosts = [] if is_open(job) else job.order or job.hosts
    return [host for host in hosts if not same_host(host.name, left_out)]
