"""Types of the compiled kernels, as `_compiled.pyx` defines them; tests hold the names against it.

Arrays are C-contiguous. Every call that is not to `__init__` works on the arrays that the object is bound to.
"""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Vector = NDArray[np.float64]
Index = NDArray[np.int32]
Weights = NDArray[np.float32]
Modulus = float | NDArray[np.float64]  # of all cells, or (n_cells,)
Pattern = tuple[NDArray[np.int64], Index, Index, Vector]

NAME: str
ISA: str
OPERATIONS: tuple[str, ...]
HAS_THREADS: bool

def use_threads(n: int) -> None: ...
def thread_seconds() -> Vector: ...
def stiffness(
    x: NDArray[np.float64], cells: NDArray[np.int32], lam: Modulus, mu: Modulus
) -> NDArray[np.float64]: ...
def pattern(
    cells: NDArray[np.int32], n_interior: int, n_active: int, upper: bool, where: Incidence | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...
def count_blocks(cells: NDArray[np.int32], n_active: int) -> int: ...
def reorder(cells: NDArray[np.int32], n_interior: int, n_active: int) -> NDArray[np.int32]: ...
def held_nodes(cells: NDArray[np.int32], low: int, high: int) -> NDArray[np.bool_]: ...
def renumber(cells: NDArray[np.int32], position: NDArray[np.int32], low: int = 0) -> None: ...
def sort_cells(cells: NDArray[np.int32], numbers: NDArray[np.integer]) -> None: ...
def add_weights(x: Vector, cells: NDArray[np.int32], density: Vector, f: Vector) -> int: ...
def lowest_quality(x: NDArray[np.float64], cells: NDArray[np.int32]) -> float: ...
def cells_meeting(cells: NDArray[np.int32], marked: NDArray[np.bool_], least: int) -> NDArray[np.int32]: ...
def assemble(
    x: NDArray[np.float64],
    cells: NDArray[np.int32],
    lam: Modulus,
    mu: Modulus,
    n_interior: int,
    upper: bool,
    fixed: NDArray[np.bool_],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    where: Incidence | None = None,
) -> NDArray[np.float64]: ...

class Incidence:
    start: NDArray[np.int64]
    at: Index
    ascending: Index
    def __init__(self, cells: NDArray[np.int32], n_nodes: int) -> None: ...

class Gather:
    def __init__(self, vectors: Sequence[Vector], vector: Index, node: Index, buffer: Vector) -> None: ...
    def run(self) -> None: ...

class SharedSum:
    def __init__(
        self, vectors: Sequence[Vector], vector: Index, node: Index, ends: NDArray[np.int64]
    ) -> None: ...
    def run(self) -> None: ...

class Blocks:
    def __init__(
        self,
        places: NDArray[np.int64],
        products: Sequence[Any],
        vectors: Sequence[Any],
        tau: array[float],
        rho: array[float],
        spent: Vector | None = None,
    ) -> None: ...
    def interface(self) -> None: ...
    def interior(self) -> None: ...
    def dot(self) -> None: ...
    def direction(self, beta: float) -> None: ...
    def step(self, alpha: float) -> None: ...

class Transfer:
    def __init__(
        self, parent: Index, weight: Weights, share: Vector, r: Vector, coarse: Vector, fine: Vector
    ) -> None: ...
    def restrict(self) -> None: ...
    def prolong(self) -> None: ...

def pieces(
    indptr: NDArray[np.int64],
    rows: Index,
    columns: Index,
    kind: NDArray[np.uint8],
    name: NDArray[np.int64],
    corner: NDArray[np.int64],
    weight: Weights,
) -> tuple[Index, NDArray[np.int64]]: ...
def galerkin(
    indptr: NDArray[np.int64],
    rows: Index,
    columns: Index,
    values: Vector,
    fixed: NDArray[np.bool_],
    parent: Index,
    weight: Weights,
    n_coarse: int,
    n_coarse_interior: int,
) -> Pattern: ...
def operation(name: str, turns: int, x: float, y: float) -> float: ...

class Scale:
    def __init__(self, inverse: Vector, r: Vector, z: Vector) -> None: ...
    def run(self) -> None: ...

class Chebyshev:
    def __init__(
        self, z: Vector, r: Vector, d: Vector, q: Vector, inverse: NDArray[np.floating[Any]]
    ) -> None: ...
    def start(self, gain: float) -> None: ...
    def run(self, keep: float, gain: float) -> None: ...

class RigidModes:
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
    ) -> None: ...
    def restrict(self) -> None: ...
    def correct(self) -> None: ...

