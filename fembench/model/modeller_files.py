"""Files of the HLogP modeller of Mendes (2004, Figs 4.1 and 4.2): hosts to model, and their model.

hosts   name [folder of the executables]                                 one per line
model   n, then n lines `H name Os Or OS [folder]`, then an n x n matrix of latencies
"""

import math
from pathlib import Path
from typing import NamedTuple

from fembench.base.config import read_text
from fembench.base.errors import InputError, shown
from fembench.base.files import write_atomic
from fembench.base.units import plural


class HostLine(NamedTuple):
    """One host to model."""

    name: str
    folder: str = ""


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


def read_hosts(path: Path | str) -> tuple[HostLine, ...]:
    """The host list in a file. Raises InputError."""
    return tuple(HostLine(*line.split(maxsplit=1)) for line in _lines(path))


def read_model(path: Path | str) -> ModellerFile:
    """The model in a file. Commas separate thousands, as in the source. Raises InputError."""
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
    rows = [" ".join(map(_text, filter(_present, host))) for host in model.hosts]
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


def _present(value: object) -> bool:
    return value != ""


def _text(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
