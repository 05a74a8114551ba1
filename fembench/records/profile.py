"""Profile: the speed of every rank of some hosts, by `fembench characterize`.

A rank's speed depends on the kernel (phase, storage), on the size of its data (level)
and on the number of ranks of its host that compute at once. Each visit to a combination
is a sample; the speed is their median, with an interval of order statistics.

Whether other work disturbed a profile: speeds by rules D3 and D6, messages, too.

What is computed from a disturbed profile is PROVISIONAL."""

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from fembench.base.arrays import F64
from fembench.base.config import write_json
from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.methods.lookup import CPU, device_by_rank
from fembench.records.network import PROVISIONAL, Network, check_network
from fembench.records.quiet import disturbance, foreign
from fembench.records.record import ClockCertificate, Environment, Frozen, HostFacts, StateReading
from fembench.records.schema import read
from fembench.stats.summary import median_interval

PROFILE_SCHEMA = 7
NO_NETWORK = (
    "no network: not asked for, or interrupted (`fembench characterize --add-to FILE` adds it); "
    "expected a profile of `fembench characterize --network`"
)
Level = Literal["L2", "L3", "L3 and memory", "memory"]
LEVELS: tuple[Level, ...] = ("L2", "L3", "memory")
BETWEEN: Level = "L3 and memory"  # of several sizes


class Speed(Frozen, frozen=True):
    """The speed of one rank in one kernel."""

    rank: int
    phase: str  # assembly, product, updates, triad, read; with devices also pack, unpack
    storage: str  # of a product; else ""
    level: Level  # memory levels that hold the rank's symmetric matrix, or the arrays of triad and read
    corunning: int  # ranks of the host in the same kernel at the same time, this one included
    unit: str  # cells, blocks (3x3, of the whole stiffness), dofs, bytes
    units: int  # per call
    cells: int  # of the mesh; 0 if there is none
    n_bytes: int  # read or written per call
    speed: float  # units per second, median of the samples
    low: float | None  # its 95 % interval; None: fewer than six samples
    high: float | None
    samples: tuple[float, ...]  # units per second of each visit

    @property
    def name(self) -> str:
        """The name in tables: 'product sym', 'assembly', …"""
        return f"{self.phase} {self.storage}".strip()


class Profile(Frozen, frozen=True):
    """Speeds of all ranks of a set of hosts."""

    schema: int
    created: str  # ISO 8601, UTC
    quick: bool
    seconds: float  # duration of the measurement
    emulate: str  # as in Case
    dilate: float
    environment: Environment  # hosts with their facts; synthetic: how speeds were emulated (rule E8)
    clock: ClockCertificate
    isa: str  # instruction set of the kernels
    way: tuple[Literal["processor", "elapsed", "stretched"], ...]  # [rank] kind of time measured
    held_back: tuple[float, ...]  # [rank] fraction of time in which the rank had no processor
    speeds: tuple[Speed, ...]
    notes: tuple[str, ...] = ()  # what was left out, and why
    network: Network | None = None
    state: tuple[StateReading, ...] = ()  # core and memory of each host in every round; (): not recorded
    device: str = "cpu"  # what the ranks compute on, as in Case

    def __repr__(self) -> str:
        ranks = len(self.environment.rank_host)
        hosts = len(self.environment.hosts)
        loud = ", DISTURBED" if disturbed(self) else ""
        whose = f"{plural(ranks, 'rank')} of {plural(hosts, 'host')}"
        return f"Profile({whose}, measured {self.created[:10]}{loud})"

    @property
    def devices(self) -> tuple[str, ...]:
        """[rank] the kind of device, or "cpu"."""
        return device_by_rank(self.device, len(self.environment.rank_host))

    @property
    def emulated(self) -> tuple[float, ...]:
        """[rank] its emulated speed; () if nothing is emulated."""
        if not self.emulate and self.dilate == 1:
            return ()
        ranks = len(self.environment.rank_host)
        return tuple(map(float, self.emulate.split(","))) if self.emulate else (1.0,) * ranks


