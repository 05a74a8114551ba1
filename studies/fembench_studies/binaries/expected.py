"""What a compiled program is expected to do: its time with an interval.

With a rehearsal, the interval covers: its repetitions; computing alone and beside other ranks; messages
right after others and after computing; on shared cores, the time that waiting ranks take from computing ones.
Without a rehearsal, costs are sums over instructions, and unknown counts are drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs

from fembench.base.units import plural, seconds
from fembench.errors import InputError
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.graph import Compute, ExecutionGraph
from fembench.model.machine import Machine, even_machine
from fembench.model.planner import make_plan
from fembench.records.hlogp import GivenLink
from fembench_studies.binaries.binary import Executable, Prices, graph_of
from fembench_studies.binaries.rehearsal import Repetition, rehearse
from fembench_studies.binaries.walk import Given, Walk

Array = npt.NDArray[np.float64]
REHEARSED = 0.08  # what a rehearsal does not see: MPI's code in the caches, sessions that differ by as much
COLD = 0.05  # of the computing before a message: its latency beyond that of a ping-pong, up to 20 µs
AWAY = 3.0  # factor on the time per byte of a message whose buffers have left the caches
SWITCH = 5e-6  # seconds until a rank that waited computes again, if ranks share cores
USUAL = 80  # percentile of the repetitions that others on the machine make longer
CLASSES = (
    1 / 8,
    2.0,
)  # of a sum over instructions, each as if it waited for the one before; measured: 1/7 to 1.5
TIMED = 0.9  # share of the computing that must have been timed, or the prediction says so first
WIDE = 0.2  # half-width of an interval, relative to its middle, above which the prediction says why
NEAR = GivenLink(1e-6, 5e9)  # for the order of messages in a rehearsal, if no link is given


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
    """A program on a given number of ranks: what was rehearsed, and the walks of all processes."""

    program: Executable
    given: Given
    prices: Prices
    walks: list[list[Walk]]  # [draw][rank]; empty if the program cannot be followed
    repetitions: list[Repetition]  # empty: costs are sums over instructions
    link: GivenLink | None  # None: only computing is predicted
    cores: int  # that the ranks share
    unfollowed: str = ""  # why there are no walks

    @property
    def ranks(self) -> int:
        return len(self.repetitions[0].rows if self.repetitions else self.walks[0])

    @property
    def drawn(self) -> bool:
        """Whether any count behind the time is random."""
        return not self.repetitions and any(walk.drawn for walk in self.walks[0])

    @property
    def timed(self) -> float:
        """Share of the computing that was timed."""
        return 1.0 if self.repetitions else 0.0

    @property
    def shared(self) -> float:
        """Ranks per core, at least 1."""
        return max(self.ranks / self.cores, 1.0)

    def graph(self, source: str) -> ExecutionGraph:
        """The execution graph of the first repetition or draw."""
        return structs.replace(next(self.graphs()), source=source)

    def graphs(self, *, contended: bool = False) -> Iterator[ExecutionGraph]:
        """The graphs of all repetitions or draws."""
        for repetition in self.repetitions:
            yield repetition.graph(contended=contended)
        for walks in () if self.repetitions else self.walks:
            yield graph_of(walks, self.prices, "")

    def computing(self, *, contended: bool = False) -> Array:
        """(graphs, ranks) seconds."""
        graphs = self.graphs(contended=contended)
        return np.array([[_busy(program) for program in graph.programs] for graph in graphs])

    def machine(self, *, cold: bool = False) -> Machine:
        """A core for each rank, and messages as the link says, or as they are after computing."""
        link = self.link or NEAR
        latency, per_byte = link.latency, 1 / link.bandwidth
        if cold:
            latency, per_byte = latency + SWITCH * (self.shared > 1), per_byte * AWAY
        return even_machine(self.ranks, latency=latency, per_byte=per_byte, overhead=link.overhead)

    def finishes(self, machine: Machine, *, contended: bool = False) -> Array:
        """(graphs, ranks) seconds until each rank ends, with a core for each."""
        graphs = self.graphs(contended=contended)
        return np.array([simulate(make_plan(graph, machine)).finish for graph in graphs])

    def simulated(self) -> SimulationOutcome:
        """The simulation of the first graph."""
        return simulate(make_plan(self.graph(""), self.machine()))

    def interval(self, least: Array, most: Array) -> TimeInterval:
        """Of a number that each graph gives at least and at most."""
        if self.repetitions:
            low, high = least.min() / (1 + REHEARSED), np.percentile(most, USUAL) * (1 + REHEARSED)
            value = (np.median(least) + np.median(most)) / 2
        else:
            low, high = np.percentile(least, 5) * CLASSES[0], np.percentile(most, 95) * CLASSES[1]
            value = np.median(least)
        return TimeInterval(float(value), float(low), float(high))

    @cached_property
    def time(self) -> TimeInterval:
        """The time of the run; without a link, the longest computing of a rank.

        If ranks share cores, no core is idle at best; at worst, all of them are while a message travels.
        """
        if self.link is None:
            return self.interval(self.computing().max(axis=1), self.computing(contended=True).max(axis=1))
        least = self.finishes(self.machine()).max(axis=1)
        most = self.finishes(self.machine(cold=True), contended=True).max(axis=1) + self._copied()
        if self.shared > 1:
            none = even_machine(self.ranks, latency=0.0, per_byte=0.0, overhead=0.0)
            free = self.finishes(none, contended=True).max(axis=1)
            least = np.maximum(least, self._even())
            most = np.maximum(most, self._even(contended=True) + most - free)
        return self.interval(least, most * (1 + COLD) if self.repetitions else most)

    def _copied(self) -> float:
        """Seconds in which the rank that sends most copies its messages, if the sender does so."""
        sent = self.simulated().n_bytes
        return float(sent.max()) / self.link.bandwidth if self.link else 0.0

    def _even(self, *, contended: bool = False) -> Array:
        """(graphs,) seconds in which the cores compute all, if none is ever idle."""
        return self.computing(contended=contended).sum(axis=1) / self.cores

    def wide(self) -> str:
        """Why the interval is wide; '' if it is not."""
        if not self.repetitions or self.time.half <= WIDE:
            return ""
        if self.link is not None:
            end = self.finishes(self.machine(cold=True), contended=True).max(axis=1)
            waiting = float(np.median(1 - self.computing(contended=True).mean(axis=1) / end))
            if waiting > WIDE:
                return (
                    f"ranks wait for messages for {waiting:.0%} of the time, whose costs after computing vary"
                )
        return "repetitions of the rehearsal differ: others may use the machine"


def _busy(program: Sequence[Any]) -> float:
    return sum(event.seconds for event in program if isinstance(event, Compute))


def expect(
    program: Executable,
    ranks: int,
    given: Given,
    *,
    binary: Path | None = None,
    link: GivenLink | None = None,
    cores: int = 1,
    seed: int = 0,
    draws: int = 20,
) -> Expected:
    """Rehearse `binary`, if there is one, walk and price. Raises InputError."""
    found: list[Repetition] = []
    if binary:
        found = rehearse(binary, program.image, given.arguments, ranks, link or NEAR)
        given = replace(given, rehearsed=True)
    walks: list[list[Walk]] = []
    unfollowed = ""
    try:
        walks = [program.walks(ranks, given, seed)]
        if not found and any(walk.drawn for walk in walks[0]):
            walks += [program.walks(ranks, given, seed + k) for k in range(1, draws)]
    except InputError as error:
        if not found:
            raise
        unfollowed = str(error)
    return Expected(program, given, Prices(program, given.calls), walks, found, link, cores, unfollowed)


def summary(expected: Expected, source: str) -> str:
    """The prediction in a few lines, and first what it lacks."""
    found, wide = expected.time, expected.wide()
    what = "predicted time" if expected.link else "longest computing"
    lines = []
    if expected.timed < TIMED:
        lines.append(f"NOT TIMED: {expected.timed:.0%} of the computing was timed on this machine")
    elif wide:
        lines.append(f"NOT PREDICTED to {WIDE:.0%}: {wide}")
    lines.append(f"{source} on {plural(expected.ranks, 'rank')}: {what} {seconds(found.value)},")
    lines[-1] += f" interval {seconds(found.low)} to {seconds(found.high)}"
    if expected.repetitions:
        parts = ["alone and beside others", *(["messages warm and cold"] if expected.link else [])]
        lines.append(
            f"interval: {plural(len(expected.repetitions), 'rehearsal')}, {', '.join(parts)}, {REHEARSED:.0%}"
        )
    else:
        counts = f"nine of ten of {len(expected.walks)} draws" if expected.drawn else "every count is known"
        lines.append(f"interval: {counts}; an eighth to twice the sum over instructions, which may overlap")
    if expected.link and expected.shared > 1:
        lines.append(f"cores: {plural(expected.cores, 'core')} for {plural(expected.ranks, 'rank')}")
    return "\n".join(lines)
