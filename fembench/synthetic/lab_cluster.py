"""The description of a lab: hosts on one machine, each with its CPUs, speed and link.

name = "pair"
[[hosts]]
name = "fast"
cpus = [0]
[[hosts]]
name = "slow"
cpus = [1]
speed = 0.25        # of its CPUs' time
rate = "100mbit"    # of its link, in each direction

A slow host shares its CPUs with a tenant (lab_tenant.py). It has a kernel quota instead
if the file says so (quota = true), or if another host shares its CPUs.
"""

import ipaddress
import re
from pathlib import Path

import msgspec

from fembench.base.config import read_toml
from fembench.base.errors import InputError, shown

HEAD = "head"  # where commands start; no rank runs there
SLOWEST = 0.001
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?")
_RATE = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)bit")


class LabHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host."""

    name: str
    cpus: tuple[int, ...]  # that it may use; hosts may share CPUs
    speed: float = 1.0  # part of these CPUs' time that it gets
    slots: int = 0  # ranks that it takes; 0: one per CPU
    rate: str = ""  # of its link, each way: "100mbit"; "" unlimited

    @property
    def ranks(self) -> int:
        """Ranks that it takes."""
        return self.slots or len(self.cpus)


class LabCluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts that reach each other and nothing else."""

    hosts: tuple[LabHost, ...]
    name: str = "lab"
    network: str = "10.213.77.0/24"  # addresses inside the lab; they exist nowhere else
    quota: bool = False  # slow hosts have a quota of the kernel, no tenant
    priority: bool = False  # has priority over all other processes of this machine

    @property
    def label(self) -> str:
        """How its heterogeneity is emulated, for records (rule E8)."""
        return f"lab {self.name}: " + ", ".join(map(_described, self.hosts))

    def alone(self, host: LabHost) -> bool:
        """Whether no other host shares one of its CPUs."""
        return not any(set(h.cpus) & set(host.cpus) for h in self.hosts if h.name != host.name)

    def address(self, index: int) -> str:
        """'10.213.77.1/24' of the host at `index`; the head's follows those of the hosts."""
        net = ipaddress.ip_network(self.network)
        return f"{net[index + 1]}/{net.prefixlen}"


def read_cluster(path: Path | str, usable: tuple[int, ...]) -> LabCluster:
    """The cluster in a TOML file, checked against the CPUs here. Raises InputError."""
    cluster = read_toml(path, LabCluster)
    check(cluster, usable, str(path))
    return cluster


def check(cluster: LabCluster, usable: tuple[int, ...], where: str) -> None:
    """Raises InputError for the first thing that is impossible."""
    check_name(cluster.name, f"{where}: name")
    names = [host.name for host in cluster.hosts]
    if not names:
        raise InputError(f"{where}: no hosts; expected at least one [[hosts]]")
    try:
        network = ipaddress.ip_network(cluster.network)
    except ValueError as error:
        raise InputError(f"{where}: network '{shown(cluster.network)}': {error}") from None
    if network.version != 4 or not network.is_private or network.num_addresses < len(names) + 3:
        raise InputError(
            f"{where}: network '{shown(network)}'; expected a private IPv4 range that holds all hosts"
        )
    for host in cluster.hosts:
        check_name(host.name, f"{where}: host")
        if host.name == HEAD or names.count(host.name) > 1:
            raise InputError(
                f"{where}: host name '{shown(host.name)}' is taken; expected a different name for each host"
            )
        _check_host(host, usable, f"{where}: host {host.name}")


def _check_host(host: LabHost, usable: tuple[int, ...], where: str) -> None:
    if not host.cpus or len(set(host.cpus)) < len(host.cpus):
        raise InputError(f"{where}: cpus = {list(host.cpus)}; expected one or more, each once")
    missing = sorted(set(host.cpus) - set(usable))
    if missing:
        raise InputError(f"{where}: no CPU {missing[0]} here; usable CPUs: {list(usable)}")
    if not SLOWEST <= host.speed <= 1:
        raise InputError(f"{where}: speed = {host.speed:g}; expected {SLOWEST} to 1")
    if host.slots < 0:
        raise InputError(f"{where}: slots = {host.slots}; expected a number of ranks, or 0 for one per CPU")
    if host.rate:
        bits_per_second(host.rate, where)


def bits_per_second(rate: str, where: str = "link") -> float:
    """1e8 of '100mbit'. Raises InputError."""
    match = _RATE.fullmatch(rate)
    bits = float(match.group(1)) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[match.group(2)] if match else 0.0
    if not 8e3 <= bits <= 1e11:
        raise InputError(f"{where}: rate '{shown(rate)}'; expected 8kbit to 100gbit, such as 100mbit")
    return bits


def check_name(name: str, where: str) -> None:
    """Raises InputError for a name that no lab or host can have, or that leads elsewhere."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{where} '{shown(name)}'; expected 1 to 30 of a-z, 0-9 and - (not at an end)")


def _described(host: LabHost) -> str:
    link = f", link {host.rate}" if host.rate else ""
    return f"{host.name} {len(host.cpus)} CPU at {host.speed:.3g}{link}"
