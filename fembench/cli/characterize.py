"""Facts of every host and the speed of every rank, measured with fembench's own kernels.

Assembly, product in each storage, vector updates, triad and read; with data in the second cache, in the
third and in memory; with 1, 2, 4, … and all ranks of a host at once. Takes two minutes, hosts in
parallel; --quick half a minute. Examples:
  fembench characterize -o machine.json
  fembench characterize --hosts fast:4,slow:4 -o machine.json
  fembench weights machine.json --rule rate -o weights.json
  fembench characterize --emulate 1,1,0.5,0.25 --dilate 4 --quick     SYNTHETIC speeds, to try it
"""

import argparse
import tempfile
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ranks", type=int, default=0, metavar="N", help="default: what the hosts have room for"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--hosts", default="", metavar="A,B:4", help="hosts, each with its number of ranks")
    where.add_argument("--hostfile", default="", metavar="FILE", help="MPI host file")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter visits")
    parser.add_argument(
        "--emulate", default="", metavar="S,S,...", help="SYNTHETIC: speed of each rank, 1,1,0.5,0.25"
    )
    parser.add_argument(
        "--dilate",
        type=float,
        default=1.0,
        metavar="F",
        help="SYNTHETIC: all ranks compute so many times slower, so that several share a core",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the profile here (JSON)")
    parser.add_argument("--json", action="store_true", help="print the profile as JSON")


def run(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.bench.characterize import measure_hosts
    from fembench.bench.scratch import writable
    from fembench.cli.shared import progress, typed_command
    from fembench.records.profile import save_profile
    from fembench.report.profiles import as_text

    folder = Path(options.output).parent if options.output else Path(".")
    writable(folder)
    with tempfile.TemporaryDirectory(prefix=".hosts-", dir=folder) as scratch:
        hostfile = _hostfile(options, Path(scratch))
        profile = measure_hosts(
            _ranks(options, hostfile),
            quick=options.quick,
            emulate=options.emulate,
            dilate=options.dilate,
            hostfile=hostfile,
            command=typed_command(),
            scratch=folder,
            tell=lambda text: progress(f"characterize: {text}"),
        )
    if options.output:
        save_profile(profile, options.output)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(profile), indent=1).decode())
        return 0
    print(as_text(profile, _relative(profile)))
    if options.output:
        print(
            f"profile: {options.output}; next: fembench weights {options.output} --rule rate -o weights.json"
        )
    return 0


def _hostfile(options: argparse.Namespace, folder: Path) -> str:
    """The host file asked for; one is made of --hosts."""
    from fembench.bench.characterize import hosts_file

    if not options.hosts:
        return options.hostfile
    path = folder / "hosts"
    path.write_text(hosts_file(options.hosts))
    return str(path)


def _ranks(options: argparse.Namespace, hostfile: str) -> int:
    """Those asked for, else one a speed, a slot, or a core."""
    import os

    from fembench.base.errors import InputError
    from fembench.bench.characterize import ranks_in
    from fembench.machine.host import host_cores

    if options.ranks < 0:
        raise InputError(f"ranks = {options.ranks}: expected at least 1")
    hostfile = hostfile or os.environ.get("FEMBENCH_HOSTFILE", "")
    if options.ranks:
        return options.ranks
    if hostfile:
        return ranks_in(hostfile)
    if options.emulate:
        return options.emulate.count(",") + 1
    return int(os.environ.get("SLURM_NTASKS", "0")) or host_cores()


def _relative(profile) -> list[float]:
    """Speeds of the ranks in a CG run, the fastest 1."""
    from fembench.weights.from_profile import by_profile

    shares = [r.share for r in by_profile(profile, "").ranks]
    return [share / max(shares) for share in shares]
