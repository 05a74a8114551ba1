"""The profile of a machine: speeds of the ranks, and messages between them."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fembench.base.errors import InputError
from fembench.base.progress import progress, working
from fembench.base.units import bytes_of, plural
from fembench.characterize.estimate import estimated
from fembench.characterize.jobs import (
    PATIENCE,
    USUAL,
    NetworkJob,
    NetworkSettings,
    needs_two,
    speeds_job,
    usual_time,
)
from fembench.launch.allocation import allocation
from fembench.launch.hosts import hostfile_of_names
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.launch.scratch import occupied, shared_folder, writable_file
from fembench.model.heterogeneity import shares_text, slowness_rows
from fembench.records.network import Method, NetworkFound
from fembench.records.profile import Profile, load_profile, network_disturbed, save_profile
from fembench.records.sites import named_sites
from fembench.report import network as network_report
from fembench.report import profiles
from fembench.weights.from_profile import by_profile

MOST = 1 << 30  # bytes of a message
METHODS: dict[str, tuple[Method, ...]] = {"trains": ("I",), "pingpong": ("II",), "both": ("I", "II")}


def characterized(
    ranks: int = 0,
    *,
    output: str = "",
    add_to: str = "",
    network: bool = False,
    quick: bool = False,
    hosts: str = "",
    hostfile: str = "",
    emulate: str = "",
    dilate: float = 1.0,
    pairs: str = "",
    sites: str = "",
    settings: NetworkSettings = USUAL,
    command: str,
) -> Profile:
    """The speeds of the ranks and, with `network`, messages; written to `output`, if given.

    ranks: 0: one per slot of the hosts
    add_to: file of a profile of the same ranks, of which only the network is measured; also the output
    quick: fewer and shorter measurements
    hosts: 'fast:4,slow:2'; hostfile: the same, as a file for launchers
    emulate, dilate: speeds of ranks, and how much slower all are, SYNTHETIC
    pairs, sites, settings: which messages are measured, and how

    Raises InputError or RunFailedError.
    """
    named_sites(sites)  # before minutes of measuring
    old = load_profile(add_to) if add_to else None
    with hosts_of_job(output or add_to, hosts, hostfile) as (folder, file):
        count = ranks_of_job(ranks, file, emulate)
        if network and not old:
            needs_two(count)
        profile = measured_profile(
            count,
            known=old,
            network=network or bool(add_to),
            quick=quick,
            emulate=emulate,
            dilate=dilate,
            pairs=pairs,
            sites=sites,
            settings=settings,
            hostfile=file,
            command=command,
            scratch=folder,
        )
    if output or add_to:
        save_profile(profile, output or add_to)
    return profile


@contextlib.contextmanager
def hosts_of_job(output: str, hosts: str, hostfile: str) -> Iterator[tuple[Path, str]]:
    """(the folder of a measurement, which is held, its host file). Raises InputError."""
    folder = shared_folder(Path(output or "here"))
    if output:
        writable_file(Path(output))
    with occupied(folder, shared=True), tempfile.TemporaryDirectory(prefix=".hosts-", dir=folder) as scratch:
        if hosts:
            hostfile = str(Path(scratch) / "hosts")
            Path(hostfile).write_text(hostfile_of_names(hosts))
        yield folder, hostfile


def ranks_of_job(ranks: int, hostfile: str, emulate: str = "") -> int:
    """The number given; else one per emulated speed, or per slot of the hosts."""
    if ranks:
        return ranks
    where = allocation(hostfile)
    return emulate.count(",") + 1 if emulate and not where.order else where.slots


def network_settings(
    sizes: str = "", repetitions: int = 0, method: str = "both", send: str = "both"
) -> NetworkSettings:
    """How messages are measured. Raises InputError.

    sizes: '8,64K,4M' bytes; repetitions: round trips per size; method: trains, pingpong or both; send: isend,
    send or both
    """
    try:
        found = sorted({bytes_of(word) for word in sizes.split(",")} if sizes else ())
    except ValueError as error:
        raise InputError(f"--sizes {sizes}: {error}") from error
    if found and (len(found) < 3 or not 1 <= found[0] <= found[-1] <= MOST):
        raise InputError(f"--sizes {sizes}: expected at least three different sizes, from 1 byte to 1G")
    modes = USUAL.modes if send == "both" else (send,)
    return msgspec.convert(
        {"sizes": found, "repetitions": repetitions, "methods": METHODS[method], "modes": modes},
        NetworkSettings,
    )


def as_text(profile: Profile, *, network_alone: bool = False) -> str:
    """The tables of the speeds, unless the network was measured alone, and of the network."""
    shares = [] if network_alone else [rank.share for rank in by_profile(profile, "").ranks]
    speeds = [share / max(shares) for share in shares]  # of a CG run
    parts = [profiles.as_text(profile, speeds)] if speeds else []
    if len(speeds) > 1:
        parts.append(shares_text([1 / speed for speed in speeds]))
    if profile.network is not None:
        said = slowness_rows(profile), profile.environment.synthetic, network_disturbed(profile)
        parts.append(network_report.as_text(profile.network, *said))
    return "\n\n".join(parts)


def measured_profile(
    ranks: int,
    *,
    known: Profile | None = None,
    network: bool,
    quick: bool = False,
    emulate: str = "",
    dilate: float = 1.0,
    pairs: str = "",
    sites: str = "",
    settings: NetworkSettings = USUAL,
    hostfile: str = "",
    command: str,
    scratch: Path,
    what: str = "characterize",
) -> Profile:
    """The profile of these ranks' hosts, perhaps with a network; see `characterized`.

    known: the profile, if its speeds are measured. what: begins each line of progress about speeds

    Raises InputError, also if profile and network have other ranks, or RunFailedError.
    """
    if known is None:
        job = speeds_job(ranks, quick=quick, emulate=emulate, dilate=dilate, command=command)
        with working(f"{what}: measuring speeds"):
            progress(f"{what}: {usual_time(job)}")
            known = measure(
                "fembench.characterize.speeds",
                job,
                Profile,
                job_line(ranks, hostfile),
                scratch=scratch,
                timeout=PATIENCE,
                tell=lambda text: progress(f"{what}: {text}"),
            )
    if not network:
        return known
    return _with_network(known, quick, pairs, sites, settings, hostfile, scratch)


def _with_network(
    known: Profile,
    quick: bool,
    pairs: str,
    sites: str,
    settings: NetworkSettings,
    hostfile: str,
    scratch: Path,
) -> Profile:
    """The profile with the network between its ranks."""
    names, placed = tuple(host.name for host in known.environment.hosts), known.environment.rank_host
    needs_two(len(placed))
    line = job_line(len(placed), hostfile)
    with working("network: measuring messages"):
        found = measure(
            "fembench.characterize.messages",
            NetworkJob(
                ranks=len(placed),
                quick=quick,
                pairs=pairs,
                sites=sites,
                emulate=known.emulate,
                dilate=known.dilate,
                settings=settings,
            ),
            NetworkFound,
            line,
            asleep=known.dilate > 1 and line.crowded,  # as in dilated runs
            scratch=scratch,
            timeout=PATIENCE,
            tell=lambda text: progress(f"network: {text}"),
        )
    if (found.hosts, found.rank_host) != (names, placed):
        raise InputError(
            f"{plural(len(found.rank_host), 'rank')} on {', '.join(found.hosts)}; "
            f"expected those of the profile: {len(placed)} on {', '.join(names)}, in the same order"
        )
    return msgspec.structs.replace(known, network=estimated(found.network, placed))
