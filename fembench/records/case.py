"""Case: everything that decides what one run computes. Defaults used are written into the record."""

from typing import Literal

import msgspec

Storage = Literal["csr", "dense", "bsr", "sym", "ebe"]
Preconditioner = Literal["none", "jacobi", "block-jacobi", "chebyshev", "two-level"]


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of the benchmark. `fembench run` takes each field as an option of the same name."""

    mesh: str = "m1"  # preset, "box:NXxNYxNZ[:tet4|hex8]", "box:N-equations", or a file
    problem: str = "thesis"  # preset or a TOML file
    ranks: int = 1
    shares: str = ""  # "7:1", "2,1,1", "8*1"; "" means equal
    partitioner: Literal["metis", "rcb", "blocks"] = "metis"  # blocks: a box, made in parallel
    replicated: bool = False  # every rank partitions the whole mesh, as in the thesis
    storage: Storage = "sym"
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
    seed: int = 0
    label: str = ""  # free text
