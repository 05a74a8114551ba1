"""Execution of a schedule under HLogP: overheads occupy processors, messages
are received as they arrive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fembench.model.placement import Messages
from fembench.records.hlogp import MessageCost
from fembench_studies.scheduling.platform import Platform
from fembench_studies.scheduling.task_graph import TaskGraph


@dataclass(frozen=True)
class Schedule:
    """The order and the hosts of all tasks."""

    order: tuple[int, ...]  # of all tasks; each host runs its own in this order
    host: tuple[int, ...]  # [task]
    expected: float  # makespan by the method's own model, seconds


class ScheduledTask(NamedTuple):
    """One task. Seconds; its host computes from `work` to
    `end`, then sends until `free`."""

    task: int
    host: int
    work: float
    end: float
    free: float


def timeline(
    graph: TaskGraph, platform: Platform, order: Sequence[int], host: Sequence[int]
) -> list[ScheduledTask]:
    """The times of all tasks (Mendes 2004), in `order`, which must list each
    task after its predecessors."""
    busy = [0.0] * platform.n_hosts
    arrival: dict[tuple[int, int], float] = {}
    found = []
    message, slowness = platform.message, platform.slowness
    for t in order:
        p = host[t]
        now = busy[p]
        inputs = sorted(
            (arrival[q, t], message(size, host[q], p).receive) for q, size in graph.predecessors[t]
        )
        for moment, overhead in inputs:
            now = max(now, moment) + overhead
        end = free = now + graph.work[t] * slowness[p]
        for s, size in graph.successors[t]:
            cost = message(size, p, host[s])
            free += cost.send
            arrival[t, s] = free + cost.latency
        busy[p] = free
        found.append(ScheduledTask(t, p, now, end, free))
    return found


def makespan(graph: TaskGraph, platform: Platform, order: Sequence[int], host: Sequence[int]) -> float:
    """Seconds until the last task is done."""
    return max(task.end for task in timeline(graph, platform, order, host))


def messages_of(
    transfer: Callable[[float], float],
    host: Sequence[int],
    edges: Sequence[tuple[int, int]],
    costs: Sequence[tuple[float, float, float]] = (),
) -> Messages:
    """Message costs of transfer(bytes) seconds between ranks and 0
    within one; sends do not block.

    `costs`: (Os, L, Or) per edge, instead. A message travels while its send overhead
    lasts, so L is at least the transfer - Os.
    """
    own = {(host[a], host[b]): MessageCost(*cost) for (a, b), cost in zip(edges, costs)}

    def message(size: float, source: int, target: int) -> MessageCost:
        usual = 0.0 if source == target else transfer(size)
        if (source, target) not in own:
            return MessageCost(0.0, usual, 0.0)
        send, latency, receive = own[source, target]
        return MessageCost(send, max(latency, usual - send), receive)

    return message
