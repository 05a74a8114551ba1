"""Whether other work disturbed the measurement of a profile: speeds by rules D3 and D6, messages likewise.

What is computed from a disturbed profile is PROVISIONAL.
"""

from collections.abc import Sequence

import msgspec

from fembench.records.network import PROVISIONAL
from fembench.records.profile import Profile
from fembench.records.quiet import foreign
from fembench.records.record import HostFacts


def speeds_disturbed(profile: Profile) -> list[str]:
    """Who took CPU time from the measurement of speeds, one line per host."""
    return _lines(profile.environment.hosts, "speeds")


def network_disturbed(profile: Profile) -> list[str]:
    """Who took CPU time from the measurement of messages, one line per host."""
    taken = profile.network.taken if profile.network else ()
    hosts = [
        msgspec.structs.replace(host, **msgspec.structs.asdict(one))
        for host, one in zip(profile.environment.hosts, taken)
    ]
    return _lines(hosts, "messages")


def provisional(profile: Profile) -> str:
    """'PROVISIONAL: …' if a profile was disturbed; "" otherwise."""
    found = speeds_disturbed(profile) + network_disturbed(profile)
    lines = [f"{'; '.join(found)}; repeat characterize on idle hosts"] if found else []
    lines += misfits(profile)
    return f"{PROVISIONAL}{'; '.join(lines)}" if lines else ""


def misfits(profile: Profile) -> list[str]:
    """Where the functions of a network miss the times that they were fitted to."""
    notes = profile.network.notes if profile.network else ()
    return [note.removeprefix(PROVISIONAL) for note in notes if note.startswith(PROVISIONAL)]


def _lines(hosts: Sequence[HostFacts], what: str) -> list[str]:
    return [
        f"{who} {percent:.1f} % of the CPU time of {host.name} while {what} were measured"
        for host in hosts
        for who, percent in foreign(host).items()
    ]
