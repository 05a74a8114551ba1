"""Options of `characterize` for single operations, and the machine file that
follows from their samples."""

import argparse
import time
from pathlib import Path

from fembench.cli.options import declare, real, whole
from fembench.errors import InputError

OPTIONS = """
[operations] the file of -o is then a machine model, for `study pasl` and `study app`
--operations: measure single operations by type, and messages to rank 0, instead of kernels; append them to a
  history and write its intervals
--idle: keep only samples taken while no other process uses the hosts; try for up to five minutes
--times N = 1: measure N times (default: 1)
--every SECONDS: pause between these measurements
--history FILE: the samples (default: by -o, as in park.samples.json)
--keep N = 0: samples kept per operation, the latest (default: as in the history; 50 in a new one)
"""


def operations_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the group of options."""
    declare(parser, OPTIONS, times=whole(1), every=real(0), keep=whole(1))


def check_operations(options: argparse.Namespace) -> None:
    """Raises InputError for options that do not fit together."""
    usual = {"idle": False, "times": 1, "every": 0.0, "history": "", "keep": 0}
    changed = [name for name, value in usual.items() if getattr(options, name) != value]
    if changed and not options.operations:
        raise InputError(f"--{changed[0]} without --operations")
    others = ("network", "add_to", "emulate", "json")
    given = [name for name in others if getattr(options, name)]
    if options.operations and (given or options.dilate != 1):
        raise InputError(
            f"--operations cannot be combined with --{(given or ['dilate'])[0].replace('_', '-')}"
        )
    if options.operations and not options.output:
        raise InputError("--operations: expected -o FILE for the machine model")


def run_operations(options: argparse.Namespace, ranks: int, hostfile: str, folder: Path) -> int:
    """Measure, append to the history, write the machine file; 1 if
    the hosts were never idle."""
    import msgspec

    from fembench.base.config import json_text, read_json
    from fembench.base.files import write_atomic
    from fembench.base.progress import progress, working
    from fembench.base.units import plural
    from fembench_studies.pamela import history as store
    from fembench_studies.pamela.operations_job import measure_operations

    path = Path(options.history or Path(options.output).with_suffix(".samples.json"))
    known = read_json(path, store.History) if path.exists() else store.History()
    known = msgspec.structs.replace(known, kept=options.keep or known.kept)
    before, discarded = known, 0
    for turn in range(options.times):
        if turn:
            time.sleep(options.every)
        with working("characterize: measuring operations"):
            found = measure_operations(
                ranks,
                rounds=ROUNDS[options.quick],
                idle=options.idle,
                hostfile=hostfile,
                scratch=folder,
                tell=lambda text: progress(f"operations: {text}"),
            )
        discarded += found.discarded
        known = store.with_samples(known, found)
        if known is not before:
            write_atomic(path, json_text(known))
            write_atomic(options.output, store.model_text(known))
    if discarded:
        print(f"{plural(discarded, 'round')} discarded: other processes used the hosts")
    if known is before:
        return 1
    print(f"{store.summary(known)}\nsamples: {path}\nmachine model: {options.output}")
    return 0


ROUNDS = {False: 10, True: 3}  # --quick -> samples of everything
