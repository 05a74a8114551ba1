"""Graphs and platforms of Mendes (2004), and small random ones."""

import random
from collections.abc import Sequence

from fembench.records.hlogp import MessageCost
from fembench_studies.scheduling.platform import Platform
from fembench_studies.scheduling.task_graph import MIB4, TaskGraph, diamond, fork_join

REMOTE = MessageCost(0.351304, -0.350929, 0.357019)  # LAM, 4 MiB between hosts
LOCAL = MessageCost(0.010974, 0.0, 0.010974)  # on one host
SLOW = 40 / 26
PLATFORMS = {
    "4 equal": (1.0,) * 4,
    "8 equal": (1.0,) * 8,
    "10 unequal": (1.0, 1.0, SLOW, 42 / 26, 1.0, 1.0, SLOW, SLOW, SLOW, SLOW),
}


def two_classes(
    slowness: Sequence[float], remote: MessageCost, local: MessageCost, size: float = 0.0
) -> Platform:
    """Messages that take the same between all hosts, and less inside one; given for `size` bytes, and
    proportional to bytes from there; for all bytes alike where it is 0."""

    def message(n_bytes: float, source: int, target: int) -> MessageCost:
        scale = n_bytes / size if size else 1.0
        return MessageCost(*(scale * part for part in (local if source == target else remote)))

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
    """Hosts whose speeds differ by up to a factor of three; message times proportional to bytes."""
    draw = random.Random(seed)
    slowness = [1.0, *(draw.uniform(1, 3) for _ in range(hosts - 1))]
    parts = [draw.uniform(0.05, 0.4) for _ in range(3)]
    size = 4 * 1024 * 1024
    return two_classes(slowness, MessageCost(*parts), MessageCost(0.01, 0.0, 0.01), size)


def free_messages(slowness):
    return Platform(tuple(slowness), lambda size, a, b: MessageCost(0.0, 0.0, 0.0))


def layered(n: int, layers: int, degree: int, seed: int, work: float = 1.0, size: float = MIB4):
    """n tasks in layers, each with `degree` random predecessors in the layer before."""
    draw = random.Random(seed)
    layer = [t * layers // n for t in range(n)]
    edges = []
    for t in range(n):
        before = [q for q in range(n) if layer[q] == layer[t] - 1]
        edges += [(q, t, size) for q in draw.sample(before, min(degree, len(before)))]
    return TaskGraph(f"layered-{n}-{seed}", (work,) * n, tuple(sorted(edges)))


def random_graph(
    n: int, seed: int, ratio: float = 1.0, density: float = 0.4, size: float = MIB4
) -> TaskGraph:
    """n tasks of unequal work and messages, `ratio` times as long by bytes as the work is by seconds."""
    draw = random.Random(seed)
    work = tuple(draw.uniform(0.5, 1.5) for _ in range(n))
    edges: Sequence[tuple[int, int, float]] = [
        (a, b, size * ratio * draw.uniform(0.2, 1.8))
        for a in range(n)
        for b in range(a + 1, n)
        if draw.random() < density
    ]
    return TaskGraph(f"random-{n}-{seed}", work, tuple(edges))
