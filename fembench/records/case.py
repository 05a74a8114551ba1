"""Case: everything that decides what one run computes. Defaults used are written into the record."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from fembench.base.config import convert
from fembench.base.errors import InputError

Storage = Literal["sym", "bsr", "csr", "dense", "ebe", "aij", "baij", "sbaij", "is"]
Preconditioner = Literal["none", "jacobi", "block-jacobi", "chebyshev", "two-level", "gamg"]
Balance = Literal[
    "",
    "none",
    "observe",
    "amortised",
    "migbsp",
    "migbsp++",
    "migbsp++-scan",
    "greedy",
    "refine",
    "random",
    "rcb",
    "metis-shares",
    "diffusion",
]
LARGEST = 2**31 - 1  # that a count may be
LEAST = {  # of a new case; records of earlier versions may have less
    "ranks": 1,
    "sets": 1,
    "blocks_per_rank": 1,
    "look_every": 1,
    "first_look": 1,
    "dilate": 1,
}
MOST = {"trace_iterations": 1_000_000}  # whose events are kept in memory
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
    exchange: Literal["nonblocking", "blocking"] = "nonblocking"  # blocking: as the source thesis did
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
    emulate_change: str = ""  # "100:1,1,0.33": speeds from that iteration of every solve on (SYNTHETIC)
    balance: Balance = ""  # policy that moves blocks between ranks while CG runs; "": parts as they are
    blocks_per_rank: int = 4  # c; this and what follows counts with `balance` only
    look_every: int = 10  # iterations between two calls of the balancer [gamma of thesis-002]
    first_look: int = 2  # calls before the first look [alpha]
    band: float = 0.1  # deviation of a rank's time from the mean that is let pass [D]
    drain: str = ""  # "2@100": rank 2 has no blocks from iteration 100 on
    seed: int = 0
    petsc_options: str = ""  # PETSc's own, as it takes them on a command line
    label: str = ""  # free text

    @property
    def emulated(self) -> bool:
        """Whether computing is stretched."""
        return bool(self.emulate or self.emulate_change or self.dilate != 1)

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
        if self.exchange == "blocking":
            self._check_blocking()
        if self.balance:
            self._check_balance()
        elif self.drain or self.emulate_change:
            raise ValueError("drain, emulate_change: expected a policy, as in balance = 'amortised'")
        for name in ("max_iterations", "iterations", "sets", "warmups", "trace_iterations", "seconds"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)}: expected 0 or more")
        if not math.isfinite(self.seconds):
            raise ValueError(f"seconds = {self.seconds}: expected a finite number")
        if not 1 <= self.dilate < float("inf"):
            raise ValueError(f"dilate = {self.dilate}: expected a number of at least 1")
        if not 0 <= self.tolerance < float("inf"):
            raise ValueError(f"tolerance = {self.tolerance}: expected a number of 0 or more")

    def _check_blocking(self) -> None:
        if self.overlap:
            raise ValueError("exchange 'blocking' overlaps nothing: expected overlap = false (--no-overlap)")
        if self.solver != "own" or self.variant == "pipelined" or self.balance:
            raise ValueError(
                "exchange 'blocking': expected solver 'own', a variant that waits, and no balance"
            )

    def _check_balance(self) -> None:
        if self.solver != "own" or self.variant != "standard":
            raise ValueError(f"balance '{self.balance}': expected solver 'own' and variant 'standard'")
        if self.precond not in ("none", "jacobi", "block-jacobi"):
            raise ValueError(f"balance with precond '{self.precond}': expected none, jacobi or block-jacobi")
        for name in ("blocks_per_rank", "look_every", "first_look"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: expected at least 1")
        if not 0 < self.band < 1:
            raise ValueError(f"band = {self.band}: expected a number between 0 and 1")


def new_case(values: Mapping[str, Any], where: str) -> Case:
    """A case that is to be run. Raises InputError naming the field."""
    case = convert(dict(values), Case, where=where)
    for name in Case.__struct_fields__:
        value, least, most = getattr(case, name), LEAST.get(name, 0), MOST.get(name, LARGEST)
        if type(value) is int and not least <= value <= most:
            limit = f"at least {least}" if value < least else f"at most {most}"
            raise InputError(f"{where}: {name} = {value}: expected {limit}")
    if not 0 < case.band < 1:
        raise InputError(f"{where}: band = {case.band}: expected a number between 0 and 1")
    return case
