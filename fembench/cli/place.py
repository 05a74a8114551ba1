"""Which part goes on which host: the placement of least predicted iteration time, as a launcher's file.

The record of any run on this many ranks says what each part computes and to whom it sends; the hosts are
given with slots, cores and relative speed, or are those of a machine profile, whose network then says what
messages cost. Greedy starts and pairwise exchange by HLogP; the simulated iteration decides between them, and
exchanges further. Examples:
  fembench place results/single/runs/m3-p4-r1.json --machine machine.json
  fembench place results/single/runs/m3-p4-r1.json --hosts fast:4:2:1,slow:4:1:0.5
  fembench place RECORD --hosts a:2:2,b:2:2 --link 50e-6,118e6 --format rankfile -o ranks.txt
  fembench place RECORD --hosts a:2:2,b:2:2 --format slurm -o tasks.txt
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

MANY = 16  # ranks from which it takes more than a second or two


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help="of a run of fembench run on as many ranks")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--machine", default="", metavar="FILE", help="profile of fembench characterize --network"
    )
    where.add_argument(
        "--hosts",
        default="",
        metavar="NAME:SLOTS[:CORES[:SPEED]],…",
        help="speed 1: as where the record was made",
    )
    parser.add_argument(
        "--link", default="50e-6,118e6", metavar="S,B/S", help="between hosts (default: %(default)s)"
    )
    parser.add_argument(
        "--inside", default="1e-6,5e9", metavar="S,B/S", help="inside a host (default: %(default)s)"
    )
    parser.add_argument(
        "--format",
        choices=("rankfile", "hostfile", "mpich", "slurm"),
        default="rankfile",
        help="default: rankfile",
    )
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="the launcher's file")
    parser.add_argument("--json", action="store_true", help="print the placement as JSON")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.base.files import write_atomic
    from fembench.records.store import load
    from fembench.schedule.files import FORMATS, LAUNCH

    record = load(options.record)
    ground = _profiled(options.machine) if options.machine else _given(options)
    hosts = ground.hosts
    found, computes = _search(record, ground, _speeds(record, hosts if options.machine else []))
    text = FORMATS[options.format](found.place, hosts)
    if options.output:
        write_atomic(options.output, text)
    if options.json:
        print(json.dumps({"hosts": [hosts[p].name for p in found.place], "iteration_seconds": found.seconds}))
        return 0
    print(_text(found, hosts, computes))
    if options.output:
        how = LAUNCH[options.format].format(path=options.output, ranks=record.case.ranks)
        print(f"\n{options.output}: {how}")
    else:
        print(f"\n{text}", end="")
    return 0


def _search(record, ground: "Ground", speeds: list[float]) -> tuple:
    """(the placement, [rank] seconds that it computes there in an iteration)."""
    import functools

    from fembench.cli.shared import progress
    from fembench.predict.placed import iteration_on, prices_of
    from fembench.predict.workload import of_record
    from fembench.schedule.iteration import Parts, iteration_seconds, platform_of, shared
    from fembench.schedule.placement import JUDGED, best_placement

    hosts, part, prices = ground.hosts, record.partition, prices_of(record, speeds)
    parts = Parts(tuple(p.computing for p in prices), part.neighbours, part.message_bytes)
    platform, work = platform_of(hosts, ground.messages), of_record(record)

    @functools.cache
    def simulated(place: tuple[int, ...]) -> float:
        return iteration_on(work, prices, shared(hosts, place), ground.machine(place))

    if record.case.ranks >= MANY:
        progress(f"place: simulates up to {JUDGED} placements of {record.case.ranks} ranks")
    found = best_placement(
        parts, hosts, lambda place: iteration_seconds(parts, hosts, platform, place), simulated
    )
    return found, [s * slower for s, slower in zip(parts.compute, shared(hosts, found.place))]


def _text(found, hosts: list, computes: list[float]) -> str:
    from fembench.base.tables import table
    from fembench.base.units import seconds

    ranks = [[r, hosts[p].name, seconds(computes[r])] for r, p in enumerate(found.place)]
    judged = sorted([*found.starts, (found.start, found.seconds)], key=lambda pair: -pair[1])
    return "\n".join(
        [
            table(["rank", "host", "computes, an iteration"], ranks, align="rlr"),
            "",
            table(["placement", "predicted iteration"], [[n, seconds(t)] for n, t in judged], align="lr"),
        ]
    )


class Ground(NamedTuple):
    """Hosts, what messages cost on them, and the machine of ranks on them."""

    hosts: list
    messages: Callable
    machine: Callable  # [rank] -> host: to simulate


def _given(options: argparse.Namespace) -> Ground:
    from fembench.predict.placed import two_networks

    hosts = _hosts(options.hosts)
    names = [h.name for h in hosts]
    between, inside = _pair(options.link), _pair(options.inside)
    return Ground(
        hosts, _messages(between, inside), lambda place: two_networks(place, names, between, inside)
    )


def _profiled(path: str) -> Ground:
    """Those of a machine profile; of a host's ranks the median speed, the fastest host has 1."""
    import dataclasses

    import numpy as np

    from fembench.base.errors import InputError
    from fembench.predict.forecast import with_collectives
    from fembench.predict.heterogeneity import from_product, relative
    from fembench.predict.hlogp import message_cost
    from fembench.predict.slots import Slot, machine_of
    from fembench.records.network import class_of
    from fembench.records.profile import load_profile
    from fembench.schedule.iteration import Host
    from fembench.schedule.platform import Message

    profile = load_profile(path)
    network, environment = profile.network, profile.environment
    if network is None:
        raise InputError(f"{path}: no network in it; expected a profile of fembench characterize --network")
    placed, by_rank = np.array(environment.rank_host), from_product(profile)
    slow = relative(np.array([np.median(by_rank[placed == k]) for k in range(len(environment.hosts))]))
    hosts = [
        Host(h.name, int((placed == k).sum()), max(h.cores, 1), float(slow[k]))
        for k, h in enumerate(environment.hosts)
    ]

    def message(size: float, source: int, target: int) -> Message:
        one = class_of(network, source, target)
        return Message(*message_cost(one, size, same_host=source == target))

    def machine(place: tuple):
        slots = [Slot(p, p, environment.rank_host.index(p)) for p in place]
        return dataclasses.replace(machine_of(profile, slots), collective=reduced)

    everyone = [Slot(p, p, rank) for rank, p in enumerate(environment.rank_host)]
    reduced = with_collectives(machine_of(profile, everyone), profile).collective
    return Ground(hosts, message, machine)


