"""The plain twins of the preconditioners' kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fembench.kernels.reference_variants import scaled

Vector = NDArray[np.float64]
Index = NDArray[np.int32]


class Scale:
    """z = D^-1 r; inverse (n,) reciprocals or (n/3, 6) inverse blocks, as in CGVectors."""

    def __init__(self, inverse: Vector, r: Vector, z: Vector) -> None:
        self.inverse, self.r, self.z = inverse, r, z

    def run(self) -> None:
        """Overwrite z."""
        self.z[:] = scaled(self.inverse, self.r)


class Chebyshev:
    """Steps of a polynomial in D^-1 A; inverse (n,) reciprocals or (n/3, 6) inverse blocks, as floats.

    start(gain): d = z = gain D^-1 r. run(keep, gain): r -= q; d = keep d + gain D^-1 r; z += d.
    """

    def __init__(
        self, z: Vector, r: Vector, d: Vector, q: Vector, inverse: NDArray[np.floating[Any]]
    ) -> None:
        self.z, self.r, self.d, self.q, self.inverse = z, r, d, q, inverse

    def start(self, gain: float) -> None:
        """The first step, from z = 0."""
        self.d[:] = gain * scaled(self.inverse, self.r)
        self.z[:] = self.d

    def run(self, keep: float, gain: float) -> None:
        """A further step."""
        self.r -= self.q
        self.d[:] = keep * self.d + gain * scaled(self.inverse, self.r)
        self.z += self.d


class RigidModes:
    """The coarse part of a two-level preconditioner on one rank, bound to its vectors.

    restrict(): moments (6,) of the weighted r about `centre`. correct(): from the moments of all parts,
    `gathered` (6 n_parts,), motion = coarse (6 n_kinds, 6 n_parts) gathered, then z = inverse r + the motion
    of each node about `origin`: kind 0 inside, `kind` (n_interface,) on the interface.
    """

    def __init__(
        self,
        x: Vector,
        centre: Vector,
        origin: Vector,
        weights: Vector,
        kind: Index,
        coarse: Vector,
        moments: Vector,
        gathered: Vector,
        inverse: Vector,
        r: Vector,
        z: Vector,
    ) -> None:
        n = r.size // 3
        if n < kind.size or coarse.shape[1] % 6 or n > x.shape[0]:
            raise ValueError("r, kind, coarse, x: sizes do not fit")
        self.lever, self.arm = x[:n] - centre, x[:n] - origin
        self.kind = np.concatenate([np.zeros(n - kind.size, np.int32), kind])
        self.w = np.concatenate([np.ones(r.size - weights.size), weights])
        self.coarse, self.moments, self.gathered = coarse, moments, gathered
        self.inverse, self.r, self.z = inverse, r, z

    def restrict(self) -> None:
        """Overwrite the moments."""
        f = (self.w * self.r).reshape(-1, 3)
        self.moments[:3] = f.sum(axis=0)
        self.moments[3:] = np.cross(self.lever, f).sum(axis=0)

    def correct(self) -> None:
        """Overwrite z."""
        motion = (self.coarse @ self.gathered).reshape(-1, 6)[self.kind]
        u = motion[:, :3] + np.cross(motion[:, 3:], self.arm)
        self.z[:] = self.inverse * self.r + u.reshape(-1)
