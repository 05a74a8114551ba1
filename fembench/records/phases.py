"""The one list of phase names. A phase is a leaf: no moment of a run belongs to two of them.

`CG` itself is a span around its modules; what its modules leave over is the cost of the loop.
Module numbers M1–M12 are those of the source thesis (seed 004, Fig. 4.4). M5, M8, M10, M11 are
scalars and belong to the loop.

New phases go to the end: the numbers of the others are those of older records.
"""

from typing import NamedTuple


class Phase(NamedTuple):
    """A named, timed region of a run."""

    number: int  # index into every array "by phase"
    name: str  # as records, tables and traces print it
    group: str  # set-up, cg compute, cg communication, …: what plots stack by colour
    modules: str  # modules of the thesis that it times, or ""


_TABLE = (
    ("start-up", "set-up", ""),
    ("read", "set-up", ""),
    ("partition", "set-up", ""),
    ("distribute", "set-up", ""),
    ("interface", "set-up", ""),
    ("assembly", "assembly", ""),
    ("cg", "cg", ""),
    ("cg.spmv_interior", "compute", "M1"),
    ("cg.spmv_interface", "compute", "M2"),
    ("cg.send", "communication", "M3"),
    ("cg.wait", "communication", "M3"),
    ("cg.unpack", "communication", "M3"),
    ("cg.dot", "compute", "M4 M9"),
    ("cg.allreduce", "communication", "M4 M9"),
    ("cg.axpy", "compute", "M6 M7 M12"),
    ("cg.precond", "compute", ""),
    ("verify", "verify", ""),
    ("output", "output", ""),
    ("sync", "sync", ""),
    ("between sets", "sync", ""),
)
PHASES = tuple(Phase(i, *row) for i, row in enumerate(_TABLE))
NAMES = tuple(p.name for p in PHASES)
(
    START_UP,
    READ,
    PARTITION,
    DISTRIBUTE,
    INTERFACE,
    ASSEMBLY,
    CG,
    SPMV_INTERIOR,
    SPMV_INTERFACE,
    SEND,
    WAIT,
    UNPACK,
    DOT,
    ALLREDUCE,
    AXPY,
    PRECOND,
    VERIFY,
    OUTPUT,
    SYNC,
    BETWEEN,
) = range(len(PHASES))
CG_PARTS = tuple(p.number for p in PHASES if p.name.startswith("cg."))
COMMUNICATION = (SEND, WAIT, UNPACK, ALLREDUCE)  # "communication inside CG" of the thesis
TOP_LEVEL = tuple(p.number for p in PHASES if not p.name.startswith("cg."))
