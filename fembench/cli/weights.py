"""Turn measurements into each rank's share of the mesh.

A rule says how: `time` uses the total time of runs; `rate` the speed in each phase, from runs or from a
machine profile; `comm` equalises finish times including communication, and needs --link or --machine;
`tasks` gives each host a whole number of equal tasks, from runs on each host alone.

Examples:
  fembench weights results/single/runs/m3-*.json -o weights.json
  fembench weights results/scaling --mesh m --ranks 2 -o weights.json
  fembench weights results/alone --rule tasks --ranks 8
  fembench weights machine.json --rule rate -o weights.json
  fembench weights results/scaling --rule comm --link 50e-6,125e6 --link slow=1e-3,1e6 --export metis
  fembench weights results/scaling --rule comm --machine machine.json
"""

import argparse
import sys
from pathlib import Path

RULES = ("time", "rate", "comm", "tasks")
FORMATS = ("metis", "petsc", "scotch", "hostfile", "pyfr", "shares")


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import whole

    parser.add_argument(
        "records",
        nargs="+",
        metavar="RECORD",
        help="records, folders of records, a machine profile, or a weights file",
    )
    parser.add_argument(
        "--rule",
        choices=RULES,
        help="how shares follow from measurements (default: time; rate for a machine profile)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the weights (JSON)")
    parser.add_argument("--export", choices=FORMATS, help="print the shares in the format of another program")
    parser.add_argument("--json", action="store_true", help="print the weights as JSON instead of a table")

    chosen = parser.add_argument_group("which records")
    chosen.add_argument("--mesh", default="", metavar="MESH", help="only records of this mesh")
    chosen.add_argument(
        "--ranks",
        type=whole(0),
        default=0,
        metavar="N",
        help="only records with this number of ranks; with rule tasks, the total number of tasks",
    )

    messages = parser.add_argument_group("rule comm")
    messages.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="[HOST=]SECONDS,BYTES/S",
        help="latency and bandwidth of messages between all hosts, or of one host; may be repeated",
    )
    messages.add_argument("--machine", metavar="FILE", help="machine profile with a network")

    profile = parser.add_argument_group("from a machine profile")
    profile.add_argument(
        "--storage", default="sym", metavar="STORAGE", help="storage whose product speed is used"
    )
    profile.add_argument(
        "--iterations", type=whole(0), default=100, metavar="N", help="CG iterations per assembly"
    )
    profile.add_argument(
        "--cells",
        type=whole(0),
        default=0,
        metavar="N",
        help="cells per rank (default: the largest measured number)",
    )


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.progress import progress
    from fembench.records.weights import save_weights
    from fembench.weights.export import FORMATS as WRITERS

    weights = _weights(options)
    if options.output:
        save_weights(weights, options.output)
    if options.export:
        sys.stdout.write(WRITERS[options.export](weights))
        for note in (n for n in weights.notes if n.startswith(("DISTURBED", "PROVISIONAL"))):
            progress(f"note: {note}")
    elif options.json:
        print(json_text(weights))
    else:
        print(as_table(weights))
        if options.output:
            print(f"weights: {options.output}")
    return 0


def _weights(options: argparse.Namespace):
    """Weights from records by the chosen rule, or from a file of weights."""
    from fembench.base.config import read_json
    from fembench.base.errors import InputError
    from fembench.records.profile import is_profile
    from fembench.records.store import load_each
    from fembench.records.weights import load_weights
    from fembench.weights import make

    paths = [Path(text) for text in options.records]
    if len(paths) == 1 and paths[0].is_file():
        tree = read_json(paths[0], dict)
        if "rule" in tree:
            return load_weights(paths[0])
        if is_profile(tree):
            return _from_profile(options, paths[0])
    rule = options.rule or "time"
    for name in ("link", "machine"):
        if getattr(options, name) and rule != "comm":
            raise InputError(f"--{name} with --rule {rule}; it is for --rule comm")
    records = _chosen(load_each(paths), options.mesh, 0 if rule == "tasks" else options.ranks)
    if rule == "tasks":
        return make.by_tasks(records, options.ranks)
    if rule == "comm":
        return make.by_finish(records, communication_of(records, _wire(options)))
    return make.by_time(records) if rule == "time" else make.by_rate(records)


def _from_profile(options: argparse.Namespace, path: Path):
    from fembench.base.errors import InputError
    from fembench.records.profile import load_profile
    from fembench.weights.from_profile import by_profile

    if options.rule not in (None, "rate"):
        raise InputError(
            f"--rule {options.rule} from the profile {path}: expected --rule rate, or records of runs"
        )
    for name in ("link", "machine", "ranks", "mesh"):
        if getattr(options, name):
            raise InputError(f"--{name} with the profile {path}: expected records of runs")
    return by_profile(
        load_profile(path),
        str(path),
        storage=options.storage,
        iterations=options.iterations,
        cells=options.cells,
    )


