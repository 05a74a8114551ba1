"""A profile's H brought up to date on all its hosts, by the laws of thesis-001 (4.1) to (4.3).

Os, L and Or stay as measured: the thesis found Os and Or insensitive to load, and no law for L (4.4.6).
"""

import platform
from collections.abc import Callable, Sequence
from pathlib import Path

from fembench.base.errors import FembenchError, InputError
from fembench.characterize.load_now import HostLoad, measured_here, measured_on
from fembench.model.heterogeneity import brought_up_to_date
from fembench.records.profile import Profile, host_names


def slower_now(
    law: str, profile: Profile, names: Sequence[str], scratch: Path, say: Callable[[str], None]
) -> dict[int, float]:
    """{rank: times as slow as in the profile}, of the ranks on these hosts (all of the profile's); those that
    cannot be reached are named and stay as they were. Raises InputError where none can, or one is unknown."""
    hosts = tuple(names) or tuple(dict.fromkeys(host_names(profile)))
    factors: dict[int, float] = {}
    missing = []
    for host in hosts:
        try:
            found = measured_here() if host == platform.node() else measured_on(host, scratch)
        except FembenchError as error:
            missing.append(host)
            say(f"{host}: not reached, stays as in the profile: {error}")
            continue
        factors |= _factors(law, profile, found, say)
    if not factors:
        raise InputError(f"--now {law}: none of {', '.join(hosts)} could be reached")
    if missing:
        say(f"--now {law}: {', '.join(missing)} not brought up to date")
    say("messages cost what the profile says: for Os, L and Or thesis-001 has no law of load")
    return factors


def _factors(law: str, profile: Profile, found: HostLoad, say: Callable[[str], None]) -> dict[int, float]:
    made = brought_up_to_date(profile, law, found.host, found.load, (found.seconds, found.cpu))
    say(f"{found.host} now, by {law}: {max(made.values()):.2f} times as slow as in the profile")
    return made
