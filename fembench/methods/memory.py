"""Memory that a run takes, estimated before it.

`bytes_per_equation` is an upper bound for tetrahedral boxes: `benchmarks/memory.py`
measures the peak per node, which may be up to 3000 bytes with storage `sym`.
"""

from fembench.base.errors import InputError
from fembench.methods.lookup import MethodChoice, precond_of, storage_of

RANK_BYTES = 64 << 20  # of a rank without a mesh: Python, MPI, compiled kernels
NODE_BYTES = 2280  # per mesh node, the matrix apart: mesh, assembly, vectors, verification
WHOLE_BYTES = 2000  # per node of the whole mesh, on a rank that partitions it
LEAST_BYTES = 80  # per equation, without the matrix: 90 to 360 were measured
BLOCKS_PER_NODE = 15  # 3x3 blocks of the stiffness of a box of tetrahedra
DOFS_PER_NODE = 3


def matrix_bytes(choice: MethodChoice, n_equations: float) -> float:
    """The matrix of a rank with so many equations of a tetrahedral box; 0 if not stored."""
    storage = storage_of(choice.storage, choice.solver)
    if storage.unit == "pairs":
        return 8.0 * n_equations**2
    entries = storage.entry_bytes * DOFS_PER_NODE**2 / (2 if storage.half else 1)
    block = 0.0 if storage.unit == "cells" else entries or storage.block_bytes
    return n_equations / DOFS_PER_NODE * BLOCKS_PER_NODE * block


def fewest_bytes(choice: MethodChoice, n_equations: float) -> float:
    """What a rank that has this number of equations of a box certainly takes."""
    return matrix_bytes(choice, n_equations) + LEAST_BYTES * n_equations


def bytes_per_equation(choice: MethodChoice) -> float:
    """Peak memory of a rank per equation. Raises InputError if it grows faster."""
    storage = storage_of(choice.storage, choice.solver)
    if storage.unit == "pairs":
        raise InputError(
            f"memory with storage = '{storage.name}', whose size grows faster than the mesh: expected a mesh"
        )
    block = 0.0 if storage.unit == "cells" else float(storage.block_bytes)
    block += storage.entry_bytes * DOFS_PER_NODE**2
    node = NODE_BYTES + precond_of(choice.precond, choice.solver).node_bytes
    return (node + BLOCKS_PER_NODE * block) / DOFS_PER_NODE