def _chosen(records: list, mesh: str, ranks: int) -> list:
    """The records of one mesh ("": any) on `ranks` ranks (0: any). Raises InputError if there are none."""
    from fembench.base.errors import InputError
    from fembench.base.units import plural

    found = [
        r
        for r in records
        if mesh in ("", r.mesh.name, r.case.question.mesh) and (not ranks or r.case.placement.ranks == ranks)
    ]
    if records and not found:
        there = ", ".join(
            sorted({f"{r.mesh.name} on {plural(r.case.placement.ranks, 'rank')}" for r in records})
        )
        asked = " ".join([*([f"--mesh {mesh}"] if mesh else []), *([f"--ranks {ranks}"] if ranks else [])])
        raise InputError(f"{asked}: no such records; there are records of {there}")
    return found


def _wire(options: argparse.Namespace):
    """The cost of a message between two hosts, as given or measured. Raises InputError."""
    from fembench.base.errors import InputError
    from fembench.records.profile import load_profile
    from fembench.weights.links import parse_link, wire_of_links, wire_of_network

    if bool(options.link) == bool(options.machine):
        raise InputError(
            "--rule comm: expected --link SECONDS,BYTES/S or --machine PROFILE, for messages between hosts"
        )
    if options.machine:
        return wire_of_network(load_profile(Path(options.machine)), options.machine)
    links = [parse_link(text) for text in options.link]
    if len(dict(links)) < len(links):
        raise InputError(f"--link {' --link '.join(options.link)}: expected one per host")
    return wire_of_links(dict(links))


def communication_of(records, wire):
    """A function of shares that repartitions the records' mesh and prices its interface on the network."""
    import numpy as np

    from fembench.base.errors import InputError
    from fembench.mesh.presets import resolve
    from fembench.partition.methods import partition
    from fembench.partition.partition import metrics
    from fembench.weights.links import communication_seconds
    from fembench.weights.observe import observe, pooled

    first, seen = records[0], pooled(records)
    if first.case.placement.partitioner == "blocks":
        raise InputError(
            f"{first.id}: partitioner blocks works only under MPI; expected metis or rcb for --rule comm"
        )
    mesh = resolve(first.case.question.mesh)
    if mesh.hash != first.mesh.hash:
        raise InputError(f"mesh {first.case.question.mesh} is not that of {first.id}; expected the same mesh")
    iterations = first.solve.iterations
    sent = iterations * np.array([sum(row) for row in first.partition.message_bytes], float)
    own = np.divide(np.median(seen.messages, axis=0), sent, out=np.zeros(len(sent)), where=sent > 0)
    hosts = observe(first).hosts

    def seconds(shares: tuple[float, ...]):
        made = partition(mesh, shares, method=first.case.placement.partitioner, seed=first.partition.seed)
        facts = metrics(mesh, made)
        return communication_seconds(facts.neighbours, facts.message_bytes, hosts, wire, iterations, own)

    return seconds


def as_table(weights) -> str:
    """Rank, host, share with its interval, cost; then rule, source and age."""
    from fembench.base.tables import table
    from fembench.base.units import plural, seconds
    from fembench.records.record import now_utc
    from fembench.records.weights import age_seconds

    rows = [
        [p, r.host, f"{r.share:.4f}", _interval(r), seconds(r.cost) if r.cost else None, f"{k:.3g}"]
        for p, (r, k) in enumerate(zip(weights.ranks, _relative(weights)))
    ]
    heads = ["rank", "host", "share", "95 % interval", "time per cell", "relative speed"]
    hours = age_seconds(weights, now_utc()) / 3600
    age = f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"
    count = plural(len(weights.source), "record")
    origin = f"{count} of {weights.mesh}" if weights.mesh else "a machine profile"
    head = f"rule {weights.rule}, from {origin}, measured {age} ago"
    label = [f"SYNTHETIC: {weights.synthetic}"] if weights.synthetic else []
    tasks = [f"equal tasks: {', '.join(f'{h} {k}' for h, k in weights.tasks)}"] if weights.tasks else []
    body = table(heads, rows, align="rlrrrr")
    loud = [note for note in weights.notes if note.startswith("DISTURBED")]
    others = [note for note in weights.notes if note not in loud]
    return "\n".join([head, *label, *loud, "", body, "", *tasks, *others])


def _interval(rank) -> str | None:
    return None if rank.low is None else f"{rank.low:.4f} – {rank.high:.4f}"


def _relative(weights) -> list[float]:
    """Speeds of the ranks, relative to the fastest; their shares if no costs are known."""
    speeds = [1 / r.cost if r.cost else r.share for r in weights.ranks]
    return [s / max(speeds) for s in speeds]
