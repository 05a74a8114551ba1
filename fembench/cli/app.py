"""Run a small parallel program of the source theses, predicted before it runs.

Farms (a coordinator deals tasks to workers): pi primes matrices partial integral product. Task graphs: ring
fork join diamond fork-join. First calibrate, then run; the prediction is written before the run. With
--machine, real messages of a ring, fork or join are predicted from a measured network (Os, L, Or) and a
calibration made just before; the error is that of the median, INVALID where runs vary too much. Examples:
  fembench app ring --machine machine.json --bytes 4194304              from characterize --network
  fembench app pi --ranks 3                                             run, check, record
  fembench app pi --ranks 5 --calibrate -o machine.json                 samples of its operations
  fembench app pi --ranks 5 --model machine.json                        predicted, run, scored
  fembench app partial --ranks 5 --model machine.json --if worst        as the source thesis did at first
  fembench app diamond --ranks 4 --schedule heft --model machine.json   scheduled, not dealt in turn
  fembench app pi --ranks 9 --emulate 1,1,1,1,1,.86,.86,.635,.635 --dilate 16    SYNTHETIC: unequal machines
"""

import argparse
from pathlib import Path

FARMS = ("pi", "primes", "matrices", "partial", "integral", "product")
GRAPHS = ("ring", "fork", "join", "diamond", "fork-join")


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real, whole

    parser.add_argument("program", choices=FARMS + GRAPHS, metavar="NAME", help=", ".join(FARMS + GRAPHS))
    parser.add_argument(
        "--ranks", type=whole(1), default=2, metavar="N", help="MPI ranks, coordinator included"
    )
    parser.add_argument(
        "--tasks", type=whole(0), default=0, metavar="N", help="tasks (default: as the thesis)"
    )
    parser.add_argument(
        "--size",
        type=whole(0),
        default=0,
        metavar="N",
        help="points, numbers, rows; units of work of a graph's task",
    )
    parser.add_argument("--bytes", type=whole(0), default=65536, metavar="N", help="of a message in a graph")
    parser.add_argument(
        "--static", type=real(0, 1), default=1.0, metavar="F", help="part of the tasks dealt before"
    )
    parser.add_argument(
        "--repetitions",
        type=whole(1),
        default=0,
        metavar="N",
        help="runs in one job (default: 4; --machine: 20)",
    )
    parser.add_argument("--emulate", default="", metavar="S,S,...", help="SYNTHETIC: speed of each rank")
    parser.add_argument(
        "--dilate", type=real(1), default=1.0, metavar="F", help="SYNTHETIC: all ranks compute F times slower"
    )
    parser.add_argument(
        "--hostfile",
        "--rankfile",
        default="",
        metavar="FILE",
        help="hosts for mpiexec or srun, or Open MPI's rankfile",
    )
    parser.add_argument("--calibrate", action="store_true", help="sample the operations instead of running")
    parser.add_argument("--samples", type=whole(1), default=20, metavar="N", help="of each operation")
    parser.add_argument("--model", default="", metavar="RECORD", help="predict from this calibration")
    parser.add_argument(
        "--machine",
        default="",
        metavar="PROFILE",
        help="ring, fork, join: messages predicted from its network",
    )
    parser.add_argument(
        "--send",
        choices=("isend", "send"),
        default="isend",
        help="--machine: messages by MPI_Isend or MPI_Send (default: %(default)s)",
    )
    parser.add_argument(
        "--if", dest="policy", choices=("q", "worst"), default="q", help="how conditionals are decided"
    )
    parser.add_argument(
        "--compose", choices=("phase", "global"), default="phase", help="bounds by phase or not"
    )
    parser.add_argument("--cores", type=whole(0), default=0, metavar="N", help="cores that the workers share")
    parser.add_argument(
        "--schedule",
        choices=("turn", "heft", "latency-heft", "cpop", "fastest", "portfolio"),
        default="turn",
        help="tasks of a graph to ranks (default: %(default)s; others need --model)",
    )
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N")
    parser.add_argument("--results", default="results/apps", metavar="DIR", help="default: %(default)s")
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="the record goes here")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")


def run(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.cli.shared import progress, typed_command
    from fembench.launch.scratch import occupied, reserved
    from fembench.studies.programs.cases import both, case_of
    from fembench.studies.programs.launch import launch
    from fembench.studies.programs.record import load_app, save_app

    folder = Path(options.results) / "runs"
    if options.machine:
        return _real_messages(options, folder)
    options.repetitions = options.repetitions or 4
    calibration = load_app(options.model) if options.model else None
    case = case_of(options, calibration)
    told = calibration if not options.calibrate else None
    before, graph = both(case, told, options) if told else (None, None)
    for p in filter(None, (before, graph)):
        progress(f"predicted: {p.low:.4g} to {p.high:.4g} s ({p.method})")
    with occupied(folder, shared=True), reserved(folder, f"{case.program}-p{case.ranks}") as id:
        record = launch(
            case,
            id=id,
            scratch=folder,
            command=typed_command(),
            hostfile=options.hostfile,
            predicted=before,
            simulated=graph,
            calibrate=options.samples if options.calibrate else 0,
        )
        path = Path(options.output) if options.output else folder / f"{id}.json"
        save_app(record, path)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(record), indent=1).decode())
    else:
        print(_text(record))
        print(f"record: {path}")
    return 1 if record.error > 1 else 0


