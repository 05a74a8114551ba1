"""Choose which host computes which part of the mesh.

Finds the placement with the shortest predicted iteration and writes it as a file for the launcher. The record
of any run on this number of ranks says what each part computes and with which parts it exchanges messages.
Give the hosts with their slots, cores and relative speed, or a machine profile with measured speeds and
network. Greedy placements are improved by pairwise exchange; a simulated iteration decides between them.

Examples:
  fembench place results/single/runs/m3-*.json --machine machine.json
  fembench place results/single/runs/m3-*.json --hosts fast:4:2:1,slow:4:1:0.5
  fembench place record.json --hosts a:2:2,b:2:2 --link 50e-6,118e6 --format rankfile -o ranks.txt
  fembench place record.json --hosts a:2:2,b:2:2 --format slurm -o tasks.txt
"""

import argparse
import re
from collections.abc import Sequence

_HOST = re.compile(
    r"(?P<name>[^\s:,]+):(?P<slots>[0-9]{1,6})(?::(?P<cores>[0-9]{1,6}))?(?::(?P<speed>[^:]+))?"
)
MANY = 16  # ranks from which it takes more than a second or two


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help="record of a run on this number of ranks")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--machine", default="", metavar="FILE", help="machine profile with a network")
    where.add_argument(
        "--hosts",
        default="",
        metavar="HOSTS",
        help="NAME:SLOTS[:CORES[:SPEED]],…; speed 1 is that of the hosts of the record",
    )
    parser.add_argument(
        "--link", default="50e-6,118e6", metavar="SECONDS,BYTES/S", help="network between hosts"
    )
    parser.add_argument(
        "--inside", default="1e-6,5e9", metavar="SECONDS,BYTES/S", help="messages inside a host"
    )
    parser.add_argument(
        "--format",
        choices=("rankfile", "hostfile", "mpich", "slurm"),
        default="rankfile",
        help="format of the file for the launcher",
    )
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="write the file for the launcher")
    parser.add_argument("--json", action="store_true", help="print the placement as JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.base.files import write_atomic
    from fembench.base.progress import progress, working
    from fembench.model.configuration import not_invalid
    from fembench.model.hosts_for_parts import given, measured
    from fembench.model.placement import FORMATS, JUDGED, LAUNCH
    from fembench.records.hlogp import parse_link
    from fembench.records.profile import load_profile, provisional
    from fembench.records.store import load

    record = not_invalid([load(options.record)])[0][0]
    warning = ""
    if options.machine:
        profile = load_profile(options.machine)
        ground, warning = measured(record, profile, options.machine), provisional(profile)
    else:
        links = parse_link(options.link)[:2], parse_link(options.inside)[:2]
        ground = given(record, _speeds(record), hosts_of(options.hosts), *links)
    ranks = record.case.placement.ranks
    if ranks >= MANY:
        progress(f"place: simulates up to {JUDGED} placements of {ranks} ranks")
    with working("place: searching"):
        hosts, found = ground.hosts, ground.best()
    text = FORMATS[options.format](found.place, hosts)
    if options.output:
        write_atomic(options.output, text)
    if options.json:
        tree = {"hosts": [hosts[p].name for p in found.place], "iteration_seconds": found.seconds}
        print(json.dumps(tree | ({"provisional": warning} if warning else {})))
        return 0
    if warning:
        print(f"{warning}\n")
    print(_text(found, hosts, [price.computing for price in ground.prices(found.place)]))
    if options.output:
        how = LAUNCH[options.format].format(path=options.output, ranks=record.case.placement.ranks)
        print(f"\n{options.output}: {how}")
    else:
        print(f"\n{text}", end="")
    return 0


def _text(found, hosts: Sequence, computes: Sequence[float]) -> str:
    from fembench.base.tables import table
    from fembench.base.units import seconds

    ranks = [[r, hosts[p].name, seconds(computes[r])] for r, p in enumerate(found.place)]
    judged = sorted([*found.starts, (found.start, found.seconds)], key=lambda pair: -pair[1])
    return "\n".join(
        [
            table(["rank", "host", "computing per iteration"], ranks, align="rlr"),
            "",
            table(["placement", "predicted iteration"], [[n, seconds(t)] for n, t in judged], align="lr"),
        ]
    )


def hosts_of(text: str) -> list:
    """The hosts in NAME:SLOTS:CORES:SPEED,…. Raises InputError."""
    from fembench.base.errors import InputError, shown
    from fembench.model.iteration_time import CandidateHost

    hosts: list[CandidateHost] = []
    for word in text.split(","):
        found = _HOST.fullmatch(word.strip())
        speed = _finite(found["speed"] or "1") if found else 0.0
        if not found or speed <= 0:
            raise InputError(
                f"hosts: cannot read '{shown(word)}'; expected NAME:SLOTS:CORES:SPEED, such as a:4:2:0.5"
            )
        if any(host.name == found["name"] for host in hosts):
            raise InputError(
                f"hosts: {found['name']} is given twice; expected one entry per host, with all its slots"
            )
        slots = int(found["slots"])
        hosts.append(CandidateHost(found["name"], slots, int(found["cores"] or slots), 1 / speed))
    return hosts


def _finite(text: str) -> float:
    """The number in a text; 0 if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 1e-9 <= value <= 1e9 else 0.0


def _speeds(record) -> list[float]:
    """[rank] speed, relative to an unshared core of speed 1."""
    from fembench.synthetic.speeds import parse_speeds

    environment, placed = record.environment, record.environment.rank_host
    speeds = parse_speeds(record.case.synthetic.emulate, record.case.placement.ranks)
    if record.case.synthetic.emulate:  # each as if it had a core for itself
        return list(speeds)
    return [s / max(1.0, placed.count(k) / environment.hosts[k].cores) for s, k in zip(speeds, placed)]
