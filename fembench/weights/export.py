"""Shares in the formats of other programs.

The format of METIS follows its source (METIS 5, gpmetis -tpwgts: 'part = share').
"""

from collections.abc import Callable

from fembench.records.weights import Weights, shares_of


def metis(weights: Weights) -> str:
    """File for `gpmetis -tpwgts=FILE GRAPH P` and `mpmetis`: a line per part, sum 1."""
    return "".join(f"{part} = {share:.9f}\n" for part, share in enumerate(shares_of(weights)))


def plain(weights: Weights) -> str:
    """The argument of `fembench run --shares`."""
    return ",".join(f"{share:.9g}" for share in shares_of(weights)) + "\n"


FORMATS: dict[str, Callable[[Weights], str]] = {
    "metis": metis,
    "shares": plain,
}