def _real_messages(options: argparse.Namespace, folder: Path) -> int:
    """A ring, fork or join predicted from the profile's network, run, scored. Raises InputError."""
    import msgspec

    from fembench.base.errors import InputError
    from fembench.cli.shared import progress, typed_command
    from fembench.launch.scratch import occupied, reserved
    from fembench.records.profile import host_names, load_profile
    from fembench.studies.programs.real_messages import as_text, case_of_messages, judged, predicted_run
    from fembench.studies.programs.record import load_app, save_app

    if options.calibrate or options.emulate or options.dilate != 1 or options.schedule != "turn":
        raise InputError("--machine: expected no --calibrate, --emulate, --dilate or --schedule beside it")
    profile = load_profile(options.machine)
    case = case_of_messages(
        options.program,
        options.ranks,
        options.send,
        n_bytes=options.bytes,
        tasks=options.tasks,
        units=options.size,
        repetitions=options.repetitions,
    )
    with occupied(folder, shared=True), reserved(folder, f"{case.program}-p{case.ranks}") as id:
        record = predicted_run(
            case,
            profile,
            id=id,
            scratch=folder,
            source=options.machine,
            calibration=load_app(options.model) if options.model else None,
            samples=options.samples,
            command=typed_command(),
            hostfile=options.hostfile,
            say=progress,
        )
        path = Path(options.output) if options.output else folder / f"{id}.json"
        save_app(record, path)
    found = judged(record, host_names(profile))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(record), indent=1).decode())
    else:
        print(f"{as_text(record, found)}\nrecord: {path}")
    return 1 if found[0].reason else 0


def _messages(record) -> list[list]:
    """What they take, and how long those of a farm keep workers: over all ranks."""
    from fembench.base.units import seconds
    from fembench.studies.pamela.program_models import keeping

    rows = []
    kinds = {"under way": record.messages, "taking a task": record.taking, "answering": record.answering}
    for kind, samples in kinds.items():
        found = keeping(samples, record.case.ranks).sends if samples else {}
        for n_bytes in map(int, samples):
            each = [by_size[n_bytes] for by_size in found.values()]
            if each:
                rows.append(
                    [kind, n_bytes, seconds(min(i.low for i in each)), seconds(max(i.high for i in each))]
                )
    return rows


def _text(record) -> str:
    """Times and the score of the prediction, or the intervals of a calibration."""
    from fembench.base.tables import table
    from fembench.base.units import seconds

    label = [f"SYNTHETIC: {record.environment.synthetic}"] if record.environment.synthetic else []
    if record.samples:
        from fembench.studies.pamela.program_models import machine_of

        model = machine_of(record)
        rows = [
            [name, p, seconds(i.low), seconds(i.high), f"{100 * i.half_width:.1f} %"]
            for name in record.samples
            for p, i in ((p, model.cost(name, p)) for p in range(record.case.ranks))
        ]
        operations = table(["operation", "rank", "from", "to", "half width"], rows)
        messages = table(["messages with rank 0", "bytes", "from", "to"], _messages(record), align="lrrr")
        return "\n\n".join([*label, operations, messages])
    from fembench.model.interval import TimeRange
    from fembench.studies.pamela.interval_score import score

    found = record.seconds
    right = "right" if record.error <= 1 else "WRONG"
    heads, rows = ["", "nr", "seconds"], [["run", k, seconds(t)] for k, t in enumerate(found, 1)]
    lines = [f"{record.case.program} on {record.case.ranks} ranks: {record.value:.10g} ({right})"]
    for p in filter(None, (record.predicted, record.simulated)):
        s = score(found, [TimeRange(p.low, p.high)] * len(found))
        rows = [[*row, f"{100 * e:+.2f} %"] for row, e in zip(rows, s.errors)]
        heads.append(f"outside by, {p.method}")
        lines.append(
            f"predicted {p.low:.4g} to {p.high:.4g} s ({p.method}; {p.compose}, {p.conditionals}): "
            f"mean error {100 * s.mean_error:.2f} %, {s.hits} of {len(found)} inside, "
            f"middle off by {100 * s.middle_error:.2f} %"
        )
    return "\n\n".join([*label, table(heads, rows, align="l" + "r" * (len(heads) - 1)), "\n".join(lines)])
