"""The execution graph of a compiled MPI program, without its source and without running it.

After Calzeta and de Souza (2008): objdump gives the blocks, and each process walks through them. Who sends
what to whom, and how often loops iterate, follows from the code where the code tells; the rest is drawn
(`walker`). The costs of blocks are measured (`instructions`); the time of a program that can run here is
that of its rehearsal (`rehearsal`).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from fembench.errors import InputError
from fembench.model.graph import Compute, ExecutionGraph, Program
from fembench_studies.binaries import mpi_calls
from fembench_studies.binaries.blocks import Function, Instruction, Vertex, functions_of, instructions
from fembench_studies.binaries.emulator import DecodedStep, decoded
from fembench_studies.binaries.flow import Flow
from fembench_studies.binaries.image import Image
from fembench_studies.binaries.instructions import class_of
from fembench_studies.binaries.mpi_calls import COMPUTE, PHASES
from fembench_studies.binaries.walk import Counts, Given, Walk
from fembench_studies.binaries.walker import Walker


class Executable:
    """All functions of an executable."""

    def __init__(self, text: str, costs: Mapping[str, float], entry: str, image: Image) -> None:
        self.functions = functions_of(text, lambda i: costs[class_of(i)])
        if entry not in self.functions:
            raise InputError(
                f"no function {entry} in the executable; expected a function of an unstripped executable"
            )
        self.image, self.entry = image, self.functions[entry]
        self.by_start = {f.start: f for f in self.functions.values()}
        self.code = {i.address: i for _, _, body in instructions(text) for i in body}
        vertices = [v for f in self.functions.values() for v in f.vertices.values()]
        self.called = frozenset(v.name.split("@")[0] for v in vertices if v.name)
        self._flows: dict[str, Flow] = {}
        self._steps: dict[int, tuple[DecodedStep, ...]] = {}

    def flow(self, function: Function) -> Flow:
        """The control flow of a function."""
        if function.name not in self._flows:
            self._flows[function.name] = Flow(function, _ends)
        return self._flows[function.name]

    def around(self, address: int) -> Function | None:
        """The function that contains an address."""
        return next((f for f in self.functions.values() if f.start <= address < f.end), None)

    @cached_property
    def owner(self) -> dict[int, Function]:
        """vertex -> its function."""
        return {a: f for f in self.functions.values() for a in f.vertices}

    def instructions_of(self, v: Vertex) -> list[Instruction]:
        """The instructions of a vertex."""
        found, address = [], v.start
        while address < v.end and address in self.code:
            found.append(self.code[address])
            address = found[-1].end
        return found

    def steps(self, v: Vertex) -> tuple[DecodedStep, ...]:
        """The decoded instructions of a vertex."""
        if v.start not in self._steps:
            self._steps[v.start] = tuple(decoded(i) for i in self.instructions_of(v))
        return self._steps[v.start]

    def walks(self, ranks: int, given: Given, seed: int) -> list[Walk]:
        """The walks of all processes; a message's values are known to ranks that walk after its sender."""
        if ranks < 1:
            raise InputError(f"{ranks} ranks; expected at least 1")
        heard: dict[tuple[int, int], list[tuple[int, mpi_calls.Cells]]] = {}
        shared: dict[tuple[str, int, int], mpi_calls.Cells] = {}
        return [
            Walker(self, r, ranks, given, np.random.default_rng((seed, r)), heard, shared).walk()
            for r in range(ranks)
        ]


def _ends(v: Vertex) -> bool:
    return v.kind == "call" and v.name.split("@")[0] in mpi_calls.ENDS


class Prices:
    """Seconds of what was counted: of blocks, the sum over their instructions, and of calls of libraries."""

    def __init__(self, program: Executable, calls: Mapping[str, float]) -> None:
        self.block = {a: f.vertices[a].cost for a, f in program.owner.items()}
        self.calls = {**mpi_calls.COMMON, **calls}

    def of(self, counts: Counts) -> float:
        """Seconds of what was counted."""
        return sum(n * self._each(kind, key) for (kind, key), n in counts.items())

    def _each(self, kind: str, key: int | str) -> float:
        if kind == "block":
            return self.block[int(key)]
        return self.calls.get(str(key), 0.0) if kind == "library" else 0.0


def graph_of(walks: Sequence[Walk], prices: Prices, source: str) -> ExecutionGraph:
    """The graph of the walks of all processes."""
    return ExecutionGraph(
        phases=PHASES, programs=tuple(_program(walk, prices) for walk in walks), source=source
    )


def _program(walk: Walk, prices: Prices) -> Program:
    parts = [Compute(COMPUTE, prices.of(p)) if isinstance(p, dict) else p for p in walk.parts]
    return tuple(p for p in parts if not isinstance(p, Compute) or p.seconds > 0)


def reached_by(program: Executable, callers: Sequence[tuple[str, int]]) -> frozenset[int]:
    """The branches on which it depends whether a call is reached; `callers`: the calls that lead to it."""
    found: set[int] = set()
    for name, address in callers:
        found |= program.flow(program.functions[name]).controls(address)
    return frozenset(found)


def load(path: Path, costs: Mapping[str, float], entry: str) -> Executable:
    """An executable. Raises InputError."""
    from fembench_studies.binaries.image import image_of, objdump

    return Executable(objdump("-d", path), costs, entry, image_of(path))
