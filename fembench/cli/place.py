"""Which part goes on which host: the placement of least predicted iteration time, as a launcher's file.

The record of any run on this many ranks says what each part computes and to whom it sends; the hosts are
given with slots, cores and relative speed, or are those of a machine profile, whose network then says what
messages cost. Greedy starts and pairwise exchange, judged by HLogP. Examples:
  fembench place results/single/runs/m3-p4-r1.json --machine machine.json
  fembench place results/single/runs/m3-p4-r1.json --hosts fast:4:2:1,slow:4:1:0.5
  fembench place RECORD --hosts a:2:2,b:2:2 --link 50e-6,118e6 --format rankfile -o ranks.txt
  fembench place RECORD --hosts a:2:2,b:2:2 --format slurm -o tasks.txt
"""

import argparse


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
    from fembench.base.tables import table
    from fembench.base.units import seconds
    from fembench.records.store import load
    from fembench.schedule.files import FORMATS, LAUNCH
    from fembench.schedule.iteration import iteration_seconds, platform_of
    from fembench.schedule.placement import best_placement

    record = load(options.record)
    hosts, messages = _profiled(options.machine) if options.machine else _given(options)
    parts = _parts(record, hosts if options.machine else [])
    platform = platform_of(hosts, messages)
    found = best_placement(parts, hosts, lambda place: iteration_seconds(parts, hosts, platform, place))
    text = FORMATS[options.format](found.place, hosts)
    if options.output:
        write_atomic(options.output, text)
    if options.json:
        print(json.dumps({"hosts": [hosts[p].name for p in found.place], "iteration_seconds": found.seconds}))
        return 0
    rows = [
        [r, hosts[p].name, seconds(parts.compute[r] * hosts[p].slowness)] for r, p in enumerate(found.place)
    ]
    print(table(["rank", "host", "computes, an iteration"], rows, align="rlr"))
    judged = sorted([*found.starts, (found.start, found.seconds)], key=lambda pair: -pair[1])
    print(
        "\n" + table(["placement", "predicted iteration"], [[n, seconds(t)] for n, t in judged], align="lr")
    )
    if options.output:
        print(
            f"\n{options.output}: " + LAUNCH[options.format].format(path=options.output, ranks=parts.n_ranks)
        )
    else:
        print(f"\n{text}", end="")
    return 0


def _given(options: argparse.Namespace) -> tuple:
    return _hosts(options.hosts), _messages(options)


def _profiled(path: str) -> tuple:
    """(hosts, messages) of a machine profile; of a host's ranks the median speed, the fastest host has 1."""
    import numpy as np

    from fembench.base.errors import InputError
    from fembench.predict.heterogeneity import from_product, relative
    from fembench.predict.hlogp import message_cost
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

    return hosts, message


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


def _messages(options: argparse.Namespace):
    """Latency and bandwidth between hosts and inside one, as HLogP messages."""
    from fembench.base.errors import InputError
    from fembench.schedule.platform import Message

    def pair(text: str) -> tuple[float, float]:
        try:
            latency, bandwidth = (float(word) for word in text.split(","))
        except ValueError:
            raise InputError(f"link '{text}': expected seconds and bytes a second, as 50e-6,118e6") from None
        if latency < 0 or bandwidth <= 0:
            raise InputError(f"link '{text}': expected a latency of 0 or more, and a bandwidth above 0")
        return latency, bandwidth

    between, inside = pair(options.link), pair(options.inside)

    def message(size: float, source: int, target: int) -> Message:
        latency, bandwidth = inside if source == target else between
        return Message(0.0, latency + size / bandwidth, 0.0)

    return message


def _parts(record, hosts: list):
    """What each rank computes in an iteration, at speed 1 on a core of its own, and to whom it sends; where
    the record was made on one of these hosts, it was at that one's speed."""
    import numpy as np

    from fembench.machine.emulate import parse_speeds
    from fembench.records.validity import timed_sets
    from fembench.schedule.iteration import Parts

    at = [k for k, name in enumerate(record.phases) if name in COMPUTE]
    sets = [s for s in timed_sets(record) if s.iterations]
    per = np.median([np.asarray(s.seconds)[:, at].sum(axis=1) / s.iterations for s in sets], axis=0)
    slowness = {host.name: host.slowness for host in hosts}
    environment, placed = record.environment, record.environment.rank_host
    speeds = np.asarray(parse_speeds(record.case.emulate, record.case.ranks))
    speeds = speeds / [slowness.get(environment.hosts[k].name, 1.0) for k in placed]
    if not record.case.emulate:  # ranks of a host shared its cores
        speeds = speeds / [max(1.0, placed.count(k) / environment.hosts[k].cores) for k in placed]
    part = record.partition
    return Parts(tuple((per * speeds).tolist()), part.neighbours, part.message_bytes)


COMPUTE = ("cg.spmv_interior", "cg.spmv_interface", "cg.dot", "cg.axpy", "cg.precond")