def _hosts(text: str) -> list:
    from fembench.base.errors import InputError
    from fembench.schedule.iteration import Host

    hosts = []
    for word in text.split(","):
        try:
            name, slots, *rest = word.strip().split(":")
            cores = int(rest[0]) if rest else int(slots)
            speed = float(rest[1]) if len(rest) > 1 else 1.0
            hosts.append(Host(name, int(slots), cores, 1 / speed))
        except (ValueError, ZeroDivisionError):
            raise InputError(
                f"hosts: cannot read '{word}'; expected NAME:SLOTS:CORES:SPEED, as a:4:2:0.5"
            ) from None
    return hosts


def _pair(text: str) -> tuple[float, float]:
    """(seconds of latency, bytes/s). Raises InputError."""
    from fembench.base.errors import InputError

    try:
        latency, bandwidth = (float(word) for word in text.split(","))
    except ValueError:
        raise InputError(f"link '{text}': expected seconds and bytes a second, as 50e-6,118e6") from None
    if latency < 0 or bandwidth <= 0:
        raise InputError(f"link '{text}': expected a latency of 0 or more, and a bandwidth above 0")
    return latency, bandwidth


def _messages(between: tuple[float, float], inside: tuple[float, float]) -> Callable:
    """As HLogP messages."""
    from fembench.schedule.platform import Message

    def message(size: float, source: int, target: int) -> Message:
        latency, bandwidth = inside if source == target else between
        return Message(0.0, latency + size / bandwidth, 0.0)

    return message


def _speeds(record, hosts: list) -> list[float]:
    """[rank] how fast it computed, against a core of its own on a host of speed 1; where the record was made
    on one of these hosts, against that one's."""
    from fembench.machine.emulate import parse_speeds

    slowness = {host.name: host.slowness for host in hosts}
    environment, placed = record.environment, record.environment.rank_host
    speeds = [
        speed / slowness.get(environment.hosts[k].name, 1.0)
        for speed, k in zip(parse_speeds(record.case.emulate, record.case.ranks), placed)
    ]
    if record.case.emulate:  # each as if on a core of its own
        return speeds
    return [s / max(1.0, placed.count(k) / environment.hosts[k].cores) for s, k in zip(speeds, placed)]
