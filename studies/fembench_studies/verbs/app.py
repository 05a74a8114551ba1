"""Run a small parallel program, predicted before it runs.

Farms (a coordinator distributes tasks to workers): pi primes matrices partial integral product, or a task of
your own: a Python file or a shared library with a function work. Task graphs: ring fork join diamond
fork-join, or one of your own: a file as for study schedule. Calibrate first, then run; the prediction is
written before the run starts. A machine model of characterize --operations predicts a farm, too.
With --machine, the real messages of a ring, fork or join are predicted from a measured network (Os, L, Or)
and a calibration made just before; the error is that of the median, or INVALID if the runs vary too much.

Examples:
  fembench study app ring --machine machine.json --bytes 4194304        # from characterize --network
  fembench study app pi --ranks 3                                       # run, check, record
  fembench study app pi --ranks 5 --calibrate -o machine.json           # samples of its operations
  fembench study app pi --ranks 5 --model machine.json                  # predicted, run, scored
  fembench study app partial --ranks 5 --model machine.json --if worst  # bounds without probabilities
  fembench study app diamond --ranks 4 --schedule heft --model machine.json   # scheduled, not in turn
  fembench study app task.py --ranks 3 --size 1000 --model task.json    # a task of your own, work(data, size)
  fembench study app ./task.so --model park.txt --count sum_double=2e8 --count mpy_double=1e8    # per task
  fembench study app graph.dot --ranks 3 --schedule portfolio --model graph.json   # a graph of your own
  fembench study app pi --ranks 5 --emulate 1,1,.86,.86,.635 --dilate 16  # SYNTHETIC: unequal hosts
"""

import argparse
from pathlib import Path

FARMS = ("pi", "primes", "matrices", "partial", "integral", "product")
GRAPHS = ("ring", "fork", "join", "diamond", "fork-join")


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import whole

    _program(parser)
    _machine(parser)
    _prediction(parser)
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="seed of the random numbers")
    parser.add_argument(
        "--results",
        default="results/apps",
        metavar="DIR",
        help="folder for the record (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="write the record to this file")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")


