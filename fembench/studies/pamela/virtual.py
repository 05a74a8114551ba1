"""Discrete-event execution of a model on virtual machines; no time is measured.

Each branch and each turn of a par loop is a process; a resource serves one use after the other, in the order
in which they were requested. Durations are redrawn in each run from the distribution behind the
machine model's samples, so that predictions are tested where the truth is known (Herai 2005, tier B).
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fembench.base.errors import InputError
from fembench.model.interval import as_interval
from fembench.studies.pamela.amounts import evaluate, number
from fembench.studies.pamela.bounds import Setting, expand, resource_name, term_of
from fembench.studies.pamela.pamela import Choice, Delay, Node, PamelaLoop, PamelaParallel, Sequence, Set, Use

Draw = Callable[[str, float], float]  # resource ("" : none), seconds as modelled -> seconds in this run


@dataclass
class VirtualClock:
    """Pending events, and the time at which each resource becomes free."""

    now: float = 0.0
    events: list[tuple[float, int, "Process"]] = field(default_factory=list)
    free: dict[str, list[float]] = field(default_factory=dict)  # of each server
    asked: int = 0

    def at(self, moment: float, process: "Process") -> None:
        self.asked += 1
        heapq.heappush(self.events, (moment, self.asked, process))

    def serve(self, resource: str, seconds: float, servers: int) -> float:
        """The time at which a use requested now ends."""
        free = self.free.setdefault(resource, [0.0] * servers)
        begin = max(heapq.heappop(free), self.now)
        heapq.heappush(free, begin + seconds)
        return begin + seconds


class Process:
    """A generator that yields the time at which it resumes, or the processes it waits for."""

    def __init__(self, steps: Iterator, parent: "Process | None" = None) -> None:
        self.steps, self.parent, self.waits = steps, parent, 0


def execute(setting: Setting, draw: Draw) -> float:
    """Seconds that the application takes in one run."""
    clock = VirtualClock()
    environment = setting.environment()
    root = expand(setting.model.parts["L"], setting.model)
    clock.at(0.0, Process(_run(root, setting, environment, clock, draw)))
    while clock.events:
        clock.now, _, process = heapq.heappop(clock.events)
        _advance(process, clock)
    return clock.now


def _advance(process: Process, clock: VirtualClock) -> None:
    """Advance one process by one step; wake its parent if this was the last process it waited for."""
    wanted = next(process.steps, None)
    if isinstance(wanted, list):
        process.waits = len(wanted)
        for steps in wanted:
            clock.at(clock.now, Process(steps, process))
        if not wanted:
            clock.at(clock.now, process)
    elif wanted is not None:
        clock.at(wanted, process)
    elif process.parent is not None:
        process.parent.waits -= 1
        if process.parent.waits == 0:
            clock.at(clock.now, process.parent)


def _run(
    node: Node, setting: Setting, environment: dict[str, float], clock: VirtualClock, draw: Draw
) -> Iterator:
    """The steps of a node."""
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _run(item, setting, environment, clock, draw)
    elif isinstance(node, PamelaParallel):
        yield [_run(i, setting, dict(environment), clock, draw) for i in node.items]
    elif isinstance(node, Set):
        environment[node.name] = number(node.amount, environment, term_of(setting, environment))
    elif isinstance(node, PamelaLoop):
        low, high = (
            round(number(text, environment, term_of(setting, environment))) for text in (node.low, node.high)
        )
        turns = ({**environment, node.variable: float(v)} for v in range(low, high + 1))
        if node.kind == "par":
            yield [_run(node.body, setting, e, clock, draw) for e in turns]
        else:
            for inner in turns:
                yield from _run(node.body, setting, inner, clock, draw)
    elif isinstance(node, (Use, Delay)):
        yield _end(node, setting, environment, clock, draw)
    elif isinstance(node, Choice):
        raise InputError("a conditional outside of tasks: which branch runs is not known")


def _end(
    node: Use | Delay, setting: Setting, environment: dict[str, float], clock: VirtualClock, draw: Draw
) -> float:
    modelled = as_interval(evaluate(node.amount, environment, term_of(setting, environment))).middle
    if isinstance(node, Delay):
        return clock.now + draw("", modelled)
    resource = resource_name(node.resource, setting, environment)
    servers = int(setting.servers.get(resource, 1))
    return clock.serve(resource, draw(resource, modelled), servers)
