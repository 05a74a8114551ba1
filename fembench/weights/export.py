"""Shares in the formats of other programs: METIS, ParMETIS and PETSc, Scotch, MPI host files, PyFR.

The formats follow the source code that reads them: METIS 5 (gpmetis -tpwgts: 'part = share'), Scotch
(arch_cmpltw.c: 'cmpltw', a count, one positive integer per part), PyFR (integers joined by colons).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, lcm

from fembench.base.errors import InputError
from fembench.records.weights import Weights, shares_of

LARGEST = 1_000_000  # sum of integer loads: shares are rounded to a millionth


def metis(weights: Weights) -> str:
    """File for `gpmetis -tpwgts=FILE GRAPH P` and `mpmetis`: one line per part; the shares sum to 1."""
    return "".join(f"{part} = {share:.9f}\n" for part, share in enumerate(shares_of(weights)))


def petsc(weights: Weights) -> str:
    """Options of PETSc, and the calls that take the shares, because no option does."""
    shares = ", ".join(f"{s:.9g}" for s in shares_of(weights))
    return f"""# {len(weights.ranks)} target shares for ParMETIS; lines that begin with - are options of PETSc
-mat_partitioning_type parmetis
-petscpartitioner_type parmetis
# PETSc has no option for the shares themselves; set them in the program:
#   real_t tpwgts[] = {{{shares}}};   ParMETIS_V3_PartKway(..., tpwgts, ...), ncon = 1
#   MatPartitioningSetPartitionWeights(part, weights), weights from PetscMalloc, freed by PETSc
"""


def scotch(weights: Weights) -> str:
    """Target architecture for `gmap GRAPH FILE`: a complete graph with vertex loads."""
    loads = integer_loads(shares_of(weights))
    return f"cmpltw\n{len(loads)} {' '.join(map(str, loads))}\n"


def hostfile(weights: Weights) -> str:
    """MPI host file: hosts in the order of their ranks, each with one slot per rank.

    Raises InputError if the ranks of a host are not consecutive: slots cannot express that.
    """
    lines: dict[str, int] = {}
    last = ""
    for rank in weights.ranks:
        if rank.host in lines and rank.host != last:
            raise InputError(f"ranks of {rank.host} are not consecutive; a host file cannot express that")
        lines[rank.host] = lines.get(rank.host, 0) + 1
        last = rank.host
    return "".join(f"{host} slots={slots}\n" for host, slots in lines.items())


def pyfr(weights: Weights) -> str:
    """Integers joined by colons, for `pyfr partition add MESH 2:1:1 NAME`; their ratios are within 1 %."""
    return ":".join(map(str, small_integers(shares_of(weights)))) + "\n"


def plain(weights: Weights) -> str:
    """The argument of `fembench run --shares`."""
    return ",".join(f"{share:.9g}" for share in shares_of(weights)) + "\n"


FORMATS: dict[str, Callable[[Weights], str]] = {
    "metis": metis,
    "petsc": petsc,
    "scotch": scotch,
    "hostfile": hostfile,
    "pyfr": pyfr,
    "shares": plain,
}


def integer_loads(shares: Sequence[float], total: int = LARGEST) -> tuple[int, ...]:
    """Integers in the ratio of the shares, each at least 1: their sum is about `total` before reduction."""
    loads = [max(1, round(share * total)) for share in shares]
    common = gcd(*loads)
    return tuple(load // common for load in loads)


def small_integers(shares: Sequence[float], tolerance: float = 0.01) -> tuple[int, ...]:
    """The smallest integers in the ratio of the shares, each relative to the least within `tolerance`."""
    least = min(shares)
    for denominator in range(1, 1000):
        ratios = [Fraction(max(1, round(share / least * denominator)), denominator) for share in shares]
        if all(abs(float(r) * least / share - 1) <= tolerance for r, share in zip(ratios, shares)):
            whole = lcm(*(r.denominator for r in ratios))
            found = [int(r * whole) for r in ratios]
            common = gcd(*found)
            return tuple(n // common for n in found)
    return integer_loads(shares)
