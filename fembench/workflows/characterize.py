"""Measure the speeds of the ranks and the messages between them: the profile of a machine."""

from pathlib import Path

import msgspec

from fembench.base.errors import InputError
from fembench.base.progress import progress, working
from fembench.base.units import plural
from fembench.characterize.estimate import estimated
from fembench.characterize.jobs import NetworkSettings
from fembench.characterize.start import USUAL, measure_hosts, measure_links, needs_two
from fembench.records.profile import PROFILE_SCHEMA, Profile


def measured_speeds(
    ranks: int,
    *,
    quick: bool = False,
    emulate: str = "",
    dilate: float = 1.0,
    hostfile: str = "",
    command: str,
    scratch: Path,
    what: str = "characterize",
) -> Profile:
    """The profile of the hosts of these ranks, without a network. Raises InputError or RunFailedError.

    what: begins each line of progress
    """
    with working(f"{what}: measuring speeds"):
        return measure_hosts(
            ranks,
            quick=quick,
            emulate=emulate,
            dilate=dilate,
            hostfile=hostfile,
            command=command,
            scratch=scratch,
            tell=lambda text: progress(f"{what}: {text}"),
        )


def with_network(
    profile: Profile,
    *,
    quick: bool = False,
    pairs: str = "",
    sites: str = "",
    settings: NetworkSettings = USUAL,
    hostfile: str = "",
    scratch: Path,
) -> Profile:
    """The profile with the message costs between its ranks. Raises InputError if the ranks differ."""
    placed = profile.environment.rank_host
    needs_two(len(placed))
    with working("network: measuring messages"):
        found = measure_links(
            len(placed),
            quick=quick,
            pairs=pairs,
            sites=sites,
            settings=settings,
            emulate=profile.emulate,
            dilate=profile.dilate,
            hostfile=hostfile,
            scratch=scratch,
            tell=lambda text: progress(f"network: {text}"),
        )
    names = tuple(host.name for host in profile.environment.hosts)
    if (found.hosts, found.rank_host) != (names, placed):
        raise InputError(
            f"{plural(len(found.rank_host), 'rank')} on {', '.join(found.hosts)}; "
            f"expected those of the profile: {len(placed)} on {', '.join(names)}, in the same order"
        )
    return msgspec.structs.replace(profile, schema=PROFILE_SCHEMA, network=estimated(found.network, placed))
