"""Tables of thesis-001 as tests read them; times in microseconds unless a test says otherwise."""

import csv
from math import comb
from pathlib import Path

import numpy as np

from fembench.records.network import CurvePiece, PairClass
from fembench.studies.thesis_001.grid_plan import printed

DATA = Path(__file__).parent / "data"


PACKAGED = {"5.2": ["m"] + [f"{mode}.{part}" for mode in ("Send", "Isend") for part in ("L", "Os", "Or")]}


def rows(number):
    """Rows of Table `number`, the head first; from the package if it has the table."""
    name = f"table_{number.replace('.', '_')}"
    if number in PACKAGED:
        return [PACKAGED[number], *(list(row.values()) for row in printed(name))]
    with open(DATA / f"seed001_{name}.csv", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def columns(number):
    """{head: (n,) values} of a table of numbers."""
    head, *body = rows(number)
    return {name: np.array([float(row[i]) for row in body]) for i, name in enumerate(head)}


def matrix(number):
    """(names, (n, n) values) of a table of hosts by hosts; nan if nothing is printed."""
    _, *body = rows(number)
    return [row[0] for row in body], np.array(
        [[float("nan") if cell == "-" else float(cell) for cell in row[1:]] for row in body]
    )


def piece_around(first: float, origin: float, *coefficients: float) -> CurvePiece:
    """The printed polynomial c0 + c1 (m - origin) + … as a piece from `first` bytes on."""
    shift, n = first - origin, len(coefficients)
    return CurvePiece(
        first=first,
        coefficients=tuple(
            sum(coefficients[k] * comb(k, j) * shift ** (k - j) for k in range(j, n)) for j in range(n)
        ),
    )


def mpich(latency, send, receive):
    """Functions of 3.8: (slope, at 64), (slope, at 64, from 128 KiB on), (a, b, c, slope, at 64 KiB)."""
    return PairClass(
        name="",
        latency=(piece_around(0, 64, latency[1], latency[0]),),
        send=(piece_around(0, 64, send[1], send[0]), piece_around(131072, 0, send[2])),
        receive=(
            piece_around(0, 0, receive[2], receive[1], receive[0]),
            piece_around(65536, 65536, receive[4], receive[3]),
        ),
    )


UFF = mpich((0.0865, 314), (0.0001, 14, 37), (4.637e-9, 1.023e-3, 1.9829, 0.00165, 86))
UFF_PUC = mpich((1.6275, 4680), (0.000046, 15, 33), (1.739e-8, 1.023e-3, 4.9829, 0.00304, 131))
SITES = ("UFF",) * 4 + ("Sinergia",) * 2 + ("PUC",) * 4
