"""The schedule of measurements: visits in rounds, so that no disturbance affects only one rank or kernel.

A round visits every probe once with all ranks of the host, and once with each group of fewer ranks that
is due, in random order. Probes with long calls are visited only in every second, third, … round, so that they
leave enough time for the others.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

GROUPS = 4  # groups per round with fewer ranks; the others follow in later rounds
SEED = 4


class Visit(NamedTuple):
    """A visit: these ranks of the host run one probe together, while the others sleep."""

    probe: int
    ranks: tuple[int, ...]


def corunning_counts(ranks: int, quick: bool) -> tuple[int, ...]:
    """The numbers of ranks of a host that run at once: 1, 2, 4, … and all; `quick`: 1 and all."""
    powers = [1 << k for k in range(ranks.bit_length()) if 1 << k < ranks]
    return (*(powers[:1] if quick else powers), ranks)


def groups(ranks: int, count: int) -> list[tuple[int, ...]]:
    """Groups of `count` ranks, spread over the host; every rank is in at least one group."""
    shifts = -(-ranks // count)
    return [
        tuple(sorted((shift + i * ranks // count) % ranks for i in range(count))) for shift in range(shifts)
    ]


def periods(costs: Sequence[float], visits: float, seconds: float, rounds: int) -> list[int]:
    """The period of each probe, in rounds, so that `rounds` rounds fit into `seconds`.

    A visit to a probe takes `costs` seconds, and a round has `visits` to each probe. All probes have the same
    time limit.
    """
    room = seconds / (visits * rounds)
    share, left = room / max(len(costs), 1), len(costs)
    for cost in sorted(costs):  # time that quick probes do not need goes to the others
        if cost > share:
            break
        room, left = room - cost, left - 1
        share = room / left if left else share
    return [max(1, int(np.ceil(cost / share))) for cost in costs]


def visits_of(
    number: int, ranks: int, counts: Sequence[int], every: Sequence[int], n_groups: int
) -> list[Visit]:
    """The visits of round `number`, in order; `every` are the periods of the probes, 0: never."""
    fewer = [count for count in counts if count < ranks]
    chosen = [tuple(range(ranks))]
    if fewer:
        turn, which = divmod(number, len(fewer))
        found = groups(ranks, fewer[which])
        first = turn * n_groups
        chosen += [found[(first + i) % len(found)] for i in range(min(n_groups, len(found)))]
    due = [probe for probe, period in enumerate(every) if period and number % period == 0]
    visits = [Visit(probe, group) for probe in due for group in chosen]
    order = np.random.default_rng((SEED, number)).permutation(len(visits))
    return [visits[i] for i in order]


def visits_a_round(ranks: int, counts: Sequence[int], n_groups: int) -> float:
    """The mean number of visits per probe and round."""
    fewer = [min(len(groups(ranks, count)), n_groups) for count in counts if count < ranks]
    return 1 + (sum(fewer) / len(fewer) if fewer else 0)
