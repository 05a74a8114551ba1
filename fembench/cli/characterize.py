"""Measure the speed of every rank, and the network.

Measures the kernels of fembench: assembly, the product in each storage, vector updates, triad and read,
with data in the second-level cache, in the third and in memory, and with 1, 2, 4, … and all ranks of a host
running. This takes about two minutes, with the hosts measured in parallel, or half a minute with --quick.
The result is a machine profile, which `weights`, `place`, `predict` and `simulate` read.

With --network, it also measures the messages between each pair of hosts, a few seconds per pair: overhead
and latency by message size (HLogP), gaps, all-reduces, several pairs at once, how far messages progress
while ranks compute, how much waiting ranks slow down others, and the slowness H of each rank (three kernels).

Examples:
  fembench characterize --network -o machine.json
  fembench characterize --network --sizes 8,1K,64K,1M,16M --repetitions 50 --send send -o machine.json
  fembench characterize --hosts fast:4,slow:4 --network -o machine.json
  fembench characterize --add-to machine.json --pairs classes --sites 'a=n1,n2;b=n3,n4'
  fembench characterize --emulate 1,1,0.5,0.25 --dilate 4 --quick      # SYNTHETIC speeds, to try it out
  fembench lab run fembench characterize --network -o machine.json     # in a lab, on all its ranks

Next: fembench weights machine.json --rule rate -o weights.json
"""

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fembench.records.network import Method, NetworkSettings

