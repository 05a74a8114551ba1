"""Every storage of the stiffness matrix: its solver, its builder, a product's cost."""

from typing import Literal

from msgspec import Struct

Solver = Literal["own", "petsc"]


class StorageMethod(Struct, frozen=True):
    """One storage."""

    name: str
    help: str
    build: str = ""  # "module:function", (sub, lam, mu) -> Operator; PETSc's are made by its solver
    product: str = ""  # "module:class" of its kernel, made from the operator's arrays
    on_device: str = ""  # "module:function", (sub, lam, mu, device) -> Operator; "": no device has it
    solver: Solver = "own"
    fused: bool = False  # the product returns <d, A d> as well
    half: bool = False  # every pair of nodes is stored once
    threads: bool = False  # several threads of a rank share the product
    unit: Literal["blocks", "cells", "pairs"] = "blocks"  # what the time of a product grows with
    block_bytes: int = 48  # of the matrix, per 3x3 block of the whole stiffness; an upper bound
    entry_bytes: float = 0.0  # of one stored number and its index, in PETSc
    like: str = ""  # own storage whose measured speed prices this one; "": itself

    @property
    def priced_as(self) -> str:
        """The storage whose product a machine profile has to know."""
        return self.like or self.name


BLOCK_ENTRY = 8 + 4 / 9  # bytes: one index for nine numbers

STORAGES = (
    StorageMethod(
        name="sym",
        help="3x3 blocks, each pair of nodes stored once",
        build="fembench.solve.operators:symmetric",
        product="fembench.kernels.backend:kernels.SymProduct",
        threads=True,
        on_device="fembench.solve.operators:on_device",
        fused=True,
        half=True,
    ),
    StorageMethod(
        name="bsr",
        help="3x3 blocks",
        build="fembench.solve.operators:blocked",
        product="fembench.kernels.backend:kernels.BsrProduct",
        threads=True,
        on_device="fembench.solve.operators:on_device",
        fused=True,
        block_bytes=80,
    ),
    StorageMethod(
        name="csr",
        help="compressed sparse rows",
        build="fembench.solve.operators:scalar_rows",
        product="fembench.kernels.backend:kernels.CsrProduct",
        threads=True,
        block_bytes=112,
    ),
    StorageMethod(
        name="dense",
        help="all entries, zeros included",
        build="fembench.solve.operators:dense",
        product="fembench.kernels.backend:kernels.DenseProduct",
        threads=True,
        unit="pairs",
    ),
    StorageMethod(
        name="ebe",
        help="element by element, no matrix",
        build="fembench.solve.operators:by_elements",
        product="fembench.solve.operators:ebe_product",
        on_device="fembench.solve.operators:by_elements_on_device",
        fused=True,
        unit="cells",
    ),
    StorageMethod(
        name="aij",
        help="compressed sparse rows of PETSc",
        solver="petsc",
        entry_bytes=12.0,
        like="csr",
    ),
    StorageMethod(
        name="baij",
        help="3x3 blocks of PETSc",
        solver="petsc",
        entry_bytes=BLOCK_ENTRY,
        like="bsr",
    ),
    StorageMethod(
        name="sbaij",
        help="upper triangle in 3x3 blocks of PETSc",
        solver="petsc",
        half=True,
        entry_bytes=BLOCK_ENTRY,
        like="sym",
    ),
    StorageMethod(
        name="is",
        help="unassembled local matrices of PETSc",
        solver="petsc",
        entry_bytes=BLOCK_ENTRY,
        like="csr",
    ),
)
DEFAULT_STORAGE: dict[str, str] = {"own": "sym", "petsc": "baij"}  # by solver
