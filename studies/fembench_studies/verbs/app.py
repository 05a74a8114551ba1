"""Run a small parallel program, predicted before it runs.

Farms (a coordinator distributes tasks to workers): pi primes matrices partial integral product, or a task of
your own: a Python file with a function work. Task graphs: ring fork join diamond fork-join. Calibrate first,
then run; the prediction is written before the run starts.
With --machine, the real messages of a ring, fork or join are predicted from a measured network (Os, L, Or)
and a calibration made just before; the error is that of the median, or INVALID if the runs vary too much.

Examples:
  fembench study app ring --machine machine.json --bytes 4194304        # from characterize --network
  fembench study app pi --ranks 3                                       # run, check, record
  fembench study app pi --ranks 5 --calibrate -o machine.json           # samples of its operations
  fembench study app pi --ranks 5 --model machine.json                  # predicted, run, scored
  fembench study app diamond --ranks 4 --schedule heft --model machine.json   # scheduled, not in turn
  fembench study app task.py --ranks 3 --size 1000 --model task.json    # a task of your own, work(data, size)
  fembench study app pi --ranks 5 --emulate 1,1,.86,.86,.635 --dilate 16  # SYNTHETIC: unequal hosts
"""

import argparse
from pathlib import Path

FARMS = ("pi", "primes", "matrices", "partial", "integral", "product")
GRAPHS = ("ring", "fork", "join", "diamond", "fork-join")
OPTIONS = f"""
program NAME|FILE: {", ".join(FARMS + GRAPHS)}; or a file
--ranks N = 2: MPI ranks, coordinator included
--tasks N: number of tasks (default: the program's own)
--size N: size of a task: points, numbers, rows, or units of work in a graph
--bytes N = 65536: message size in a graph
--static FRACTION = 1: fraction of the tasks assigned in advance; the rest on demand
--repetitions N: runs in one job (default: 4; --machine: 100)
--emulate S,S,...: SYNTHETIC: speed of each rank
--dilate FACTOR = 1: SYNTHETIC: slow all ranks down by this factor
--hostfile, --rankfile FILE: hosts for mpiexec or srun: a host file, or a rankfile for Open MPI
--calibrate: sample the operations instead of running
--samples N = 20: samples of each operation
--model RECORD: predict from this calibration
--machine PROFILE: ring, fork, join: predict messages from the network of this profile
--send isend|send = isend: with --machine: send messages by MPI_Isend or MPI_Send
--schedule turn|heft|latency-heft|fastest = turn: how tasks of a graph are assigned to ranks; others than turn
    need --model
--seed N: seed of the random numbers
--results DIR = results/apps: folder for the record
-o, --output FILE: write the record to this file
--json: print the record as JSON
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import declare, real, whole

    declare(parser, OPTIONS, bytes=whole(0), seed=whole(0), static=real(0, 1), dilate=real(1))


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.progress import progress
    from fembench.cli.options import typed_command
    from fembench_studies.programs.program_session import ProgramPlace, run_program, run_with_network
    from fembench_studies.programs.program_text import as_text

    place = ProgramPlace(Path(options.results) / "runs", options.output, options.hostfile, typed_command())
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
    print(json_text(record) if options.json else f"{text}\nrecord: {path}")
    return 0 if good else 1


def _settings(options: argparse.Namespace):
    """The options as values. Raises InputError if they conflict with --machine."""
    from fembench.cli.options import call
    from fembench.errors import InputError
    from fembench_studies.programs.settings import ProgramSettings

    held = options.calibrate or options.emulate or options.dilate != 1 or options.schedule != "turn"
    if options.machine and held:
        raise InputError("--machine cannot be combined with --calibrate, --emulate, --dilate or --schedule")
    return call(
        ProgramSettings,
        options,
        program=_program_of(options.program),
        n_bytes=options.bytes,
        repetitions=options.repetitions or (0 if options.machine else 4),
    )


def _program_of(text: str) -> str:
    """A program's name, or the absolute path of a user's file. Raises InputError."""
    from fembench.errors import InputError
    from fembench_studies.programs.user_task import is_code

    if text in FARMS + GRAPHS:
        return text
    if not is_code(text):
        known = ", ".join(FARMS + GRAPHS)
        raise InputError(f"'{text}': expected {known}; or a file with a task (.py)")
    return str(Path(text).resolve())
