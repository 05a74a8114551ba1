"""What a compiled program is expected to do: its time with an interval.

With a rehearsal, the interval covers: its repetitions, which also differ in the ranks that share a core
(`sharing`); computing alone and beside other ranks; messages right after others and after computing.
Without a rehearsal, costs are sums over instructions, and counts are drawn (`static`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs

from fembench.base.units import plural, seconds
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.graph import Collective, Compute, ExecutionGraph, Receive, Send, Wait
from fembench.model.machine import Machine, even_machine
from fembench.model.planner import make_plan
from fembench_studies.binaries.counts import RankCounts, counts_of
from fembench_studies.binaries.executable import Executable
from fembench_studies.binaries.given import Given
from fembench_studies.binaries.links import Link
from fembench_studies.binaries.rehearsal import PHASES, Repetition, count, rehearse
from fembench_studies.binaries.sharing import AT_ONCE, Handover, measured_handover, place, shared_finishes
from fembench_studies.binaries.static import Walk, events, prices, walks

WITH_BYTES = (Send, Receive, Collective)
Array = npt.NDArray[np.float64]
REHEARSED = 0.12  # by which sessions differ: decision 0025
COLD = 0.05  # of the computing before a message: its latency beyond that of a ping-pong, up to 20 µs
AWAY = 3.0  # factor on the time per byte of a message whose buffers have left the caches
USUAL = 80  # percentile of the repetitions, and 100 less it, between which an interval lies
CLASSES = (
    1 / 8,
    2.0,
)  # of a sum over instructions, each as if it waited for the one before; measured: 1/7 to 1.5
DRAWS = 20  # behind an interval
WIDE = 0.2  # half-width of an interval, relative to its middle, above which the prediction says why
NEAR = Link(1e-6, 5e9)  # for the order of messages in a rehearsal, if no link is given


class TimeInterval(NamedTuple):
    """A value and its interval, in seconds."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half-width, relative to the middle."""
        return (self.high - self.low) / max(self.high + self.low, 1e-300)


@dataclass(frozen=True)
class Expected:
    """A program on a given number of ranks: what was rehearsed or, without a rehearsal, drawn."""

    program: Executable
    given: Given
    walks: list[list[Walk]]  # [draw][rank]; empty after a rehearsal
    repetitions: list[Repetition]  # empty: costs are sums over instructions
    counts: list[RankCounts]  # [rank] of the first draw, or of a rehearsal; empty if nothing was counted
    link: Link | None  # None: only computing is predicted
    cores: int  # that the ranks share
    handover: Handover = AT_ONCE  # between ranks of a core

    @property
    def ranks(self) -> int:
        return len(self.repetitions[0].rows if self.repetitions else self.walks[0])

    @property
    def drawn(self) -> bool:
        """Whether any count behind the time is random."""
        return any(walk.drawn for walk in self.walks[0]) if self.walks else False

    @cached_property
    def prices(self) -> dict[int, float]:
        """Vertex -> seconds, summed up over its instructions."""
        return prices(self.program, self.given.calls)

    def graph(self, source: str) -> ExecutionGraph:
        """The execution graph of the first repetition or draw."""
        return structs.replace(next(self.graphs()), source=source)

    def graphs(self, *, contended: bool = False) -> Iterator[ExecutionGraph]:
        """The graphs of all repetitions or draws."""
        for repetition in self.repetitions:
            yield repetition.graph(contended=contended)
        for draw in self.walks:
            yield ExecutionGraph(phases=PHASES, programs=tuple(events(walk, self.prices) for walk in draw))

    def computing(self, *, contended: bool = False) -> Array:
        """(graphs, ranks) seconds."""
        graphs = self.graphs(contended=contended)
        return np.array([[_busy(program) for program in graph.programs] for graph in graphs])

    def events(self) -> list[int]:
        """[rank] messages and collectives."""
        programs = self.graph("").programs
        return [sum(not isinstance(event, (Compute, Wait)) for event in program) for program in programs]

    def bytes(self) -> int | None:
        """Of every message and collective; None if they differ."""
        sizes = {
            e.m for program in self.graph("").programs for e in program if isinstance(e, WITH_BYTES) and e.m
        }
        return sizes.pop() if len(sizes) == 1 else None

    def machine(self, *, cold: bool = False) -> Machine:
        """A core for each rank, and messages as the link says, or as they are after computing."""
        link = self.link or NEAR
        latency, per_byte = link.latency, 1 / link.bandwidth
        if cold:
            per_byte *= AWAY
        return even_machine(
            self.ranks, latency=latency, per_byte=per_byte, overhead=link.overhead, switch=link.rendezvous
        )

    def finishes(self, machine: Machine, *, contended: bool = False) -> Array:
        """(graphs, ranks) seconds until each rank ends."""
        found = []
        for number, graph in enumerate(self.graphs(contended=contended)):
            plan = make_plan(graph, machine)
            if self.ranks > self.cores:
                placed = place(self.ranks, self.cores, number)
                found.append(shared_finishes(plan, placed, self.handover))
            else:
                found.append(simulate(plan).finish)
        return np.array(found)

    def simulated(self) -> SimulationOutcome:
        """The simulation of the first graph."""
        return simulate(make_plan(self.graph(""), self.machine()))

    def interval(self, least: Array, most: Array) -> TimeInterval:
        """Of a number that each graph gives at least and at most."""
        if self.repetitions:
            short, long = np.median(least), np.median(most)
            low = short - np.hypot(short - np.percentile(least, 100 - USUAL), REHEARSED * short)
            high = long + np.hypot(np.percentile(most, USUAL) - long, REHEARSED * long)
            value = (short + long) / 2
        else:
            low, high = np.percentile(least, 5) * CLASSES[0], np.percentile(most, 95) * CLASSES[1]
            value = np.median(least)
        return TimeInterval(float(value), float(low), float(high))

    @cached_property
    def time(self) -> TimeInterval:
        """The time of the run; without a link, the longest computing of a rank."""
        if self.link is None:
            return self.interval(self.computing().max(axis=1), self.computing(contended=True).max(axis=1))
        least = self.finishes(self.machine()).max(axis=1)
        most = self.finishes(self.machine(cold=True), contended=True).max(axis=1) + self._copied()
        return self.interval(least, most * (1 + COLD) if self.repetitions else most)

    def _copied(self) -> float:
        """Seconds in which the rank that sends most copies its messages, if the sender does so."""
        sent = self.simulated().n_bytes
        return float(sent.max()) / self.link.bandwidth if self.link else 0.0

    def wide(self) -> str:
        """Why the interval is wide; '' if it is not."""
        if not self.repetitions or self.time.half <= WIDE:
            return ""
        if self.link is not None:
            end = self.finishes(self.machine(cold=True), contended=True).max(axis=1)
            busy = self.computing(contended=True).sum(axis=1) / min(self.ranks, self.cores)
            waiting = float(np.median(1 - busy / end))
            if waiting > WIDE:
                part = f"{100 * waiting:.0f} % of the time"
                return f"cores wait for messages for {part}, whose costs after computing vary"
        shared = ", and so do the ranks that share a core" if self.ranks > self.cores else ""
        return f"repetitions of the rehearsal differ: others may use the machine{shared}"


