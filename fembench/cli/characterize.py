"""Measure the speed of every rank, and the network.

Measures the kernels of fembench: assembly, the product in each storage, vector updates, triad and read,
with data in the second-level cache, in the third and in memory, and with 1, 2, 4, … and all ranks of a host
running. This takes three to four minutes, with the hosts measured in parallel, or one to two with --quick.
The result is a machine profile, which `weights`, `place`, `predict` and `simulate` read.

With --network, it also measures the messages between each pair of hosts, a few seconds per pair: overhead
and latency by message size (HLogP), gaps, all-reduces, several pairs at once, how far messages progress
while ranks compute, how much waiting ranks slow down others, and the slowness H of each rank (three kernels).

With --operations, it measures the operations of C instead: + - * / % and assignments of int, long, float and
double, accesses, casts, comparisons, random numbers, and messages to rank 0. Each run appends its samples to
a bounded history, and writes the intervals that hold most of them. A run takes ten seconds.

Examples:
  fembench characterize --network -o machine.json
  fembench characterize --network --sizes 8,1K,64K,1M,16M --repetitions 50 --send send -o machine.json
  fembench characterize --hosts fast:4,slow:4 --network -o machine.json
  fembench characterize --add-to machine.json --pairs classes --sites 'a=n1,n2;b=n3,n4'
  fembench characterize --emulate 1,1,0.5,0.25 --dilate 4 --quick      # SYNTHETIC speeds, to try it out
  fembench lab run fembench characterize --network -o machine.json     # in a lab, on all its ranks
  fembench characterize --operations --idle --times 24 --every 3600 -o park.txt   # hourly, if hosts are idle

Next: fembench weights machine.json --rule rate -o weights.json
"""

import argparse
import tempfile
from pathlib import Path

from fembench.base.plugins import STUDIES, needed, plugin
from fembench.cli.characterize_network import check_network, network_arguments, network_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import launcher_options, real, whole

    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--hosts",
        default="",
        metavar="HOSTS",
        help="hosts with their number of ranks, as in fast:4,slow:2",
    )
    where.add_argument("--hostfile", default="", metavar="FILE", help="a host file of any launcher")
    launcher_options(parser)
    parser.add_argument(
        "--ranks", type=whole(0), default=0, metavar="N", help="number of ranks (default: one per slot)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter measurements, and messages of up to 1 MiB"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the machine profile (JSON)")
    parser.add_argument("--json", action="store_true", help="print the profile as JSON instead of tables")

    network_arguments(parser)
    extension = plugin("options", "characterize")
    if extension:
        extension.operations_arguments(parser)
    else:
        parser.add_argument("--operations", action="store_true", help=f"single operations: needs {STUDIES}")

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
    from fembench.cli.shared import typed_command
    from fembench.launch.scratch import occupied, shared_folder, writable_file
    from fembench.records.profile import load_profile, save_profile
    from fembench.workflows.characterize import measured_speeds, with_network

    check_network(options)
    extension = plugin("options", "characterize")
    if extension:
        extension.check_operations(options)
    elif options.operations:
        needed("options", "characterize", "--operations")
    output = options.output or options.add_to
    folder = shared_folder(Path(output or "here"))
    if output:
        writable_file(Path(output))
    old = load_profile(options.add_to) if options.add_to else None
    with occupied(folder, shared=True), tempfile.TemporaryDirectory(prefix=".hosts-", dir=folder) as scratch:
        hostfile = _hostfile(options, Path(scratch))
        if extension and options.operations:
            return int(extension.run_operations(options, _ranks(options, hostfile), hostfile, folder))
        if options.network and not old:
            needs_two(_ranks(options, hostfile))
        profile = old or measured_speeds(
            _ranks(options, hostfile),
            quick=options.quick,
            emulate=options.emulate,
            dilate=options.dilate,
            hostfile=hostfile,
            command=typed_command(),
            scratch=folder,
        )
        if options.network or options.add_to:
            profile = with_network(
                profile,
                quick=options.quick,
                pairs=options.pairs,
                sites=options.sites,
                settings=network_settings(options),
                hostfile=hostfile,
                scratch=folder,
            )
    if output:
        save_profile(profile, output)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(profile), indent=1).decode())
        return 0
    print(_text(profile, network_alone=old is not None))
    if output:
        print(f"profile: {output}; next: {_next(profile, output)}")
    return 0


def _text(profile, *, network_alone: bool) -> str:
    from fembench.model.heterogeneity import shares_text, slowness_rows
    from fembench.records.profile import network_disturbed
    from fembench.report import network, profiles

    speeds = [] if network_alone else _relative(profile)
    parts = [profiles.as_text(profile, speeds)] if speeds else []
    if len(speeds) > 1:
        parts.append(shares_text([1 / speed for speed in speeds]))
    if profile.network is not None:
        said = slowness_rows(profile), profile.environment.synthetic, network_disturbed(profile)
        parts.append(network.as_text(profile.network, *said))
    return "\n\n".join(parts)


def _next(profile, output: str) -> str:
    if profile.network is None:
        return f"fembench weights {output} --rule rate -o weights.json"
    return f"fembench predict m3 --machine {output} --ranks {len(profile.environment.rank_host)}"


def _hostfile(options: argparse.Namespace, folder: Path) -> str:
    """The host file given, or one written from --hosts."""
    from fembench.characterize.start import hosts_file

    if not options.hosts:
        return options.hostfile
    path = folder / "hosts"
    path.write_text(hosts_file(options.hosts))
    return str(path)


def _ranks(options: argparse.Namespace, hostfile: str) -> int:
    """--ranks; else one per emulated speed, or per slot of the hosts."""
    from fembench.base.errors import InputError
    from fembench.launch.allocation import allocation

    if options.ranks < 0:
        raise InputError(f"ranks = {options.ranks}: expected at least 1")
    if options.ranks:
        return options.ranks
    where = allocation(hostfile)
    return options.emulate.count(",") + 1 if options.emulate and not where.order else where.slots


def _relative(profile) -> list[float]:
    """Speeds of the ranks in a CG run, relative to the fastest."""
    from fembench.weights.from_profile import by_profile

    shares = [r.share for r in by_profile(profile, "").ranks]
    return [share / max(shares) for share in shares]
