"""Rule `rate` from a machine profile: no run; phases are mixed as in a CG solve.

    c_p = 1 / S_p,assembly + iterations x (1 / S_p,product + 1 / S_p,updates)      seconds per cell

with the speeds S in cells per second of a rank, for the largest part that was measured,
while all ranks of its host compute.

The ranks of one host were measured in the same visits, and most
disturbances affect them all;
therefore they are compared visit by visit. S_p is the median over
visits of the geometric mean of the host's ranks, times the median ratio
of the rank's speed to that mean.

Seconds that each rank communicates per set, from message sizes and a network:

    C_p = n x sum over neighbours q of [(own seconds per byte) x bytes_pq + wire(p, q, bytes_pq)]

for n iterations; wire: L(m) + Or(m) of HLogP (Mendes 2004, Eq. 3.10), also within a host; the
sender's overhead Os is part of its own seconds.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.units import count, percent, plural
from fembench.partition.shares import normalise
from fembench.records.case import CPU
from fembench.records.network import class_of, value_at
from fembench.records.profile import LEVELS, NO_NETWORK, Profile, Speed, together
from fembench.records.quiet import disturbance
from fembench.records.record import bytes_on_device, now_utc
from fembench.records.weights import WEIGHTS_SCHEMA, Weights
from fembench.stats.student import share_intervals
from fembench.stats.summary import Interval
from fembench.weights.make import Shares, line_shares, notes_on_left_out, rank_share

ITERATIONS = 100  # of CG, per assembly


def by_profile(
    profile: Profile,
    source: str,
    *,
    storage: str = "sym",
    iterations: int = ITERATIONS,
    cells: int = 0,
) -> Weights:
    """Weights of the profile's ranks; for a mesh of so many cells, if any are given.

    With a mesh, the seconds of a device are a line through those on the measured parts.
    """
    if iterations < 0:
        raise InputError(f"{iterations} iterations; expected 0 or more")
    hosts = profile.environment.host_of_rank
    chosen = [_phases(profile, rank, storage) for rank in range(len(hosts))]
    repeats = np.array([1.0, iterations, iterations])
    phases = [[_samples(row[k]) for row in chosen] for k in range(len(repeats))]
    speeds = np.stack([_paired(hosts, samples) for samples in phases], axis=1)  # (P, 3)
    spent = repeats / speeds  # seconds per cell
    cost = spent.sum(axis=1)
    found = Shares(normalise((1 / cost).tolist()), _intervals(phases, repeats), tuple(cost.tolist()))
    if cells and set(profile.devices) != {CPU}:
        found = _by_lines(profile, storage, repeats, cells)
    sizes = sorted({s.cells for row in chosen for s in row})
    size = " to ".join(map(count, dict.fromkeys((sizes[0], sizes[-1]))))
    parts = zip(("assembly", f"product {storage}", "updates"), spent.sum(axis=0) / spent.sum())
    mix = ", ".join(f"{name} {percent(part, 0)}" for name, part in parts)
    return Weights(
        schema=WEIGHTS_SCHEMA,
        rule="rate",
        created=now_utc(),
        measured=profile.created,
        source=(source,),
        ranks=tuple(map(rank_share, hosts, found.shares, found.intervals, found.cost, profile.devices)),
        storage=storage,
        synthetic=profile.environment.synthetic,
        notes=(
            f"time of {plural(iterations, 'iteration')}: {mix}",
            f"speeds at {size} cells per rank",
            *_note_on_devices(profile, cells),
            *notes_on_left_out(found, profile.environment.devices),
            *filter(None, [disturbance([profile.environment])]),
        ),
    )


def _note_on_devices(profile: Profile, cells: int) -> list[str]:
    if set(profile.devices) == {CPU} or profile.emulated:
        return []
    if cells:
        return [f"for a mesh of {plural(cells, 'cell')}: devices by a line of time over cells"]
    return ["devices are slower on small parts: name the mesh (--mesh)"]


def _by_lines(profile: Profile, storage: str, repeats: F64, n_cells: int) -> Shares:
    """Shares of the cells of a mesh, from the speeds at every measured size."""
    devices = profile.devices
    sizes = [[_phases(profile, rank, storage, level) for rank in range(len(devices))] for level in LEVELS]
    visits = min(len(s.samples) for ranks in sizes for row in ranks for s in row)
    each = np.array([[[_samples(s)[:visits] for s in row] for row in ranks] for ranks in sizes])
    spent = (repeats[:, None] / each).sum(axis=2).swapaxes(1, 2)  # (n_sizes, n_visits, P) per cell
    cells = np.array([[row[1].cells for row in ranks] for ranks in sizes], float)[:, None] + 0 * spent
    most = [
        facts.room * row[1].cells / bytes_on_device(row[1].n_bytes - 8 * row[2].units, row[2].units)
        for row, facts in zip(sizes[-1], profile.environment.devices)
    ]
    lines = [kind != CPU and not profile.emulated for kind in devices]  # if emulated, all have one time
    return line_shares(cells, spent * cells, lines, n_cells, most)


def _phases(profile: Profile, rank: int, storage: str, level: str = "") -> tuple[Speed, Speed, Speed]:
    """Assembly, product and updates of a rank, each at the largest size, or at one level.

    Sizes with an interval take precedence. Raises InputError if a phase was not measured.
    """
    mine = [s for s in together(profile) if s.rank == rank and s.cells > 0 and level in ("", s.level)]
    kept = []
    for phase, kind in (("assembly", ""), ("product", storage), ("updates", "")):
        sizes = [s for s in mine if (s.phase, s.storage) == (phase, kind)]
        if not sizes:
            has = sorted({s.storage for s in mine if s.phase == "product"})
            raise InputError(
                f"the profile has no {' '.join(filter(None, (phase, kind)))} of rank {rank}; "
                f"products: {', '.join(has) or 'none'}"
            )
        sizes = [s for s in sizes if s.low is not None] or sizes
        kept.append(max(sizes, key=lambda s: s.cells))
    return kept[0], kept[1], kept[2]


def _samples(speed: Speed) -> F64:
    """(n_visits,) cells per second."""
    return np.asarray(speed.samples) * speed.cells / speed.units


def _paired(hosts: Sequence[str], samples: Sequence[F64]) -> F64:
    """(P,) speeds from the visits of each rank."""
    speeds = np.empty(len(hosts))
    for group in _measured_together(hosts, [len(s) for s in samples]):
        x = np.stack([samples[p] for p in group], axis=1)  # (n_visits, ranks)
        common = np.exp(np.log(x).mean(axis=1))
        speeds[group] = np.median(common) * np.median(x / common[:, None], axis=0)
    return speeds


def _measured_together(hosts: Sequence[str], counts: Sequence[int]) -> list[list[int]]:
    """The ranks of each host as a group; one per rank if their numbers of visits differ."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for host in dict.fromkeys(hosts):
        ranks = [p for p, other in enumerate(hosts) if other == host]
        alike = len({counts[p] for p in ranks}) == 1
        for p in ranks:
            groups.setdefault((host,) if alike else (host, p), []).append(p)
    return list(groups.values())