def _busy(program: Sequence[Any]) -> float:
    return sum(event.seconds for event in program if isinstance(event, Compute))


def expect(
    program: Executable,
    ranks: int,
    given: Given,
    *,
    binary: Path | None = None,
    arguments: Sequence[str] = (),
    counted: bool = False,
    link: Link | None = None,
    cores: int = 1,
) -> Expected:
    """Rehearse `binary` and, if asked, count; without one, draw. Raises InputError."""
    if binary is None:
        draws = [walks(program, ranks, given, 0)]
        if any(walk.drawn for walk in draws[0]):
            draws += [walks(program, ranks, given, seed) for seed in range(1, DRAWS)]
        counts = [walk.counts(program) for walk in draws[0]]
        return Expected(program, given, draws, [], counts, link, cores)
    found, counts = rehearse(binary, arguments, ranks, link or NEAR, cores), []
    if counted:
        outcomes = count(binary, program.branches(), arguments, ranks, link or NEAR)
        counts = [counts_of(program, branches) for branches in outcomes]
    handover = measured_handover() if ranks > cores else AT_ONCE
    return Expected(program, given, [], found, counts, link, cores, handover)


def summary(expected: Expected, source: str) -> str:
    """The prediction in a few lines, and first what it lacks."""
    found, wide = expected.time, expected.wide()
    what = "predicted time" if expected.link else "longest computing"
    lines = []
    if not expected.repetitions:
        lines.append("NOT TIMED: nothing was run")
    elif wide:
        lines.append(f"NOT PREDICTED to {100 * WIDE:.0f} %: {wide}")
    lines.append(f"{source} on {plural(expected.ranks, 'rank')}: {what} {seconds(found.value)},")
    lines[-1] += f" interval {seconds(found.low)} to {seconds(found.high)}"
    if expected.repetitions:
        parts = ["alone and beside others", *(["messages warm and cold"] if expected.link else [])]
        parts += [f"{100 * REHEARSED:.0f} %"]
        lines.append(f"interval: {plural(len(expected.repetitions), 'rehearsal')}, {', '.join(parts)}")
    else:
        counts = f"nine of ten of {len(expected.walks)} draws" if expected.drawn else "every count is stated"
        lines.append(f"interval: {counts}; an eighth to twice the sum over instructions, which may overlap")
    if expected.link and expected.ranks > expected.cores:
        lines.append(f"cores: {plural(expected.cores, 'core')} for {plural(expected.ranks, 'rank')}")
        if expected.repetitions:
            lines[-1] += f", one after the other in {seconds(expected.handover.switch)} (measured)"
    return "\n".join(lines)
