"""Execution graphs for other simulators: SMPI traces with
their platform, GOAL schedules.

SMPI      smpirun -replay trace.index -platform platform.xml -hostfile hosts …: the command of write_smpi
GOAL      schedules for LogGOPSim, in whole nanoseconds
"""

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

from fembench.base.files import write_atomic
from fembench.errors import InputError
from fembench.model.collectives import expand
from fembench.model.graph import (
    Collective,
    Compute,
    Event,
    ExecutionGraph,
    Receive,
    Send,
    Wait,
    flat,
    length,
    once,
)
from fembench.model.machine import Machine

FLOPS = 1e9  # per second, of a rank of speed 1
LONGEST = 20_000_000  # most events in an export
EAGER = 1 << 30  # bytes: no message waits for its receiver
INSTANT = 1e-12  # seconds: SimGrid's model divides by the latency of a link


def write_smpi(graph: ExecutionGraph, machine: Machine, folder: Path | str) -> str:
    """Write traces of all ranks, their index, platform.xml and hosts; return the
    command that replays them.

    Every pair of ranks has its own link, so nothing is shared. Its latency and
    bandwidth are those of the straight line through L at the smallest and the largest
    message. Raises InputError for graphs that are too long.
    """
    _check_length(graph)
    place = Path(folder)
    names = [f"rank{r}.trace" for r in range(graph.ranks)]
    for rank, name in enumerate(names):
        write_atomic(place / name, "\n".join(_smpi(graph, rank)) + "\n")
    write_atomic(place / "trace.index", "".join(f"{place.resolve() / name}\n" for name in names))
    write_atomic(place / "platform.xml", "\n".join(_platform(graph, machine)) + "\n")
    write_atomic(place / "hosts", "".join(f"rank{r}\n" for r in range(graph.ranks)))
    return " ".join(smpi_command(place, graph, machine))


