"""Shares in the formats of other programs, each declared once; the command line follows."""

from collections.abc import Callable
from typing import NamedTuple

from fembench.records.weights import Weights, as_text, shares_of


class ShareFormat(NamedTuple):
    """One format."""

    help: str  # which program takes it
    text: Callable[[Weights], str]


def metis(weights: Weights) -> str:
    """A line 'part = share' per part, sum 1. Source: METIS 5, gpmetis -tpwgts."""
    return "".join(f"{part} = {share:.9f}\n" for part, share in enumerate(shares_of(weights)))


def plain(weights: Weights) -> str:
    """All shares on one line, '0.7,0.3'."""
    return as_text(weights) + "\n"


EXPORTS = {
    "metis": ShareFormat("the file of gpmetis and mpmetis -tpwgts=FILE", metis),
    "shares": ShareFormat("the argument of fembench run --shares", plain),
}
