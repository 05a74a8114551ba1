"""Discrete-event execution of a model on virtual machines; no time is measured.

Each branch and each iteration of a par loop is a process. A resource serves uses in the order of their
requests. Durations are random, from the distribution behind the machine model's samples, so predictions can
be tested against a known truth (Herai 2005, tier B).
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fembench.base.errors import InputError
from fembench.model.interval import as_interval
from fembench.studies.pamela.amounts import evaluate, number
from fembench.studies.pamela.bounds import Setting, expand, resource_name, term_of
from fembench.studies.pamela.pamela import Choice, Delay, Node, PamelaLoop, PamelaParallel, Sequence, Set, Use

Draw = Callable[[str, float], float]  # resource ("": none), modelled seconds -> seconds in this run


@dataclass
class VirtualClock:
    """Pending events, and the time at which each resource becomes free."""

    now: float = 0.0
    events: list[tuple[float, int, "Process"]] = field(default_factory=list)
    free: dict[str, list[float]] = field(default_factory=dict)  # resource -> [server]
    asked: int = 0  # number of events so far, to break ties

    def at(self, moment: float, process: "Process") -> None:
        self.asked += 1
        heapq.heappush(self.events, (moment, self.asked, process))

    def serve(self, resource: str, seconds: float, servers: int) -> float:
        """The end of a use that is requested now."""
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
    """Advance a process by one step; wake its parent if no other process keeps it waiting."""
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
        raise InputError("a conditional outside of tasks: the branch that runs is unknown")


def _end(
    node: Use | Delay, setting: Setting, environment: dict[str, float], clock: VirtualClock, draw: Draw
) -> float:
    modelled = as_interval(evaluate(node.amount, environment, term_of(setting, environment))).middle
    if isinstance(node, Delay):
        return clock.now + draw("", modelled)
    resource = resource_name(node.resource, setting, environment)
    servers = int(setting.servers.get(resource, 1))
    return clock.serve(resource, draw(resource, modelled), servers)
