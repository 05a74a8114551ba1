"""Shares in the formats of other programs: METIS, MPI host files.

The format of METIS follows its source (METIS 5, gpmetis -tpwgts: 'part = share').
"""

from collections.abc import Callable

from fembench.base.errors import InputError
from fembench.records.weights import Weights, shares_of


def metis(weights: Weights) -> str:
    """File for `gpmetis -tpwgts=FILE GRAPH P` and `mpmetis`: a line per part, sum 1."""
    return "".join(f"{part} = {share:.9f}\n" for part, share in enumerate(shares_of(weights)))


def hostfile(weights: Weights) -> str:
    """MPI host file: hosts in the order of their ranks, each with one slot per rank.

    Raises InputError if the ranks of a host are not consecutive:
    slots cannot express that.
    """
    lines: dict[str, int] = {}
    last = ""
    for rank in weights.ranks:
        if rank.host in lines and rank.host != last:
            raise InputError(f"ranks of {rank.host} are not consecutive; a host file cannot express that")
        lines[rank.host] = lines.get(rank.host, 0) + 1
        last = rank.host
    return "".join(f"{host} slots={slots}\n" for host, slots in lines.items())


def plain(weights: Weights) -> str:
    """The argument of `fembench run --shares`."""
    return ",".join(f"{share:.9g}" for share in shares_of(weights)) + "\n"


FORMATS: dict[str, Callable[[Weights], str]] = {
    "metis": metis,
    "hostfile": hostfile,
    "shares": plain,
}