MOST = 1 << 30  # bytes of a message
METHODS: dict[str, "Method"] = {"trains": "I", "pingpong": "II"}  # --method -> name in records (Mendes 2004)


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real, whole

    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--hosts",
        default="",
        metavar="HOSTS",
        help="hosts with their number of ranks, as in fast:4,slow:2; or a file of hosts with their sites, "
        "in the format of Mendes 2004, Fig. 4.1",
    )
    where.add_argument("--hostfile", default="", metavar="FILE", help="MPI host file")
    parser.add_argument(
        "--ranks", type=whole(0), default=0, metavar="N", help="number of ranks (default: one per slot)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter measurements, and messages of up to 1 MiB"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the machine profile (JSON)")
    parser.add_argument("--json", action="store_true", help="print the profile as JSON instead of tables")

    network = parser.add_argument_group("network")
    network.add_argument("--network", action="store_true", help="also measure messages between the ranks")
    network.add_argument(
        "--add-to",
        default="",
        metavar="FILE",
        help="measure only the network, and add it to this profile of the same ranks (or to -o)",
    )
    network.add_argument(
        "--pairs",
        choices=("all", "classes"),
        default="",
        help="measure every ordered pair of hosts, or one pair within each site and one between each two "
        "sites (default: all, for up to 4 hosts)",
    )
    network.add_argument(
        "--sites", default="", metavar="SITES", help="sites, as in a=n1,n2;b=n3 (default: by domain name)"
    )
    network.add_argument(
        "--sizes",
        default="",
        metavar="BYTES,…",
        help="message sizes, as in 8,64K,4M (default: 8 to 4M, doubling; with --quick to 1M)",
    )
    network.add_argument(
        "--repetitions",
        type=whole(1),
        default=0,
        metavar="N",
        help="round trips per size (default: as many as fit into 4 s per pair, or 1.2 s with --quick)",
    )
    network.add_argument(
        "--method",
        choices=(*METHODS, "both"),
        default="both",
        help="trains: trains of messages, for L and g (Kielmann 2000); "
        "pingpong: ping-pongs, for Os, L and Or (Mendes 2004)",
    )
    network.add_argument(
        "--send",
        choices=("isend", "send", "both"),
        default="both",
        help="MPI call timed by --method pingpong; with both, the model uses MPI_Isend",
    )
    network.add_argument(
        "--model", default="", metavar="FILE", help="also write an HLogP file (Mendes 2004, Fig. 4.2)"
    )
    network.add_argument(
        "--bytes", type=whole(0), default=65536, metavar="N", help="message size of the HLogP file"
    )

    synthetic = parser.add_argument_group("synthetic")
    synthetic.add_argument(
        "--emulate", default="", metavar="SPEEDS", help="speed of each rank, as in 1,1,0.5,0.25"
    )
    synthetic.add_argument(
        "--dilate",
        type=real(1),
        default=1.0,
        metavar="FACTOR",
        help="slow all ranks down by this factor, so that several can share a core",
    )


def run(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.characterize.start import needs_two
    from fembench.launch.scratch import occupied
    from fembench.model.modeller_files import write_model
    from fembench.model.modeller_machine import model_of
    from fembench.records.profile import load_profile, save_profile

    _check(options)
    output = options.output or options.add_to
    folder = Path(output).parent if output else Path(".")
    old = load_profile(options.add_to) if options.add_to else None
    with occupied(folder, shared=True), tempfile.TemporaryDirectory(prefix=".hosts-", dir=folder) as scratch:
        hostfile = _hostfile(options, Path(scratch))
        if options.network and not old:
            needs_two(_ranks(options, hostfile))
        profile = old or _speeds(options, hostfile, folder)
        if options.network or options.add_to:
            profile = _with_network(options, profile, hostfile, folder)
    if output:
        save_profile(profile, output)
    if options.model:
        write_model(model_of(profile, options.bytes), options.model)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(profile), indent=1).decode())
        return 0
    print(_text(profile, network_alone=old is not None))
    if output:
        print(f"profile: {output}; next: {_next(profile, output)}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raises InputError for options that do not fit together."""
    from fembench.base.errors import InputError

    network = options.network or options.add_to
    usual = {
        "pairs": "",
        "sites": "",
        "model": "",
        "sizes": "",
        "repetitions": 0,
        "method": "both",
        "send": "both",
    }
    for name, value in usual.items():
        if (given := getattr(options, name)) != value and not network:
            raise InputError(f"--{name} {given} without a network; expected --network or --add-to FILE")
    _settings(options)
    if options.bytes < 0:
        raise InputError(f"--bytes {options.bytes}; expected 0 or more")


def _settings(options: argparse.Namespace) -> "NetworkSettings":
    """The settings of the network measurement. Raises InputError."""
    from fembench.base.errors import InputError
    from fembench.base.units import bytes_of
    from fembench.records.network import NetworkSettings

    try:
        sizes = sorted({bytes_of(word) for word in options.sizes.split(",")} if options.sizes else ())
    except ValueError as error:
        raise InputError(f"--sizes {options.sizes}: {error}") from error
    if sizes and (len(sizes) < 3 or not 1 <= sizes[0] <= sizes[-1] <= MOST):
        raise InputError(
            f"--sizes {options.sizes}: expected at least three different sizes, from 1 byte to 1G"
        )
    return NetworkSettings(
        sizes=tuple(sizes),
        repetitions=options.repetitions,
        methods=tuple(METHODS.values()) if options.method == "both" else (METHODS[options.method],),
        modes=("isend", "send") if options.send == "both" else (options.send,),
    )


def _speeds(options: argparse.Namespace, hostfile: str, folder: Path):
    """The profile of the hosts, without a network."""
    from fembench.characterize.start import measure_hosts
    from fembench.cli.progress import progress, working
    from fembench.cli.shared import typed_command

    with working("characterize: measuring speeds"):
        return measure_hosts(
            _ranks(options, hostfile),
            quick=options.quick,
            emulate=options.emulate,
            dilate=options.dilate,
            hostfile=hostfile,
            command=typed_command(),
            scratch=folder,
            tell=lambda text: progress(f"characterize: {text}"),
        )


def _with_network(options: argparse.Namespace, profile, hostfile: str, folder: Path):
    """The profile with the message costs between its ranks. Raises InputError if the ranks differ."""
    import msgspec

    from fembench.base.errors import InputError
    from fembench.base.units import plural
    from fembench.characterize.estimate import estimated
    from fembench.characterize.start import measure_links
    from fembench.cli.progress import progress, working
    from fembench.records.profile import PROFILE_SCHEMA

    placed = profile.environment.rank_host
    with working("network: measuring messages"):
        found = measure_links(
            len(placed),
            quick=options.quick,
            pairs=options.pairs,
            sites=options.sites,
            settings=_settings(options),
            emulate=profile.emulate,
            dilate=profile.dilate,
            hostfile=hostfile,
            scratch=folder,
            tell=lambda text: progress(f"network: {text}"),
        )
    names = tuple(host.name for host in profile.environment.hosts)
    if (found.hosts, found.rank_host) != (names, placed):
        raise InputError(
            f"{plural(len(found.rank_host), 'rank')} on {', '.join(found.hosts)}; "
            f"expected those of the profile: {len(placed)} on {', '.join(names)}, in the same order"
        )
    return msgspec.structs.replace(profile, schema=PROFILE_SCHEMA, network=estimated(found.network, placed))


def _text(profile, *, network_alone: bool) -> str:
    from fembench.model.heterogeneity import shares_text, slowness_rows
    from fembench.report import network, profiles

    speeds = [] if network_alone else _relative(profile)
    parts = [profiles.as_text(profile, speeds)] if speeds else []
    if len(speeds) > 1:
        parts.append(shares_text([1 / speed for speed in speeds]))
    if profile.network is not None:
        parts.append(network.as_text(profile.network, slowness_rows(profile), profile.environment.synthetic))
    return "\n\n".join(parts)


def _next(profile, output: str) -> str:
    if profile.network is None:
        return f"fembench weights {output} --rule rate -o weights.json"
    return f"fembench predict m3 --machine {output} --ranks {len(profile.environment.rank_host)}"


def _hostfile(options: argparse.Namespace, folder: Path) -> str:
    """The host file given, or one written from --hosts."""
    from fembench.characterize.start import hosts_file
    from fembench.model.modeller_files import read_hosts

    if not options.hosts:
        return options.hostfile
    named = options.hosts
    if Path(named).is_file():
        named = ",".join(host.name for host in read_hosts(named))
    path = folder / "hosts"
    path.write_text(hosts_file(named))
    return str(path)


def _ranks(options: argparse.Namespace, hostfile: str) -> int:
    """--ranks; else one per slot, per emulated speed, per Slurm task or per core."""
    import os

    from fembench.base.errors import InputError
    from fembench.characterize.start import ranks_in
    from fembench.host.host import usable_cores

    if options.ranks < 0:
        raise InputError(f"ranks = {options.ranks}: expected at least 1")
    hostfile = hostfile or os.environ.get("FEMBENCH_HOSTFILE", "")
    if options.ranks:
        return options.ranks
    if hostfile:
        return ranks_in(hostfile)
    if options.emulate:
        return options.emulate.count(",") + 1
    return int(os.environ.get("SLURM_NTASKS", "0")) or usable_cores()


def _relative(profile) -> list[float]:
    """Speeds of the ranks in a CG run, relative to the fastest."""
    from fembench.weights.from_profile import by_profile

    shares = [r.share for r in by_profile(profile, "").ranks]
    return [share / max(shares) for share in shares]
