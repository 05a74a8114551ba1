"""The profile's speeds as functions of the size of a part and of the ranks on its host.

Speeds are measured at three sizes and with several numbers of ranks at once. Between
sizes, the time of a call is interpolated linearly: units that no longer fit into a
cache come from the next level. Between numbers of ranks, logarithms of speed are
interpolated. Outside the measured range, speed is constant. If a host has more ranks
than were measured, they share the total speed of the measured ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.methods.lookup import storage_of
from fembench.records.profile import Profile, Speed


@dataclass(frozen=True)
class Rates:
    """Speeds of one profile, by rank and kernel."""

    speeds: dict[tuple[int, str], list[Speed]]  # (rank, 'product sym') -> all sizes and numbers at once
    dilate: float = 1.0  # factor by which the profile was slowed down (emulated hosts)
    uncertain: float = 0.0  # half-width of the logarithm of all times, for a load that changes

    def seconds(self, rank: int, name: str, units: float, together: int) -> float:
        """Seconds of a call on `units` while `together` ranks compute. Raises InputError."""
        return units / self.speed(rank, name, units, together) if units else 0.0

    def speed(self, rank: int, name: str, units: float, together: int) -> float:
        """Units per second while `together` ranks of the host compute. Raises InputError."""
        counts, at_count = self._by_count(rank, name, [s.speed for s in self._found(rank, name)], units)
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
        self, rank: int, name: str, values: Sequence[float], units: float
    ) -> tuple[list[int], list[float]]:
        """(numbers of ranks at once, ascending; the value at `units` for each)."""
        found = self._found(rank, name)
        counts = sorted({s.corunning for s in found})
        at = []
        for count in counts:
            points = sorted((s.units, v) for s, v in zip(found, values) if s.corunning == count)
            x, y = np.array(points, float).T
            inside = min(max(units, x[0]), x[-1])
            at.append(inside / float(np.interp(inside, x, x / y)))
        return counts, at


def slowed(rates: Rates, factors: dict[int, float]) -> Rates:
    """The rates with each rank slowed down by factors[rank]; 1 if it has none."""
    return Rates(
        {
            (rank, name): [
                structs.replace(
                    s,
                    speed=s.speed / factors.get(rank, 1.0),
                    samples=tuple(x / factors.get(rank, 1.0) for x in s.samples),
                )
                for s in found
            ]
            for (rank, name), found in rates.speeds.items()
        },
        rates.dilate,
        rates.uncertain,
    )


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
    return Rates(found, profile.dilate)
