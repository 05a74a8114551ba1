"""Timelines in Chrome's trace format: one process per host, one thread per rank."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fembench.base.files import write_atomic
from fembench.model.machine import Machine
from fembench.model.path import Bar


def write_chrome(
    spans: Iterable[tuple[int, float, float, dict[str, Any]]],
    hosts: Sequence[str],
    placed: Sequence[int],
    path: Path | str,
    **notes: object,
) -> None:
    """Spans (rank, begin, end, what) in Chrome's format: a process per host, a thread
    per rank.

    `placed`: [rank] number of its host. A span has a `name`, a
    `cat`egory and perhaps `args`.
    """
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": host, "args": {"name": hosts[host]}}
        for host in sorted(set(placed))
    ]
    for rank, host in enumerate(placed):
        name = {"name": f"rank {rank}"}
        events.append({"ph": "M", "name": "thread_name", "pid": host, "tid": rank, "args": name})
    for rank, begin, end, what in spans:
        place = {"ph": "X", "pid": placed[rank], "tid": rank}
        events.append(place | what | {"ts": 1e6 * begin, "dur": 1e6 * (end - begin)})
    write_atomic(path, msgspec.json.encode({"displayTimeUnit": "ns", **notes, "traceEvents": events}))


def write_timeline(bars: Iterable[Bar], phases: Sequence[str], machine: Machine, path: Path | str) -> None:
    """Bars of a simulation for ui.perfetto.dev."""
    spans = ((b.rank, b.begin, b.end, {"name": phases[b.phase], "cat": b.kind}) for b in bars)
    write_chrome(spans, machine.names, machine.host, path)
