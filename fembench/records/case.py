"""Case: everything that decides what one run computes. Defaults used are written into the record."""

from typing import Literal

import msgspec

Storage = Literal["sym", "bsr", "csr", "dense", "ebe", "aij", "baij", "sbaij", "is"]
Preconditioner = Literal["none", "jacobi", "block-jacobi", "chebyshev", "two-level", "gamg"]
PETSC_STORAGES = ("aij", "baij", "sbaij", "is")
PETSC_PRECONDITIONERS = ("none", "jacobi", "gamg")


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of the benchmark. `fembench run` takes each field as an option of the same name."""

    mesh: str = "m1"  # preset, "box:NXxNYxNZ[:tet4|hex8]", "box:N-equations", or a file
    problem: str = "thesis"  # preset or a TOML file
    ranks: int = 1
    shares: str = ""  # "7:1", "2,1,1", "8*1"; "" means equal
    partitioner: Literal["metis", "rcb", "blocks"] = "metis"  # blocks: a box, made in parallel
    replicated: bool = False  # every rank partitions the whole mesh, as in the thesis
    solver: Literal["own", "petsc"] = "own"
    storage: Storage = "sym"  # aij, baij, sbaij, is: PETSc's
    precond: Preconditioner = "none"
    variant: Literal["standard", "single-reduction", "pipelined"] = "standard"
    overlap: bool = True  # interface rows first, messages travel while interior rows are computed
    tolerance: float = 1e-6
    tolerance_kind: Literal["absolute", "relative"] = "absolute"
    max_iterations: int = 0  # 0: ten times the number of equations
    iterations: int = 0  # > 0: fixed work, exactly so many iterations in every set
    sets: int = 3  # timed repetitions of assembly and CG inside one run
    warmups: int = 1  # sets before them, recorded but not counted
    seconds: float = 0.0  # > 0: go on with sets until this much CG time is filled
    clock: str = "auto"  # "auto", "tsc", "perf_counter_ns", …
    trace_iterations: int = 3  # iterations whose every event is kept
    fields: bool = False  # also write displacement, stress and part for pictures and ParaView
    emulate: str = ""  # speed of each rank, "1,1,0.5": it computes so much slower (SYNTHETIC)
    dilate: float = 1.0  # all ranks compute so many times slower, to share cores (SYNTHETIC)
    seed: int = 0
    petsc_options: str = ""  # PETSc's own, as it takes them on a command line
    label: str = ""  # free text

    def __post_init__(self) -> None:
        petsc = self.solver == "petsc"
        if petsc != (self.storage in PETSC_STORAGES):
            stores = ", ".join(PETSC_STORAGES if petsc else ("sym", "bsr", "csr", "dense", "ebe"))
            raise ValueError(f"storage '{self.storage}': solver {self.solver} stores {stores}")
        if petsc and self.precond not in PETSC_PRECONDITIONERS:
            raise ValueError(f"precond '{self.precond}': solver petsc has {', '.join(PETSC_PRECONDITIONERS)}")
        if petsc and self.variant != "standard":
            raise ValueError(f"variant '{self.variant}': with petsc, petsc_options = '-ksp_type pipecg'")
        if not petsc and self.precond == "gamg":
            raise ValueError("precond 'gamg': solver petsc has it, solver own does not")
        if self.petsc_options and not petsc:
            raise ValueError("petsc_options: expected solver = 'petsc'")
        for name in ("max_iterations", "iterations", "sets", "warmups", "trace_iterations", "seconds"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)}: expected 0 or more")
        if not 1 <= self.dilate < float("inf"):
            raise ValueError(f"dilate = {self.dilate}: expected a number of at least 1")
        if not 0 <= self.tolerance < float("inf"):
            raise ValueError(f"tolerance = {self.tolerance}: expected a number of 0 or more")
