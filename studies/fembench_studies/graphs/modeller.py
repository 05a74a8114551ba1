"""Files of the HLogP modeller of Mendes (2004, Fig. 4.2), from a profile,
and such a file as a machine.

n, then n lines `H name Os Or OS [folder]`, then an n x n matrix of latencies: one Os
and one Or per host, one L per ordered pair of hosts, for messages of one size.
"""

import math
import statistics
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fembench.base.config import read_text
from fembench.base.errors import shown
from fembench.base.files import write_atomic
from fembench.base.units import plural
from fembench.errors import InputError
from fembench.model.graph import ExecutionGraph
from fembench.model.heterogeneity import from_kernels, from_product, kernel_seconds
from fembench.model.machine import Machine, checked_speeds
from fembench.records.hlogp import MessageCost, message_cost, parse_link
from fembench.records.network import CurvePiece, PairClass, class_of
from fembench.records.profile import Profile
from fembench.workflows.simulate import even_machine_for, machine_in_file


class ModelHost(NamedTuple):
    """One host at one message size; times in microseconds."""

    H: float
    name: str
    send: float
    receive: float
    system: str
    folder: str = ""


class ModellerFile(NamedTuple):
    """All hosts at one message size."""

    hosts: tuple[ModelHost, ...]
    latency: tuple[tuple[float, ...], ...]  # [origin][destination], microseconds


def read_model(path: Path | str) -> ModellerFile:
    """The model in a file. Commas separate thousands, as in the
    source. Raises InputError."""
    lines = _lines(path)
    try:
        n = int(lines[0])
        hosts = tuple(_host(line) for line in lines[1 : n + 1])
        matrix = tuple(tuple(map(_number, line.split())) for line in lines[n + 1 :])
    except (IndexError, ValueError) as error:
        raise InputError(
            f"{path}: {shown(error, 100)}; expected n, n lines of hosts, n lines of latencies"
        ) from None
    if len(hosts) != n or len(matrix) != n or any(len(row) != n for row in matrix):
        raise InputError(
            f"{path}: {plural(len(hosts), 'host')} and {plural(len(matrix), 'row')} of latencies; "
            f"expected {n} of each"
        )
    return ModellerFile(hosts, matrix)


def write_model(model: ModellerFile, path: Path | str) -> None:
    """Write the model, whole or not at all."""
    rows = [" ".join(_text(value) for value in host if value != "") for host in model.hosts]
    matrix = ["\t".join(_text(value) for value in row) for row in model.latency]
    write_atomic(path, "\n".join([str(len(model.hosts)), *rows, *matrix]) + "\n")


def _lines(path: Path | str) -> list[str]:
    found = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not found:
        raise InputError(f"{path} is empty; expected hosts")
    return found


def _host(line: str) -> ModelHost:
    words = line.split(maxsplit=5)
    if len(words) < 5:
        raise ValueError(f"'{line}' has {len(words)} words")
    H, name, send, receive, system, *folder = words
    return ModelHost(_number(H), name, _number(send), _number(receive), system, *folder)


def _number(word: str) -> float:
    value = float(word.replace(",", ""))
    if not math.isfinite(value):
        raise ValueError(f"'{word}' is not finite")
    return value


def _text(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


MICRO = 1e-6
SCALE = 100.0  # H of the fastest host; only ratios are meaningful, and the file has few digits


def model_of(profile: Profile, m: int) -> ModellerFile:
    """The model of a profile's hosts, for messages of m bytes.

    H: median over a host's ranks, from the three kernels if they were measured, else from the product.
    Os, Or: medians over a host's partners. Raises InputError if the profile has no network.
    """
    network, names = profile.network, [h.name for h in profile.environment.hosts]
    if network is None:
        raise InputError("the profile has no network; expected a profile of fembench characterize --network")
    n = len(names)
    seconds = kernel_seconds(profile)
    by_rank = from_product(profile) if seconds is None else from_kernels(seconds)
    slow = [
        float(np.median([h for h, k in zip(by_rank, profile.environment.rank_host) if k == host]))
        for host in range(n)
    ]
    cost = [[message_cost(class_of(network, a, b), m, same_host=a == b) for b in range(n)] for a in range(n)]
    hosts = [
        ModelHost(
            round(SCALE * slow[a] / min(slow), 1),
            names[a],
            round(_middle([cost[a][b].send for b in range(n)], a) / MICRO, 2),
            round(_middle([cost[b][a].receive for b in range(n)], a) / MICRO, 2),
            "linux",
        )
        for a in range(n)
    ]
    latency = [[0.0 if a == b else round(cost[a][b].latency / MICRO, 2) for b in range(n)] for a in range(n)]
    return ModellerFile(tuple(hosts), tuple(map(tuple, latency)))


def _middle(values: list[float], own: int) -> float:
    """The median over partners; a single host is its own partner."""
    others = [v for k, v in enumerate(values) if k != own]
    return statistics.median(others or values)


def machine_for(graph: ExecutionGraph, path: str, link: str) -> Machine:
    """The machine of a graph: that of a profile or of a modeller's file, or of a link
    in their place. Raises InputError."""
    if not path:
        return even_machine_for(graph, parse_link(link, overhead=True) if link else None)
    if read_text(path).lstrip().startswith("{"):
        return machine_in_file(path, graph)
    return machine_of_model(read_model(path), graph.ranks)


def machine_of_model(model: ModellerFile, ranks: int) -> Machine:
    """The machine with ranks placed on the hosts in turn. Speeds are 1 / H, 1 for the
    fastest host. Messages of all sizes have the costs in the file. Raises InputError."""
    n = len(model.hosts)
    if ranks < 1 or n < 1:
        raise InputError(f"{plural(ranks, 'rank')} on {plural(n, 'host')}; expected at least one of each")
    least = min(host.H for host in model.hosts)
    if not least > 0:
        raise InputError(f"H = {least:g}; expected positive numbers")

    def link(a: int, b: int) -> PairClass:
        p, q = model.hosts[a], model.hosts[b]
        parts = MessageCost(p.send, model.latency[a][b], q.receive)
        return PairClass(
            name=p.name if a == b else f"{p.name} > {q.name}",
            send=_constant(parts.send),
            latency=_constant(parts.latency),
            receive=_constant(parts.receive),
        )

    host = tuple(rank % n for rank in range(ranks))
    return Machine(
        host=host,
        names=tuple(h.name for h in model.hosts),
        link=link,
        speeds=checked_speeds([least / model.hosts[k].H for k in host], ranks),
    )


def _constant(microseconds: float) -> tuple[CurvePiece, ...]:
    return (CurvePiece(first=0, coefficients=(MICRO * microseconds,)),)