class SymProduct:
    def __init__(
        self, indptr: Any, rows: Any, columns: Any, values: Vector, n_interior: int, d: Vector, q: Vector
    ) -> None: ...
    def interface(self) -> float: ...
    def interior(self) -> float: ...

class _Rows:
    def __init__(self, A: Any, n_interior: int, d: Vector, q: Vector) -> None: ...
    def interface(self) -> float | None: ...
    def interior(self) -> float | None: ...

class BsrProduct(_Rows):
    def __init__(
        self, indptr: Any, columns: Any, values: Vector, n_interior: int, d: Vector, q: Vector
    ) -> None: ...

class CsrProduct(_Rows):
    def __init__(
        self, indptr: Any, columns: Any, values: Vector, n_interior: int, d: Vector, q: Vector
    ) -> None: ...

class DenseProduct(_Rows):
    def __init__(self, values: Vector, n_interior: int, d: Vector, q: Vector) -> None: ...

class EbeProduct:
    def __init__(
        self,
        x: Vector,
        cells: NDArray[np.int32],
        n_first: int,
        lam: Modulus,
        mu: Modulus,
        fixed: NDArray[np.int32],
        n_interior: int,
        d: Vector,
        q: Vector,
    ) -> None: ...
    def interface(self) -> float: ...
    def interior(self) -> float: ...

class SingleReduction:
    def __init__(
        self,
        x: Vector,
        r: Vector,
        u: Vector,
        w: Vector,
        p: Vector,
        s: Vector,
        weights: Vector,
        inverse: Vector | None,
        sums: array[float],
    ) -> None: ...
    def step(self, alpha: float, beta: float) -> None: ...
    def dot_ru(self) -> None: ...
    def dot_wu(self) -> None: ...

class Pipelined:
    def __init__(
        self,
        x: Vector,
        r: Vector,
        u: Vector,
        w: Vector,
        p: Vector,
        s: Vector,
        z: Vector,
        q: Vector,
        m: Vector,
        n: Vector,
        weights: Vector,
        inverse: Vector | None,
        sums: array[float],
    ) -> None: ...
    def step(self, alpha: float, beta: float) -> None: ...
    def refresh(self) -> None: ...

def empty(shape: Any, dtype: DTypeLike = "float64") -> NDArray[Any]: ...
def zeros(shape: Any, dtype: DTypeLike = "float64") -> NDArray[Any]: ...

class Dot:
    def __init__(self, a: Vector, b: Vector, weights: Vector) -> None: ...
    def run(self) -> float: ...

class CGVectors:
    def __init__(
        self,
        x: Vector,
        r: Vector,
        d: Vector,
        q: Vector,
        z: Vector,
        weights: Vector,
        inverse: Vector | None = None,
    ) -> None: ...
    def dot_dq(self) -> float: ...
    def dot_rz(self) -> float: ...
    def step(self, alpha: float) -> float: ...
    def step_jacobi(self, alpha: float) -> tuple[float, float]: ...
    def direction(self, beta: float) -> None: ...

class Stream:
    def __init__(self, n: int) -> None: ...
    def read(self) -> float: ...

class Triad:
    def __init__(self, n: int, alone: bool = False) -> None: ...
    def run(self, s: float) -> None: ...

class Pack:
    def __init__(self, v: Vector, index: Index, buffer: Vector) -> None: ...
    def run(self) -> None: ...

class NeighbourSum:
    def __init__(
        self, v: Vector, first_dof: int, n_below: int, indices: Sequence[Index], buffers: Sequence[Vector]
    ) -> None: ...
    def run(self) -> None: ...
