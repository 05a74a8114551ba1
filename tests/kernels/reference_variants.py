"""The plain twins of the kernels in variants.c. Letters as in solve/recurrences.py and pipelined.py."""

import numpy as np


def scaled(inverse, r):
    """D^-1 r; inverse (n,) reciprocals, or (n/3, 6) inverse blocks xx yy zz xy yz zx."""
    if inverse.ndim == 1:
        return inverse * r
    full = inverse[:, [[0, 3, 5], [3, 1, 4], [5, 4, 2]]]
    return np.einsum("nij,nj->ni", full, r.reshape(-1, 3)).reshape(-1)


class SingleReduction:
    """One iteration of Chronopoulos and Gear; u is r where M is the identity.

    `inverse` as in CGVectors; `sums` (3,) receives the rank's r.r, r.u and w.u, in this order.
    """

    def __init__(self, x, r, u, w, p, s, weights, inverse, sums):
        self.x, self.r, self.u, self.w, self.p, self.s = x, r, u, w, p, s
        self.inverse, self.sums = inverse, sums
        self.weights = np.ones(x.size)
        self.weights[x.size - weights.size :] = weights

    def step(self, alpha, beta):
        """p s by beta, x r by alpha, u = M^-1 r if folded in; r.r and r.u."""
        self.p[:] = self.u + beta * self.p
        self.s[:] = self.w + beta * self.s
        self.x += alpha * self.p
        self.r -= alpha * self.s
        if self.inverse is not None:
            self.u[:] = scaled(self.inverse, self.r)
        self.sums[0] = float(np.sum(self.r * self.r * self.weights))
        self.dot_ru()

    def dot_ru(self):
        """r . u into its place, for an M that is not folded in."""
        self.sums[1] = float(np.sum(self.r * self.u * self.weights))

    def dot_wu(self):
        """w . u into its place, for a product that does not return it."""
        self.sums[2] = float(np.sum(self.w * self.u * self.weights))


class Pipelined:
    """One iteration of Ghysels and Vanroose; u is r and m is w where M is the identity.

    With a folded-in M, u and q are not stored: pass m in their place.
    """

    def __init__(self, x, r, u, w, p, s, z, q, m, n, weights, inverse, sums):
        self.x, self.r, self.u, self.w, self.p, self.s = x, r, u, w, p, s
        self.z, self.q, self.m, self.n = z, q, m, n
        self.inverse, self.sums = inverse, sums
        self.external = inverse is None and u is not r
        self.weights = np.ones(x.size)
        self.weights[x.size - weights.size :] = weights

    def step(self, alpha, beta):
        """p s z q by beta, x r u w by alpha, m = M^-1 w if folded in; r.r, r.u and w.u."""
        self.p[:] = self._preconditioned() + beta * self.p
        self.s[:] = self.w + beta * self.s
        self.z[:] = self.n + beta * self.z
        self.x += alpha * self.p
        self.r -= alpha * self.s
        self.w -= alpha * self.z
        if self.external:
            self.q[:] = self.m + beta * self.q
            self.u -= alpha * self.q
        self.refresh()

    def refresh(self):
        """m = M^-1 w if folded in, and the three sums, of vectors that were recomputed."""
        u = self._preconditioned()
        if self.inverse is not None:
            self.m[:] = scaled(self.inverse, self.w)
        self.sums[0] = float(np.sum(self.r * self.r * self.weights))
        self.sums[1] = float(np.sum(self.r * u * self.weights))
        self.sums[2] = float(np.sum(self.w * u * self.weights))

    def _preconditioned(self):
        return self.u if self.inverse is None else scaled(self.inverse, self.r)
