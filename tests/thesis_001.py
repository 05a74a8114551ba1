"""Tables of thesis-001 as tests read them; times in microseconds unless a test says otherwise."""

import csv
import functools
from collections import defaultdict
from math import comb
from pathlib import Path

import numpy as np

from fembench.records.network import CurvePiece, PairClass

DATA = Path(__file__).parent / "data"
PRINTED = DATA.parents[1] / "studies" / "fembench_studies" / "thesis_001" / "data"  # what the studies bring


SWEEP = ["m"] + [f"{mode}.{part}" for mode in ("Send", "Isend") for part in ("L", "Os", "Or")]
LOADED = ["m", "alone", "loaded"]
PACKAGED = {"4.15": SWEEP, "5.2": SWEEP, "4.39": LOADED, "4.40": LOADED, "4.41": LOADED}
PARTS = {"L": "latency", "Os": "send", "Or": "receive"}


def printed(name):
    """Rows of a table that the studies bring, as dictionaries of text."""
    with open(PRINTED / f"{name}.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def rows(number):
    """Rows of Table `number`, the head first; from the package if it has the table."""
    name = f"table_{number.replace('.', '_')}"
    if number in PACKAGED:
        return [PACKAGED[number], *(list(row.values()) for row in printed(name))]
    with open(DATA / f"seed001_{name}.csv", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def named_rows(name):
    """Rows of a table with heads, as dictionaries of text: "table_4_2", "functions_lam"."""
    with open(DATA / f"seed001_{name}.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


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


def piece_around(first, origin, *coefficients):
    """The printed polynomial c0 + c1 (m - origin) + … as a piece from `first` bytes on."""
    shift, n = first - origin, len(coefficients)
    return CurvePiece(
        first=first,
        coefficients=tuple(
            sum(coefficients[k] * comb(k, j) * shift ** (k - j) for k in range(j, n)) for j in range(n)
        ),
    )


@functools.cache
def equations(library):
    """{name: class} from the printed polynomials: "mpich" (Tables 4.30 to 4.32) or "lam" (5.6 to 5.8)."""
    pieces = defaultdict(lambda: defaultdict(list))
    for r in named_rows(f"functions_{library}"):
        line = (r["slope_us_per_byte"], r["quadratic_us_per_byte2"])
        piece = piece_around(float(r["from_bytes"]), float(r["slope_origin_bytes"]), float(r["constant_us"]),
                             *map(float, line))  # fmt: skip
        pieces[r["pair_class"]][PARTS[r["parameter"]]].append(piece)
    return {
        name: PairClass(name=name, **{part: tuple(found) for part, found in parts.items()})
        for name, parts in pieces.items()
    }


SITES = ("UFF",) * 4 + ("Sinergia",) * 2 + ("PUC",) * 4
