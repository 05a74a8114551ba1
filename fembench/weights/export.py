"""Shares in the formats of programs that cut the mesh themselves, each declared once.

The command line follows. Programs that take a map of cells: `fembench.partition.maps`.
"""

from collections.abc import Callable
from typing import NamedTuple

from fembench.partition.maps import decompose_dict, whole_shares
from fembench.records.weights import Weights, as_text, shares_of


class ShareFormat(NamedTuple):
    """One format."""

    help: str  # which program takes it
    text: Callable[[Weights], str]


def metis(weights: Weights) -> str:
    """A line 'part = share' per part, sum 1. Source: METIS 5, gpmetis -tpwgts."""
    return "".join(f"{part} = {share:.9f}\n" for part, share in enumerate(shares_of(weights)))


def scotch(weights: Weights) -> str:
    """A weighted complete graph as target. Source: Scotch 7, gmap GRAPH FILE."""
    loads = whole_shares(shares_of(weights))
    return f"cmpltw {len(loads)} {' '.join(map(str, loads))}\n"


def openfoam(weights: Weights) -> str:
    """system/decomposeParDict with the processorWeights of Scotch and METIS."""
    return decompose_dict(shares_of(weights), "scotch")


def plain(weights: Weights) -> str:
    """All shares on one line, '0.7,0.3'."""
    return as_text(weights) + "\n"


EXPORTS = {
    "metis": ShareFormat("the file of gpmetis and mpmetis -tpwgts=FILE", metis),
    "scotch": ShareFormat("the target file of gmap", scotch),
    "openfoam": ShareFormat("system/decomposeParDict, processorWeights", openfoam),
    "shares": ShareFormat("the argument of fembench run --shares", plain),
}
