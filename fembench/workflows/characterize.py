"""The profile of a machine: speeds of the ranks, and messages between them."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from fembench.base.arguments import typed
from fembench.base.errors import EndedError, FembenchError, InputError
from fembench.base.progress import progress, telling, working
from fembench.base.units import bytes_of, plural
from fembench.characterize.estimate import estimated
from fembench.characterize.jobs import (
    PATIENCE,
    CharacterizeJob,
    NetworkJob,
    needs_two,
    speeds_job,
    usual_time,
)
from fembench.launch.allocation import allocation
from fembench.launch.hosts import hostfile_of_names
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.launch.scratch import made, occupied, shared_folder, writable_file
from fembench.model.heterogeneity import shares_text, slowness_rows
from fembench.records.network import NetworkFound
from fembench.records.profile import Profile, disturbed, network_disturbed, profile_in, save_profile
from fembench.records.sites import METHODS, PAIRS, SENDS, NetworkSettings, named_sites
from fembench.report import profiles
from fembench.weights.from_profile import by_profile
from fembench.workflows.cases import check_least, check_words, nothing_kept

MOST = 1 << 30  # bytes of a message


@typed
def machine(
    ranks: int = 0,
    *,
    path: Path | str = "",
    add_to: Profile | Path | str = "",
    network: bool = True,
    quick: bool = False,
    hosts: str = "",
    hostfile: Path | str = "",
    device: str = "cpu",
    emulate: str = "",
    dilate: float = 1.0,
    pairs: str = "",
    sites: str = "",
    sizes: str = "",
    repetitions: int = 0,
    method: str = "both",
    send: str = "both",
    command: str = "fembench.machine()",
    tell: Callable[[str], None] | None = None,
) -> Profile:
    """Measure the speeds of the ranks and, with `network`, messages; return their profile.

    ranks: 0: one per slot of the hosts
    path: file to write the profile to, which `predict` reads
    add_to: a profile, to which only the network is added; if it is a file, also the `path`
    quick: fewer and shorter measurements
    hosts: "fast:4,slow:2", in place of a `hostfile`
    device: "gpu,15*cpu", what the ranks compute on
    emulate: "1,0.5", speeds of ranks, SYNTHETIC; dilate: how much slower all of them are
    pairs: "all" pairs of hosts, or one for each of the "classes"; sites: "a=n1,n2;b=n3"
    sizes: "8,64K,4M" bytes of messages; repetitions: round trips per size, 0: all that fit
    method: "trains", "pingpong" or "both"; send: that of ping-pongs, "isend", "send" or "both"

    Tells what disturbed the measurement. If the network fails or is interrupted, a new
    file `path` keeps the speeds. Raises InputError, also for a network of one rank, or
    RunFailedError.
    """
    named_sites(sites)  # before minutes of measuring
    settings = network_settings(sizes, repetitions, method, send)
    check_words(("", *PAIRS), pairs=pairs)
    messages = NetworkJob(quick=quick, pairs=pairs, sites=sites, settings=settings)
    path = path or ("" if isinstance(add_to, Profile) else add_to)
    known = profile_in(add_to) if add_to else None
    with telling(tell), nothing_kept(), hosts_of_job(str(path), hosts, str(hostfile)) as (folder, file):
        count = ranks_of_job(ranks, file, emulate)
        if network and not known:
            needs_two(count)
        if known is None:
            job = speeds_job(
                count, quick=quick, device=device, emulate=emulate, dilate=dilate, command=command
            )
            progress(f"characterize: {usual_time(job, network)}")
            known = measured_speeds(job, file, folder)
            _note(disturbed(known), tell)
        with _speeds_kept(known, str(path)):
            found = with_network(known, messages, file, folder) if network or add_to else known
            _note(network_disturbed(found), tell)
    if path:
        save_profile(found, path)
    return found


def _note(loud: str, tell: Callable[[str], None] | None) -> None:
    """Say what disturbed a measurement; the command prints it with the tables."""
    if loud and tell is not progress:
        progress(f"note: {loud}")


@contextlib.contextmanager
def _speeds_kept(profile: Profile, path: str) -> Iterator[None]:
    """An error or interruption says where the speeds are: in a file that was not there before."""
    try:
        yield
    except (FembenchError, EndedError, KeyboardInterrupt) as error:
        if path and not Path(path).exists():
            save_profile(profile, path)
            how = f"`fembench characterize --add-to {path}` adds the network of the same ranks"
            kept = f"the speeds are kept in {path}: {how}"
            error.args = ("; ".join(filter(None, [str(error), kept])),)
        raise


@contextlib.contextmanager
def hosts_of_job(output: str, hosts: str, hostfile: str) -> Iterator[tuple[Path, str]]:
    """(the folder of a measurement, which is held, its host file). Raises InputError."""
    file = Path(output or "here")
    with contextlib.ExitStack() as held:
        held.enter_context(made(file.parent))
        folder = shared_folder(file)
        if output:
            writable_file(file)
        held.enter_context(occupied(folder, shared=True))
        scratch = held.enter_context(tempfile.TemporaryDirectory(prefix=".hosts-", dir=folder))
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


def network_settings(sizes: str, repetitions: int, method: str, send: str) -> NetworkSettings:
    """How messages are measured, from the arguments of `machine`. Raises InputError."""
    check_least(0, repetitions=repetitions)
    try:
        found = sorted({bytes_of(word) for word in sizes.split(",")} if sizes else ())
    except ValueError as error:
        raise InputError(f"sizes = {sizes}: {error}") from error
    if found and (len(found) < 3 or not 1 <= found[0] <= found[-1] <= MOST):
        raise InputError(f"sizes = {sizes}: expected at least three different sizes, from 1 byte to 1G")
    check_words(METHODS, method=method)
    check_words(SENDS, send=send)
    return NetworkSettings(tuple(found), repetitions, METHODS[method], SENDS[send])


def as_text(profile: Profile, *, network_alone: bool = False) -> str:
    """What disturbed it; tables of the speeds, unless the network was measured alone, and of the network."""
    shares = [] if network_alone else [rank.share for rank in by_profile(profile, "").ranks]
    speeds = [share / max(shares) for share in shares]  # of a CG run
    parts = [disturbed(profile)]
    parts += [profiles.profile_text(profile, speeds)] if speeds else []
    if len(speeds) > 1:
        parts.append(shares_text([1 / speed for speed in speeds]))
    if profile.network is not None:
        said = slowness_rows(profile), profile.environment.synthetic, bool(network_disturbed(profile))
        parts.append(profiles.network_text(profile.network, *said))
    return "\n\n".join(filter(None, parts))


def measured_speeds(job: CharacterizeJob, hostfile: str, scratch: Path) -> Profile:
    """The profile of these ranks, without a network. Raises InputError or RunFailedError."""
    with working("characterize: measuring speeds") as now:
        return measure(
            "fembench.characterize.speeds",
            job,
            Profile,
            job_line(job.ranks, hostfile),
            scratch=scratch,
            timeout=PATIENCE,
            tell=now.tell,
        )


def with_network(known: Profile, job: NetworkJob, hostfile: str, scratch: Path) -> Profile:
    """The profile with the network between its ranks.

    Raises InputError, also if they are on other hosts now, or RunFailedError.
    """
    names = tuple(host.name for host in known.environment.hosts)
    placed = known.environment.rank_host
    needs_two(len(placed))
    job = msgspec.structs.replace(job, ranks=len(placed), emulate=known.emulate, dilate=known.dilate)
    line = job_line(job.ranks, hostfile)
    with working("network: measuring messages"):
        found = measure(
            "fembench.characterize.messages",
            job,
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
