"""The time of each task in a schedule, by HLogP execution, and a picture of it in text."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fembench.model.platform import Platform
from fembench.studies.scheduling.execute import Schedule
from fembench.studies.scheduling.task_graph import TaskGraph

WIDTH = 72  # characters of the picture


class ScheduledTask(NamedTuple):
    """One task. Seconds; its host computes from `work` to `end`, then sends until `free`."""

    task: int
    host: int
    work: float
    end: float
    free: float


def timeline(graph: TaskGraph, platform: Platform, schedule: Schedule) -> list[ScheduledTask]:
    """[task] in the schedule's order; the last `end` is its makespan (execute.makespan)."""
    busy = [0.0] * platform.n_hosts
    arrival: dict[tuple[int, int], float] = {}
    found = []
    for t in schedule.order:
        p = schedule.host[t]
        sources = [
            (arrival[q, t], platform.message(n, schedule.host[q], p)) for q, n in graph.predecessors[t]
        ]
        now = busy[p]
        for moment, cost in sorted(sources, key=lambda pair: (pair[0], pair[1].receive)):
            now = max(now, moment) + cost.receive
        end = now + graph.work[t] * platform.slowness[p]
        free = end
        for s, size in graph.successors[t]:
            cost = platform.message(size, p, schedule.host[s])
            free += cost.send
            arrival[t, s] = free + cost.latency
        busy[p] = free
        found.append(ScheduledTask(t, p, now, end, free))
    return found


def picture(tasks: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> str:
    """A line per host: tasks by name, in brackets while they compute; '.' while the host is idle.

    `tasks` as `fembench study schedule --json` prints them: task, host, begin, end.
    """
    last = max(t["end"] for t in tasks) or 1.0
    wide, lines = max(map(len, hosts)), []
    for host in hosts:
        cells = ["."] * WIDTH
        for one in (t for t in tasks if t["host"] == host and t["end"] > t["begin"]):
            a = min(round(WIDTH * one["begin"] / last), WIDTH - 1)
            b = min(max(round(WIDTH * one["end"] / last), a + 1), WIDTH)
            room = b - a - 2
            cells[a:b] = f"[{one['task'][:room]:=<{room}}]" if room > 0 else "|" * (b - a)
        lines.append(f"{host:<{wide}} {''.join(cells)}")
    return "\n".join(lines)
