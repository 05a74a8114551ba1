"""A block during a solve: its matrix, vectors, neighbours, and its migration.

All of `arrays` migrates with a block: cells and coordinates, the arrays of the matrix,
the state x, r, d, weights and neighbours. q is allocated at the destination, because it
is written before it is read.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fembench.balance.decompose import BlockPlan
from fembench.base.arrays import F64, I32
from fembench.kernels.backend import kernels
from fembench.ranks.comm import Comm
from fembench.solve.operators import Operator, bind_arrays
from fembench.solve.recurrences import staggered

STATE = ("x", "r", "d")
_TAG = 11
_HEAD = ("id", "storage", "n_interior", "n_active", "flops", "matrix_bytes", "neighbours", "n_matrix")


@dataclass
class Block:
    """One block on its current rank."""

    id: int
    storage: str
    n_interior: int  # nodes
    n_active: int
    flops: int  # of one product
    matrix_bytes: int
    neighbours: tuple[int, ...]  # blocks, ascending
    arrays: dict[str, NDArray]
    n_matrix: int  # arrays of the matrix: A0, A1, …

    def __post_init__(self) -> None:
        self.x, self.r, self.d, self.q = vectors = staggered(3 * self.n_active, 4)
        for name, vector in zip(STATE, vectors):
            vector[:] = self.arrays[name]
            self.arrays[name] = vector
        self.inverse: F64 | None = self.arrays.get("inverse")
        matrix = tuple(self.arrays[f"A{k}"] for k in range(self.n_matrix))
        self.product = bind_arrays(self.storage, matrix, self.n_interior)(self.d, self.q)
        self.bind_vectors()

    def bind_vectors(self) -> None:
        """Bind the vector kernels, with the preconditioner folded in, if there is one."""
        self.vectors = kernels.CGVectors(
            self.x, self.r, self.d, self.q, self.r, self.arrays["weights"], self.inverse
        )

    def precondition(self, inverse: F64) -> None:
        """Fold in D^-1: (n,) reciprocals or (n/3, 6) inverse blocks."""
        self.inverse = self.arrays["inverse"] = inverse
        self.bind_vectors()

    @property
    def nodes(self) -> list[I32]:
        """[neighbour] shared nodes, in the same order on both sides."""
        ends = self.arrays["ends"]
        return [self.arrays["shared"][a:b] for a, b in itertools.pairwise(ends)]

    @property
    def size(self) -> int:
        """Bytes that migrate with the block."""
        return sum(array.nbytes for array in self.arrays.values())


def make_block(plan: BlockPlan, operator: Operator) -> Block:
    """The block with its assembled matrix; x = r = d = 0."""
    sub, sharing = plan.sub, plan.sharing
    n = 3 * sub.n_active
    arrays = {f"A{k}": array for k, array in enumerate(operator.arrays)}
    arrays["cells"], arrays["global_nodes"] = sub.cells, sub.global_nodes.astype(np.int64, copy=False)
    if not any(array is sub.x for array in operator.arrays):
        arrays["coordinates"] = sub.x
    sharers = sharing.sharers[sub.n_interior : sub.n_active].astype(np.float64)
    arrays["weights"] = np.repeat(1.0 / sharers, 3)
    arrays["ends"] = np.cumsum([0, *(nodes.size for nodes in sharing.nodes)]).astype(np.int64)
    arrays["shared"] = np.concatenate([*sharing.nodes, np.zeros(0, np.int32)]).astype(np.int32)
    arrays |= {name: np.zeros(n) for name in STATE}
    return Block(
        id=plan.id,
        storage=operator.storage,
        n_interior=sub.n_interior,
        n_active=sub.n_active,
        flops=operator.flops,
        matrix_bytes=operator.matrix_bytes,
        neighbours=sharing.ranks,
        arrays=arrays,
        n_matrix=len(operator.arrays),
    )


def send(comm: Comm, block: Block, target: int) -> int:
    """Send a block, first its metadata, then its arrays; returns the bytes of the arrays."""
    comm.send({name: getattr(block, name) for name in _HEAD}, target, _TAG)
    return send_arrays(comm, block.arrays, target)


def receive(comm: Comm, source: int) -> Block:
    """Receive a block from `source`."""
    head = comm.recv(source=source, tag=_TAG)
    return Block(arrays=receive_arrays(comm, source), **head)


def send_arrays(comm: Comm, arrays: dict[str, NDArray], target: int) -> int:
    """Send named arrays; returns their bytes."""
    comm.send([(name, a.shape, a.dtype.str) for name, a in arrays.items()], target, _TAG)
    for array in arrays.values():
        comm.Send(_flat(array), target, _TAG)
    return sum(array.nbytes for array in arrays.values())


def receive_arrays(comm: Comm, source: int) -> dict[str, NDArray]:
    """Receive arrays from `source` into newly allocated memory."""
    arrays = {}
    for name, shape, kind in comm.recv(source=source, tag=_TAG):
        arrays[name] = kernels.empty(shape, np.dtype(kind))
        comm.Recv(_flat(arrays[name]), source, _TAG)
    return arrays


def _flat(array: NDArray) -> NDArray[np.uint8]:
    """The same memory as bytes."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
