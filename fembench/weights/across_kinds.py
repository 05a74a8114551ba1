"""The speed of every node over the typical node of the fastest kind, and the faults that this shows.

A node that is not slow within its kind, or has too few of its kind to be compared with, is slow nevertheless
if it lacks speed for a reason of its own: a quota, another load or heat. Of a kind that is not compared, the
fastest node is the typical one.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from fembench.records.nodes import NodeSamples, NodesRecord
from fembench.stats.outliers import RELEVANT, joint_level
from fembench.stats.student import log_interval
from fembench.weights.node_causes import by_quota, cause_of, losses_of, of_its_own
from fembench.weights.node_verdicts import (
    QUANTITIES,
    Array,
    HostSpeed,
    NodeRatio,
    NodesFindings,
    NodeVerdict,
    Quantity,
    beyond_doubt,
    busy_of,
    rates_of,
    with_ends,
)

PACE: tuple[Quantity, ...] = ("all cores", "memory")
Judged = tuple[NodeVerdict, HostSpeed]


def across_kinds(record: NodesRecord, found: NodesFindings) -> Iterator[Judged]:
    """The final verdict on each node, from that within its kind, and its speed."""
    nodes = record.first.nodes
    again = (
        {node.name: np.median(_rates([node])[0], axis=1) for node in record.second.nodes}
        if record.second
        else {}
    )
    rates = _rates(nodes)
    busy = np.array([[np.median(busy_of(node, q)) for q in QUANTITIES] for node in nodes])
    pace = np.median(rates[:, QUANTITIES.index("all cores")], axis=1)
    compared = [list(kind.nodes) if kind.compared else [] for kind in found.kinds]
    groups = [
        group or [max(kind.nodes, key=lambda k: float(pace[k]))] for group, kind in zip(compared, found.kinds)
    ]
    reference = max(groups, key=lambda members: float(np.median(pace[members])))
    typical, usual = np.median(rates[reference], axis=0), np.median(busy[reference], axis=0)
    for k, verdict in enumerate(found.nodes):
        ratios = np.median(rates[compared[verdict.kind] or [k]], axis=0) / typical
        alone = again[verdict.name] / np.median(typical, axis=1) if verdict.name in again else None
        yield _judged(record, found, k, _ratios(ratios, busy[k] / usual, alone, len(nodes)), reference)


def _rates(nodes: Sequence[NodeSamples]) -> Array:
    """(n, quantities, rounds) per rank."""
    return np.array(
        [[rates_of(n, q) / (1 if q == "one core" else n.ranks) for q in QUANTITIES] for n in nodes]
    )


def _ratios(ratios: Array, busy: Array, alone: Array | None, n_nodes: int) -> dict[Quantity, NodeRatio]:
    """From (quantities, rounds) ratios; the others are (quantities,)."""
    found, level = {}, joint_level(len(PACE) * n_nodes)
    for k, (q, samples) in enumerate(zip(QUANTITIES, ratios)):
        value, low, high = with_ends(float(np.median(samples)), log_interval(samples, level))
        again = None if alone is None else float(alone[k])
        held = float(busy[k])
        found[q] = NodeRatio(value, low, high, beyond_doubt(high), value / held, held, again)
    return found


def _judged(
    record: NodesRecord,
    found: NodesFindings,
    k: int,
    ratios: dict[Quantity, NodeRatio],
    reference: Sequence[int],
) -> Judged:
    """`ratios`: of its kind, or its own, over `reference`: nodes that are the typical node together."""
    verdict, nodes, fastest = found.nodes[k], record.first.nodes, found.nodes[reference[0]].kind
    kind, typical = found.kinds[verdict.kind], found.kinds[fastest]
    worst = min((ratios[q] for q in PACE), key=lambda one: one.ratio)
    if verdict.verdict == "slow":
        found_slow = (one for one in (*verdict.ratios.values(), *verdict.cores.values()) if one.slow)
        own = min(found_slow, key=lambda one: one.ratio)
        ends = own.ratio * worst.ratio, own.low * worst.low, own.high * worst.high
        return verdict, HostSpeed(verdict.name, *ends, slow=True, cause=verdict.cause, faulty=True)
    if kind is typical and kind.compared:
        one = verdict.ratios["all cores"]
        return verdict, HostSpeed(verdict.name, one.ratio, one.low, one.high)
    losses = losses_of([nodes[k]], record.first, [nodes[other] for other in reference])[0]
    cause = cause_of(typical, nodes[k], ratios, {}, losses) if worst.slow else ""
    lasting = worst.alone is None or worst.alone < 1 - RELEVANT
    slow = lasting and beyond_doubt(worst.high, 0.0 if by_quota(cause) else found.foreign)
    faulty, other = slow and of_its_own(cause), kind.key.cpu_model != typical.key.cpu_model
    if other and not faulty:
        cause = f"another processor: {kind.key.cpu_model}"
    speed = HostSpeed(verdict.name, worst.ratio, worst.low, worst.high, slow, cause if slow else "", faulty)
    if faulty:
        pace = worst.busy if other else worst.ratio
        verdict = dataclasses.replace(verdict, verdict="slow", cause=cause, pace=pace, capacity=pace)
    return verdict, speed