def _intervals(phases: Sequence[Sequence[F64]], repeats: F64) -> tuple[Interval | None, ...]:
    """95 % intervals of the shares, from one vector of shares per visit.

    Visit k of every phase gives vector k, as far as the phase with the fewest visits
    goes. The assumptions are those of `share_intervals`.
    """
    n = min(len(s) for samples in phases for s in samples)
    cost = sum(
        times / np.stack([s[:n] for s in samples], axis=1) for samples, times in zip(phases, repeats)
    )  # (n, P)
    return share_intervals((1 / cost) / (1 / cost).sum(axis=1, keepdims=True))


Wire = Callable[[str, str, int], float]  # (from host, to host, bytes) -> seconds of a message


def wire_of_network(profile: Profile, where: str) -> Wire:
    """The wire of a profile's network. Raises InputError without one or for unknown hosts."""
    network = profile.network
    if network is None:
        raise InputError(f"{where}: the profile has {NO_NETWORK}")
    index = {host.name: i for i, host in enumerate(profile.environment.hosts)}

    def seconds(here: str, there: str, n_bytes: int) -> float:
        for host in (here, there):
            if host not in index:
                raise InputError(f"{where}: no host {host}; expected one of {', '.join(index)}")
        found = class_of(network, index[here], index[there])
        return max(value_at(found.latency, n_bytes), 0.0) + max(value_at(found.receive, n_bytes), 0.0)

    return seconds


def communication_seconds(
    neighbours: Sequence[Sequence[int]],
    message_bytes: Sequence[Sequence[int]],
    hosts: Sequence[str],
    wire: Wire,
    iterations: int,
    own: npt.ArrayLike = 0.0,
) -> F64:
    """(P,) C_p from each rank's neighbours and the bytes of a message to each.

    `own` (P,) or one number: seconds per byte for packing and sending.
    """
    C = np.zeros(len(hosts)) + np.asarray(own, float)
    for p, here in enumerate(hosts):
        C[p] *= iterations * sum(message_bytes[p])
        C[p] += iterations * sum(wire(here, hosts[q], m) for q, m in zip(neighbours[p], message_bytes[p]))
    return C
