"""Machine model: the times of all operations and messages per machine, as intervals.

The file format is that of Herai 2005, App. B. Machine 0 is the coordinator; // begins a comment:
    inter_sum_int[1]=[7.3E-9;7.4E-9]          seconds per operation
    inter_send[1][0](64)=[0.008;0.017]        seconds per message of 64 bytes; also for the other direction
                                              (App. B does not name the unit; milliseconds are plausible)
    factor[1]=0.9994                          relative speed W of Eq. 3.5 (not in the thesis' file)
Times of messages are interpolated linearly between the sizes of a pair; a single size holds for all.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fembench.base.config import read_text
from fembench.base.errors import shown
from fembench.base.units import plural
from fembench.errors import InputError
from fembench.model.closed_form import TimeRange

Pair = tuple[int, int]
_NUMBER = r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)"
_OPERATION = re.compile(rf"inter_(\w+)\[(\d{{1,9}})\]=\[{_NUMBER};{_NUMBER}\]")
_SEND = re.compile(rf"inter_send\[(\d{{1,9}})\]\[(\d{{1,9}})\]\((\d{{1,9}})\)=\[{_NUMBER};{_NUMBER}\]")
_FACTOR = re.compile(rf"factor\[(\d{{1,9}})\]={_NUMBER}")


@dataclass(frozen=True)
class MachineModel:
    """Intervals of all machines."""

    operations: Mapping[int, Mapping[str, TimeRange]]  # machine -> operation -> seconds
    sends: Mapping[Pair, Mapping[int, TimeRange]] = field(default_factory=dict)  # (from, to) -> bytes -> s
    factors: Mapping[int, float] = field(default_factory=dict)  # W, 1 for the fastest
    aliases: Mapping[str, str] = field(default_factory=dict)  # operation -> another of the same cost
    free: frozenset[str] = frozenset()  # operations without cost

    @property
    def workers(self) -> tuple[int, ...]:
        """All machines except the coordinator, fastest first."""
        return tuple(sorted((p for p in self.operations if p), key=lambda p: (-self.factors.get(p, 1.0), p)))

    def cost(self, operation: str, machine: int) -> TimeRange:
        """Seconds of one operation. Raises InputError if the model lacks
        it: it never counts as 0."""
        if operation in self.free:
            return TimeRange(0.0, 0.0)
        known = self.operations.get(machine)
        if known is None:
            raise InputError(
                f"machine {machine}: not in the machine model; expected one of {sorted(self.operations)}"
            )
        found = known.get(self.aliases.get(operation, operation))
        if found is None:
            raise InputError(f"operation '{operation}' of machine {machine}: not in the machine model")
        return found

    def message(self, source: int, target: int, n_bytes: float) -> TimeRange:
        """Seconds of a message, if need be from the opposite
        direction. Raises InputError."""
        sizes = self.sends.get((source, target)) or self.sends.get((target, source))
        if not sizes:
            raise InputError(f"messages between machines {source} and {target}: not in the machine model")
        known = sorted(sizes)
        if len(known) == 1:
            return sizes[known[0]]
        upper = next((k for k in known[1:-1] if n_bytes <= k), known[-1])
        lower = known[known.index(upper) - 1]
        weight = max((n_bytes - lower) / (upper - lower), 0.0)
        a, b = sizes[lower], sizes[upper]
        low, high = (max(x + weight * (y - x), 0.0) for x, y in ((a.low, b.low), (a.high, b.high)))
        return TimeRange(min(low, high), max(low, high))


def parse(text: str, where: str = "machine model", send_unit: float = 1.0) -> MachineModel:
    """The model that a text describes; messages in units of `send_unit`
    seconds. Raises InputError."""
    operations: dict[int, dict[str, TimeRange]] = {}
    sends: dict[Pair, dict[int, TimeRange]] = {}
    factors: dict[int, float] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"\s+", "", raw.split("//")[0]).rstrip(";")
        if found := _SEND.fullmatch(line):
            a, b, size = (int(g) for g in found.groups()[:3])
            sends.setdefault((a, b), {})[size] = _interval(found.groups()[3:]) * send_unit
        elif found := _OPERATION.fullmatch(line):
            operations.setdefault(int(found.group(2)), {})[found.group(1)] = _interval(found.groups()[2:])
        elif found := _FACTOR.fullmatch(line):
            factors[int(found.group(1))] = float(found.group(2))
        elif line:
            raise InputError(
                f"{where}, line {number}: cannot read '{shown(raw)}'; expected inter_NAME[MACHINE]=[MIN;MAX]"
            )
    if not operations:
        raise InputError(f"{where}: no operations; expected lines such as inter_sum_int[1]=[7.3E-9;7.4E-9]")
    return MachineModel(operations, sends, factors)


def _interval(ends: Iterable[str]) -> TimeRange:
    low, high = map(float, ends)
    return TimeRange(low, high)


SLOWEST = 0.1  # seconds of the smallest message between two machines, on any network


def implausible(model: MachineModel) -> str:
    """The slowest of the smallest messages, if no network is as slow: it may
    have another unit; else ""."""
    least = {pair: min(sizes) for pair, sizes in model.sends.items() if sizes}
    pair = max(least, key=lambda p: model.sends[p][least[p]].low, default=None)
    if pair is None or model.sends[pair][least[pair]].low <= SLOWEST:
        return ""
    return (
        f"a message of {least[pair]} bytes from machine {pair[0]} to {pair[1]} takes at least "
        f"{model.sends[pair][least[pair]].low:.3g} s: is the unit of the messages in the machine model ms?"
    )


def load(path: Path | str, send_unit: float = 1.0) -> MachineModel:
    """The model in a file; `send_unit` as for `parse`. Raises InputError."""
    return parse(read_text(path), str(path), send_unit)


def as_text(model: MachineModel, names: Sequence[str], head: str) -> str:
    """The model as `parse` reads it. names: [machine], in comments;
    `head`: what its first line says."""
    lines = [f"// {head}"]
    for p, operations in sorted(model.operations.items()):
        lines.append(f"// machine {p}: {names[p]}")
        if p in model.factors:
            lines.append(f"factor[{p}]={model.factors[p]:.6g}")
        lines += [f"inter_{name}[{p}]={_ends(i)}" for name, i in sorted(operations.items())]
        sends = [(b, n, i) for (a, b), sizes in model.sends.items() if a == p for n, i in sizes.items()]
        lines += [f"inter_send[{p}][{b}]({n})={_ends(i)}" for b, n, i in sends]
    return "\n".join(lines) + "\n"


def _ends(interval: TimeRange) -> str:
    return f"[{interval.low:.6g};{interval.high:.6g}]"


def fastest(model: MachineModel, count: int) -> MachineModel:
    """The coordinator and the `count` fastest workers, renumbered 1, 2, …. Raises InputError."""
    workers = model.workers
    if not 1 <= count <= len(workers):
        known = f"the machine model has {plural(len(workers), 'worker')}"
        raise InputError(f"{plural(count, 'machine')}: {known}; expected no more")
    return _renumbered(model, workers[:count])


def homogeneous(model: MachineModel, like: int, count: int) -> MachineModel:
    """A hypothetical park of `count` workers, all equal to one of
    the model. Raises InputError."""
    if like not in model.workers:
        raise InputError(
            f"machine {like}: not a worker of the machine model; expected one of {model.workers}"
        )
    return _renumbered(model, [like] * count)


def _renumbered(model: MachineModel, chosen: Iterable[int]) -> MachineModel:
    """Machine 0, and the chosen machines as 1, 2, …; the same machine may be chosen repeatedly."""
    new = dict(enumerate(chosen, 1))
    both = {0: 0, **new} if 0 in model.operations else new
    sends: dict[Pair, Mapping[int, TimeRange]] = {}
    for a, old in new.items():
        for pair in ((old, 0), (0, old)):
            if pair in model.sends:
                sends[(a, 0) if pair[1] == 0 else (0, a)] = model.sends[pair]
    return replace(
        model,
        operations={p: model.operations[old] for p, old in both.items()},
        sends=sends,
        factors={p: model.factors[old] for p, old in both.items() if old in model.factors},
    )
