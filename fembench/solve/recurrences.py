"""For recurrences with one all-reduce per iteration: step lengths, placement of vectors."""

from math import inf

from fembench.base.arrays import F64
from fembench.kernels.backend import kernels
from fembench.solve.iterate import breakdown


def staggered(n: int, count: int) -> list[F64]:
    """`count` vectors (n,), each nine cache lines further into its page.

    A pass walks up to eleven vectors in step. If all begin at the same offset of a
    huge page, they compete for the same cache sets; measured cost: 20 % (nine vectors)
    to 40 % (eleven) of a pass.
    """
    line, page = 8, 512  # doubles
    stride = -(-n // page) * page + 9 * line
    block = kernels.empty(count * stride)
    return [block[k * stride :][:n] for k in range(count)]


class Lengths:
    """alpha and beta of each step from gamma = <r, u> and delta = <w, u>."""

    def __init__(self) -> None:
        self.gamma, self.alpha = inf, 1.0  # makes beta of the first step 0

    def next(self, gamma: float, delta: float, iteration: int) -> tuple[float, float]:
        """(alpha, beta); a steepest-descent step if rounding has destroyed <p, A p>."""
        if not 0.0 < gamma < inf:
            raise breakdown("<r, M r>", gamma, iteration)
        if not 0.0 < delta < inf:
            raise breakdown("<u, A u>", delta, iteration)
        beta = gamma / self.gamma
        pAp = delta - beta * gamma / self.alpha
        if not 0.0 < pAp < inf:
            beta, pAp = 0.0, delta
        self.gamma, self.alpha = gamma, gamma / pAp
        return self.alpha, beta