def smpi_command(folder: Path, graph: ExecutionGraph, machine: Machine) -> list[str]:
    """The command of a replay with the same algorithms, and a network model
    without correction factors."""
    other = min(1, machine.ranks - 1)
    cost, switch = machine.cost(0, other, 8), machine.pair(0, other).switch
    return [
        *("smpirun", "-np", str(graph.ranks), "-replay", str(folder / "trace.index")),
        *("-platform", str(folder / "platform.xml"), "-hostfile", str(folder / "hosts")),
        *("--cfg=smpi/allreduce:rdb", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0"),
        *("--cfg=network/crosstraffic:0", "--cfg=network/weight-S:0", "--cfg=smpi/bcast:binomial_tree"),
        *(f"--cfg=smpi/{name}:0:{cost.send:.9g}:0" for name in ("os", "ois")),
        f"--cfg=smpi/or:0:{cost.receive:.9g}:0",
        *(f"--cfg=smpi/{name}-thresh:{switch or EAGER}" for name in ("async-small", "send-is-detached")),
    ]


def _check_length(graph: ExecutionGraph) -> None:
    total = sum(map(length, graph.programs))
    if total > LONGEST:
        raise InputError(f"{total} events with loops unrolled; expected up to {LONGEST} for an export")


def _smpi(graph: ExecutionGraph, rank: int) -> Iterator[str]:
    """Time-independent actions of a rank; MPI_BYTE is the
    default datatype of a plain init."""
    yield f"{rank} init"
    for e in flat(graph.programs[rank]):
        line = _action(e, rank)
        if line:
            yield f"{rank} {line}"
    yield f"{rank} finalize"


def _action(e: Event, rank: int) -> str:
    if isinstance(e, Compute):
        return f"compute {e.seconds * FLOPS:.6f}" if e.seconds else ""
    if isinstance(e, Send):
        return f"{'send' if e.blocking else 'isend'} {e.to} {_tag(e)} {e.m}"
    if isinstance(e, Receive):
        return f"{'recv' if e.blocking else 'irecv'} {e.source} {_tag(e)} {e.m}"
    if isinstance(e, Wait):
        return "waitall"
    if isinstance(e, Collective):
        return {
            "allreduce": f"allreduce {e.m} 0",
            "allgather": f"allgather {e.m} {e.m}",
            "bcast": f"bcast {e.m} {e.root}",
            "reduce": f"reduce {e.m} 0 {e.root}",
            "barrier": "barrier",
        }[e.kind]
    raise InputError(f"{e}: expected an event, not a loop")


def _tag(e: Send | Receive) -> int:
    """The tag, made positive: SimGrid rejects the negative tags
    of non-blocking collectives."""
    return e.tag if e.tag >= 0 else 1000 - e.tag


def _platform(graph: ExecutionGraph, machine: Machine) -> Iterator[str]:
    events = (e for program in graph.programs for e in once(program))
    sizes = [e.m for e in events if isinstance(e, (Send, Collective))]
    low, high = min(sizes, default=8), max(sizes, default=8)
    yield '<?xml version="1.0"?>'
    yield '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    yield '<platform version="4.1">'
    yield '  <zone id="machine" routing="Full">'
    for rank, speed in enumerate(machine.speeds):
        yield f'    <host id="rank{rank}" speed="{speed * FLOPS:.9g}f"/>'
    pairs = [(p, q) for p in range(graph.ranks) for q in range(graph.ranks) if p != q]
    lines = [_line(machine, p, q, low, high) for p, q in pairs]
    for (p, q), (latency, bandwidth) in zip(pairs, lines):
        name = quoteattr(f"{p}-{q}")
        line = f'latency="{latency:.9g}s" bandwidth="{bandwidth:.9g}Bps"'
        yield f'    <link id={name} {line} sharing_policy="FATPIPE"/>'
    for p, q in pairs:
        route = f'<route src="rank{p}" dst="rank{q}" symmetrical="NO">'
        yield f"    {route}<link_ctn id={quoteattr(f'{p}-{q}')}/></route>"
    yield "  </zone>"
    yield "</platform>"


def _line(machine: Machine, p: int, q: int, low: int, high: int) -> tuple[float, float]:
    """(latency, bytes/s) of the straight line through L at two sizes."""
    first, last = machine.cost(p, q, low).latency, machine.cost(p, q, high).latency
    slope = (last - first) / (high - low) if high > low and last > first else 1e-18
    return max(first - slope * low, INSTANT), 1 / slope


def write_goal(graph: ExecutionGraph, machine: Machine, path: Path | str) -> None:
    """Write a GOAL schedule, with computing at each rank's speed
    and collectives as messages."""
    _check_length(graph)
    lines = [f"num_ranks {graph.ranks}"]
    for rank in range(graph.ranks):
        lines += ["", f"rank {rank} {{", *_goal(graph, machine, rank), "}"]
    write_atomic(path, "\n".join(lines) + "\n")


def _goal(graph: ExecutionGraph, machine: Machine, rank: int) -> Iterator[str]:
    """Every operation requires the one before it; the one after a wait
    requires all pending ones."""
    number = 0
    needs: list[int] = []  # of the next operation
    pending: list[int] = []
    for e in _expanded(graph, rank):
        if isinstance(e, Wait):
            needs += pending
            pending = []
            continue
        if isinstance(e, Compute):
            what = f"calc {round(1e9 * e.seconds / machine.speeds[rank])}"
        elif isinstance(e, Send):
            what = f"send {max(e.m, 1)}b to {e.to} tag {abs(e.tag)}"
        elif isinstance(e, Receive):
            what = f"recv {max(e.m, 1)}b from {e.source} tag {abs(e.tag)}"
        else:
            continue
        number += 1
        yield f"l{number}: {what}"
        yield from (f"l{number} requires l{k}" for k in sorted(set(needs)))
        posted = isinstance(e, Receive) and not e.blocking
        if posted:
            pending.append(number)
        else:
            needs = [number]


def _expanded(graph: ExecutionGraph, rank: int) -> Iterator[Event]:
    for e in flat(graph.programs[rank]):
        if isinstance(e, Collective):
            yield from expand(e, rank, graph.ranks)
        else:
            yield e
