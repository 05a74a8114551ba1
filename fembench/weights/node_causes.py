"""Why a node is slow.

The cause of a slow node is

    a load       if lost CPU time explains at least half of what it lacks: its ranks had no processor, or
                 others, the hypervisor or a quota took it
    throttling   if its processors counted thermal events
    clock        if its clock rate is lower than that of its kind
    core K       if only some of its cores are slow
    memory       if only its memory is slow
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.units import few
from fembench.records.nodes import NodeSamples, NodesLaunch
from fembench.records.quiet import QUOTA, lost
from fembench.weights.node_verdicts import NodeKind, NodeRatio, Quantity

HALF = 0.5  # of what a node lacks that a cause must explain
LOWER = 0.03  # relative difference of clock rates that counts
MOST_CORES = 4  # named in a cause


class NodeLosses(NamedTuple):
    """CPU time that a node lost beyond what is typical."""

    percent: dict[str, float]  # who took it -> percent
    quota: float  # CPUs; 0: none


def losses_of(
    nodes: Sequence[NodeSamples], launch: NodesLaunch, typical: Sequence[NodeSamples]
) -> list[NodeLosses]:
    """Of each node, beyond the typical ones; none known of nodes that share a host."""
    on_host = Counter(node.host for node in launch.nodes)
    hosts = launch.environment.hosts

    def of(node: NodeSamples) -> dict[str, float]:
        return lost(hosts[node.host]) if on_host[node.host] == 1 else {}

    found = [of(node) for node in nodes]
    usual = [of(node) for node in typical]
    takers = {who for one in found for who in one}
    common = {who: float(np.median([one.get(who, 0.0) for one in usual])) for who in takers}
    return [
        NodeLosses({who: percent - common[who] for who, percent in one.items()}, hosts[node.host].cpu_quota)
        for one, node in zip(found, nodes)
    ]


def cause_of(
    kind: NodeKind,
    node: NodeSamples,
    ratios: Mapping[Quantity, NodeRatio],
    cores: Mapping[int, NodeRatio],
    losses: NodeLosses,
) -> str:
    """Why a node is slow, in a few words."""
    slow = {q: one for q, one in ratios.items() if one.slow}
    if not slow:
        return _cause_of_cores(node, cores)
    quantity = next(q for q in ("all cores", "one core", "memory") if q in slow)
    quota = _quota(slow[quantity], node.ranks, losses)  # withholds time from some core, whichever runs last
    if quota:
        return quota
    if 0 < len(cores) <= node.ranks / 2:
        return _cause_of_cores(node, cores)
    load = _load(slow[quantity], losses)
    if load:
        return load
    if quantity == "memory":
        return "memory slow, cores normal"
    where = _where(slow)
    if node.throttled > 0:
        return f"throttled: {node.throttled} thermal events; {where}"
    clock = float(np.median(node.clock)) if node.clock else 0.0
    if clock and kind.clock and clock < (1 - LOWER) * kind.clock:
        return f"{where}: clock {clock / 1e9:.2f} GHz, typical {kind.clock / 1e9:.2f} GHz"
    known = f"at the usual clock rate, {clock / 1e9:.2f} GHz" if clock else "clock or quota"
    return f"{where} ({known})"


def by_quota(cause: str) -> bool:
    """Whether a cause in words is a quota of the node's own."""
    return "a quota of" in cause


def by_load(cause: str) -> bool:
    """Whether a cause in words is foreign work, which may be gone tomorrow."""
    return cause.startswith("another load")


def of_its_own(cause: str) -> bool:
    """Whether a cause in words is a fault of the node, whatever its kind."""
    return by_quota(cause) or by_load(cause) or cause.startswith("throttled")


def _where(slow: Mapping[Quantity, NodeRatio]) -> str:
    if "all cores" not in slow:
        return "slow with one core busy"
    if "one core" not in slow:
        return "slow with all cores busy: power or cooling"
    return "all cores slow"


def _cause_of_cores(node: NodeSamples, cores: Mapping[int, NodeRatio]) -> str:
    """'core 5 slow', or what it is that takes the time of these cores."""
    names = few([node.core_name(core) for core in cores], MOST_CORES)
    held = [1 - one.busy for one in cores.values()]
    if all(h >= HALF * (1 - one.ratio) for h, one in zip(held, cores.values())):
        return f"another load on {names}: no processor for {100 * max(held):.0f} % of the time"
    return f"{names} slow"


def _quota(one: NodeRatio, ranks: int, losses: NodeLosses) -> str:
    """What a quota withheld, if that is half of what the node lacks or more; else "".

    A quota for fewer CPUs than ranks explains the time without a processor: its counter
    also covers the parts of a round in which most ranks sleep.
    """
    lacking, held = 1 - one.ratio, 1 - one.busy
    who, percent = _most(losses)
    narrow = percent > 0 and losses.quota < ranks and held >= HALF * lacking
    if who != QUOTA or not (narrow or percent / 100 >= HALF * lacking > 0):
        return ""
    percent = 100 * held if held >= HALF * lacking else percent
    return f"all cores slow: a quota of {losses.quota:.3g} CPUs withheld {percent:.0f} % of the time"


def _load(one: NodeRatio, losses: NodeLosses) -> str:
    """What else used the processors, if that is half of what the node lacks; else ""."""
    lacking, held = 1 - one.ratio, 1 - one.busy
    who, percent = _most(losses)
    if percent > 0 and percent / 100 >= HALF * lacking:
        return f"another load: {who} {percent:.0f} % of the CPU time"
    return f"another load: no processor for {100 * held:.0f} % of the time" if held >= HALF * lacking else ""


def _most(losses: NodeLosses) -> tuple[str, float]:
    """Who took most of the CPU time, and how many percent."""
    who = max(losses.percent, key=lambda name: losses.percent[name], default="")
    return who, losses.percent.get(who, 0.0)
