"""The profile's speeds as functions of the size of a part and of the ranks on its host.

Speeds are measured at several sizes and with several numbers of ranks at once. Between
sizes, the time of a call is interpolated linearly: units that no longer fit into a
cache come from the next level. Between numbers of ranks, logarithms of speed are
interpolated. Outside the measured range, speed is constant; on a device, time is below
it, since starting a kernel takes time. If a host has more ranks
than were measured, they share the total speed of the measured ones.

Ranks of a host share a cache: what fits into it depends on the parts of all of them. k
ranks that compute are as fast as k equal parts of the same total were measured to be. A
part of the least measured size has a cache for itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from msgspec import structs

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.methods.lookup import CPU, storage_of
from fembench.model.slots import Slot
from fembench.records.profile import Profile, Speed

ALIKE = 1.05  # ratio of times up to which ranks end together


@dataclass(frozen=True)
class Rates:
    """Speeds of one profile, by rank and kernel."""

    speeds: dict[tuple[int, str], list[Speed]]  # (rank, 'product sym') -> all sizes and numbers at once
    dilate: float = 1.0  # factor by which the profile was slowed down (emulated hosts)
    uncertain: float = 0.0  # half-width of the logarithm of all times, for a load that changes
    devices: tuple[str, ...] = ()  # [rank] what it computes on; (): all on cores
    emulated: tuple[float, ...] = ()  # [rank] its speed; (): not emulated

    def device(self, rank: int) -> str:
        """What a rank computes on."""
        return self.devices[rank] if self.devices else CPU

    def seconds(self, rank: int, name: str, units: float, together: int, total: float = 0.0) -> float:
        """Seconds of a call on `units` while `together` ranks compute; `total` units of
        all ranks of the host, by default of these alike. Raises InputError.

        On a device a call takes at least as long as on the smallest measured size.
        """
        if units and self.device(rank) != CPU:
            units = max(units, min(s.units for s in self._found(rank, name)))
        return units / self.speed(rank, name, units, together, total) if units else 0.0

    def speed(self, rank: int, name: str, units: float, together: int, total: float = 0.0) -> float:
        """Units per second while `together` ranks of the host compute. Raises InputError."""
        counts, at_count = self._by_count(rank, name, units, total or units * together)
        value = float(np.exp(np.interp(np.log(together), np.log(counts), np.log(at_count))))
        return value * min(1.0, counts[-1] / together) if len(counts) > 1 else value

    def together(self, rank: int, name: str) -> int:
        """The largest number of ranks of the host that computed at
        once in the measurement."""
        return max(s.corunning for s in self._found(rank, name))

    def largest(self, rank: int, name: str) -> float:
        """The largest measured size, in units."""
        return max(s.units for s in self._found(rank, name))

    def spread(self, rank: int, name: str, units: float) -> F64:
        """(n_visits,) speed of each visit over their median, at the closest size."""
        most = max(s.corunning for s in self._found(rank, name))
        near = min(
            (s for s in self._found(rank, name) if s.corunning == most),
            key=lambda s: abs(np.log(s.units / max(units, 1.0))),
        )
        return np.asarray(near.samples) / near.speed

    def _found(self, rank: int, name: str) -> list[Speed]:
        found = self.speeds.get((rank, name))
        if not found:
            known = sorted({n for r, n in self.speeds if r == rank})
            raise InputError(f"the profile has no {name} of rank {rank}; it has {', '.join(known) or 'none'}")
        return found

    def _by_count(
        self,
        rank: int,
        name: str,
        units: float,
        total: float,
    ) -> tuple[list[int], list[float]]:
        """(numbers of ranks at once, ascending; the speed with `total` units for each)."""
        found = self._found(rank, name)
        counts = sorted({s.corunning for s in found})
        at = []
        for count in counts:
            points = sorted((s.units, s.speed) for s in found if s.corunning == count)
            x, y = np.array(points, float).T
            alike = units if units <= x[0] or len(counts) == 1 else total / count
            inside = min(max(alike, x[0]), x[-1])
            at.append(inside / float(np.interp(inside, x, x / y)))
        return counts, at


def beside_others(
    rates: Rates, slots: Sequence[Slot], name: str, units: Sequence[float], most: Sequence[int]
) -> list[float]:
    """[rank] seconds of a call on units[rank], which all ranks of a host begin together.

    Whoever has less to do ends earlier: then others have more of the memory's bandwidth,
    but no more of the cache. Parts on devices are in no cache of the host: beside them,
    those on cores count as alike. Not more than most[rank] ranks compute at once.
    """
    found = [0.0] * len(slots)
    for host in {slot.host for slot in slots}:
        left = {r: 1.0 for r, slot in enumerate(slots) if slot.host == host and units[r]}  # of its call
        mixed = any(rates.device(slots[r].rank) != CPU for r in left)
        total = 0.0 if mixed else sum(units[r] for r in left)
        now = 0.0
        while left:
            still = {
                r: rates.seconds(slots[r].rank, name, units[r], min(len(left), most[r]), total) for r in left
            }
            ends = {r: part * still[r] for r, part in left.items()}
            step = max(end for end in ends.values() if end <= ALIKE * min(ends.values()))
            found = [now + min(ends.get(r, 0.0), step) if r in left else t for r, t in enumerate(found)]
            left = {r: part - step / still[r] for r, part in left.items() if ends[r] > step}
            now += step
    return _agreed(rates, slots, units, found) if rates.emulated else found


def _agreed(
    rates: Rates, slots: Sequence[Slot], units: Sequence[float], found: Sequence[float]
) -> list[float]:
    """[rank] seconds if the emulated ranks of a host have one time per unit, as in a run.

    Where there are devices, it is theirs: how much of it is the start of a kernel depends
    on the size of their parts, not on those of the cores.
    """
    each = [t * rates.emulated[s.rank] / u if u else 0.0 for t, s, u in zip(found, slots, units)]
    theirs: dict[int, list[float]] = {}
    for slot, per_unit in zip(slots, each):
        if per_unit and rates.device(slot.rank) != CPU:
            theirs.setdefault(slot.host, []).append(per_unit)
    return [
        u * median(theirs.get(s.host, [own])) / rates.emulated[s.rank]
        for u, s, own in zip(units, slots, each)
    ]


def slowed(rates: Rates, factors: dict[int, float]) -> Rates:
    """The rates with each rank slowed down by factors[rank]; 1 if it has none."""
    speeds = {
        (rank, name): [
            structs.replace(
                s,
                speed=s.speed / factors.get(rank, 1.0),
                samples=tuple(x / factors.get(rank, 1.0) for x in s.samples),
            )
            for s in found
        ]
        for (rank, name), found in rates.speeds.items()
    }
    return replace(rates, speeds=speeds)


def _in_cells(speed: Speed) -> Speed:
    """The speed of an element-by-element product in cells, because the number of blocks
    per cell differs between parts; any other speed unchanged."""
    if not speed.storage or storage_of(speed.storage).unit != "cells":
        return speed
    ratio = speed.cells / speed.units
    return structs.replace(
        speed,
        unit="cells",
        units=speed.cells,
        speed=speed.speed * ratio,
        low=None if speed.low is None else speed.low * ratio,
        high=None if speed.high is None else speed.high * ratio,
        samples=tuple(s * ratio for s in speed.samples),
    )


def rates_of(profile: Profile) -> Rates:
    """The rates of a profile."""
    found: dict[tuple[int, str], list[Speed]] = {}
    for speed in profile.speeds:
        found.setdefault((speed.rank, speed.name), []).append(_in_cells(speed))
    return Rates(found, profile.dilate, devices=profile.devices, emulated=profile.emulated)