class Matrix(NamedTuple):
    """S[rank, phase] with intervals; nan if not measured, or from too few samples."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    speed: F64  # (P, n_names)
    low: F64
    high: F64


def speed_of(samples: Sequence[float]) -> tuple[float, float | None, float | None]:
    """(median, low, high) of samples."""
    interval = median_interval(samples)
    ends = (interval.low, interval.high) if interval else (None, None)
    return statistics.median(samples), *ends


def ranks_per_host(profile: Profile) -> tuple[int, ...]:
    """[rank] number of ranks on its host."""
    count = Counter(profile.environment.rank_host)
    return tuple(count[host] for host in profile.environment.rank_host)


def together(profile: Profile) -> list[Speed]:
    """The speeds while all ranks of a host compute at once; weights are based on these."""
    everyone = ranks_per_host(profile)
    return [s for s in profile.speeds if s.corunning == everyone[s.rank]]


def speed_matrix(profile: Profile, level: Level = "memory") -> Matrix:
    """The speeds at one level while all ranks of a host compute at once."""
    found = [s for s in together(profile) if s.level == level]
    units = {s.name: s.unit for s in found}
    names = tuple(units)
    shape = (len(profile.environment.rank_host), len(names))
    speed, low, high = (np.full(shape, np.nan) for _ in range(3))
    for s in found:
        place = s.rank, names.index(s.name)
        speed[place] = s.speed
        if s.low is not None and s.high is not None:
            low[place], high[place] = s.low, s.high
    return Matrix(names, tuple(units.values()), speed, low, high)


def save_profile(profile: Profile, path: Path | str) -> None:
    """Write a profile as JSON, whole or not at all."""
    write_json(path, profile)


def profile_in(given: Profile | Path | str) -> Profile:
    """A profile as given, or that in a file. Raises InputError."""
    return given if isinstance(given, Profile) else load_profile(given)


def load_profile(path: Path | str) -> Profile:
    """The profile in a file. Raises InputError for anything else."""
    if not Path(path).exists():
        raise InputError(f"{path}: no such file; `fembench characterize -o {path}` makes the profile")
    if Path(path).is_dir():
        how = "`fembench characterize -o machine.json` makes one"
        raise InputError(f"{path}: a folder; expected the file of a machine profile: {how}")
    profile = read(path, Profile, PROFILE_SCHEMA, "a profile", has="held_back", verb="characterize")
    ranks = len(profile.environment.rank_host)
    hosts = len(profile.environment.hosts)
    try:
        mixed = set(profile.devices) != {CPU}
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if mixed and len(profile.environment.devices) != ranks:
        raise InputError(f"{path}: environment.devices: expected one of each of {plural(ranks, 'rank')}")
    beyond = next((host for host in profile.environment.rank_host if not 0 <= host < hosts), None)
    if beyond is not None:
        raise InputError(f"{path}: environment.rank_host: host {beyond}; expected 0 to {hosts - 1}")
    try:
        bad = profile.emulated and not (len(profile.emulated) == ranks and min(profile.emulated) > 0)
    except ValueError:
        bad = True
    if bad:
        few = shown(profile.emulate)
        raise InputError(
            f"{path}: emulate '{few}': expected a positive speed for each of {plural(ranks, 'rank')}"
        )
    if profile.network is not None:
        check_network(profile.network, hosts, ranks, str(path))
    wrong = next(
        (s for s in profile.speeds if not (0 <= s.rank < ranks and 0 < s.speed < float("inf"))), None
    )
    if wrong is not None:
        raise InputError(
            f"{path}: {wrong.name} of rank {wrong.rank} at {wrong.speed} per second; expected positive "
            f"speeds of ranks below {ranks}"
        )
    return profile


def is_profile(tree: dict) -> bool:
    """Whether a JSON object is a profile, of any schema."""
    return "speeds" in tree and "held_back" in tree


def disturbed(profile: Profile) -> str:
    """'DISTURBED: …' if foreign work took CPU time while a profile was measured; "" otherwise."""
    measured = {"speeds": profile.environment.hosts, "costs of messages": _during_messages(profile)}
    what = [name for name, hosts in measured.items() if any(map(foreign, hosts))]
    hosts = tuple(host for each in measured.values() for host in each)
    return disturbance([msgspec.structs.replace(profile.environment, hosts=hosts)], " and ".join(what))


def network_disturbed(profile: Profile) -> str:
    """The same of its network alone."""
    environment = msgspec.structs.replace(profile.environment, hosts=_during_messages(profile))
    return disturbance([environment], "costs of messages")


def _during_messages(profile: Profile) -> tuple[HostFacts, ...]:
    taken = profile.network.taken if profile.network else ()
    return tuple(
        msgspec.structs.replace(host, **msgspec.structs.asdict(one))
        for host, one in zip(profile.environment.hosts, taken)
    )


def provisional(profile: Profile) -> str:
    """Why what follows from a profile is PROVISIONAL: 'DISTURBED: …', misfits; "" otherwise."""
    missed = misfits(profile)
    lines = [disturbed(profile), f"{PROVISIONAL}{'; '.join(missed)}" if missed else ""]
    return "; ".join(filter(None, lines))


def misfits(profile: Profile) -> list[str]:
    """Where the functions of a network miss the times that they were fitted to."""
    notes = profile.network.notes if profile.network else ()
    return [note.removeprefix(PROVISIONAL) for note in notes if note.startswith(PROVISIONAL)]
