"""Graphs and platforms of gate A9 (thesis-001), and small ones at random."""

import random
from collections.abc import Sequence

from fembench.model.platform import MessageTime, Platform
from fembench.studies.scheduling.task_graph import diamond, fork_join, layered

REMOTE = MessageTime(0.351304, -0.350929, 0.357019)  # LAM, 4 MiB between hosts
LOCAL = MessageTime(0.010974, 0.0, 0.010974)  # on one host
SLOW = 40 / 26
PLATFORMS = {
    "4 equal": (1.0,) * 4,
    "8 equal": (1.0,) * 8,
    "10 unequal": (1.0, 1.0, SLOW, 42 / 26, 1.0, 1.0, SLOW, SLOW, SLOW, SLOW),
}


def two_classes(
    slowness: Sequence[float], remote: MessageTime, local: MessageTime, size: float = 0.0
) -> Platform:
    """Messages that take the same between all hosts, and less inside one; given for `size` bytes, and
    proportional to bytes from there; for all bytes alike where it is 0."""

    def message(n_bytes: float, source: int, target: int) -> MessageTime:
        scale = n_bytes / size if size else 1.0
        return MessageTime(*(scale * part for part in (local if source == target else remote)))

    return Platform(tuple(slowness), message)


def platform(name):
    return two_classes(PLATFORMS[name], REMOTE, LOCAL)


def graphs(work):
    return [
        diamond(5, work),
        diamond(8, work),
        fork_join(14, work),
        layered(60, 6, 3, 1, work),
        layered(60, 10, 4, 2, work),
    ]


def cases():
    for name in PLATFORMS:
        for work in (5.05, 1.0):
            for graph in graphs(work):
                yield graph, platform(name)


def small_platform(seed, hosts):
    """Hosts that differ up to three times; messages in proportion to bytes."""
    draw = random.Random(seed)
    slowness = [1.0, *(draw.uniform(1, 3) for _ in range(hosts - 1))]
    parts = [draw.uniform(0.05, 0.4) for _ in range(3)]
    size = 4 * 1024 * 1024
    return two_classes(slowness, MessageTime(*parts), MessageTime(0.01, 0.0, 0.01), size)


def free_messages(slowness):
    return Platform(tuple(slowness), lambda size, a, b: MessageTime(0.0, 0.0, 0.0))