def _program(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import real, whole

    parser.add_argument("program", metavar="NAME|FILE", help=f"{', '.join(FARMS + GRAPHS)}; or a file")
    parser.add_argument(
        "--ranks", type=whole(1), default=2, metavar="N", help="MPI ranks, coordinator included"
    )
    parser.add_argument(
        "--tasks", type=whole(0), default=0, metavar="N", help="number of tasks (default: the program's own)"
    )
    parser.add_argument(
        "--size",
        type=whole(0),
        default=0,
        metavar="N",
        help="size of a task: points, numbers, rows, or units of work in a graph",
    )
    parser.add_argument("--bytes", type=whole(0), default=65536, metavar="N", help="message size in a graph")
    parser.add_argument(
        "--static",
        type=real(0, 1),
        default=1.0,
        metavar="FRACTION",
        help="fraction of the tasks assigned in advance; the rest on demand",
    )
    parser.add_argument(
        "--repetitions",
        type=whole(1),
        default=0,
        metavar="N",
        help="runs in one job (default: 4; --machine: 100)",
    )


def _machine(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import real

    parser.add_argument("--emulate", default="", metavar="S,S,...", help="SYNTHETIC: speed of each rank")
    parser.add_argument(
        "--dilate",
        type=real(1),
        default=1.0,
        metavar="FACTOR",
        help="SYNTHETIC: slow all ranks down by this factor",
    )
    parser.add_argument(
        "--hostfile",
        "--rankfile",
        default="",
        metavar="FILE",
        help="hosts for mpiexec or srun: a host file, or a rankfile for Open MPI",
    )


def _prediction(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import whole

    parser.add_argument("--calibrate", action="store_true", help="sample the operations instead of running")
    parser.add_argument("--samples", type=whole(1), default=20, metavar="N", help="samples of each operation")
    parser.add_argument(
        "--model", default="", metavar="FILE", help="predict from this calibration or machine model"
    )
    parser.add_argument(
        "--count",
        action="append",
        default=[],
        metavar="OP=N",
        help="with a machine model: number of operations per task, as in sum_double=1e8",
    )
    parser.add_argument(
        "--machine",
        default="",
        metavar="PROFILE",
        help="ring, fork, join: predict messages from the network of this profile",
    )
    parser.add_argument(
        "--send",
        choices=("isend", "send"),
        default="isend",
        help="with --machine: send messages by MPI_Isend or MPI_Send (default: %(default)s)",
    )
    parser.add_argument(
        "--if", dest="policy", choices=("q", "worst"), default="q", help="how conditionals are decided"
    )
    parser.add_argument(
        "--compose",
        choices=("phase", "global"),
        default="phase",
        help="bound each phase, or the whole program",
    )
    parser.add_argument("--cores", type=whole(0), default=0, metavar="N", help="cores that the workers share")
    parser.add_argument(
        "--schedule",
        choices=("turn", "heft", "latency-heft", "cpop", "fastest", "portfolio"),
        default="turn",
        help="how tasks of a graph are assigned to ranks (default: %(default)s; others need --model)",
    )


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.progress import progress
    from fembench.cli.options import typed_command
    from fembench_studies.programs.program_session import ProgramPlace, run_program, run_with_network
    from fembench_studies.programs.program_text import as_text

    place = ProgramPlace(
        folder=Path(options.results) / "runs",
        output=options.output,
        hostfile=options.hostfile,
        command=typed_command(),
    )
    settings = _settings(options)
    if options.machine:
        record, text, good, path = run_with_network(
            settings, options.machine, options.send, place, model=options.model, tell=progress
        )
    else:
        record, path = run_program(
            settings, place, model=options.model, calibrate=options.calibrate, tell=progress
        )
        text, good = as_text(record), record.error <= 1 and not record.invalid
    if options.json:
        print(json_text(record))
    else:
        print(f"{text}\nrecord: {path}")
    return 0 if good else 1


def _settings(options: argparse.Namespace):
    """The options as values. Raises InputError if they conflict with --machine."""
    from fembench.errors import InputError
    from fembench_studies.programs.settings import ProgramSettings

    held = options.calibrate or options.emulate or options.dilate != 1 or options.schedule != "turn"
    if options.machine and held:
        raise InputError("--machine cannot be combined with --calibrate, --emulate, --dilate or --schedule")
    return ProgramSettings(
        program=_program_of(options.program),
        operations=tuple(_count(entry) for entry in options.count),
        ranks=options.ranks,
        tasks=options.tasks,
        size=options.size,
        n_bytes=options.bytes,
        static=options.static,
        repetitions=options.repetitions or (0 if options.machine else 4),
        samples=options.samples,
        emulate=options.emulate,
        dilate=options.dilate,
        seed=options.seed,
        schedule=options.schedule,
        compose=options.compose,
        policy=options.policy,
        cores=options.cores,
    )


def _program_of(text: str) -> str:
    """A program's name, or the absolute path of a user's file. Raises InputError."""
    from fembench.errors import InputError
    from fembench_studies.programs.user_task import is_code
    from fembench_studies.scheduling.graph_files import is_graph_file

    if text in FARMS + GRAPHS:
        return text
    if not is_code(text) and not is_graph_file(text):
        known = ", ".join(FARMS + GRAPHS)
        raise InputError(
            f"'{text}': expected {known}; or a file: a task (.py, .so) or a graph (.json, .dot, .gv)"
        )
    return str(Path(text).resolve())


def _count(entry: str) -> tuple[str, float]:
    from fembench.errors import InputError

    name, _, number = entry.partition("=")
    try:
        count = float(number)
    except ValueError:
        count = -1.0
    if not name or not 0 <= count < float("inf"):
        raise InputError(f"--count '{entry}': expected an operation and its number, as in sum_double=1e8")
    return name, count
