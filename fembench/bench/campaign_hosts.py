"""What the words of a campaign are resolved against: the job's hosts, speeds, memory.

Also refuses a case that certainly does not fit into that
memory, before anything is built.
"""

import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import size
from fembench.bench.duration import equations_of, fewest_bytes
from fembench.host.host import memory_bytes
from fembench.launch.allocation import HostsError, allocation, layout
from fembench.launch.hosts import Allocation, HostSlots, is_this_host, same_host
from fembench.partition.shares import parse_shares
from fembench.records.case import Case
from fembench.records.profile import LEVELS, Profile, profile_in, speed_matrix
from fembench.records.weights import FAST, Weights, weights_in

Numbers = Mapping[str, float]  # by host


@dataclass(frozen=True)
class CampaignHosts:
    """The hosts of the job and what is known of them."""

    job: Allocation
    memory: Numbers  # bytes
    assumed: tuple[str, ...] = ()  # hosts taken to have the memory of this one
    speeds: Numbers = field(default_factory=dict)  # of a rank of the host, on any common scale
    measured: str = ""  # the file that the speeds are from
    hostfile: str = ""  # as given

    def fast(self) -> list[HostSlots]:
        """The hosts at 90 % of the speed of the fastest, or more. Raises HostsError."""
        if len(self.job.hosts) == 1:
            return list(self.job.hosts)
        if not self.measured:
            raise HostsError(
                "hosts = 'fast': the speed of the hosts is not known; expected machine = FILE (from fembench "
                "characterize) or weights = FILE"
            )
        found = {host.name: _of(host.name, self.speeds) for host in self.job.hosts}
        missing = [name for name, speed in found.items() if speed is None]
        if missing:
            raise HostsError(
                f"hosts = 'fast': {self.measured} has no speed of {', '.join(missing[:3])}, only of "
                f"{', '.join(self.speeds)}"
            )
        least = FAST * max(speed for speed in found.values() if speed is not None)
        return [host for host in self.job.hosts if (found[host.name] or 0.0) >= least]

    def slow(self) -> dict[str, float]:
        """{host: speed relative to the fastest} of those not fast. Raises HostsError."""
        fast = {host.name for host in self.fast()}
        fastest = max(self.speeds.values(), default=1.0)
        names = [host.name for host in self.job.hosts if host.name not in fast]
        return {name: (_of(name, self.speeds) or 0.0) / fastest for name in names}

    def memory_of(self, name: str) -> float:
        """Bytes of a host that a job may use. Raises InputError if not known."""
        found = _of(name, self.memory)
        if not found:
            raise InputError(
                f"memory of {name}: not known; expected a mesh, or machine = FILE of fembench characterize"
            )
        return found


def campaign_hosts(
    hostfile: str = "", machine: Profile | Path | str = "", weights: Weights | Path | str | None = None
) -> CampaignHosts:
    """The hosts of this job, with speeds of a profile or of weights. Raises InputError."""
    job = allocation(hostfile)
    profile = profile_in(machine) if machine else None
    speeds: Numbers = {}
    if profile:
        speeds = _speeds(profile, str(machine))
    elif weights:
        speeds = speeds_of_weights(weights_in(weights))
    memory, assumed = _memory(job, profile)
    return CampaignHosts(job, memory, assumed, speeds, str(machine or weights or ""), hostfile)


def _of(name: str, numbers: Numbers) -> float | None:
    """The number of a host, whose domain may be missing here or there."""
    if name in numbers:
        return numbers[name]
    return next((number for other, number in numbers.items() if same_host(name, other)), None)


def _speeds(profile: Profile, where: str) -> dict[str, float]:
    """Mean speed of each host's ranks in products, all computing; the fastest rank: 1."""
    for level in reversed(LEVELS):
        matrix = speed_matrix(profile, level)
        columns = [k for k, name in enumerate(matrix.names) if name.startswith("product")]
        speed = matrix.speed[:, columns]
        if speed.size and np.isfinite(speed).any(axis=1).all():
            relative = np.nanmean(speed / np.nanmax(speed, axis=0), axis=1)
            return _means(profile.environment.host_of_rank, relative.tolist())
    raise InputError(
        f"{where}: no speed of products on every rank; expected a profile of fembench characterize"
    )


def speeds_of_weights(weights: Weights) -> dict[str, float]:
    """Speed of a rank of each host: cells per second if weights say so, else its share."""
    ranks = weights.ranks
    known = all(rank.cost > 0 for rank in ranks)
    return _means((r.host for r in ranks), (1 / r.cost if known else r.share for r in ranks))


def _means(names: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for name, value in zip(names, values):
        found.setdefault(name, []).append(value)
    return {name: sum(of_host) / len(of_host) for name, of_host in found.items()}


def _memory(job: Allocation, profile: Profile | None) -> tuple[dict[str, float], tuple[str, ...]]:
    """Bytes that a job may use on each host, and the hosts taken to be like this one.

    From the profile, from this host, and from the limit that Slurm sets per node or CPU.
    """
    of_this = float(memory_bytes())
    known = {h.name: float(h.memory_bytes) for h in profile.environment.hosts} if profile else {}
    known[platform.node()] = of_this
    inside = any(is_this_host(host.name) for host in job.hosts)
    found: dict[str, float] = {}
    assumed = []
    for host in job.hosts:
        found[host.name] = _of(host.name, known) or 0.0
        if not found[host.name] and inside:
            found[host.name] = of_this
            assumed.append(host.name)
        limit = _slurm_limit(host) if job.batch else 0.0
        if limit:
            found[host.name] = min(found[host.name] or limit, limit)
    return found, tuple(assumed)


def _slurm_limit(host: HostSlots) -> float:
    """Bytes that Slurm allows the job on a host; 0: no limit."""
    for name, times in (("SLURM_MEM_PER_NODE", 1), ("SLURM_MEM_PER_CPU", host.slots)):
        if re.fullmatch(r"[0-9]{1,12}", os.environ.get(name, "")):
            return float(int(os.environ[name]) << 20) * times
    return 0.0


def check_memory(case: Case, there: CampaignHosts) -> None:
    """Raises InputError if a part of a box cannot fit into the memory of its host.

    Not judged: meshes from files, and hosts whose memory is not known.
    """
    n = equations_of(case)
    if n is None:
        return
    try:
        placed = layout(case.placement, there.job)
    except HostsError:  # too few slots: reported when the case is started
        return
    shares = parse_shares(case.placement.shares, case.placement.ranks)
    ranks = [host.name for host in placed for _ in range(host.slots)]
    needs = dict.fromkeys(ranks, 0.0)
    for name, share in zip(ranks, shares):
        needs[name] += fewest_bytes(case.method, n * share)
    for name, needed in needs.items():
        has = 0.0 if name in there.assumed else there.memory.get(name, 0.0)
        if 0 < has < needed:
            raise InputError(
                f"mesh '{case.question.mesh}', storage {case.method.storage}: needs at least {size(needed)} "
                f"on {name}, which has {size(has)}; expected a smaller mesh, more hosts or another storage"
            )
