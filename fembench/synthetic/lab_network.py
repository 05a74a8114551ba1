"""The network of a lab, as commands: one namespace per host, joined by a bridge in the head's namespace.

Nothing exists outside these namespaces: no interface, address or route of the machine is touched, and
no packet leaves. A link's rate is a token bucket at both of its ends; the bucket is kept small (one
packet, or 100 microseconds), or a message of CG would pass at once out of a full one.
"""

from fembench.records.quota import LAB_GROUP
from fembench.synthetic.lab_cluster import HEAD, LabCluster, LabHost, bits_per_second

PREFIX = LAB_GROUP
PACKET = 1600  # bytes, with its headers
QUEUE = 4 << 20  # bytes that may wait for a link


def namespace(lab: str, host: str) -> str:
    """Name of a host's namespace; names of labs and hosts have no dot, so it is unique."""
    return f"{PREFIX}{lab}.{host}"


def namespaces(cluster: LabCluster) -> list[str]:
    """All namespaces of a lab, the head's first."""
    return [namespace(cluster.name, name) for name in (HEAD, *(h.name for h in cluster.hosts))]


def up_commands(cluster: LabCluster) -> list[list[str]]:
    """Commands (of iproute2) that build the network."""
    head = namespace(cluster.name, HEAD)
    inside = ["ip", "-n", head]
    commands = [
        ["ip", "netns", "add", head],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "link", "add", "bridge", "type", "bridge"],
        [*inside, "addr", "add", cluster.address(len(cluster.hosts)), "dev", "bridge"],
        [*inside, "link", "set", "bridge", "up"],
    ]
    for index, host in enumerate(cluster.hosts):
        commands += _host_commands(cluster, index, host)
    return commands


def _host_commands(cluster: LabCluster, index: int, host: LabHost) -> list[list[str]]:
    here, head = namespace(cluster.name, host.name), namespace(cluster.name, HEAD)
    port = f"port{index}"
    commands = [
        ["ip", "netns", "add", here],
        ["ip", "-n", here, "link", "set", "lo", "up"],
        ["ip", "-n", head, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", here],
        ["ip", "-n", head, "link", "set", port, "master", "bridge", "up"],
        ["ip", "-n", here, "addr", "add", cluster.address(index), "dev", "eth0"],
        ["ip", "-n", here, "link", "set", "eth0", "up"],
    ]
    if host.rate:
        commands += [_limit(here, "eth0", host.rate), _limit(head, port, host.rate)]
    return commands


def _limit(where: str, device: str, rate: str) -> list[str]:
    burst = max(PACKET, round(bits_per_second(rate) / 8 * 100e-6))
    bucket = ["rate", rate, "burst", str(burst), "limit", str(QUEUE)]
    return ["tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", *bucket]
